"""3D shapes: from points to a surface and back, with figures of merit. Needs the extra ``shapes``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocsdf_bench.dataset import Source
    from ocsdf_bench.shapes.suite import ShapeSuite


def run_shapes(suite: ShapeSuite, out: Path, source: Source) -> None:
    """Measure what ``suite`` asks for, then write runs.csv, the figures and the page into ``out``.

    What is in ``out`` already is not measured again; surfaces that are gone are made again for the pictures.
    """
    from ocsdf_bench.shapes.measure import measure
    from ocsdf_bench.shapes.report import write_report

    measure(suite, out, source)
    write_report(suite, out, source)
