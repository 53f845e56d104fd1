import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocsdf_bench.store import (
    Run,
    Store,
    StoreCorruptError,
    StoreError,
    read_runs,
    read_scores,
)

SCORES = {"score": np.array([0.1, 0.2, 0.9]), "y": np.array([0, 0, 1], dtype=np.int8)}


def _fill(directory, invented_run, n=4):
    with Store(directory) as store:
        return [store.append(invented_run(seed=seed), SCORES) for seed in range(n)]


def test_a_run_survives_json(invented_run):
    run = invented_run(slope=0.2, attacked=True)
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_the_format_is_one_object_a_line_with_the_fields_of_a_run(tmp_path, invented_run):
    _fill(tmp_path, invented_run)
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 4
    assert set(json.loads(lines[0])) == set(Run.__dataclass_fields__)


def test_what_was_appended_is_read_back(tmp_path, invented_run):
    written = _fill(tmp_path, invented_run)
    assert read_runs(tmp_path) == written
    np.testing.assert_array_equal(read_scores(tmp_path, written[2])["score"], SCORES["score"])


def test_of_two_rows_of_one_run_the_later_counts(tmp_path, invented_run):
    with Store(tmp_path) as store:
        store.append(invented_run(auroc=None))
        store.append(invented_run(auroc=0.9))
    assert [run.status for run in read_runs(tmp_path)] == ["ok"]


def test_rows_are_read_in_an_order_that_does_not_depend_on_when_they_finished(tmp_path, invented_run):
    runs = [invented_run(seed=seed, dataset=name) for seed in (0, 1) for name in ("wine", "glass")]
    for directory, order in (("a", runs), ("b", runs[::-1])):
        with Store(tmp_path / directory) as store:
            for run in order:
                store.append(run)
    a, b = ([replace(r, previous="") for r in read_runs(tmp_path / d)] for d in "ab")
    assert a == b


def test_a_second_writer_is_refused_with_a_sentence(tmp_path):
    with Store(tmp_path), pytest.raises(StoreError, match="must have one writer"), Store(tmp_path):
        pass
    with Store(tmp_path):
        pass  # the lock went with the first writer


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_a_torn_last_line_is_dropped_with_a_warning_and_the_chain_goes_on(
    tmp_path_factory, invented_run, data
):
    directory = tmp_path_factory.mktemp("store")
    written = _fill(directory, invented_run, 3)
    path = directory / "runs.jsonl"
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")
    torn = cut > 0 and content[cut - 1 : cut] != b"\n"
    assert read_runs(directory) == written[:whole]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Store(directory) as store:
            for run in written[whole:]:
                store.append(run, SCORES)
    assert bool(caught) == torn
    assert path.read_bytes() == content


def test_a_line_that_is_not_a_run_is_named(tmp_path, invented_run):
    _fill(tmp_path, invented_run, 2)
    path = tmp_path / "runs.jsonl"
    path.write_text(path.read_text().replace('"status"', '"stutus"', 1))
    with pytest.raises(StoreCorruptError, match="row 1 of runs.jsonl"):
        read_runs(tmp_path)


def test_changed_scores_are_refused(tmp_path, invented_run):
    (run,) = _fill(tmp_path, invented_run, 1)
    (path,) = (tmp_path / "scores").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreCorruptError, match="sha256"):
        read_scores(tmp_path, run)


def test_scores_that_find_no_room_make_the_run_failed(tmp_path, invented_run):
    with Store(tmp_path) as store:
        (tmp_path / "scores").symlink_to("/dev/full")  # nothing can be put below a device
        run = store.append(invented_run(), SCORES)
    assert run.status == "failed"
    assert "scores could not be stored" in run.reason
    assert run.metrics == ()
    assert [r.status for r in read_runs(tmp_path)] == ["failed"]


def test_a_row_that_finds_no_room_stops_the_suite_with_a_sentence(tmp_path, invented_run):
    with Store(tmp_path) as store:
        store.append(invented_run())
        real = store._file
        store._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
        with pytest.raises(StoreError, match="No space left on device.*same command"):
            store.append(invented_run(seed=1))
        real.close()
    assert len(read_runs(tmp_path)) == 1
