"""A store's directory into its report: every registered format writes the same leaderboard."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ocsdf_bench.leaderboard import Leaderboard, build_leaderboard
from ocsdf_bench.leaderboard.structure import Section
from ocsdf_bench.registry import Registry
from ocsdf_bench.store import read_runs

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Format:
    """Card of a format. ``write(leaderboard, directory)`` returns the paths it wrote; it gets finished values
    and computes nothing."""

    name: str
    write: Callable[[Leaderboard, Path], list[Path]]


FORMATS: Registry[Format] = Registry("table", "ocsdf_bench.tables")


@dataclass(frozen=True)
class Report:
    """What was written. ``ranking_text`` is for the terminal."""

    ranking_text: str
    paths: tuple[Path, ...]


def write_report(directory: Path) -> Report:
    """Read ``directory``/runs.jsonl and write every format beside it.

    The result depends on the rows that count only, not on the order in which they finished. Optional causes
    for rows outside the paper's spread are read from ``directory``/causes.toml (row label = text).

    Raises
    ------
    ValueError
        Where there is no run, or causes.toml is not what it should be.
    """
    directory = Path(directory)
    leaderboard = build_leaderboard(read_runs(directory), read_causes(directory / "causes.toml"))
    paths = [path for form in FORMATS for path in form.write(leaderboard, directory)]
    return Report(ranking_text(leaderboard), tuple(paths))


def read_causes(path: Path) -> dict[str, str]:
    """Causes by row label; empty where there is no such file."""
    if not path.is_file():
        return {}
    try:
        causes = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f'causes.toml must be TOML with lines `set = "cause"`; got {error}.') from error
    for label, text in causes.items():
        if not isinstance(text, str):
            raise ValueError(
                f'causes.toml must have lines `set = "cause"`; got {type(text).__name__} at {label!r}; put '
                "the name in quotes where it holds a dot."
            )
    return causes


def ranking_text(leaderboard: Leaderboard) -> str:
    """The ranking of each section for a terminal, 100 columns wide, without colour codes."""
    import io

    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=100, no_color=True, highlight=False, emoji=False, markup=False)
    for section in leaderboard.sections:
        _print_ranking(console, section)
    return stream.getvalue().rstrip()


def _print_ranking(console: Console, section: Section) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    ranking = next(table for table in section.tables if table.name == "ranking")
    shown = [i for i, c in enumerate(ranking.columns) if c.title not in ("best on", "p against the first")]
    table = Table(
        title=Text(f"{section.results.suite}: {section.title}"), box=box.SIMPLE, title_justify="left"
    )
    for i in shown:
        column = ranking.columns[i]
        table.add_column(Text(column.title), justify="right" if column.numeric else "left")
    for row in ranking.rows:
        table.add_row(*(Text(" ".join(row.cells[i].text.split())) for i in shown))
    console.print(table)
    failures = next((table for table in section.tables if table.name == "failures"), None)
    if failures is not None:
        console.print(failures.caption)
