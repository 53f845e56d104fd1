import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ocsdf_bench import isolation
from ocsdf_bench.plugin import load_plugins
from ocsdf_bench.runner import run_suite
from ocsdf_bench.source import MirrorOrDownload
from ocsdf_bench.store import read_runs, read_scores
from ocsdf_bench.suite_file import read_suite
from ocsdf_bench.verify import verify

PLUGIN = Path(__file__).with_name("misbehaving.py")
load_plugins([PLUGIN])
HEAD = 'name = "small"\nprotocol = "unsupervised"\ndatasets = ["tiny"]\nradii = [0.1]\nseeds = [0, 1]\n'


def _suite(tmp_path, body, head=HEAD):
    path = tmp_path / "suite.toml"
    path.write_text(head + body)
    return read_suite(path)


def _run(tmp_path, body, head=HEAD, **options):
    options = {"workers": 2, "plugins": [PLUGIN], **options}
    source = MirrorOrDownload(offline=True)
    summary = run_suite(_suite(tmp_path, body, head), tmp_path / "out", source, **options)
    return summary, read_runs(tmp_path / "out")


def _value(run, metric):
    return next(m.value for m in run.metrics if m.metric == metric)


def _facts(run):
    """What of a row does not depend on when and how fast it ran."""
    return replace(run, previous="", fit_seconds=None, score_seconds=None, peak_mb=None)


def test_a_run_is_a_row_with_metrics_times_sizes_and_its_origin(tmp_path):
    summary, (first, second) = _run(tmp_path, '[[detectors]]\nname = "Centre"\nparams = {noise = 0.5}')
    assert summary.statuses == {"ok": 2}
    assert (first.n_train, first.n_test, first.n_features, first.distinct_scores) == (58, 58, 4, 58)
    assert first.lipschitz == 1.0
    assert first.fit_seconds >= 0
    assert first.peak_mb >= 0
    assert set(first.versions) >= {"python", "numpy", "scikit-learn"}
    assert first.hardware["threads"] >= 1
    assert _value(first, "certified_auroc") <= _value(first, "auroc")
    assert _value(first, "auroc") != _value(second, "auroc")  # the seed reaches the detector
    assert len(read_scores(tmp_path / "out", first)["score"]) == 58


def test_a_detector_that_asks_for_a_fresh_process_gets_one_beside_others(tmp_path):
    summary, _ = _run(tmp_path, '[[detectors]]\nname = "Fresh"\n[[detectors]]\nname = "Centre"')
    assert summary.statuses == {"ok": 3}


def test_the_same_suite_again_runs_nothing(tmp_path):
    body = '[[detectors]]\nname = "Centre"'
    _, before = _run(tmp_path, body)
    summary, after = _run(tmp_path, body)
    assert (summary.done, summary.skipped) == (0, 2)
    assert after == before


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("exception", "failed", "fit: ValueError: the detector did not like the data in file.csv"),
        ("segfault", "failed", "SIGSEGV"),
        ("abort", "failed", "SIGABRT"),
        ("exit", "failed", "exit code 3"),
        ("hang", "timeout", "limit of 1.5 s"),
        ("stubborn", "timeout", "limit of 1.5 s"),
        ("memory", "oom", "limit of 1500 MB"),
        ("memory_error", "oom", "no room for 1 TB"),
        ("disk", "failed", "No space left on device"),
        ("nan", "failed", "must be finite; got nan in 58 of 58 rows"),
        ("shape", "failed", "one score a row"),
        ("grandchild", "failed", "exit code 0"),
        ("noisy", "ok", ""),
        ("constant", "ok", ""),
    ],
)
def test_each_way_to_fail_is_a_row_with_its_reason(tmp_path, monkeypatch, how, status, words):
    monkeypatch.setattr(isolation, "GRACE_SECONDS", 0.3)
    wall = 1.5 if how in ("hang", "stubborn") else 60  # a busy machine may take its time to raise
    limits = f"\n[limits]\nwall_seconds = {wall}\nmemory_mb = 1500"
    body = f'[[detectors]]\nname = "Misbehaving"\nparams = {{how = "{how}"}}' + limits
    _, (run,) = _run(tmp_path, body)
    assert (run.status, words in run.reason) == (status, True), run.reason
    assert bool(run.metrics) == (status == "ok")
    assert "/home" not in run.reason


def test_a_failure_does_not_stop_the_others_and_is_not_repeated_unless_asked(tmp_path):
    body = '[[detectors]]\nname = "Misbehaving"\nparams = {how = "segfault"}\n[[detectors]]\nname = "Centre"'
    summary, runs = _run(tmp_path, body, workers=1)
    assert summary.statuses == {"failed": 1, "ok": 2}
    assert _run(tmp_path, body)[0].done == 0
    assert _run(tmp_path, body, retry=["timeout"])[0].done == 0
    again, after = _run(tmp_path, body, retry=["failed"])
    assert again.statuses == {"failed": 1}
    assert [_facts(r).status for r in after] == [_facts(r).status for r in runs]
    assert verify(tmp_path / "out").problem == ""


def test_data_that_are_absent_are_skipped_and_corrupt_ones_failed(tmp_path):
    head = HEAD.replace('["tiny"]', '["absent", "corrupt", "no-anomaly"]').replace("[0, 1]", "[0]")
    _, runs = _run(tmp_path, '[[detectors]]\nname = "Centre"', head)
    found = {run.spec.dataset: (run.status, run.reason) for run in runs}
    assert found["absent"] == ("skipped", "data file 'absent.npz' is not on this machine.")
    assert found["corrupt"][0] == "failed"
    assert found["no-anomaly"] == (
        "skipped", "the test part has no anomaly, so that no ranking metric is defined.",
    )  # fmt: skip


def test_caps_are_recorded_in_the_budget_and_all_rows_are_scored(tmp_path):
    _, (run, _) = _run(tmp_path, '[[detectors]]\nname = "Capped"')
    assert run.budget == {"fit_rows": 20, "score_block": 30}
    assert run.status == "ok"
    assert run.spec.params == {}


def test_the_winner_by_labels_runs_every_seed_under_its_own_name_and_is_fitted_once(tmp_path):
    body = (
        '[[chosen_with_labels]]\nname = "Centre-best-shift"\ndetector = "Centre"\n'
        'params = {noise = 0.2}\nparameter = "shift"\nvalues = [3, 0, -3]'
    )
    _, runs = _run(tmp_path, body)
    candidates = [r for r in runs if r.spec.detector == "Centre"]
    best = max(candidates, key=lambda r: _value(r, "auroc"))
    finals = [r for r in runs if r.spec.detector == "Centre-best-shift"]
    assert [r.spec.seed for r in candidates] == [0, 0, 0]
    assert [r.spec.seed for r in finals] == [0, 1]
    assert finals[0].spec.params == {"noise": 0.2, "shift": [3, 0, -3]}
    assert finals[0].budget["chosen"] == {"shift": best.spec.params["shift"]}
    assert (finals[0].fit_seconds, finals[0].metrics) == (best.fit_seconds, best.metrics)
    assert _run(tmp_path, body)[0].done == 0


def test_a_new_radius_is_measured_from_the_stored_scores_without_a_fit(tmp_path):
    _, before = _run(tmp_path, '[[detectors]]\nname = "Centre"\nparams = {sleep = 0.3}')
    _, after = _run(tmp_path, '[[detectors]]\nname = "Centre"\nparams = {sleep = 0.3}\nradii = [0.1, 0.7]')
    assert [r.fit_seconds for r in after] == [r.fit_seconds for r in before]
    assert {m.radius for m in after[0].metrics} == {None, 0.1, 0.7}
    assert verify(tmp_path / "out").problem == ""


@pytest.mark.parametrize("attack", ["noise", "l2-pgd-reference"])
def test_attacked_lies_between_certified_and_clean_on_the_same_rows(tmp_path, attack):
    body = f'[[detectors]]\nname = "Centre"\n[[attacks]]\nname = "{attack}"\nradii = [0, 0.3]\nn_rows = 20'
    _, (run, _) = _run(tmp_path, body)
    for radius in (0.0, 0.3):
        value = {m.metric: m.value for m in run.metrics if m.radius == radius and m.n_test == 20}
        assert set(value) == {"auroc", "certified_auroc", f"attacked_auroc:{attack}"}
        assert value["certified_auroc"] <= value[f"attacked_auroc:{attack}"] <= value["auroc"]
        if radius == 0:
            assert len(set(value.values())) == 1


def test_a_false_certificate_fails_the_run_loudly(tmp_path):
    attack = '\n[[attacks]]\nname = "l2-pgd-reference"\nradii = [0.3]'
    _, (run,) = _run(tmp_path, '[[detectors]]\nname = "FalseCertificate"' + attack)
    assert run.status == "failed"
    assert "The stated constant is no bound" in run.reason


@pytest.mark.parametrize(("share", "status"), [(0.9, "failed"), (1.0, "ok")])
def test_false_bounds_of_a_detectors_own_fail_the_run_and_true_ones_are_stored(tmp_path, share, status):
    body = f'[[detectors]]\nname = "FalseCertificate"\nparams = {{bounds = {share}}}'
    attack = '\n[[attacks]]\nname = "l2-pgd-reference"\nradii = [0.3]'
    _, (run,) = _run(tmp_path, body + attack)
    assert run.status == status
    if status == "failed":
        assert "outside of the bounds" in run.reason
        return
    assert ("certified_auroc:constant", 0.1) in {(m.metric, m.radius) for m in run.metrics}
    arrays = read_scores(tmp_path / "out", run)
    moved = np.where(arrays["y"] == 1, -0.3, 0.3)
    np.testing.assert_allclose(arrays["bound:0.3"], arrays["score"] + moved)
    # Nothing is proven at other radii: the stored scores do not answer a suite that asks for them.
    _, (run,) = _run(tmp_path, body, HEAD.replace("0.1", "0.2"))
    assert "bound:0.2" in read_scores(tmp_path / "out", run)


def test_an_attack_a_detector_can_not_be_read_by_is_a_note_or_where_it_is_named_a_failure(tmp_path):
    attack = '\n[[attacks]]\nname = "l2-pgd-reference"\nradii = [0.3]'
    _, (run, _) = _run(tmp_path, '[[detectors]]\nname = "Capped"' + attack)
    assert "depends on the other rows" in run.budget["attack l2-pgd-reference"]
    _, (run, _) = _run(tmp_path, '[[detectors]]\nname = "Capped"' + attack + '\ndetectors = ["Capped"]')
    assert run.status == "failed"


def test_several_workers_give_what_one_gives(tmp_path):
    body = '[[detectors]]\nname = "Centre"\nparams = {noise = 0.5}\nseeds = [0, 1, 2, 3]'
    results = []
    for workers in (1, 3):
        (tmp_path / str(workers)).mkdir()
        _, runs = _run(tmp_path / str(workers), body, workers=workers)
        results.append([replace(_facts(r), hardware={}) for r in runs])
    assert results[0] == results[1]


SLOW = '[[detectors]]\nname = "Centre"\nparams = {{noise = 0.5, sleep = 0.1}}\nseeds = {seeds}'


def _command(tmp_path, n_runs):
    (tmp_path / "suite.toml").write_text(HEAD + SLOW.format(seeds=list(range(n_runs))))
    arguments = [
        "run",
        "suite.toml",
        "--out",
        "out",
        "--no-report",
        "--workers",
        "2",
        "--plugin",
        str(PLUGIN),
    ]
    return [sys.executable, "-m", "ocsdf_bench", *arguments]


def _rows(directory):
    path = directory / "out" / "runs.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _interrupt(tmp_path, command, number, rng):
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    polite = number != signal.SIGKILL  # asked while it starts, Python itself answers
    wanted = _rows(tmp_path) + rng.choice((1, 2) if polite else (0, 1, 2))
    while process.poll() is None and _rows(tmp_path) < wanted:
        time.sleep(0.01)
    time.sleep(rng.random() * 0.2)
    process.send_signal(number)
    output, _ = process.communicate()
    return process.returncode, output


SIGNALS = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize(
    ("signals", "n_runs"),
    [(SIGNALS, 10), pytest.param([signal.SIGKILL] * 50, 60, marks=pytest.mark.slow)],
    ids=["kill, interrupt, terminate", "fifty kills"],
)
def test_stopped_at_random_moments_nothing_is_lost_and_nothing_done_twice(tmp_path, signals, n_runs):
    rng, command = random.Random(0), _command(tmp_path, n_runs)
    for number in signals:
        code, output = _interrupt(tmp_path, command, number, rng)
        assert code in (0, -signal.SIGKILL if number == signal.SIGKILL else 130)
        assert (code == 130) == ("The same command goes on" in output)
        path = tmp_path / "out" / "runs.jsonl"
        if number == signals[0] and path.exists():  # and a row is half written when the machine goes down
            with path.open("ab") as file:
                file.write(b'{"budget":{},"comm')
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "runs.jsonl").read_text().splitlines()
    fingerprints = [json.loads(line)["fingerprint"] for line in lines]
    assert len(fingerprints) == len(set(fingerprints)) == n_runs
    assert verify(tmp_path / "out").problem == ""
    (tmp_path / "whole").mkdir()
    _, expected = _run(tmp_path / "whole", SLOW.format(seeds=list(range(n_runs))))
    elsewhere = {"commit": "", "dirty": None}
    found = [replace(_facts(r), **elsewhere) for r in read_runs(tmp_path / "out")]
    assert found == [replace(_facts(r), **elsewhere) for r in expected]


def test_a_second_process_on_one_store_is_refused_with_a_sentence(tmp_path):
    command = _command(tmp_path, 8)
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while first.poll() is None and not (tmp_path / "out" / "runs.lock").exists():
        time.sleep(0.01)
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert "must have one writer" in second.stderr
    assert first.wait() == 0
    assert _rows(tmp_path) == 8


DIGITS = (
    'name = "digits"\nprotocol = "one-versus-rest"\nseeds = [0]\n'
    'datasets = [{name = "sk-digits", normal_classes = ["3"]}]\n'
)


def test_scores_of_fitted_images_are_kept_and_measured_against_the_test_anomalies(tmp_path):
    _, (run,) = _run(
        tmp_path, 'detectors = [{name = "KNN-distance", params = {k = 1, n_reference = 0}}]', DIGITS
    )
    arrays = read_scores(tmp_path / "out", run)
    np.testing.assert_allclose(arrays["score_train"], 0, atol=1e-6)  # its own nearest neighbour
    assert _value(run, "train_auroc") == 1 > _value(run, "auroc")
    assert verify(tmp_path / "out").problem == ""


def test_a_transfer_attack_reaches_a_detector_without_a_gradient(tmp_path):
    attack = '\n[[attacks]]\nname = "transfer"\nradii = [0.3]\nn_rows = 60\n'
    _, (run,) = _run(tmp_path, 'detectors = ["KNN"]' + attack, DIGITS)
    value = {m.metric: m.value for m in run.metrics if m.n_test == 60}
    assert value["attacked_auroc:transfer"] < value["auroc"] - 0.01
