"""Columns that others published, beside ours and never ranked with them; and how far ours is from theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ocsdf_bench.grid import Block, Key, Method, Results
from ocsdf_bench.leaderboard.structure import Cell, Column, Row, Table, percent, points, text_cell
from ocsdf_bench.published import Published, published

OURS = "OCSDF-best-margin"
HALF = 0.0005  # of the last digit that the paper prints
_INSIDE = Cell("yes")
_NO_SPREAD = Cell("no spread printed")


@dataclass(frozen=True)
class PrintedColumn:
    """A published column: one cell per block, missing where nothing was printed."""

    title: str
    note: str
    cells: tuple[Cell, ...]
    ranks: tuple[float | None, ...]  # among the 15 detectors of the paper's table

    def mean(self, index: list[int]) -> Cell:
        values = [self.cells[i].value for i in index]
        present = [value for value in values if value is not None]
        if not present:
            return Cell("–", None, "missing")
        mean = float(np.mean(present))
        return Cell(percent(mean) + (f" [{len(present)}]" if len(present) < len(values) else ""), mean)

    def mean_rank(self, index: list[int]) -> Cell:
        present = [rank for i in index if (rank := self.ranks[i]) is not None]
        return Cell(f"{np.mean(present):.1f} of 15", float(np.mean(present))) if present else text_cell("–")


def printed_columns(results: Results, key: Key, blocks: tuple[Block, ...]) -> tuple[PrintedColumn, ...]:
    """Published columns of one metric, threat and radius that have a figure for some of ``blocks``: the
    package's own, then those beside the store."""
    if key.n_test is not None or key.threat not in ("", "both"):
        return ()
    figures = [
        figure
        for figure in (*published(results.protocol, key.metric), *results.printed)
        if figure.metric == key.metric and same_radius(figure.radius, key.radius)
    ]
    columns: dict[tuple[str, str], list[Published]] = {}
    for figure in figures:
        columns.setdefault((figure.source, figure.detector), []).append(figure)
    found = [_column(results, *names, figures, blocks) for names, figures in columns.items()]
    return tuple(c for c in found if any(cell.value is not None for cell in c.cells))


def same_radius(printed: float | None, ours: float | None) -> bool:
    """Whether a printed radius is the one of a suite, or both are none.

    >>> same_radius(36 / 255, 0.1412), same_radius(None, 0.1)
    (True, False)
    """
    if printed is None or ours is None:
        return printed is ours
    return abs(printed - ours) < 1e-4  # suites write k/255 with four digits


def _column(
    results: Results, source: str, detector: str, figures: list[Published], blocks: tuple[Block, ...]
) -> PrintedColumn:
    at = {Block(p.dataset, p.normal_class): p for p in figures}
    cells = tuple(_printed_cell(at.get(block)) for block in blocks)
    beside = any(figure in results.printed for figure in figures)
    known = () if beside else published(results.protocol, "rank")
    printed = {p.dataset: p.mean for p in known if p.detector == detector}
    ranks = tuple(printed.get(block.dataset) for block in blocks)
    note = "published, margin chosen with labels" if detector == OURS else "published"
    return PrintedColumn(detector, f"{note}, {source}" if beside else note, cells, ranks)


def _printed_cell(figure: Published | None) -> Cell:
    if figure is None:
        return Cell("–", None, "missing")
    std = float("nan") if figure.std is None else figure.std
    note = f" ({figure.note})" if figure.note else ""
    return Cell(percent(figure.mean, std) + note, figure.mean)


def comparison_tables(results: Results, causes: Mapping[str, str]) -> list[Table]:
    """Each column that repeats the paper's against its mean ± 2 std, with a cause where it lies outside.

    ``causes`` : text by row label ("glass", "mnist / 3") or data set, measured by whoever wrote it.
    """
    printed = [p for p in published(results.protocol) if p.normal_class != "mean"]
    names = {p.detector for p in printed if p.std is not None}
    tables = []
    for number, ours in enumerate(_repeats(results), 1):
        theirs = OURS if ours.detector.startswith(OURS) and OURS in names else "OCSDF"
        figures = {Block(p.dataset, p.normal_class): p for p in printed if p.detector == theirs}
        blocks = [b for b in results.blocks if b in figures and results.cells.get((b, ours))]
        if blocks:
            name = "comparison" if number == 1 else f"comparison-{number}"
            rows = tuple(_comparison_row(results, block, ours, figures[block], causes) for block in blocks)
            tables.append(_comparison(name, theirs, ours, rows))
    return tables


def _repeats(results: Results) -> list[Method]:
    """The paper's recipe at its best margin; where that is not run, its network of images and its recipe."""
    paper = [m for m in results.methods if '"paper"' in m.params or '"notebook"' in m.params]
    chosen = [m for m in paper if m.detector.startswith(OURS)]
    images = [m for m in results.methods if m.detector == "OCSDF-VGG"]
    return chosen or images + [m for m in paper if m.detector == "OCSDF"]


def _comparison(name: str, theirs: str, ours: Method, rows: tuple[Row, ...]) -> Table:
    compared = [row.cells[4] for row in rows if row.cells[4] != _NO_SPREAD]
    outside = sum(cell.mark == "warn" for cell in compared)
    verdict = (
        f"{outside} of {len(compared)} rows lie outside the paper's mean ± 2 standard deviations, whatever "
        "the digits that it rounded away (0.15 points in all). "
    )
    caption = (
        f"{verdict if compared else ''}The cause is what is known of that set. The last columns are our "
        "setting without labels, and how far it is from the paper."
    )
    columns = (
        Column("data set", numeric=False),
        Column(theirs, "published"),
        Column(ours.label, "run here"),
        Column("difference", "points"),
        Column("within 2 std", numeric=False),
        Column("setting", "run here", numeric=False),
        Column("cause", numeric=False),
        Column("OCSDF", "no labels"),
        Column("difference of OCSDF", "points"),
    )
    return Table(name, "Against the paper", caption, columns, rows)


def _comparison_row(
    results: Results, block: Block, ours: Method, figure: Published, causes: Mapping[str, str]
) -> Row:
    key, label_free = Key("auroc"), next((m for m in results.methods if m.label == "OCSDF"), None)
    here = _ours_cell(results, key, block, ours)
    free = _ours_cell(results, key, block, label_free) if label_free else text_cell("–")
    verdict = _verdict(here.value, figure)
    cause = causes.get(block.label) or causes.get(block.dataset, "none given")
    return Row(
        (
            text_cell(block.label),
            _printed_cell(figure),
            here,
            _difference(here, figure),
            verdict,
            text_cell(_setting(results, block, ours)),
            text_cell("" if verdict == _INSIDE else cause),
            free,
            _difference(free, figure),
        )
    )


def _verdict(value: float | None, figure: Published) -> Cell:
    if value is None:
        return Cell("no result", None, "warn")
    if figure.std is None:
        return _NO_SPREAD
    gap = value - figure.mean
    if abs(gap) <= 2 * (figure.std + HALF) + HALF + 1e-9:
        return _INSIDE
    return Cell("above" if gap > 0 else "below", None, "warn")


def _difference(cell: Cell, figure: Published) -> Cell:
    return text_cell("–") if cell.value is None else points(cell.value - figure.mean)


def _ours_cell(results: Results, key: Key, block: Block, method: Method) -> Cell:
    values = list(results.values(key, block, method).values())
    if not values:
        return Cell("–", None, "missing")
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Cell(percent(float(np.mean(values)), std), float(np.mean(values)))


def _setting(results: Results, block: Block, method: Method) -> str:
    """What was chosen and what it was given: "margin=0.05; steps=1000"."""
    run = results.cells[block, method][0]
    varied = {k: run.spec.build_params.get(k) for k, v in run.spec.params.items() if isinstance(v, list)}
    budget = {k: v for k, v in run.budget.items() if k in ("steps", "epochs", "fit_rows", "hidden")}
    shown = {k: f"{v:g}" if isinstance(v, float) else v for k, v in {**varied, **budget}.items()}
    return "; ".join(f"{k}={v}" for k, v in shown.items())


def pyod_table(results: Results) -> Table | None:
    """The same detectors in PyOD's documentation, under another protocol: close where nothing is wrong."""
    if results.protocol != "unsupervised":
        return None
    figures = {(p.dataset, p.detector): p for p in published("pyod-docs")}
    methods = [m for m in results.methods if m.params == "{}" and any(d == m.detector for _, d in figures)]
    blocks = [b for b in results.blocks if any(d == b.dataset for d, _ in figures)]
    if not methods or not blocks:
        return None
    rows = []
    for block in blocks:
        cells = [text_cell(block.label)]
        for method in methods:
            cells.append(_ours_cell(results, Key("auroc"), block, method))
            cells.append(_printed_cell(figures.get((block.dataset, method.detector))))
        rows.append(Row(tuple(cells)))
    columns = [Column("data set", numeric=False)]
    for method in methods:
        columns += [Column(method.label, "run here"), Column(method.label, "published")]
    caption = (
        "AUROC in percent beside PyOD's documentation, which fits on 60 % of the rows and scores the other "
        "40 % (mean of 10 trials), where we fit and score all rows: a check of the wiring, not a comparison."
    )
    return Table("pyod", "Against PyOD's documentation", caption, tuple(columns), tuple(rows))
