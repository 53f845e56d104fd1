"""What a leaderboard is made of. Every format prints these values and decides nothing but their looks."""

from __future__ import annotations

from dataclasses import dataclass

from ocsdf_bench.grid import Results


@dataclass(frozen=True)
class Cell:
    """``value`` is what the cell sorts by, None where it has no number. mark : "" | "best" | "second" |
    "missing" (no result) | "warn" (outside what it is compared with, or a red flag). ``href`` : page of the
    same site, for formats that have links."""

    text: str
    value: float | None = None
    mark: str = ""
    href: str = ""


@dataclass(frozen=True)
class Column:
    """``note`` stands under the title: "published", "margin chosen with labels", "transductive"."""

    title: str
    note: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Row:
    """``summary``: a mean or an average rank under the body; it is never sorted among the others."""

    cells: tuple[Cell, ...]
    summary: bool = False


@dataclass(frozen=True)
class Table:
    """``name`` is unique in its section and safe in a file name or an anchor."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"`rows` of Table must have {len(self.columns)} cells each, one per column; "
                    f"got {len(row.cells)} in table {self.name!r}."
                )


@dataclass(frozen=True)
class Section:
    """One suite under one protocol."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    results: Results


@dataclass(frozen=True)
class Leaderboard:
    title: str
    sections: tuple[Section, ...]


def text_cell(text: str, mark: str = "") -> Cell:
    return Cell(text, None, mark)


def percent(mean: float, std: float = float("nan")) -> str:
    """A fraction in percent with its spread, if it has one.

    >>> percent(0.9731, 0.004)
    '97.3 ± 0.4'
    """
    return f"{100 * mean:.1f}" if std != std else f"{100 * mean:.1f} ± {100 * std:.1f}"


def points(difference: float) -> Cell:
    """A difference of two fractions, in points.

    >>> points(-0.0004).text, points(0.1231).text
    ('+0.0', '+12.3')
    """
    return Cell(f"{round(100 * difference, 1) + 0.0:+.1f}", difference)


def significant(value: float | None, digits: int = 2) -> str:
    """A measured quantity at the digits it deserves.

    >>> significant(0.01234), significant(1234.5)
    ('0.012', '1234')
    """
    if value is None or value != value:
        return "–"
    return f"{value:.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
