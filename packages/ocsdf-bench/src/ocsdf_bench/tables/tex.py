"""leaderboard.tex: booktabs, compiles on its own; each tabular can be taken into an article as it is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from ocsdf_bench.latex import escape
from ocsdf_bench.leaderboard import Cell, Column, Leaderboard, Table
from ocsdf_bench.plot import Picture, pictures
from ocsdf_bench.table import FORMATS, Format

_HEAD = r"""\documentclass[a3paper,landscape,10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage[margin=15mm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\setlength{\parindent}{0pt}
\setlength{\tabcolsep}{4pt}
% A table wider than the line is shrunk to it; the others keep their size.
\newsavebox{\leaderboardbox}
\newcommand{\fitline}[1]{\sbox{\leaderboardbox}{#1}%
  \ifdim\wd\leaderboardbox>\linewidth\resizebox{\linewidth}{!}{\usebox{\leaderboardbox}}%
  \else\usebox{\leaderboardbox}\fi}
\begin{document}
"""
_TITLE_WIDTH = 16
_WIDE_TEXT = 40  # characters from which a column of text is set as a paragraph
_ROWS_PER_PAGE = 45


def render(leaderboard: Leaderboard) -> str:
    """The whole document."""
    return "\n".join(
        [_HEAD, rf"\section*{{{escape(leaderboard.title)}}}", *_body(leaderboard), r"\end{document}", ""]
    )


def _body(leaderboard: Leaderboard) -> Iterator[str]:
    for section in leaderboard.sections:
        yield rf"\section*{{{escape(section.title)}}}"
        for table in section.tables:
            yield render_table(table)
        for picture in pictures(section.results):
            yield _figure(picture, f"figures/{section.results.protocol}-{picture.name}.png")
        yield from (r"\subsection*{Notes}", r"\begin{itemize}")
        yield from (rf"\item {escape(note)}" for note in section.notes)
        yield r"\end{itemize}"


def _figure(picture: Picture, path: str) -> str:
    """The picture where its file lies beside the document; the tables do not need it."""
    shown = rf"\includegraphics[width=0.6\linewidth]{{{path}}}"
    inside = rf"\subsection*{{{escape(picture.title)}}}{shown}\par {escape(picture.caption)}\par"
    return rf"\IfFileExists{{{path}}}{{{inside}}}{{}}"


def render_table(table: Table) -> str:
    """Heading, caption and tabular; one that is longer than a page goes on in a second tabular."""
    lines = [rf"\subsection*{{{escape(table.title)}}}", rf"{escape(table.caption)}\par\nopagebreak\medskip"]
    for start in range(0, max(len(table.rows), 1), _ROWS_PER_PAGE):
        lines += [r"\fitline{%", *_tabular(table, start), r"}\par\medskip"]
    return "\n".join(lines)


def _tabular(table: Table, start: int) -> Iterator[str]:
    yield rf"\begin{{tabular}}{{{''.join(_column_type(table, i) for i in range(len(table.columns)))}}}"
    yield r"\toprule"
    yield " & ".join(_title(column) for column in table.columns) + r" \\"
    if any(column.note for column in table.columns):
        yield " & ".join(_note(column) for column in table.columns) + r" \\"
    yield r"\midrule"
    previous = False
    for row in table.rows[start : start + _ROWS_PER_PAGE]:
        if row.summary and not previous:
            yield r"\midrule"
        previous = row.summary
        yield " & ".join(_cell(cell) for cell in row.cells) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}%"


def _column_type(table: Table, index: int) -> str:
    if table.columns[index].numeric:
        return "r"
    longest = max((len(row.cells[index].text) for row in table.rows), default=0)
    return r"p{75mm}" if longest > _WIDE_TEXT else "l"


def _title(column: Column) -> str:
    """The title in as many lines as keep a column of numbers narrow."""
    return _stack(column, [escape(line) for line in textwrap.wrap(column.title, _TITLE_WIDTH)])


def _note(column: Column) -> str:
    lines = textwrap.wrap(column.note, _TITLE_WIDTH)
    return _stack(column, [rf"\footnotesize\itshape {escape(line)}" for line in lines])


def _stack(column: Column, lines: list[str]) -> str:
    if len(lines) < 2:
        return "".join(f"{{{line}}}" for line in lines)
    stacked = r" \\ ".join(lines)
    return rf"\shortstack[{'r' if column.numeric else 'l'}]{{{stacked}}}"


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    if cell.mark == "best":
        return rf"\textbf{{{text}}}"
    if cell.mark == "second":
        return rf"\underline{{{text}}}"
    return rf"\textit{{{text}}}" if cell.mark in ("missing", "warn") else text


def _write(leaderboard: Leaderboard, directory: Path) -> list[Path]:
    path = directory / "leaderboard.tex"
    path.write_text(render(leaderboard), encoding="utf-8")
    return [path]


FORMATS.add(Format("latex", _write))
