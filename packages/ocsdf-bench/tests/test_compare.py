"""The gate opens for what is equal, closes for what is worse, and refuses what cannot be compared."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from ocsdf_bench.cli import app
from ocsdf_bench.compare import compare, to_markdown
from ocsdf_bench.suite import canonical

SETS = ("breastw", "cardio", "glass", "http", "wine", "wbc", "pima", "musk")


def _store(run, detector="KNN", shift=0.0, spread=0.0, **changes):
    return [
        run(detector, dataset, auroc=0.8 + shift + spread * (-1) ** i, slope=0.2, **changes)
        for i, dataset in enumerate(SETS)
    ]


def test_equal_stores_are_equivalent(invented_runs):
    found = compare(invented_runs, invented_runs)
    assert found.exit_code == 0
    assert {change.verdict for change in found.changes} == {"equivalent"}
    assert found.n_pairs == len(invented_runs)
    assert "## No regression" in to_markdown(found)


def test_a_worse_detector_is_a_regression_and_closes_the_gate(invented_run):
    found = compare(_store(invented_run), _store(invented_run, shift=-0.03))
    assert found.exit_code == 1
    assert {c.metric for c in found.regressions} >= {"auroc", "certified_auroc at radius 0.1, both"}
    assert "**regression**" in to_markdown(found)


def test_a_loss_within_the_margin_is_equivalent(invented_run):
    found = compare(_store(invented_run), _store(invented_run, shift=-0.009))
    assert found.exit_code == 0
    assert {c.verdict for c in found.changes} == {"equivalent"}


def test_the_margin_is_the_callers(invented_run):
    worse = _store(invented_run, shift=-0.03)
    assert compare(_store(invented_run), worse, margin=0.04).exit_code == 0
    assert compare(_store(invented_run), worse, margin=0.0).exit_code == 1


def test_a_gain_is_better_and_never_a_regression(invented_run):
    found = compare(_store(invented_run), _store(invented_run, shift=0.05))
    assert found.exit_code == 0
    assert {c.verdict for c in found.changes} == {"better"}


def test_noise_around_a_loss_that_no_test_can_see_is_undecided(invented_run):
    found = compare(_store(invented_run), _store(invented_run, shift=-0.012, spread=0.03))
    assert found.exit_code == 0
    assert {c.verdict for c in found.changes} == {"undecided"}


def test_with_few_pairs_the_mean_alone_decides(invented_run):
    base, new = [invented_run(auroc=0.9)], [invented_run(auroc=0.88)]
    assert compare(base, new).exit_code == 1


def test_a_collapse_on_one_set_is_a_regression_whatever_the_mean(invented_run):
    base, new = _store(invented_run), _store(invented_run)
    new[3] = invented_run("KNN", SETS[3], auroc=0.74, slope=0.2)
    (change,) = [c for c in compare(base, new).changes if c.metric == "auroc"]
    assert change.difference > -0.01
    assert change.verdict == "regression"
    assert change.worst_set == "unsupervised: http"
    assert change.worst_difference == pytest.approx(-0.06)


def test_a_certificate_that_shrinks_is_a_regression_though_the_clean_auroc_stays(invented_run):
    base = [invented_run("KNN", d, auroc=0.8, slope=0.2) for d in SETS]
    new = [invented_run("KNN", d, auroc=0.8, slope=0.3) for d in SETS]
    found = compare(base, new)
    assert {c.metric for c in found.regressions} == {
        "certified_auroc at radius 0.25, both",
        "certified_auroc at radius 0.5, both",
    }


def test_a_lost_result_is_a_regression_with_its_reason(invented_run):
    new = _store(invented_run)
    new[0] = invented_run("KNN", SETS[0], auroc=None)
    found = compare(_store(invented_run), new)
    assert found.exit_code == 1
    assert found.lost == ("KNN on breastw, unsupervised, seed 0: failed, MemoryError: no room",)


def test_a_run_that_failed_before_and_works_now_is_no_regression(invented_run):
    base = _store(invented_run)
    base[0] = invented_run("KNN", SETS[0], auroc=None)
    assert compare(base, _store(invented_run)).exit_code == 0


@pytest.mark.parametrize("field", ["data_checksum", "split_checksum"])
def test_other_data_or_another_split_cannot_be_compared(invented_run, field):
    new = _store(invented_run)
    new[2] = replace(new[2], **{field: "f" * 64})
    found = compare(_store(invented_run), new)
    assert found.exit_code == 2
    assert len(found.incomparable) == 1
    assert field.split("_")[0] in found.incomparable[0]
    assert "cannot be compared" in to_markdown(found)


def test_runs_that_were_not_made_again_cannot_be_compared(invented_run):
    found = compare(_store(invented_run), _store(invented_run)[1:])
    assert found.exit_code == 2
    assert "KNN on breastw, unsupervised, seed 0: not run in the new store" in found.incomparable


def test_stores_without_a_common_run_cannot_be_compared(invented_run):
    found = compare([], _store(invented_run))
    assert found.exit_code == 2
    assert found.n_added == len(SETS)


def test_new_detectors_are_counted_and_do_not_close_the_gate(invented_run):
    base = _store(invented_run)
    found = compare(base, base + _store(invented_run, "PCA"))
    assert (found.exit_code, found.n_added) == (0, len(SETS))


def test_times_are_shown_and_never_gated(invented_run):
    slow = [replace(run, fit_seconds=1000.0) for run in _store(invented_run)]
    found = compare(_store(invented_run), slow)
    assert found.exit_code == 0
    assert found.timings[0].new == 1000.0
    assert "| KNN | 0.5 | 1e+03 |" in to_markdown(found)


def test_json_is_plain_and_holds_the_exit_code(invented_runs):
    entry = json.loads(json.dumps(compare(invented_runs, invented_runs).to_json()))
    assert entry["exit_code"] == 0
    assert entry["changes"][0]["verdict"] == "equivalent"


def test_markdown_escapes_a_hostile_name(invented_runs):
    text = to_markdown(compare(invented_runs, invented_runs))
    assert "<script>" not in text
    bars = {line.replace(r"\|", "").count("|") for line in text.splitlines() if line.startswith("| ")}
    assert bars == {10, 4}


@pytest.mark.parametrize("name", ["margin", "set_margin"])
def test_a_negative_margin_is_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` of compare must be >= 0 .* got -0.1"):
        compare([], [], **{name: -0.1})


def _write(directory, runs):
    directory.mkdir()
    (directory / "runs.jsonl").write_text("".join(canonical(run.to_json()) + "\n" for run in runs))
    return str(directory)


@pytest.mark.parametrize(("shift", "code"), [(0.0, 0), (-0.1, 1)])
def test_command_writes_both_summaries_and_exits_with_the_code(tmp_path, invented_run, shift, code):
    base = _write(tmp_path / "base", _store(invented_run))
    new = _write(tmp_path / "new", _store(invented_run, shift=shift))
    files = [str(tmp_path / name) for name in ("found.json", "found.md")]
    done = CliRunner().invoke(app, ["compare", base, new, "--json", files[0], "--summary", files[1]])
    assert done.exit_code == code, done.output
    assert json.loads((tmp_path / "found.json").read_text())["exit_code"] == code
    assert (tmp_path / "found.md").read_text().strip() in done.output


def test_command_exits_with_two_for_other_data_and_for_no_store(tmp_path, invented_run):
    base = _write(tmp_path / "base", _store(invented_run))
    other = _write(tmp_path / "other", [replace(r, data_checksum="f" * 64) for r in _store(invented_run)])
    assert CliRunner().invoke(app, ["compare", base, other]).exit_code == 2
    assert CliRunner().invoke(app, ["compare", base, str(tmp_path / "absent")]).exit_code == 2
