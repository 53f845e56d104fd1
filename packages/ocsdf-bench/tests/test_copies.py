"""ADBench with and without its copies, side by side, from a few fixed runs."""

import pytest

from ocsdf_bench.leaderboard import build_leaderboard
from ocsdf_bench.suite import digest
from ocsdf_bench.table import ranking_text


@pytest.fixture
def runs(invented_run):
    """wine is bootstrapped by ADBench, cardio is not: there both protocols give the same rows."""
    found = []
    for protocol, gain, copies in (("adbench", 0.1, 270), ("adbench-clean", 0.0, 0)):
        for seed in (1, 2):
            for detector, level in (("OCSDF", 0.8), ("KNN", 0.7)):
                wine = {"n_test": 300, "n_copies": copies, "protocol": protocol}
                found.append(invented_run(detector, "wine", seed, level + gain, **wine))
                cardio = {"n_test": 100, "n_copies": 1, "protocol": protocol, "split_checksum": digest(seed)}
                found.append(invented_run(detector, "cardio", seed, level, **cardio))
    return found


def _table(runs, name, section=0):
    tables = build_leaderboard(runs).sections[section].tables
    return next((table for table in tables if table.name == name), None)


def _texts(table):
    return {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table.rows}


def test_the_gap_of_each_detector_is_over_all_sets_and_over_the_copied_ones(runs):
    table = _table(runs, "adbench-gap")
    assert _texts(table) == {
        "OCSDF": ["", "85.0", "80.0", "+5.0", "+10.0", "+10.0", "2"],
        "KNN": ["", "75.0", "70.0", "+5.0", "+10.0", "+10.0", "2"],
    }
    assert "mean of 1 copied sets" in table.columns[5].note


def test_the_leak_report_has_the_share_of_copied_test_rows_of_each_set(runs):
    assert _texts(_table(runs, "adbench-leak")) == {
        "cardio": ["1.0", "1.0", "75.0", "75.0", "+0.0"],
        "wine": ["90.0", "0.0", "85.0", "75.0", "+10.0"],
    }


def test_a_detector_without_a_twin_is_left_out_of_the_gap(runs, invented_run):
    alone = invented_run("HBOS", "wine", 1, 0.9, protocol="adbench")
    assert set(_texts(_table([*runs, alone], "adbench-gap"))) == {"OCSDF", "KNN"}


def test_a_failed_twin_does_not_count_as_zero(runs, invented_run):
    failed = invented_run("KNN", "wine", 2, None, protocol="adbench-clean")
    assert _texts(_table([*runs, failed], "adbench-gap"))["KNN"][2:5] == ["70.0", "+5.0", "+10.0"]


def test_the_tables_stand_once_and_only_where_both_protocols_were_run(runs):
    assert _table(runs, "adbench-gap", section=1) is None
    assert _table([run for run in runs if run.spec.protocol == "adbench"], "adbench-gap") is None


def test_the_data_sets_table_says_the_share_for_every_protocol(runs):
    assert [row.cells[4].text for row in _table(runs, "datasets", section=1).rows] == ["1.0", "0.0"]


def test_the_gap_is_printed(runs):
    assert "With and without ADBench's copies" in ranking_text(build_leaderboard(runs))
