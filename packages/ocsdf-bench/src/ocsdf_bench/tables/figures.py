"""figures/: every picture as PNG, the critical-difference diagram as TikZ too."""

from __future__ import annotations

from pathlib import Path

from ocsdf_bench.figure import save_png
from ocsdf_bench.leaderboard import Leaderboard
from ocsdf_bench.plot import pictures
from ocsdf_bench.table import FORMATS, Format


def _write(leaderboard: Leaderboard, directory: Path) -> list[Path]:
    folder, paths = directory / "figures", []
    for section in leaderboard.sections:
        for picture in pictures(section.results, directory):
            folder.mkdir(exist_ok=True)
            stem = f"{section.results.protocol}-{picture.name}"
            paths.append(save_png(picture.draw(), folder / f"{stem}.png"))
            if picture.tikz is not None:
                paths.append(folder / f"{stem}.tikz.tex")
                paths[-1].write_text(picture.tikz(), encoding="utf-8")
    return paths


FORMATS.add(Format("figures", _write))
