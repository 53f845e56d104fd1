"""The paper's network from deel-lip layers, in a process of its own: Keras 2 is chosen once a process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ocsdf_bench.store import read_runs

ABSENT = importlib.util.find_spec("deel") is None or importlib.util.find_spec("tf_keras") is None
pytestmark = pytest.mark.skipif(ABSENT, reason="needs the extra ocsdf-core[deel-lip]")

SCRIPT = """
import json
import numpy as np
from ocsdf_bench.attack import ATTACKS, attack_scores
from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.metric import auroc

rng = np.random.default_rng(0)
found = {}
X = rng.normal(size=(256, 2)) * 0.3 + np.array([1.0, -1.0])
away = rng.uniform(-5, 5, (200, 2))
away = away[np.linalg.norm(away - [1.0, -1.0], axis=1) > 1.5]
long = {"epochs": 150, "max_steps": 300, "margin": 0.3}
make = lambda: DETECTORS["ocsdf-deel-lip"].build(seed=0, widths=(16, 16), **long)
core = DETECTORS["OCSDF"].build(seed=0, recipe="paper", hidden=(16, 16), **long)
first, second = make(), make()
for detector in (first, second, core):
    detector.fit(X)
rows, y = np.vstack([X, away]), np.repeat([0, 1], [len(X), len(away)])
found["auroc"] = [auroc(y, detector.anomaly_score(rows)) for detector in (first, core)]
found["same"] = bool((first.anomaly_score(rows) == second.anomaly_score(rows)).all())
found["lipschitz"] = first.lipschitz
found["budget"] = first.budget
step = 1e-2
ahead = rng.normal(size=rows.shape)
ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
gain = np.abs(first.anomaly_score(rows + step * ahead) - first.anomaly_score(rows)) / step
worst = attack_scores(ATTACKS["apgd"], first, rows, np.where(y == 1, -1, 1), 0.3)
found["gain"] = float(gain.max())
found["moved"] = float(np.abs(worst - first.anomaly_score(rows)).max())

images = rng.random((24, 8, 8))
vgg = DETECTORS["ocsdf-deel-lip"].build(
    seed=0, network="vgg", widths=(4, 8), depth=1, max_steps=5, batch_size=8, newton_steps=2
)
vgg.fit(images)
finite = int(np.isfinite(vgg.anomaly_score(images)).sum())
found["vgg"] = [vgg.lipschitz, finite, list(vgg.gradient(images).shape)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("TF_USE_LEGACY_KERAS", None)  # the detector sets it, nobody else
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_it_detects_as_well_as_cores_own_network_of_that_size(found: dict[str, Any]) -> None:
    theirs, ours = found["auroc"]
    assert theirs > 0.99
    assert ours > 0.99
    assert abs(theirs - ours) < 0.01


def test_the_same_seed_gives_the_same_scores(found: dict[str, Any]) -> None:
    assert found["same"]


def test_the_constant_is_proven_from_the_weights_and_no_attack_beats_it(found: dict[str, Any]) -> None:
    assert 0.5 < found["lipschitz"] < 1.01
    assert found["gain"] <= found["lipschitz"] + 1e-3  # float32 scores over a step of 0.01
    assert found["moved"] <= 0.3 * found["lipschitz"] + 1e-5


def test_the_budget_says_how_long_it_was_trained(found: dict[str, Any]) -> None:
    assert found["budget"]["steps"] == 300
    assert found["budget"]["newton_steps"] == 4


def test_convolutions_take_images_without_a_channel_and_are_bounded(found: dict[str, Any]) -> None:
    lipschitz, n_finite, shape = found["vgg"]
    assert 0 < lipschitz < 1.5
    assert n_finite == 24
    assert shape == [24, 8, 8]


def test_where_keras_3_is_in_use_the_refusal_says_what_to_do() -> None:
    code = (
        "import tensorflow as tf; tf.keras.Sequential\n"
        "from ocsdf_bench.detector import DETECTORS\nDETECTORS['ocsdf-deel-lip'].build(seed=0)"
    )
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode != 0
    assert "each run has a process of its own" in done.stderr


SUITE = """
name = "beside"
protocol = "one-versus-rest"
datasets = [{ name = "sk-digits", normal_classes = ["2"] }]
seeds = [0]
radii = [0.3]
detectors = [
  { name = "DeepSVDD", params = { max_steps = 5 } },
  { name = "ocsdf-deel-lip", params = { widths = [8], max_steps = 5 } },
]
[[attacks]]
name = "l2-pgd"
radii = [0.3]
n_rows = 20
"""


def test_a_suite_attacks_it_beside_detectors_that_use_keras_3(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)
    command = [sys.executable, "-m", "ocsdf_bench", "run", "suite.toml", "--out", "out", "--no-report"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    runs = read_runs(tmp_path / "out")
    assert [run.status for run in runs] == ["ok", "ok"], done.stdout
    for run in runs:
        assert any(m.metric == "attacked_auroc:l2-pgd" for m in run.metrics)
