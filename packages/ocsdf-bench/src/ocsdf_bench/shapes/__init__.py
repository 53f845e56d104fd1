"""3D shapes: from points to a surface and back, with figures of merit. Needs the extra ``shapes``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ocsdf_bench.dataset import Source

LIBRARIES = ("trimesh", "skimage", "igl", "embreex")


def run_shapes(suite: Path, out: Path, source: Source) -> None:
    """Measure what ``suite`` asks for, then write runs.csv, the figures and the page into ``out``.

    What is in ``out`` already is not measured again. Raises ValueError on a suite with a mistake, and where
    the extra ``shapes`` is not installed.
    """
    from ocsdf_bench.shapes.measure import measure
    from ocsdf_bench.shapes.report import write_report
    from ocsdf_bench.shapes.suite import read_suite

    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"`shapes` needs {', '.join(missing)}; install them with `pip install 'ocsdf-bench[shapes]'`."
        )
    plan = read_suite(suite)
    measure(plan, out, source)
    write_report(plan, out, source)
