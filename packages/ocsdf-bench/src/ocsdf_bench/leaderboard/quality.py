"""Tables of detection quality: a metric per data set and detector, and who is better than whom."""

from __future__ import annotations

import numpy as np

from ocsdf_bench import ranking
from ocsdf_bench.grid import Block, Grid, Key, Method, Results
from ocsdf_bench.leaderboard.printed import PrintedColumn, printed_columns
from ocsdf_bench.leaderboard.reading import (
    dataset_card,
    method_column,
    method_note,
    missing_cell,
    seeds_text,
)
from ocsdf_bench.leaderboard.structure import Cell, Column, Row, Table, percent, text_cell

AUROC = Key("auroc")

GRID_CAPTION = (
    "Percent, mean ± standard deviation over seeds (n − 1); {better} is better. Best bold, second "
    "underlined, at the printed precision, among the ranked columns. Average rank: 1 = "
    "best, ties averaged; a missing cell takes the worst rank of its row, shared with other missing ones; a "
    "row without any result is left out. A mean is over the rows its column has (their number is in brackets "
    "where some are missing)."
)
OVERLAP_CAPTION = (
    "≈ : mean ± standard deviation overlaps that of the best of the row (where it was run with one seed, its "
    "value alone is compared)."
)
IN_PLACE_CAPTION = (
    "A variant, or a column chosen with labels, gets the rank it would have if it stood in the place of the "
    "detector's own column."
)


def grid_table(
    results: Results, key: Key, name: str, title: str, *, cut: bool = False, caption: str = ""
) -> Table:
    """Data sets down, detectors across, printed columns at the right, mean and average rank below.

    ``cut``: leave out the rows and columns that have no value at all.
    """
    grid = results.grid(key).filled() if cut else results.grid(key)
    printed = printed_columns(results, key, grid.blocks)
    rows = [_body_row(results, grid, i, printed) for i in range(len(grid.blocks))]
    better = "lower" if key.lower_is_better else "higher"
    parts = [caption, GRID_CAPTION.format(better=better)]
    if len(grid.ranked) < len(grid.methods) and any(m.role != "main" for m in grid.methods):
        parts.append(IN_PLACE_CAPTION)
    if any(block.normal_class for block in grid.blocks):
        parts.append(OVERLAP_CAPTION)
    return Table(
        name=name,
        title=title,
        caption=" ".join(filter(None, parts)),
        columns=(
            Column("data set", numeric=False),
            *(method_column(results, m) for m in grid.methods),
            *(Column(p.title, p.note) for p in printed),
        ),
        rows=(*rows, *_class_means(results, grid, printed), *_summary(results, grid, printed)),
    )


def _body_row(results: Results, grid: Grid, i: int, printed: tuple[PrintedColumn, ...]) -> Row:
    marks = _marks(grid.score[i], grid.ranked)
    overlaps = _overlaps(grid, i) if grid.blocks[i].normal_class else set()
    cells = []
    for j, method in enumerate(grid.methods):
        mean = grid.mean[i, j]
        if mean != mean:
            cells.append(missing_cell(results, grid.blocks[i], method))
            continue
        text = percent(mean, grid.std[i, j]) + seeds_text(results, grid.key, grid.blocks[i], method)
        text += " ≈" if j in overlaps else ""
        cells.append(Cell(text, float(mean), marks.get(j, "")))
    return Row((text_cell(grid.blocks[i].label), *cells, *(p.cells[i] for p in printed)))


def _overlaps(grid: Grid, i: int) -> set[int]:
    """Ranked columns of a row, but the best, whose mean ± std meets the best one's."""
    score, std = grid.score[i], np.nan_to_num(grid.std[i])
    present = [j for j in grid.ranked if score[j] == score[j]]
    if not present:
        return set()
    best = max(present, key=lambda j: score[j])
    return {j for j in present if j != best and score[j] + std[j] >= score[best] - std[best]}


def _marks(score: np.ndarray, ranked: tuple[int, ...]) -> dict[int, str]:
    """Best and second among the ranked columns, at the precision they are printed in."""
    shown = {j: round(1000 * score[j]) for j in ranked if score[j] == score[j]}
    levels = sorted(set(shown.values()), reverse=True)[:2]
    names = dict(zip(levels, ("best", "second"), strict=False))
    return {j: names[level] for j, level in shown.items() if level in names}


def mean_over(results: Results, key: Key, blocks: tuple[Block, ...], method: Method) -> tuple[float, float]:
    """Mean over ``blocks`` of the cells' means, and its spread over the seeds that every block has."""
    cells = [results.values(key, block, method) for block in blocks]
    cells = [seeds for seeds in cells if seeds]
    if not cells:
        return float("nan"), float("nan")
    common = sorted(set.intersection(*(set(seeds) for seeds in cells)))
    mean = float(np.mean([np.mean(list(seeds.values())) for seeds in cells]))
    by_seed = [np.mean([seeds[seed] for seeds in cells]) for seed in common]
    return mean, float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else float("nan")


def _mean_cells(results: Results, grid: Grid, blocks: tuple[Block, ...]) -> list[Cell]:
    index = [grid.blocks.index(block) for block in blocks]
    present = ~np.isnan(grid.mean[index])
    any_result = present.any(axis=1).sum()
    means = [mean_over(results, grid.key, blocks, method) for method in grid.methods]
    sign = -1 if grid.key.lower_is_better else 1
    complete = tuple(j for j in grid.ranked if present[:, j].sum() == any_result)
    marks = _marks(np.array([sign * mean for mean, _ in means]), complete)
    cells = []
    for j, (mean, std) in enumerate(means):
        n = present[:, j].sum()
        text = "–" if mean != mean else percent(mean, std) + (f" [{n}]" if n < any_result else "")
        cells.append(Cell(text, None if mean != mean else mean, marks.get(j, "")))
    return cells


def _class_means(results: Results, grid: Grid, printed: tuple[PrintedColumn, ...]) -> list[Row]:
    """A mean per data set that has several classes, where there is more than one data set."""
    datasets = list(dict.fromkeys(block.dataset for block in grid.blocks))
    rows = []
    for dataset in datasets if len(datasets) > 1 else ():
        index = [i for i, block in enumerate(grid.blocks) if block.dataset == dataset]
        if len(index) > 1:
            blocks = tuple(grid.blocks[i] for i in index)
            label = text_cell(f"{dataset}: mean of {len(index)} classes")
            cells = _mean_cells(results, grid, blocks)
            rows.append(Row((label, *cells, *(p.mean(index) for p in printed)), summary=True))
    return rows


def _summary(results: Results, grid: Grid, printed: tuple[PrintedColumn, ...]) -> list[Row]:
    ranks = grid.average_ranks()
    marks = _marks(-ranks, grid.ranked)
    rank_cells = [
        Cell("–" if r != r else f"{r:.2f}", None if r != r else float(r), marks.get(j, ""))
        for j, r in enumerate(ranks)
    ]
    own = [i for i, row in enumerate(grid.mean) if not np.isnan(row).all()]
    means = (*_mean_cells(results, grid, grid.blocks), *(p.mean(own) for p in printed))
    ranked = (*rank_cells, *(p.mean_rank(own) for p in printed))
    return [
        Row((text_cell(f"mean of {len(own)}"), *means), summary=True),
        Row((text_cell(f"average rank among {len(grid.ranked)}"), *ranked), summary=True),
    ]


def ranking_table(results: Results) -> Table:
    """Who is better than whom, and whether the sets at hand can tell."""
    grid = results.grid(AUROC)
    order = sorted(grid.ranked, key=lambda j: (np.nan_to_num(grid.average_ranks()[j], nan=np.inf), j))
    order += [j for j in range(len(grid.methods)) if j not in order]
    families, merged_ranks = _merged_ranks(grid)
    intervals = ranking.mean_intervals(grid.mean)
    p_values = _p_values(grid)
    titles = [
        "average rank",
        "mean AUROC, percent",
        "95 % interval",
        "rows",
        "best on",
        "p against the first",
    ]
    titles += ["average rank, families merged"] if families else []
    best_on = _best_counts(grid)
    ranks = grid.average_ranks()
    rows = []
    for j in order:
        interval = intervals[j]
        cells = [
            text_cell(grid.methods[j].label),
            text_cell(method_note(results, grid.methods[j])),
            _number(ranks[j], "{:.2f}"),
            _number(interval.mean, "{:.1%}"),
            text_cell(
                "–"
                if interval.low != interval.low
                else f"{100 * interval.low:.1f} – {100 * interval.high:.1f}"
            ),
            _number(float((~np.isnan(grid.mean[:, j])).sum()), "{:.0f}"),
            _number(float(best_on[j]), "{:.0f}") if j in grid.ranked else text_cell("–"),
            _p_value(p_values.get(j, float("nan"))),
        ]
        rows.append(Row((*cells, *([_number(merged_ranks[j], "{:.2f}")] if families else []))))
    columns = [Column("detector", numeric=False), Column("note", numeric=False), *map(Column, titles)]
    caption = _ranking_caption(grid, families)
    return Table("ranking", "Ranking by AUROC", caption, tuple(columns), tuple(rows))


def _number(value: float, form: str) -> Cell:
    if value != value:
        return text_cell("–")
    return Cell(form.format(value).replace("%", ""), float(value))


def _p_value(value: float) -> Cell:
    return Cell("< 0.001", value) if value < 0.001 else _number(value, "{:.3f}")


def _best_counts(grid: Grid) -> np.ndarray:
    counts = np.zeros(len(grid.methods), dtype=int)
    for row in grid.score:
        for j, mark in _marks(row, grid.ranked).items():
            counts[j] += mark == "best"
    return counts


def _p_values(grid: Grid) -> dict[int, float]:
    """Holm-adjusted Wilcoxon p-value of each ranked column against the first one (OCSDF where it is run)."""
    ranked = list(grid.ranked)
    if len(ranked) < 2:
        return {}
    pairs = ranking.wilcoxon_holm(grid.score[:, ranked], reference=0)
    return {ranked[pair.second]: pair.p_holm for pair in pairs}


def _merged_ranks(grid: Grid) -> tuple[tuple[str, ...], np.ndarray]:
    """Families with several sets here, and the average ranks when each of them votes once."""
    cards = [dataset_card(block.dataset) for block in grid.blocks]
    names = [card.family if card is not None else "" for card in cards]
    several = tuple(sorted({name for name in names if name and names.count(name) > 1}))
    merged, _ = ranking.merge_families(grid.mean, names) if len(names) else (grid.mean, ())
    blocks = tuple(Block(str(i)) for i in range(len(merged)))
    seeds = np.zeros(merged.shape, dtype=int)
    return several, Grid(grid.key, blocks, grid.methods, merged, seeds * np.nan, seeds).average_ranks()


def _ranking_caption(grid: Grid, families: tuple[str, ...]) -> str:
    ranked = list(grid.ranked)
    test = ranking.friedman(grid.score[:, ranked])
    text = (
        "Intervals are percentile bootstraps over the data sets; p is Wilcoxon's signed-rank test against "
        f"{grid.methods[ranked[0]].label if ranked else 'the first'}, adjusted by Holm."
    )
    if test.p_value == test.p_value:
        distance = ranking.critical_difference(test.n_methods, test.n_blocks)
        text += (
            f" Friedman's test of {test.n_methods} detectors on {test.n_blocks} sets: χ² = "
            f"{test.statistic:.1f}, p = {test.p_value:.2g}; by Nemenyi's test two average ranks differ at "
            f"level 0.05 when they are {distance:.2f} apart."
        )
    if families:
        text += f" Families merged (one vote each): {', '.join(families)}."
    return text
