"""ADBench's result files: written as it writes them, read as it wrote them, and back."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ocsdf_bench.adbench import Entry, import_results, read_results, write_results
from ocsdf_bench.cli import app
from ocsdf_bench.leaderboard import build_leaderboard
from ocsdf_bench.published import read_published, write_published
from ocsdf_bench.store import Store

# The form of a file that ADBench published, with invented numbers.
THEIRS = """\
,IForest,OCSVM,DAGMM
"('45_wine', 0.0, 1)",0.75,0.5,
"('45_wine', 0.0, 2)",0.85,0.5,0.25
"('45_wine', 0.1, 1)",0.95,,
"('14_glass', 0.0, np.int64(1))",0.625,nan,0.5
"('breastw', 0.0, 1)",1.0,0.5,0.5
"('Pima_withoutdupl_35', 0.0, 1)",0.5,0.5,0.5
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    folder.mkdir()
    for quantity in ("AUCROC", "AUCPR", "Time(fit)", "Time(inference)"):
        (folder / f"{quantity}_x_type(None)_noise(None)_unsupervise.csv").write_text(THEIRS)
    return folder


@pytest.fixture
def runs(invented_run):
    return [
        invented_run(detector, dataset, seed, auroc, protocol="adbench")
        for dataset in ("wine", "breastw", "wbc-adbench", "my-set")
        for seed in (1, 2)
        for detector, auroc in (("OCSDF", 0.9), ("IForest", 0.5 + seed / 4), ("COF", None))
    ]


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_files_have_adbenchs_names_index_and_order_of_detectors(tmp_path, runs):
    paths = write_results(runs, tmp_path)
    suffix = "invented_adbench_type(None)_noise(None)_unsupervise.csv"
    assert [p.name for p in paths] == [
        f"{q}_{suffix}" for q in ("AUCROC", "AUCPR", "Time(fit)", "Time(inference)")
    ]
    rows = _rows(paths[0])
    assert rows[0] == ["", "IForest", "OCSDF"]
    assert rows[1] == ["('4_breastw', 0.0, 1)", "0.75", "0.9"]
    assert [row[0] for row in rows[3:]] == [
        "('42_WBC', 0.0, 1)", "('42_WBC', 0.0, 2)", "('45_wine', 0.0, 1)", "('45_wine', 0.0, 2)",
        "('my-set', 0.0, 1)", "('my-set', 0.0, 2)",
    ]  # fmt: skip
    assert _rows(paths[2])[1] == ["('4_breastw', 0.0, 1)", "0.6", "0.6"]


def test_pandas_reads_them_as_it_reads_adbenchs(tmp_path, runs):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(write_results(runs, tmp_path)[0], index_col=0)
    assert table.loc["('45_wine', 0.0, 2)", "IForest"] == 1.0


def test_a_seed_without_a_result_is_an_empty_cell(tmp_path, runs, invented_run):
    paths = write_results([*runs, invented_run("IForest", "wine", 2, None, protocol="adbench")], tmp_path)
    assert _rows(paths[0])[6] == ["('45_wine', 0.0, 2)", "", "0.9"]


def test_each_protocol_has_files_of_its_own(tmp_path, runs, invented_run):
    paths = write_results([*runs, invented_run(protocol="adbench-clean")], tmp_path)
    assert len({p.name for p in paths}) == 8


def test_what_was_written_is_read_back(tmp_path, runs):
    entries = read_results(write_results(runs, tmp_path)[0])
    assert len(entries) == 4 * 2 * 2
    assert Entry("45_wine", 0.0, 2, "IForest", 1.0) in entries


def test_their_file_is_read_with_its_empty_cells_and_numpys_way_to_print(theirs):
    entries = read_results(next(theirs.glob("AUCROC_*")))
    assert Entry("45_wine", 0.1, 1, "IForest", 0.95) in entries
    assert Entry("14_glass", 0.0, 1, "DAGMM", 0.5) in entries
    assert not [e for e in entries if e.detector == "DAGMM" and (e.dataset, e.seed) == ("45_wine", 1)]


def test_an_import_takes_the_mean_over_seeds_of_known_sets_without_labels(theirs):
    found = import_results(theirs, "ADBench, 2022")
    figures = {(p.dataset, p.detector, p.metric): p for p in found.figures}
    wine = figures["wine", "IForest", "auroc"]
    assert (wine.mean, wine.source, wine.protocol) == (pytest.approx(0.8), "ADBench, 2022", "adbench")
    assert wine.std == pytest.approx(0.1 / 2**0.5)
    assert figures["glass-adbench", "DAGMM", "auroc"].mean == 0.5
    assert figures["breastw", "IForest", "fit_seconds"].mean == 1.0  # seconds are no percentages
    assert found.unknown == ("Pima_withoutdupl_35",)
    assert found.n_labelled == 4


def test_export_and_import_are_inverse_on_classical_sets(tmp_path, runs):
    write_results(runs, tmp_path)
    found = {(p.dataset, p.detector, p.metric): p.mean for p in import_results(tmp_path, "us").figures}
    assert found["wine", "IForest", "auroc"] == pytest.approx(0.875)
    assert found["wbc-adbench", "OCSDF", "average_precision"] == pytest.approx(0.81)
    assert ("my-set", "OCSDF", "auroc") not in found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must start with an empty cell"),
        ("a,b\n", "must start with an empty cell"),
        (",IForest\n\"('45_wine', 0.0)\",1\n", r"line 2 .* must be \('data set', ratio"),
        (",IForest\n\"('45_wine', 0.0, 0.1, 1)\",1\n", "line 2 .* must be"),
        (',IForest\n"(None, 0.0, 1)",1\n', "line 2 .* must be"),
        (",IForest\n\"('45_wine', 0.0, 1)\",1,2\n", "and 1 cells; got .* and 2 cells"),
        (",IForest\n\"('45_wine', 0.0, 1)\",high\n", "line 2 .* must hold numbers"),
        (",IForest\n\"('45_wine', 0.0, 1.5)\",1\n", "line 2 .* must hold numbers"),
        (",IForest\n\"__import__('os').system('true')\",1\n", "line 2 .* must be"),
    ],
)
def test_a_file_that_is_none_of_theirs_is_a_sentence(tmp_path, text, words):
    path = tmp_path / "AUCROC_x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_results(path)


def test_a_folder_without_any_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="must hold files such as AUCROC"):
        import_results(tmp_path, "us")


def test_figures_beside_a_store_survive_their_file(tmp_path, theirs):
    figures = import_results(theirs, "ADBench, 2022").figures
    write_published(tmp_path / "published.csv", figures)
    back = read_published(tmp_path / "published.csv")
    assert [p.mean for p in back] == pytest.approx([p.mean for p in figures], abs=1e-6)
    assert back[0].source == "ADBench, 2022"


def test_a_broken_file_of_figures_is_a_sentence(tmp_path):
    (tmp_path / "published.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"published.csv must have the columns source, protocol"):
        read_published(tmp_path / "published.csv")


def test_imported_figures_are_columns_marked_published_and_never_ranked(theirs, runs):
    figures = import_results(theirs, "ADBench, 2022").figures
    with_them, without = (build_leaderboard(runs, None, f).sections[0].tables for f in (figures, ()))
    auroc = next(t for t in with_them if t.name == "auroc")
    (column,) = [i for i, c in enumerate(auroc.columns) if c.title == "OCSVM"]
    assert auroc.columns[column].note == "published, ADBench, 2022"
    row = next(r for r in auroc.rows if r.cells[0].text == "wine")
    assert row.cells[column].text == "50.0 ± 0.0"
    assert with_them[0] == without[0]  # the ranking
    cost = next(t for t in with_them if t.name == "cost")
    assert "IForest (published, ADBench, 2022)" in [r.cells[0].text for r in cost.rows]


def test_the_commands_export_import_and_report(tmp_path, runs, theirs):
    with Store(tmp_path / "store") as store:
        for run in runs:
            store.append(run)
    call = lambda *a: CliRunner().invoke(app, [str(x) for x in a])  # noqa: E731
    done = call("adbench", "export", tmp_path / "store", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "out").iterdir())) == 4
    for _ in range(2):  # the same source again replaces its figures
        done = call("adbench", "import", theirs, "--into", tmp_path / "store", "--source", "ADBench, 2022")
        assert done.exit_code == 0, done.output
    assert "Left out, no classical set of ADBench: Pima_withoutdupl_35." in done.output
    figures = read_published(tmp_path / "store" / "published.csv")
    assert len(figures) == len(set(figures))
    assert call("report", tmp_path / "store").exit_code == 0
    assert "published, ADBench, 2022" in (tmp_path / "store" / "leaderboard.md").read_text()
    done = call("adbench", "import", tmp_path / "out" / "none", "--into", tmp_path / "store", "--source", "x")
    assert (done.exit_code, "must hold files" in done.output) == (2, True)
