import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ocsdf_bench.plugin import PluginError, load_plugins

PACKAGE = Path(__file__).with_name("third_party")


def _install(target):
    """What an installer leaves behind of a pure package: the module and its metadata."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    shutil.copy(PACKAGE / "ocsdf_bench_example.py", target)
    metadata = target / f"ocsdf_bench_example-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text(points)


def test_an_installed_package_adds_a_detector_that_a_suite_runs(tmp_path):
    _install(tmp_path)
    (tmp_path / "suite.toml").write_text(
        'name = "theirs"\nprotocol = "one-class"\ndatasets = ["sk-wine"]\n'
        'detectors = ["Median"]\nradii = [0.1]\n'
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "ocsdf_bench", "run", "suite.toml", "--no-report"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "new: 1 ok" in done.stdout, done.stderr


def test_a_file_is_imported_once(tmp_path):
    path = tmp_path / "counted.py"
    path.write_text(
        "import pathlib\nwith open(pathlib.Path(__file__).with_suffix('.log'), 'a') as f: f.write('x')"
    )
    load_plugins([path])
    load_plugins([path, str(path)])
    assert (tmp_path / "counted.log").read_text() == "x"


@pytest.mark.parametrize("text", ["raise RuntimeError('no')", "def broken(:"])
def test_a_file_that_can_not_be_imported_is_a_sentence(tmp_path, text):
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(PluginError, match=r"plug-in .*broken\.py' can not be imported"):
        load_plugins([path])


def test_an_absent_file_is_a_sentence(tmp_path):
    with pytest.raises(PluginError, match="can not be imported: FileNotFoundError"):
        load_plugins([tmp_path / "absent.py"])
