"""A store's directory into its report: every registered format writes the same leaderboard."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ocsdf_bench.leaderboard import Leaderboard, Table, build_leaderboard
from ocsdf_bench.published import read_published
from ocsdf_bench.registry import Registry
from ocsdf_bench.store import read_runs

if TYPE_CHECKING:
    from rich.table import Table as RichTable


_SHOWN_WHERE_SMALL = ("adbench-", "certified-auroc-summary", "attack-")
_NOT_IN_THE_TERMINAL = ("best on", "p against the first", "average rank, families merged")


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

    The result depends on the rows that count only, not on the order in which they finished.

    Raises
    ------
    ValueError
        Where there is no run, or a file beside them is not what it should be.
    """
    directory = Path(directory)
    leaderboard = read_leaderboard(directory)
    paths = [path for form in FORMATS for path in form.write(leaderboard, directory)]
    paths.sort(key=lambda path: (path.parent != directory, path.name))  # leaderboards before figures
    return Report(ranking_text(leaderboard), tuple(paths))


def read_leaderboard(directory: Path) -> Leaderboard:
    """Leaderboard of a store. Optional files beside it: causes.toml (row label or data set = why it lies
    outside the paper's spread) and published.csv (figures of others, see `published.read_published`).
    """
    return build_leaderboard(
        read_runs(directory),
        read_causes(directory / "causes.toml"),
        read_published(directory / "published.csv"),
    )


def read_causes(path: Path) -> dict[str, str]:
    """Causes by row label or data set; empty where there is no such file."""
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
    """Ranking of each section, and its certified and attacked AUROC where they fit, for a terminal of 110
    columns; no colour codes."""
    import io

    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=110, no_color=True, highlight=False, emoji=False, markup=False)
    for section in leaderboard.sections:
        for table in section.tables:
            if table.name == "ranking" or (table.name.startswith(_SHOWN_WHERE_SMALL) and _is_small(table)):
                console.print(
                    _rich_table(table, f"{section.results.suite}, {section.results.protocol}: {table.title}")
                )
            elif table.name == "failures":
                console.print(table.caption)
    return stream.getvalue().rstrip()


def _is_small(table: Table) -> bool:
    return len(table.columns) <= 8 and len(table.rows) <= 24


def _rich_table(table: Table, title: str) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    hidden = _NOT_IN_THE_TERMINAL if table.name == "ranking" else ("note",)
    shown = [i for i, column in enumerate(table.columns) if column.title not in hidden]
    found = RichTable(title=Text(title), title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    for i in shown:
        column = table.columns[i]
        longest = max((len(row.cells[i].text) for row in table.rows), default=0)
        found.add_column(
            Text(f"{column.title} {column.note}".strip()),
            justify="right" if column.numeric else "left",
            overflow="fold",
            min_width=min(longest, 11 if column.numeric else 18 if i == 0 else 8),
        )
    for row in table.rows:
        found.add_row(*(Text(" ".join(row.cells[i].text.split())) for i in shown))
    return found
