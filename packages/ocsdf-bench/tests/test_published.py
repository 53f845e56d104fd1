"""The transcription of the printed tables."""

from __future__ import annotations

import csv
import doctest
import os
from pathlib import Path

import pytest

from ocsdf_bench import published as module
from ocsdf_bench.published import BEST_OF_TABLE, published


def _mean(found, dataset, detector):
    return next(p.mean for p in found if (p.dataset, p.detector) == (dataset, detector))


def test_doctests_of_the_module_hold():
    assert doctest.testmod(module).failed == 0


def test_the_papers_table_has_its_nineteen_transcribed_sets():
    sets = {p.dataset for p in published("unsupervised")}
    assert len(sets) == 19
    assert {"breastw", "satimage-2", "wbc", "speech"} <= sets


def test_mean_without_speech_and_average_rank_are_the_known_ones():
    found = [p for p in published("unsupervised") if p.detector == "OCSDF-best-margin"]
    values = [p.mean for p in found if p.dataset != "speech"]
    ranks = [p.mean for p in published("unsupervised", "rank")]
    assert len(values) + 1 == len(ranks) == 19
    assert sum(values) / 18 == pytest.approx(0.824, abs=5e-4)
    assert sum(ranks) / 19 == pytest.approx(7.1, abs=0.1)


def test_the_best_column_is_never_below_another():
    found = published("unsupervised")
    for figure in found:
        assert figure.mean <= _mean(found, figure.dataset, BEST_OF_TABLE) + 1e-9, figure


def test_radii_are_pixels_and_certified_figures_fall_with_them():
    found = [
        (p.radius, p.mean)
        for p in published("one-versus-rest", "certified_auroc")
        if (p.dataset, p.normal_class) == ("mnist", "mean")
    ]
    assert [round(255 * radius) for radius, _ in found] == [8, 16, 36, 72]
    assert [mean for _, mean in found] == [0.932, 0.899, 0.784, 0.575]


def test_every_figure_names_its_source_and_is_a_rate():
    for protocol in ("unsupervised", "one-class", "one-versus-rest", "pyod-docs"):
        for figure in published(protocol):
            assert figure.source
            assert 0 <= figure.mean <= 1
            assert figure.std is None or 0 <= figure.std < 0.5


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("OCSDF_DATA"), reason="OCSDF_DATA names no mirror of the real data")
def test_transcription_equals_the_mirror():
    path = Path(os.environ["OCSDF_DATA"]) / "published" / "ocsdf_paper_odds_ad.csv"
    if not path.exists():
        pytest.skip(f"the mirror has no {path.name}")
    found = published("unsupervised")
    with path.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            name = row["dataset"].lower()
            assert _mean(found, name, "OCSDF-best-margin") == pytest.approx(float(row["ocsdf"]) / 100)
            assert _mean(found, name, "KNN") == pytest.approx(float(row["knn"]) / 100)
