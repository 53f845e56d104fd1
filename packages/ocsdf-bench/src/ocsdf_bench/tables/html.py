"""leaderboard.html: one self-contained page; nothing is fetched, every text is escaped by Jinja."""

from __future__ import annotations

from pathlib import Path

from ocsdf_bench.leaderboard import Leaderboard
from ocsdf_bench.page import render_page
from ocsdf_bench.plot import pictures
from ocsdf_bench.table import FORMATS, Format


def render(leaderboard: Leaderboard) -> str:
    """The whole page."""
    figures = {section.title: pictures(section.results) for section in leaderboard.sections}
    return render_page(
        "leaderboard.html.j2", title=leaderboard.title, leaderboard=leaderboard, figures=figures
    )


def _write(leaderboard: Leaderboard, directory: Path) -> list[Path]:
    path = directory / "leaderboard.html"
    path.write_text(render(leaderboard), encoding="utf-8")
    return [path]


FORMATS.add(Format("html", _write))
