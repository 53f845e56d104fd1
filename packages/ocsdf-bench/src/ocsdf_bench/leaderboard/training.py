"""Rows that were fitted against new ones of the same class: what a detector has learned by heart."""

from __future__ import annotations

from ocsdf_bench.grid import Key, Method, Results
from ocsdf_bench.leaderboard.quality import mean_over
from ocsdf_bench.leaderboard.structure import Cell, Column, Row, Table, percent, points, text_cell


def training_table(results: Results) -> Table | None:
    """AUROC of training rows and of test normals against the same test anomalies, and their difference."""
    rows = []
    for dataset in dict.fromkeys(block.dataset for block in results.blocks):
        rows += [row for m in results.methods if (row := _row(results, dataset, m)) is not None]
    if not rows:
        return None
    caption = (
        "AUROC in percent, mean over classes and seeds. Train: at most 1,000 fitted rows against the test "
        "anomalies. Test: new normals against the same anomalies, the AUROC of every other table. The gap is "
        "what the fitted rows gain by having been seen (a nearest neighbour of one is the row itself, so "
        "there it says nothing). Collapsed: runs whose network maps every row to its centre."
    )
    titles = ("train against anomalies", "test against anomalies", "gap, points", "collapsed")
    columns = (
        Column("data set", numeric=False),
        Column("detector", numeric=False),
        *map(Column, titles),
    )
    return Table("training-gap", "Training rows against new ones", caption, columns, tuple(rows))


def _row(results: Results, dataset: str, method: Method) -> Row | None:
    blocks = tuple(
        block
        for block in results.blocks
        if block.dataset == dataset and results.values(Key("train_auroc"), block, method)
    )
    if not blocks:
        return None
    train, test = (mean_over(results, Key(metric), blocks, method)[0] for metric in ("train_auroc", "auroc"))
    runs = [run for block in blocks for run in results.cells[block, method] if "collapsed" in run.budget]
    n_collapsed = sum(bool(run.budget["collapsed"]) for run in runs)
    collapsed = Cell(f"{n_collapsed} of {len(runs)}", n_collapsed, "warn" if n_collapsed else "")
    return Row(
        (
            text_cell(dataset),
            text_cell(method.label),
            Cell(percent(train), train),
            Cell(percent(test), test),
            points(train - test),
            collapsed if runs else text_cell("–"),
        )
    )
