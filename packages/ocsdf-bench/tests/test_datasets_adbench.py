"""ADBench's 47 classical sets: all registered, with its counts, and pinned where no checksum is published."""

from __future__ import annotations

import doctest
import io
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ocsdf_bench.card import card
from ocsdf_bench.dataset import DATASETS, DataCorruptError
from ocsdf_bench.datasets import adbench
from ocsdf_bench.datasets.adbench import classical
from ocsdf_bench.datasets.odds import load_table
from ocsdf_bench.protocol import make_split, n_copies
from ocsdf_bench.source import MirrorOrDownload
from ocsdf_bench.suite_file import read_suite

# Nothing here asks git (test_git_listing.py does), so that every file is held to what was seen first.
pytestmark = pytest.mark.filterwarnings("ignore:.*first sight:UserWarning")

SUITE = Path(__file__).parents[3] / "benchmarks" / "adbench.toml"
ROW = {
    "name": "small",
    "file": "99_small.npz",
    "digest": "",
    "n_normal": "8",
    "n_anomaly": "2",
    "n_features": "3",
}


def test_doctests_of_the_module_hold():
    assert doctest.testmod(adbench).failed == 0


def test_all_47_are_registered_in_adbenchs_order_with_its_counts():
    sets = classical()
    assert [s.number for s in sets] == list(range(1, 48))
    assert len({s.name for s in sets}) == len({s.stem for s in sets}) == 47
    rows = {row["name"]: row for row in adbench._rows()}
    for known in sets:
        dataset = DATASETS[known.name]
        assert known.stem in dataset.source
        for field in ("n_normal", "n_anomaly", "n_features"):
            assert getattr(dataset, field) == int(rows[known.name][field]), known.name


def test_samples_and_anomalies_are_those_that_adbench_prints():
    printed = {
        "1_ALOI": (49534, 1508),
        "15_Hepatitis": (80, 13),
        "33_skin": (245057, 50859),
        "47_yeast": (1484, 507),
    }
    for known in classical():
        if known.stem in printed:
            dataset = DATASETS[known.name]
            assert (dataset.n_normal + dataset.n_anomaly, dataset.n_anomaly) == printed[known.stem]


def test_a_set_without_a_published_checksum_says_so_on_its_card():
    assert "no checksum is published" in card(DATASETS["aloi"])["note"]
    assert "no checksum is published" not in card(DATASETS["breastw"])["note"]


@pytest.mark.skipif(not SUITE.exists(), reason="the suites are not part of the installed package")
def test_the_suite_runs_every_set_under_both_protocols():
    suite = read_suite(SUITE)
    for protocol in ("adbench", "adbench-clean"):
        names = dict.fromkeys(run.dataset for run in suite.runs if run.protocol == protocol)
        assert list(names) == [s.name for s in classical()]


def _bytes(n_anomaly: int = 2, fill: float = 1.0) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, X=np.full((10, 3), fill), y=np.repeat([0, 1], [10 - n_anomaly, n_anomaly]))
    return stream.getvalue()


@pytest.fixture
def source(tmp_path: Path) -> MirrorOrDownload:
    (tmp_path / "mirror" / "odds").mkdir(parents=True)
    return MirrorOrDownload(data_dir=tmp_path / "mirror", offline=True, cache=tmp_path / "cache")


def _publish(source: MirrorOrDownload, content: bytes) -> Path:
    assert source.mirror is not None
    path = source.mirror / "odds" / ROW["file"]
    path.write_bytes(content)
    return path


load = partial(load_table, ROW)


def test_the_first_file_with_the_right_counts_is_pinned_and_another_is_refused(source: MirrorOrDownload):
    _publish(source, _bytes())
    assert load(source).checksum == load(source).checksum
    pin = source.cache_dir / "odds" / "99_small.npz.sha256"
    assert pin.read_text().endswith("  99_small.npz\n")  # as sha256sum writes it
    _publish(source, _bytes(fill=2.0))
    with pytest.raises(DataCorruptError, match="must have sha256 .* seen first.* delete"):
        load(source)
    pin.unlink()
    assert load(source).X[0, 0] == 2.0


def test_a_file_with_other_counts_is_refused_and_not_pinned(source: MirrorOrDownload):
    _publish(source, _bytes(n_anomaly=3))
    with pytest.raises(DataCorruptError, match=r"must have \(8, 2, 3\) normals, anomalies and features"):
        load(source)
    assert not list(source.cache_dir.rglob("*")) or not list(source.cache_dir.rglob("*.sha256"))


def test_the_mirror_is_never_written(source: MirrorOrDownload):
    path = _publish(source, _bytes())
    load(source)
    assert list(path.parent.iterdir()) == [path]


def test_a_pin_that_is_no_checksum_is_a_sentence(source: MirrorOrDownload):
    _publish(source, _bytes())
    load(source)
    (source.cache_dir / "odds" / "99_small.npz.sha256").write_text("")
    with pytest.raises(DataCorruptError, match="delete"):
        load(source)


def test_a_pinned_file_of_the_cache_that_was_damaged_is_removed(source: MirrorOrDownload):
    kept = source.cache_dir / "odds" / ROW["file"]
    kept.parent.mkdir(parents=True)
    kept.write_bytes(_bytes())
    alone = replace(source, data_dir=source.cache_dir / "no-mirror")
    load(alone)
    kept.write_bytes(_bytes()[:-20])
    with pytest.raises(DataCorruptError, match="removed from the cache"):
        load(alone)
    assert not kept.exists()


@pytest.mark.data
def test_adbench_copies_most_test_rows_of_a_small_set_and_its_clean_twin_does_not():
    if not os.environ.get("OCSDF_DATA"):
        pytest.skip("needs the mirror of real data; set OCSDF_DATA to its folder")
    data = DATASETS["glass-adbench"].load(MirrorOrDownload(offline=True))
    copied, clean = (make_split(data, protocol, seed=1) for protocol in ("adbench", "adbench-clean"))
    assert n_copies(copied) / len(copied.y_test) > 0.9
    assert n_copies(clean) == 1  # glass holds one row twice
