"""The guides are true: their files are written, their commands run, and their output is what they show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ocsdf_bench import probe
from ocsdf_bench.leaderboard import flags

ROOT = Path(__file__).parents[3]
GUIDES = ("ci", "add-a-detector", "read-a-leaderboard")
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs" / "ci.md").exists(), reason="the documentation is not part of the installed package"
)


def _page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def _blocks(name: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", _page(name), re.MULTILINE | re.DOTALL)


class Shell:
    """A folder in which the commands of a guide run as they stand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        tools = folder / "tools"
        tools.mkdir()
        for name, arguments in (("ocsdf-bench", "-m ocsdf_bench"), ("python", "")):
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
            tool.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "COLUMNS": "200",
        }

    def __call__(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    def follow(self, name: str) -> None:
        """Write each file and run each command of a guide, and look for the lines it shows."""
        for kind, text in _blocks(name):
            first = text.partition("\n")[0]
            if re.fullmatch(r"# [\w.]+", first):
                (self.folder / first[2:]).write_text(text)
            if kind == "console":
                self._type(text)

    def _type(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            code, output = self(command)
            assert code == 0, (command, output)
            if command.startswith("ocsdf-bench report"):
                output += (self.folder / command.split()[-1] / "leaderboard.md").read_text()
            for line in shown:
                assert line in output, (command, line, output)


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_is_linked(name):
    assert f"\n{name}\n" in _page("index")
    assert f"docs/{name}.md" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["add-a-detector", "read-a-leaderboard"])
def test_the_commands_of_a_guide_do_what_it_shows(shell, name):
    shell.follow(name)


def test_ten_lines_of_ci_pass_what_is_equal_and_stop_what_is_worse(shell):
    shell.follow("ci")
    (workflow,) = (text for kind, text in _blocks("ci") if kind == "yaml")
    assert len(workflow.splitlines()) <= 10
    install, *steps = re.findall(r"- run: (.*)", workflow)
    project = tomllib.loads((ROOT / "packages" / "ocsdf-bench" / "pyproject.toml").read_text())["project"]
    assert install == f"python -m pip install {project['name']}"
    assert [shell(step)[0] for step in steps] == [0, 0]
    assert "No regression" in (shell.folder / "summary.md").read_text()
    detector = shell.folder / "my_detector.py"
    detector.write_text(detector.read_text().replace("return np.linalg", "return -np.linalg"))
    assert [shell(step.replace(" new", " worse"))[0] for step in steps] == [0, 1]
    assert "regression" in (shell.folder / "summary.md").read_text().splitlines()[0]


def _first_column(title: str) -> list[str]:
    table = _page("read-a-leaderboard").partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [row.split("|")[1].strip() for row in table.splitlines() if row.startswith("|")][2:]


@pytest.mark.parametrize("report", ["odds", "odds-one-class", "quick", "adbench"])
def test_every_table_of_a_report_is_explained(report):
    explained = tuple(name for names in _first_column("The tables") for name in names.split(", "))
    path = ROOT / "reports" / report / "leaderboard.md"
    if not path.exists():
        pytest.skip(f"reports/{report} is not in this checkout")
    titles = set(re.findall(r"^### (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
    known = (*explained, "Against PyOD", "Certified", "Figures", "Notes")
    assert not [title for title in titles if not title.startswith(known)]


def test_every_flag_of_the_guide_is_one_that_is_raised():
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (probe, flags))
    named = _first_column("Red flags")
    assert len(named) == 8
    assert not [name for name in named if name not in source]
