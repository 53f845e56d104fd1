import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ocsdf_bench.cli import app

PLUGIN = str(Path(__file__).with_name("misbehaving.py"))
SUITE = """\
name = "small"
protocol = "unsupervised"
datasets = ["tiny"]
radii = [0.1]
detectors = [{name = "Centre", params = {noise = 0.1}}, {name = "Misbehaving", params = {how = "exception"}}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.toml").write_text(SUITE)
    return tmp_path


def _call(*arguments, **options):
    return CliRunner().invoke(app, [str(a) for a in arguments], **options)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("detectors", "IForest"), ("datasets", "wine"), ("attacks", "l2-pgd"), ("protocols", "adbench")],
)
def test_list_shows_what_is_registered(kind, name):
    found = _call("list", kind, env={"COLUMNS": "200"})
    assert found.exit_code == 0
    assert name in found.output


def test_list_shows_what_a_plug_in_adds():
    assert "FalseCertificate" in _call("list", "detectors", "--plugin", PLUGIN, env={"COLUMNS": "200"}).output


def test_list_of_an_unknown_kind_names_the_kinds():
    found = _call("list", "detektors")
    assert found.exit_code == 2
    assert "must be one of detectors, datasets" in found.output


def test_check_counts_the_runs_of_a_right_suite_and_runs_nothing(folder):
    found = _call("check", "suite.toml", "--plugin", PLUGIN)
    assert found.exit_code == 0
    assert "2 runs on 1 data sets" in found.output
    assert not (folder / "reports").exists()


def test_check_tells_each_mistake_with_its_line(folder):
    (folder / "suite.toml").write_text(SUITE.replace("tiny", "tyny").replace('how = "e', 'hwo = "e'))
    found = _call("check", "suite.toml", "--plugin", PLUGIN)
    assert found.exit_code == 2
    assert "suite.toml:3: no dataset 'tyny'. Did you mean 'tiny'?" in found.output
    assert "suite.toml:5: detector Misbehaving has no parameter 'hwo'" in found.output


def test_run_writes_the_store_of_the_suite_and_ends_with_the_ranking(folder):
    found = _call("run", "suite.toml", "--plugin", PLUGIN, "--workers", 1)
    assert found.exit_code == 0, found.output
    assert "new: 1 failed, 1 ok" in found.output
    assert "Centre" in found.output.split("new:")[1]
    for name in ("runs.jsonl", "runs.csv", "leaderboard.md", "leaderboard.tex", "leaderboard.html"):
        assert (folder / "reports" / "small" / name).is_file()
        assert name == "runs.jsonl" or str(Path("reports/small") / name) in found.output
    assert "unbroken chain" in _call("verify", "reports/small").output
    again = _call("run", "suite.toml", "--plugin", PLUGIN, "--no-report")
    assert "2 runs were in the store; new: none" in again.output


def test_run_of_a_part_runs_that_part(folder):
    found = _call(
        "run", "suite.toml", "--plugin", PLUGIN, "--only", "detector=Centre", "--no-report", "--out", "o"
    )
    assert "new: 1 ok" in found.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "detector=Nobody"], "leaves none"),
        (["--only", "detektor=Centre"], "FIELD among detector"),
        (["--retry", "broken"], "must be any of failed,timeout,oom,skipped; got 'broken'"),
        (["--data", "absent"], "`--data` must be a directory; got 'absent'"),
    ],
)
def test_options_are_checked_before_anything_runs(folder, options, words):
    found = _call("run", "suite.toml", "--plugin", PLUGIN, *options)
    assert found.exit_code == 2
    assert words in found.output
    assert not (folder / "reports").exists()


@pytest.mark.parametrize("command", ["report", "verify"])
def test_a_directory_without_a_store_is_a_sentence(tmp_path, command):
    found = _call(command, tmp_path)
    assert found.exit_code == 2
    assert "must hold runs.jsonl" in found.output


def test_a_plug_in_that_can_not_be_imported_is_a_sentence(tmp_path):
    (tmp_path / "broken.py").write_text("import there_is_no_such_module")
    found = _call("list", "detectors", "--plugin", tmp_path / "broken.py")
    assert found.exit_code == 2
    assert "can not be imported: ModuleNotFoundError" in found.output


def test_fetch_says_what_is_there_and_fails_for_what_is_not(folder):
    (folder / "suite.toml").write_text(SUITE.replace('["tiny"]', '["tiny", "absent"]'))
    found = _call("fetch", "suite.toml", "--plugin", PLUGIN)
    assert found.exit_code == 1
    assert "tiny: 58 rows" in found.output
    assert "absent: data file" in found.output


@pytest.mark.parametrize("command", [["list", "detectors"], ["check", "suite.toml", "--plugin", PLUGIN]])
def test_quick_commands_import_nothing_heavy(folder, command):
    code = (
        "import sys\nfrom ocsdf_bench.cli import app\n"
        f"try:\n app({command!r})\nexcept SystemExit as end:\n assert not end.code, end.code\n"
        "heavy = {'tensorflow', 'sklearn', 'scipy', 'pandas', 'torch', 'pyod', 'matplotlib', 'foolbox'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_help_teaches_the_first_steps():
    found = _call("--help")
    assert "ocsdf-bench run benchmarks/quick.toml" in found.output
