"""leaderboard.md: for a repository's page or a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ocsdf_bench.leaderboard import Cell, Column, Leaderboard, Table
from ocsdf_bench.markup import escape
from ocsdf_bench.plot import pictures
from ocsdf_bench.table import FORMATS, Format

SYNTHESIS = "figures/synthesis.png"  # by `ocsdf-bench synthesise`
SYNTHESIS_CAPTION = "What the image recipe makes of noise: a walk to the mean score of a class, a row each."


def render(leaderboard: Leaderboard, directory: Path | None = None) -> str:
    """The whole document; ``directory``: its store, whose scores have figures too."""
    return "\n".join([f"# {escape(leaderboard.title)}", "", *_body(leaderboard, directory)])


def _body(leaderboard: Leaderboard, directory: Path | None) -> Iterator[str]:
    for section in leaderboard.sections:
        yield from (f"## {escape(section.title)}", "")
        for table in section.tables:
            yield from (render_table(table), "")
        yield from ("### Figures", "")
        for picture in pictures(section.results, directory):
            path = f"figures/{section.results.protocol}-{picture.name}.png"
            yield from (f"![{escape(picture.title)}]({path})", "", escape(picture.caption), "")
        if directory is not None and (directory / SYNTHESIS).exists():
            yield from (f"![Images made of noise]({SYNTHESIS})", "", SYNTHESIS_CAPTION, "")
        yield from ("### Notes", "")
        for note in section.notes:
            yield f"- {escape(note)}"
        yield ""


def render_table(table: Table, level: int = 3) -> str:
    """A heading, the table and its caption."""
    head = " | ".join(_title(column) for column in table.columns)
    rule = " | ".join("---:" if column.numeric else "---" for column in table.columns)
    rows = [" | ".join(_cell(cell, row.summary) for cell in row.cells) for row in table.rows]
    lines = [f"{'#' * level} {escape(table.title)}", ""]
    lines += [f"| {line} |" for line in (head, rule, *rows)]
    return "\n".join([*lines, "", escape(table.caption)]).rstrip()


def _title(column: Column) -> str:
    note = f"<br>*{escape(column.note)}*" if column.note else ""
    return escape(column.title) + note


def _cell(cell: Cell, summary: bool) -> str:
    text = escape(cell.text)
    if cell.mark == "best":
        return f"**{text}**"
    if cell.mark == "second":
        return f"<ins>{text}</ins>"
    return (
        f"*{text}*"
        if text and (cell.mark in ("missing", "warn") or (summary and cell.value is None))
        else text
    )


def _write(leaderboard: Leaderboard, directory: Path) -> list[Path]:
    path = directory / "leaderboard.md"
    path.write_text(render(leaderboard, directory), encoding="utf-8")
    return [path]


FORMATS.add(Format("markdown", _write))
