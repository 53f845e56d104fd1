import io
import json

import numpy as np
import pytest

from ocsdf_bench.measure import measure
from ocsdf_bench.metric import auroc
from ocsdf_bench.store import Store, line_hash
from ocsdf_bench.verify import verify

N = 20


@pytest.fixture
def store(tmp_path, invented_run):
    """Three runs whose metrics follow from their scores."""
    rng = np.random.default_rng(0)
    with Store(tmp_path) as opened:
        for seed in range(3):
            y = np.r_[np.zeros(N // 2, np.int8), np.ones(N // 2, np.int8)]
            arrays = {"y": y, "score": rng.standard_normal(N) + y}
            run = invented_run(seed=seed, radii=())
            metrics = tuple(measure(run.spec, arrays, None))
            opened.append(invented_run(seed=seed, radii=(), metrics=metrics, lipschitz=None), arrays)
    return tmp_path


def _lines(directory):
    return (directory / "runs.jsonl").read_text().splitlines()


def _write(directory, lines):
    (directory / "runs.jsonl").write_text("\n".join(lines) + "\n")


def _rechain(lines):
    """What somebody does who changes a row and knows of the chain."""
    previous, out = "", []
    for line in lines:
        text = json.dumps({**json.loads(line), "previous": previous}, sort_keys=True, separators=(",", ":"))
        out.append(text)
        previous = line_hash(text.encode())
    return out


def test_an_untouched_store_passes_and_gives_its_head(store):
    found = verify(store)
    assert (found.n_rows, found.n_recomputed, found.problem) == (3, 3, "")
    assert found.head == line_hash(_lines(store)[-1].encode())


def test_absent_scores_are_counted_not_hidden(store):
    next((store / "scores").iterdir()).unlink()
    found = verify(store)
    assert (found.n_recomputed, found.n_without_scores, found.problem) == (2, 1, "")


def test_a_changed_metric_is_found_by_the_chain(store):
    lines = _lines(store)
    lines[0] = lines[0].replace(
        '"metric":"auroc","radius":null,"threat":"","value":0.',
        '"metric":"auroc","radius":null,"threat":"","value":0.9',
    )
    _write(store, lines)
    assert "row 1" in verify(store).problem or "row 2" in verify(store).problem


def test_a_changed_metric_is_found_by_recomputing_where_the_chain_was_mended(store):
    lines = _lines(store)
    row = json.loads(lines[1])
    row["metrics"][0]["value"] = 0.999
    _write(store, _rechain([lines[0], json.dumps(row), lines[2]]))
    assert verify(store).problem.startswith("row 2 (wine, OCSDF, seed 1): metric auroc is 0.999 in the row")


def test_a_removed_metric_is_found(store):
    lines = _lines(store)
    row = json.loads(lines[1])
    del row["metrics"][0]
    _write(store, _rechain([lines[0], json.dumps(row), lines[2]]))
    assert "metric auroc is in the row or follows from its scores" in verify(store).problem


@pytest.mark.parametrize(
    "change", [lambda rows: rows[1:], lambda rows: [rows[0], rows[2]], lambda rows: rows[::-1]]
)
def test_a_removed_or_moved_row_is_found(store, change):
    _write(store, change(_lines(store)))
    assert "does not follow the row before it" in verify(store).problem


def test_another_seed_claimed_for_a_row_is_found_by_its_fingerprint(store):
    lines = _lines(store)
    row = json.loads(lines[2])
    row["spec"]["seed"] = 7
    _write(store, _rechain([*lines[:2], json.dumps(row)]))
    assert "fingerprint does not belong" in verify(store).problem


@pytest.mark.parametrize("name", ["score", "y"])
def test_a_changed_score_or_label_is_found_even_where_its_hash_was_mended(store, name):
    lines = _lines(store)
    row = json.loads(lines[1])
    path = store / "scores" / f"{row['fingerprint']}.npz"
    with np.load(path) as arrays:
        changed = {key: arrays[key].copy() for key in arrays.files}
    worst = np.argsort(changed["score"])[[0, -1]]
    changed[name][worst] = changed[name][worst[::-1]]
    assert auroc(changed["y"], changed["score"]) != row["metrics"][0]["value"]
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **changed)
    path.write_bytes(buffer.getvalue())
    assert "differ from the sha256" in verify(store).problem
    row["scores_sha256"] = line_hash(buffer.getvalue())
    _write(store, _rechain([lines[0], json.dumps(row), lines[2]]))
    assert "row 2" in verify(store).problem
