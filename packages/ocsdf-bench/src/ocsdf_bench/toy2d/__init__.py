"""Pictures in the plane: level sets beside other detectors, and how near f - m comes to a signed distance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocsdf_bench.toy2d.measure import ToySuite


def run_toy2d(suite: ToySuite, out: Path) -> None:
    """Measure what ``suite`` asks for, then write runs.csv, the figures and the page into ``out``.

    What is in ``out`` already is not measured again.
    """
    from ocsdf_bench.toy2d.measure import measure
    from ocsdf_bench.toy2d.report import write_report

    measure(suite, out)
    write_report(suite, out)
