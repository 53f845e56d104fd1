"""Every format prints the same leaderboard, whole, escaped and the same whatever the order of the runs."""

from __future__ import annotations

import csv
import doctest
import html
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

from ocsdf_bench import latex, markup
from ocsdf_bench.leaderboard import build_leaderboard
from ocsdf_bench.suite import canonical
from ocsdf_bench.table import FORMATS, read_causes, write_report
from ocsdf_bench.tables import markdown, runs_csv, tex

VOID = {"meta", "br", "link", "img", "input", "hr", "path", "use"}


def _store(directory: Path, runs) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "runs.jsonl").write_text("".join(canonical(run.to_json()) + "\n" for run in runs))
    return directory


@pytest.fixture(scope="module")
def report(tmp_path_factory, invented_runs):
    directory = _store(tmp_path_factory.mktemp("store"), invented_runs)
    return directory, write_report(directory)


@pytest.fixture(scope="module")
def leaderboard(invented_runs):
    return build_leaderboard(invented_runs)


def _texts(leaderboard):
    for section in leaderboard.sections:
        for table in section.tables:
            yield from (table.title, table.caption)
            for row in table.rows:
                yield from (cell.text for cell in row.cells)
            for column in table.columns:
                yield from (column.title, column.note)
        yield from section.notes


@pytest.mark.parametrize("module", [latex, markup])
def test_doctests_of_the_modules_hold(module):
    assert doctest.testmod(module).failed == 0


def test_every_format_is_registered_and_writes_what_it_says(report):
    directory, written = report
    assert {"markdown", "latex", "html", "csv", "figures"} <= set(FORMATS.names())
    names = {path.relative_to(directory).as_posix() for path in written.paths}
    assert {"leaderboard.md", "leaderboard.tex", "leaderboard.html", "runs.csv"} <= names
    assert "figures/unsupervised-critical-difference.png" in names
    assert all(path.stat().st_size > 0 for path in written.paths)


def test_report_is_the_same_bytes_whatever_the_order_of_the_runs(tmp_path, invented_runs):
    one = write_report(_store(tmp_path / "one", invented_runs))
    two = write_report(_store(tmp_path / "two", invented_runs[::-1]))
    for first, second in zip(one.paths, two.paths, strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes(), first.name


def test_report_names_no_folder_of_this_machine(report):
    directory, written = report
    for path in written.paths:
        if path.suffix != ".png":
            assert str(directory) not in path.read_text(encoding="utf-8")


def test_markdown_holds_every_text_and_no_active_one(leaderboard, hostile_name):
    text = markdown.render(leaderboard)
    for expected in _texts(leaderboard):
        assert markup.escape(expected) in text
    assert "<script>" not in text
    assert markup.escape(hostile_name) in text


def test_markdown_shows_synthesised_images_where_there_are_some(leaderboard, tmp_path):
    assert markdown.SYNTHESIS not in markdown.render(leaderboard, tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / markdown.SYNTHESIS).touch()
    assert markdown.render(leaderboard, tmp_path).count(f"]({markdown.SYNTHESIS})") == 1


def test_markdown_rows_have_as_many_cells_as_their_head(leaderboard):
    for section in leaderboard.sections:
        for table in section.tables:
            lines = [line for line in markdown.render_table(table).splitlines() if line.startswith("|")]
            bars = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
            assert bars == {len(table.columns) + 1}, table.name


def test_markdown_marks_best_and_second(leaderboard):
    text = markdown.render(leaderboard)
    assert re.search(r"\| \*\*\d+\.\d ± \d\.\d\*\* \|", text)
    assert re.search(r"\| <ins>\d+\.\d", text)


def test_fixed_runs_render_to_a_fixed_table(invented_run):
    runs = [invented_run(seed=s, auroc=v) for s, v in enumerate((0.90, 0.92))]
    runs += [invented_run("KNN", auroc=0.85), invented_run("COF", auroc=None)]
    (section,) = build_leaderboard(runs).sections
    table = next(t for t in section.tables if t.name == "auroc")
    cut = type(table)(table.name, table.title, "", table.columns[:4], tuple(
        type(row)(row.cells[:4], row.summary) for row in table.rows))  # fmt: skip
    assert markdown.render_table(cut).splitlines() == [
        "### AUROC",
        "",
        "| data set | OCSDF | KNN | COF<br>*transductive* |",
        "| --- | ---: | ---: | ---: |",
        "| wine | **91.0 ± 1.4** | <ins>85.0</ins> | *failed* |",
        "| *mean of 1* | **91.0 ± 1.4** | <ins>85.0</ins> | *–* |",
        "| *average rank among 3* | **1.00** | <ins>2.00</ins> | 3.00 |",
    ]


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        values = dict(attrs)
        self.links += [v for k, v in attrs if k in ("href", "src", "action", "data") and tag != "use"]
        self.ids += [values["id"]] if "id" in values and "path" not in tag else []
        assert not any(name.startswith("on") for name, _ in attrs), "inline handler"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def page(report):
    directory, _ = report
    return (directory / "leaderboard.html").read_text(encoding="utf-8")


def test_html_is_well_formed_and_asks_for_nothing(page):
    parsed = _Page(page)
    assert parsed.open == []
    assert parsed.tags["script"] == 1
    assert parsed.tags["link"] == parsed.tags["img"] == parsed.tags["iframe"] == 0
    assert all(link.startswith("#") for link in parsed.links)
    assert "url(http" not in page
    assert "@import" not in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)


def test_html_links_resolve_within_the_page(page):
    parsed = _Page(page)
    assert {link[1:] for link in parsed.links} <= set(parsed.ids)


def test_html_holds_every_text_and_escapes_a_hostile_name(leaderboard, page, hostile_name):
    text = " ".join(_Page(page).text.split())
    for expected in _texts(leaderboard):
        assert " ".join(expected.split()) in text
    assert "<script>alert" not in page
    assert html.escape(hostile_name.split("|")[0]) in page


def test_html_is_light_and_dark_sortable_and_has_a_viewport(page):
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert "aria-sort" in page
    assert page.count('<table class="sortable">') == page.count("<thead>") > 5
    assert re.search(r'<td class="number best" data-value="0\.\d+">', page)


def test_script_is_short(page):
    script = page[page.index("<script>") : page.index("</script>")]
    assert len(script.splitlines()) < 200


def test_latex_is_balanced_and_holds_every_text(leaderboard):
    text = tex.render(leaderboard)
    begun, ended = re.findall(r"\\begin\{(\w+)\}", text), re.findall(r"\\end\{(\w+)\}", text)
    assert Counter(begun) == Counter(ended)
    for section in leaderboard.sections:
        for table in section.tables:
            for row in table.rows:
                assert all(latex.escape(cell.text) in text for cell in row.cells)
            assert latex.escape(table.caption) in text


def test_latex_rows_have_as_many_cells_as_their_column_types(leaderboard):
    for section in leaderboard.sections:
        for table in section.tables:
            lines = tex.render_table(table).splitlines()
            for line in lines:
                if line.endswith(r" \\") and "shortstack" not in line:
                    assert len(re.findall(r"(?<!\\)&", line)) == len(table.columns) - 1


@pytest.mark.parametrize(
    "character", list('\\{}$&#%_~^<>|"`[]') + ["±", "–", "é", "α", "字", "\x07", "\u202e"]
)
def test_latex_escapes_to_printable_ascii_or_latin(character):
    escaped = latex.escape(f"a{character}b")
    assert escaped.startswith("a")
    assert escaped.endswith("b")
    assert all(c.isascii() or c == "é" for c in escaped)
    assert not re.search(r"(?<!\\)[&#%_$](?![^$]*\$)", escaped.replace(r"$\pm$", ""))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles_on_its_own(tmp_path, leaderboard):
    (tmp_path / "leaderboard.tex").write_text(tex.render(leaderboard), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "leaderboard.tex"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.fixture(scope="module")
def lines(report):
    directory, _ = report
    with (directory / "runs.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_columns_are_the_agreed_ones(lines):
    assert ",".join(lines[0]) == (
        "suite,protocol,dataset,normal_class,detector,params,seed,metric,radius,threat,value,status,reason,"
        "fit_seconds,score_seconds,peak_mb,n_train,n_test,n_features,budget,reported_by,scores"
    )


def test_csv_has_every_metric_of_every_run_and_keeps_failures(lines, invented_runs):
    assert len(lines) == sum(max(len(run.metrics), 1) for run in invented_runs)
    failed = [line for line in lines if line["status"] != "ok"]
    assert len(failed) == 6
    assert all(line["value"] == "" and line["metric"] == "" and line["reason"] for line in failed)


def test_csv_params_are_canonical_json_as_the_suite_wrote_them(lines):
    assert {line["params"] for line in lines if line["detector"] == "OCSDF"} == {
        "{}",
        '{"margin":0.05,"recipe":"paper"}',
    }
    assert all(json.loads(line["params"]) is not None for line in lines)
    assert all(json.loads(line["budget"]) is not None for line in lines)


def test_csv_certified_and_attacked_rows_have_radius_and_threat(lines):
    robust = [line for line in lines if re.match("certified|attacked", line["metric"])]
    assert robust
    assert all(line["radius"] and line["threat"] == "both" for line in robust)
    assert all(0 <= float(line["value"]) <= 1 for line in robust)
    clean = [line for line in lines if line["metric"] == "average_precision"]
    assert all(line["radius"] == line["threat"] == "" for line in clean)


def test_csv_attacked_rows_have_clean_and_certified_ones_of_the_same_sample(lines):
    def key(line):
        return line["dataset"], line["detector"], line["seed"], line["radius"], line["threat"], line["n_test"]

    attacked = {key(line) for line in lines if line["metric"] == "attacked_auroc:l2-pgd"}
    assert attacked
    for metric in ("auroc", "certified_auroc"):
        assert attacked <= {key(line) for line in lines if line["metric"] == metric}


def test_csv_numbers_are_exact(lines, invented_runs):
    line = next(row for row in lines if row["detector"] == "IForest" and row["metric"] == "auroc")
    run = next(
        r
        for r in invented_runs
        if (r.spec.detector, r.spec.dataset, str(r.spec.seed)) == ("IForest", line["dataset"], line["seed"])
    )
    assert float(line["value"]) == run.metrics[0].value
    assert list(runs_csv.rows(run))[0]["value"] == run.metrics[0].value


def test_ranking_for_the_terminal_is_plain_text(report, hostile_name):
    _, written = report
    assert "\x1b" not in written.ranking_text
    assert "OCSDF" in written.ranking_text
    assert "6 of 89 runs have no result" in written.ranking_text
    assert max(map(len, written.ranking_text.splitlines())) <= 110


def test_causes_are_read_beside_the_store(tmp_path):
    path = tmp_path / "causes.toml"
    assert read_causes(path) == {}
    path.write_text('glass = "80 steps"\n"mnist / 3" = "reduced width"\n')
    assert read_causes(path) == {"glass": "80 steps", "mnist / 3": "reduced width"}


@pytest.mark.parametrize(("content", "got"), [("glass = ", "Invalid value"), ("glass = 3", "int at 'glass'")])
def test_causes_that_are_no_text_are_refused(tmp_path, content, got):
    path = tmp_path / "causes.toml"
    path.write_text(content)
    with pytest.raises(ValueError, match="causes.toml must .*") as caught:
        read_causes(path)
    assert got in str(caught.value)


def test_importing_the_report_costs_no_heavy_library():
    code = "import sys, ocsdf_bench.table; print([m for m in sys.modules if '.' not in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"tensorflow", "matplotlib", "pandas", "scipy", "pyod", "jinja2", "torch", "sklearn"}
    assert not heavy & set(eval(done.stdout))  # noqa: S307 (a list printed by the line above)


def test_every_format_module_registers_itself():
    folder = Path(import_module("ocsdf_bench.tables").__file__).parent
    modules = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    assert len(FORMATS.names()) >= len(modules)
