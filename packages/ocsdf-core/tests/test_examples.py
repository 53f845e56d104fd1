"""The example runs as a reader would run it, on real data where they are."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "certify_odds.py"
pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside these tests")


def table_of(*arguments):
    run = subprocess.run([sys.executable, EXAMPLE, *arguments], capture_output=True, text=True, check=True)
    assert "TensorFlow imported: False" in run.stdout
    lines = run.stdout.split("\n\n")[1].strip().splitlines()
    return {line[:36].strip(): np.array(line[36:].split(), float) for line in lines}


def check(table):
    """Certified values never rise with the radius, and a population is certified less than its sample."""
    assert table["radius (standard deviations)"][0] == 0.0
    falling = (
        "AUROC, these rows",
        "AUROC, population at 95 %",
        "average precision",
        "anomalies surely caught",
    )
    for name in (*falling, "anomalies flagged at p <= 0.05"):
        assert (np.diff(table[name]) <= 0).all()
    assert (np.diff(table["false alarms at 95 % found"]) >= 0).all()
    assert (table["AUROC, population at 95 %"] <= table["AUROC, these rows"]).all()


def test_the_example_runs_on_the_data_of_scikit_learn():
    table = table_of()
    check(table)
    assert table["AUROC, these rows"][0] > 90.0  # far under what it prints, so that only a broken one fails


@pytest.mark.data
def test_the_example_runs_on_a_set_of_odds():
    folder = os.environ.get("OCSDF_DATA")
    if not folder:
        pytest.skip("OCSDF_DATA names no folder with the real data")
    check(table_of(Path(folder) / "odds" / "6_cardio.npz"))
