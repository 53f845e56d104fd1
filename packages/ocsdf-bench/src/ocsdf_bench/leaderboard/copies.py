"""What ADBench's copies of rows do: the same detectors on its split, with and without them."""

from __future__ import annotations

from statistics import mean

from ocsdf_bench.grid import Block, Key, Method, Results
from ocsdf_bench.leaderboard.reading import method_note
from ocsdf_bench.leaderboard.structure import Cell, Column, Row, Table, percent, points, text_cell

COPIED, CLEAN = "adbench", "adbench-clean"
AUROC = Key("auroc")


def copies_tables(results: Results, found: tuple[Results, ...]) -> tuple[Table, ...]:
    """Gap by detector and leak by data set, where one suite ran both protocols; under ``adbench`` only."""
    clean = next((r for r in found if (r.suite, r.protocol) == (results.suite, CLEAN)), None)
    if results.protocol != COPIED or clean is None:
        return ()
    return _gap_table(results, clean), _leak_table(results, clean)


def _gap_table(copied: Results, clean: Results) -> Table:
    rebuilt = {block for block in copied.blocks if _is_rebuilt(copied, clean, block)}
    rows = []
    for method in copied.methods:
        pairs = {block: pair for block in copied.blocks if (pair := _pair(copied, clean, block, method))}
        if not pairs:
            continue
        means = [mean(pair[i] for pair in pairs.values()) for i in (0, 1)]
        gaps = [one - other for block, (one, other) in pairs.items() if block in rebuilt]
        rows.append(
            Row(
                (
                    text_cell(method.label),
                    text_cell(method_note(copied, method)),
                    *(Cell(percent(value), value) for value in means),
                    points(means[0] - means[1]),
                    points(mean(gaps)) if gaps else text_cell("–"),
                    points(max(gaps)) if gaps else text_cell("–"),
                    Cell(str(len(pairs)), float(len(pairs))),
                )
            )
        )
    columns = (
        Column("detector", numeric=False),
        Column("note", numeric=False),
        Column("mean AUROC", COPIED),
        Column("mean AUROC", CLEAN),
        Column("gap", "points"),
        Column("gap", f"points, mean of {len(rebuilt)} copied sets"),
        Column("gap", "points, largest"),
        Column("sets"),
    )
    caption = (
        "Mean over the sets and seeds that have both results. ADBench bootstraps sets under 1,000 rows to "
        "1,000 before it splits them; a positive gap is what a detector gains from having seen its test "
        "rows, a negative one what it loses, as where copied anomalies are each other's neighbours. On the "
        "other sets the two protocols give the same rows."
    )
    return Table("adbench-gap", "With and without ADBench's copies", caption, columns, tuple(rows))


def _leak_table(copied: Results, clean: Results) -> Table:
    rows = []
    for block in copied.blocks:
        pairs = [pair for method in copied.methods if (pair := _pair(copied, clean, block, method))]
        aurocs = [mean(pair[i] for pair in pairs) if pairs else None for i in (0, 1)]
        rows.append(
            Row(
                (
                    text_cell(block.label),
                    *(share_cell(results, block) for results in (copied, clean)),
                    *(text_cell("–") if v is None else Cell(percent(v), v) for v in aurocs),
                    text_cell("–") if not pairs else points(mean(one - other for one, other in pairs)),
                )
            )
        )
    columns = (
        Column("data set", numeric=False),
        Column("copied test rows", f"{COPIED}, percent"),
        Column("copied test rows", f"{CLEAN}, percent"),
        Column("mean AUROC", COPIED),
        Column("mean AUROC", CLEAN),
        Column("gap", "points"),
    )
    caption = (
        "Leak report. Copied test rows: the share that also occurs in the training part, bit for bit, mean "
        "over seeds; what is left without ADBench's copies are duplicates of the data set itself. AUROC: "
        "mean over the detectors that have both results."
    )
    return Table("adbench-leak", "Test rows that were trained on", caption, columns, tuple(rows))


def share_cell(results: Results, block: Block) -> Cell:
    """Share of the test rows that also occur in the training part, mean over the runs that say it."""
    shares = [
        run.n_copies / run.n_test
        for method in results.methods
        for run in results.cells.get((block, method), ())
        if run.n_copies is not None and run.n_test
    ]
    return Cell(percent(mean(shares)), mean(shares)) if shares else text_cell("–")


def _is_rebuilt(copied: Results, clean: Results, block: Block) -> bool:
    """Whether the two protocols give other rows."""
    splits = [
        {run.split_checksum for (b, _), runs in r.cells.items() if b == block for run in runs}
        for r in (copied, clean)
    ]
    return bool(splits[0] - splits[1])


def _pair(copied: Results, clean: Results, block: Block, method: Method) -> tuple[float, float] | None:
    """AUROC under both protocols, mean over the seeds that both have."""
    one = copied.values(AUROC, block, method)
    twin = next(
        (m for m in clean.methods if (m.detector, m.params) == (method.detector, method.params)), None
    )
    other = {} if twin is None else clean.values(AUROC, block, twin)
    seeds = one.keys() & other.keys()
    return (mean(one[s] for s in seeds), mean(other[s] for s in seeds)) if seeds else None
