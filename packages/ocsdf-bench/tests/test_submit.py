"""A third party's folder joins a leaderboard: its numbers are recomputed, what else it holds is refused."""

from __future__ import annotations

import csv
import html
import io
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ocsdf_bench.cli import app
from ocsdf_bench.dataset import DATASETS
from ocsdf_bench.metric import auroc
from ocsdf_bench.plugin import load_plugins
from ocsdf_bench.protocol import make_split
from ocsdf_bench.runner import run_suite
from ocsdf_bench.source import MirrorOrDownload
from ocsdf_bench.store import Store, read_runs
from ocsdf_bench.submit import SubmissionError, submit
from ocsdf_bench.suite_file import read_suite
from ocsdf_bench.table import write_report
from ocsdf_bench.verify import verify

PLUGIN = Path(__file__).with_name("misbehaving.py")
load_plugins([PLUGIN])
SOURCE = MirrorOrDownload(offline=True)
SUITE = (
    'name = "small"\nprotocol = "one-class"\ndatasets = ["tiny"]\nseeds = [0, 1]\ndetectors = ["Centre"]\n'
)
COLUMNS = ("protocol", "dataset", "detector", "seed", "metric", "value", "scores", "status", "reason")
HOSTILE = '<script>alert(1)</script>|_&%$#{}~^\\`*[x](y) " onload="x'


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """A store as the harness makes it."""
    folder = tmp_path_factory.mktemp("ours")
    (folder / "suite.toml").write_text(SUITE)
    run_suite(read_suite(folder / "suite.toml"), folder / "store", SOURCE, workers=1, plugins=[PLUGIN])
    return folder / "store"


@pytest.fixture
def store(ours, tmp_path):
    """A copy of it to write to."""
    with Store(tmp_path / "store") as copy:
        for run in read_runs(ours):
            copy.append(run)
    return tmp_path / "store"


def _labels(seed: int = 0) -> np.ndarray:
    return make_split(DATASETS["tiny"].load(SOURCE), "one-class", seed).y_test


def _score(seed: int = 0) -> np.ndarray:
    y = _labels(seed)
    return y + np.random.default_rng(seed).normal(0, 0.5, len(y))


class Folder:
    """A submission in the making."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "scores").mkdir(parents=True)
        self.lines: list[dict[str, str]] = []

    def add(self, seed: int = 0, detector: str = "Theirs", name: str = "", **changes: str) -> Folder:
        name = name or f"{seed}.npz"
        line = {
            "protocol": "one-class",
            "dataset": "tiny",
            "detector": detector,
            "seed": str(seed),
            "metric": "auroc",
            "value": repr(auroc(_labels(seed), _score(seed))),
            "scores": name,
        }
        self.lines.append(line | changes)
        if re.fullmatch(r"[\w.]+", name):
            np.savez(self.path / "scores" / name, score=_score(seed))
        return self

    def put(self, **arrays: np.ndarray) -> Folder:
        """Other contents of the first file of scores."""
        np.savez(self.path / "scores" / "0.npz", allow_pickle=True, **arrays)
        return self

    def join(self, store: Path, by: str = "A. Nother"):
        with (self.path / "runs.csv").open("w", newline="") as file:
            writer = csv.DictWriter(
                file, [*COLUMNS, *sorted({k for x in self.lines for k in x} - {*COLUMNS})]
            )
            writer.writeheader()
            writer.writerows(self.lines)
        return submit(self.path, store, SOURCE, by=by)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "theirs")


def test_a_submission_joins_the_store_recomputed_and_marked(folder, store):
    found = folder.add(0).add(1).join(store)
    assert len(found.runs) == 2
    theirs = [run for run in read_runs(store) if run.spec.detector == "Theirs"]
    assert [run.reported_by for run in theirs] == ["A. Nother"] * 2
    assert {m.metric for m in theirs[0].metrics} >= {"auroc", "average_precision", "fpr_at_95_tpr"}
    assert theirs[0].lipschitz is None
    assert theirs[0].split_checksum == next(r for r in read_runs(store) if r.spec.seed == 0).split_checksum
    assert verify(store).problem == ""
    write_report(store)
    assert "reported by A. Nother, recomputed" in (store / "leaderboard.md").read_text()


def test_the_folder_that_the_harness_itself_writes_can_be_submitted(folder, store):
    theirs = folder.add(0).path
    folder.join(store)
    write_report(store)  # runs.csv names the scores of each run
    again = Folder(theirs.parent / "again")
    rows = list(csv.DictReader((store / "runs.csv").open()))
    again.lines = [{**r, "detector": "Second"} for r in rows if r["detector"] == "Theirs"]
    (name,) = filter(None, (line["scores"] for line in again.lines))
    (again.path / "scores" / name).write_bytes((store / "scores" / name).read_bytes())
    assert len(again.join(store, "B").runs) == 1


def test_a_failed_run_of_theirs_is_a_row_with_its_reason(folder, store):
    failed = {
        "status": "failed",
        "reason": "no room in /home/them/x/y.txt",
        "scores": "",
        "metric": "",
        "value": "",
    }
    folder.add(0).add(1, **failed).join(store)
    run = next(r for r in read_runs(store) if (r.spec.detector, r.spec.seed) == ("Theirs", 1))
    assert (run.status, run.reason, run.metrics) == ("failed", "no room in y.txt", ())


def test_bounds_and_attacks_are_not_taken_and_named(folder, store):
    folder.add(0)
    folder.lines.append({**folder.lines[0], "metric": "certified_auroc", "radius": "0.1", "value": "1.0"})
    assert folder.join(store).not_taken == ("certified_auroc",)
    (run,) = [r for r in read_runs(store) if r.spec.detector == "Theirs"]
    assert not [m for m in run.metrics if m.metric.startswith("certified")]


def test_the_same_reporter_may_send_better_numbers_later(folder, store):
    folder.add(0).join(store)
    folder.join(store)
    assert len([r for r in read_runs(store) if r.spec.detector == "Theirs"]) == 1
    assert verify(store).problem == ""


def _refused(folder, store, words, by="A. Nother"):
    before = (store / "runs.jsonl").read_bytes()
    with pytest.raises(SubmissionError, match=words):
        folder.join(store, by)
    assert (store / "runs.jsonl").read_bytes() == before, "nothing of a refused submission is written"


def test_a_metric_that_does_not_match_is_refused(folder, store):
    _refused(
        folder.add(0).add(1, value="0.999"),
        store,
        r"line 3 .* what follows from the scores, 0\.\d{6}; got '0.999'",
    )


@pytest.mark.parametrize("value", ["nan", "inf", "", "high"])
def test_a_value_that_is_no_number_is_refused(folder, store, value):
    _refused(folder.add(0, value=value), store, "must be what follows from the scores")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(folder, store, bad):
    score = _score()
    score[3] = bad
    _refused(folder.add(0).put(score=score), store, r"line 2 .* must be finite; got .* first at 3")


def test_pickled_scores_are_refused_and_never_loaded(folder, store, tmp_path):
    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    folder.add(0).put(score=np.array([Evil()] * len(_labels()), dtype=object))
    _refused(folder, store, "Object arrays cannot be loaded")
    with zipfile.ZipFile(folder.path / "scores" / "0.npz", "w") as archive:
        archive.writestr("score.npy", pickle.dumps(Evil()))
    _refused(folder, store, "can not be taken")
    (folder.path / "scores" / "0.npz").write_bytes(pickle.dumps(Evil()))
    _refused(folder, store, "can not be taken")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name",
    [
        "../../secret.npz",
        "/etc/passwd",
        "a/b.npz",
        "..",
        ".npz",
        "x.pkl",
        "a\\b.npz",
        "x.npz\x00",
        "",
        "C:x.npz",
    ],
)
def test_a_name_that_leads_out_of_the_folder_is_refused(folder, store, name):
    np.savez(folder.path.parent / "secret.npz", score=_score())
    _refused(folder.add(0, scores=name), store, "`scores` must name a .npz file in scores/")


def test_a_link_out_of_the_folder_is_refused(folder, store):
    np.savez(folder.path.parent / "secret.npz", score=_score())
    (folder.path / "scores" / "link.npz").symlink_to(folder.path.parent / "secret.npz")
    _refused(folder.add(0, scores="link.npz"), store, "no path and no link")


def test_an_archive_that_grows_is_refused(folder, store):
    folder.add(0)
    with zipfile.ZipFile(folder.path / "scores" / "0.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("score.npy", b"0" * 50_000_000)
    _refused(folder, store, "must have at most .* bytes")


def test_a_header_that_asks_for_a_terabyte_is_refused(folder, store):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    folder.add(0)
    with zipfile.ZipFile(folder.path / "scores" / "0.npz", "w") as archive:
        archive.writestr("score.npy", stream.getvalue())
    _refused(folder, store, "can not be taken")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"score": np.zeros(3)}, "one score a row"),
        ({"score": np.zeros((37, 1))}, "one score a row"),
        ({"score": np.array(["a"] * 33)}, "real numbers"),
        ({"score": np.zeros(33, complex)}, "real numbers"),
        ({"other": np.zeros(33)}, "must hold an array `score`"),
    ],
)
def test_scores_of_another_shape_or_kind_are_refused(folder, store, arrays, words):
    assert len(_labels()) == 33
    _refused(folder.add(0).put(**arrays), store, words)


def test_labels_of_theirs_must_be_ours(folder, store):
    folder.add(0).put(score=_score(), y=_labels()).join(store)
    _refused(folder.put(score=_score(), y=1 - _labels()), store, "must be the labels of our test rows")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"detector": "Centre"}, "a name that nobody else has; got 'Centre'; add yours to it"),
        ({"detector": "OCSDF"}, "a name that nobody else has"),
        ({"detector": ""}, "must be 1 to 100 printable characters"),
        ({"detector": "x" * 101}, "must be 1 to 100 printable characters"),
        ({"detector": "a\nb"}, "must be 1 to 100 printable characters"),
        ({"detector": "a\u202eb"}, "must be 1 to 100 printable characters"),
        ({"seed": "-1"}, "`seed` must be an integer >= 0"),
        ({"seed": "one"}, "`seed` must be an integer >= 0"),
        ({"params": "[1]"}, "`params` a JSON object"),
        ({"params": '{"a": NaN}'}, "`params` a JSON object"),
        ({"params": "{" * 5000}, "`params` a JSON object"),
        ({"dataset": "wine"}, "the store has no run of 'wine' under 'one-class'"),
        ({"protocol": "unsupervised"}, "the store has no run of 'tiny' under 'unsupervised'"),
        ({"status": "great"}, "`status` must be one of ok, failed"),
        ({"metric": "average_precision"}, "must state its metric auroc"),
    ],
)
def test_what_a_line_may_not_say_is_a_sentence(folder, store, changes, words):
    folder.add(0)
    folder.lines[0] |= changes
    _refused(folder, store, words)


def test_a_name_of_somebody_elses_submission_is_refused(folder, store):
    folder.add(0).join(store, by="First")
    _refused(folder, store, "nobody else has", by="Second")


@pytest.mark.parametrize(
    ("text", "words"), [("", "must have lines"), ("a,b\n1,2\n", "missing: \\['protocol'"), ("\x00", ".")]
)
def test_a_file_that_is_no_table_of_runs_is_a_sentence(folder, store, text, words):
    (folder.path / "runs.csv").write_text(text)
    with pytest.raises(SubmissionError, match=words):
        submit(folder.path, store, SOURCE, by="A")


def test_an_absent_folder_is_a_sentence(store, tmp_path):
    with pytest.raises(SubmissionError, match="must hold runs.csv"):
        submit(tmp_path / "absent", store, SOURCE, by="A")


def test_a_store_that_was_tampered_with_takes_nothing(folder, store):
    path = store / "runs.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[::-1]))
    _refused(folder.add(0), store, "`--into` must be a store that passes verify")


def test_a_hostile_name_is_text_in_every_format(folder, store, tmp_path):
    folder.add(0, detector=HOSTILE).join(store, by="<b>them</b>")
    write_report(store)
    done = CliRunner().invoke(app, ["site", str(store), "--out", str(tmp_path / "site")])
    assert done.exit_code == 0, done.output
    pages = [*(tmp_path / "site").iterdir(), store / "leaderboard.html"]
    assert all(re.fullmatch(r"[A-Za-z0-9.-]+", page.name) for page in pages)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "<script>alert" not in text, page.name
        assert "<b>them" not in text, page.name
        assert 'onload="x' not in text, page.name
    assert html.escape("<script>alert(1)</script>") in (tmp_path / "site" / "index.html").read_text()
    for line in (store / "leaderboard.md").read_text().splitlines():
        assert "<script>" not in line


def test_the_command_checks_first_and_then_joins(folder, store):
    with pytest.raises(SubmissionError):
        folder.join(store, by="")
    call = ["submit", str(folder.add(0).path), "--into", str(store), "--by", "A", "--plugin", str(PLUGIN)]
    with (folder.path / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(folder.lines)
    n_rows = len(read_runs(store))
    done = CliRunner().invoke(app, [*call, "--check"])
    assert (done.exit_code, len(read_runs(store))) == (0, n_rows), done.output
    assert "1 runs can join" in done.output
    done = CliRunner().invoke(app, call)
    assert (done.exit_code, len(read_runs(store))) == (0, n_rows + 1), done.output
    (folder.path / "scores" / "0.npz").unlink()
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 2
    assert "must name a file that is there" in done.output
