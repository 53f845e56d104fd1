"""leaderboard.html: one self-contained page; nothing is fetched, every text is escaped by Jinja."""

from __future__ import annotations

from pathlib import Path

from ocsdf_bench.leaderboard import Leaderboard
from ocsdf_bench.page import render_leaderboard
from ocsdf_bench.table import FORMATS, Format


def _write(leaderboard: Leaderboard, directory: Path) -> list[Path]:
    path = directory / "leaderboard.html"
    path.write_text(render_leaderboard(leaderboard), encoding="utf-8")
    return [path]


FORMATS.add(Format("html", _write))
