"""What stands behind the numbers: sets, detectors, cost, and the runs that have no result."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median
from typing import Any

from ocsdf_bench.grid import Block, Method, Results
from ocsdf_bench.leaderboard.copies import share_cell
from ocsdf_bench.leaderboard.reading import (
    dataset_card,
    detector_info,
    method_note,
)
from ocsdf_bench.leaderboard.structure import Cell, Column, Row, Table, significant, text_cell
from ocsdf_bench.store import Run


def datasets_table(results: Results) -> Table:
    """Rows and features each detector was given."""
    rows = []
    shares = [share_cell(results, block) for block in results.blocks]
    shared = any(cell.value is not None for cell in shares)
    for block, share in zip(results.blocks, shares, strict=True):
        runs = [run for run in _runs(results, block) if run.status == "ok"]
        shape = [[getattr(run, name) for run in runs] for name in ("n_train", "n_test", "n_features")]
        card = dataset_card(block.dataset)
        rows.append(
            Row(
                (
                    text_cell(block.label),
                    *map(_range_cell, shape),
                    *([share] if shared else []),
                    text_cell(card.source if card is not None else "not installed here"),
                    text_cell(", ".join(sorted({run.data_checksum[:12] for run in runs})) or "–"),
                )
            )
        )
    columns = (
        Column("data set", numeric=False),
        *map(Column, ("rows fitted", "rows scored", "features")),
        *([Column("scored and fitted", "percent")] if shared else []),
        Column("source", numeric=False),
        Column("checksum", numeric=False),
    )
    caption = "Rows before a detector's row cap."
    if shared:
        caption += " Scored and fitted: the share of the scored rows that also occur among the fitted ones."
    return Table("datasets", "Data sets", caption, columns, tuple(rows))


def _runs(results: Results, block: Block) -> list[Run]:
    return [run for (b, _), runs in results.cells.items() if b == block for run in runs]


def _range_cell(values: list[Any]) -> Cell:
    known = sorted({value for value in values if value is not None})
    if not known:
        return text_cell("–")
    text = f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} – {known[-1]:,}"
    return Cell(text, float(known[-1]))


def detectors_table(results: Results) -> Table:
    """Parameters, seeds, caps and budget of each column."""
    rows = []
    for method in results.methods:
        runs = _method_runs(results, method)
        ok = [run for run in runs if run.status == "ok"]
        info = detector_info(method.detector) or detector_info(method.base)
        seeds = sorted({run.spec.seed for run in runs})
        caps = sorted({run.spec.row_cap for run in runs if run.spec.row_cap is not None})
        rows.append(
            Row(
                (
                    text_cell(method.label),
                    text_cell(method_note(results, method)),
                    text_cell(method.params),
                    text_cell(", ".join(map(str, seeds))),
                    text_cell(", ".join(f"{cap:,}" for cap in caps) or "–"),
                    text_cell(budget_text(ok)),
                    text_cell(_values_text([r.lipschitz for r in ok if r.lipschitz is not None])),
                    text_cell(info.source if info is not None else "not installed here"),
                )
            )
        )
    titles = ("detector", "note", "parameters", "seeds", "row cap", "budget", "proven constant", "source")
    caption = (
        "Parameters as the suite wrote them. Row cap: fitted on at most so many rows, a seeded sample. "
        "Budget: what was reduced or resolved, over all sets. Proven constant: Lipschitz bound of the score "
        "(l2)."
    )
    columns = tuple(Column(title, numeric=False) for title in titles)
    return Table("detectors", "Detectors", caption, columns, tuple(rows))


def _method_runs(results: Results, method: Method) -> list[Run]:
    return [run for (_, m), runs in results.cells.items() if m == method for run in runs]


def budget_text(runs: list[Run]) -> str:
    """Budgets of several runs in one line: "steps 80 – 1000; rows 2000 (4 of 18 runs)"."""
    found: dict[str, list[Any]] = defaultdict(list)
    for run in runs:
        for name, value in run.budget.items():
            if not name.startswith("attack "):  # why an attack was not made; the attack's table says it
                found[name].append(value)
    parts = []
    for name, values in sorted(found.items()):
        share = "" if len(values) == len(runs) else f" ({len(values)} of {len(runs)} runs)"
        parts.append(f"{name} {_values_text(values)}{share}")
    return "; ".join(parts) or "–"


def _values_text(values: list[Any]) -> str:
    if not values:
        return "–"
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        low, high = min(values), max(values)
        return f"{low:g}" if low == high else f"{low:g} – {high:g}"
    texts = list(dict.fromkeys(str(value) for value in values))
    return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more" if len(texts) > 4 else "")


def cost_table(results: Results) -> Table:
    """Seconds and memory; shown, never compared."""
    rows = []
    for method in results.methods:
        ok = [run for run in _method_runs(results, method) if run.status == "ok"]
        cells = [text_cell(method.label)]
        for name in ("fit_seconds", "score_seconds", "peak_mb"):
            values = [v for run in ok if (v := getattr(run, name)) is not None]
            for summary in (median, max):
                value = summary(values) if values else None
                cells.append(Cell(significant(value), value))
        rows.append(Row(tuple(cells)))
    rows += _printed_costs(results)
    columns = [Column("detector", numeric=False)]
    for title in ("fit, seconds", "score, seconds", "peak memory, MB"):
        columns += [Column(title, "median"), Column(title, "largest")]
    caption = "Over all runs; several runs may have shared the machine. Times are shown, never compared."
    return Table("cost", "Time and memory", caption, tuple(columns), tuple(rows))


def _printed_costs(results: Results) -> list[Row]:
    """Seconds that others published for the data sets here, on their machines."""
    names = dict.fromkeys((p.detector, p.source) for p in results.printed if p.metric == "fit_seconds")
    here = {block.dataset for block in results.blocks}
    rows = []
    for name in names:
        cells = [text_cell(f"{name[0]} (published, {name[1]})")]
        for metric in ("fit_seconds", "score_seconds"):
            own = [p for p in results.printed if (p.detector, p.source) == name and p.dataset in here]
            values = [p.mean for p in own if p.metric == metric]
            for summary in (median, max):
                value = summary(values) if values else None
                cells.append(Cell(significant(value), value))
        rows.append(Row((*cells, text_cell("–"), text_cell("–"))))
    return rows


def failures_table(results: Results) -> Table | None:
    """Every run without a result, with its reason: it is never a zero and never disappears."""
    failed = [run for run in results.runs if run.status != "ok"]
    if not failed:
        return None
    rows = tuple(
        Row(
            (
                text_cell(results.block(run).label),
                text_cell(results.method(run).label),
                text_cell(str(run.spec.seed)),
                text_cell(run.status, "missing"),
                text_cell(run.reason),
            )
        )
        for run in failed
    )
    counts = Counter(run.status for run in failed)
    said = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
    columns = tuple(Column(t, numeric=False) for t in ("data set", "detector", "seed", "status", "reason"))
    caption = f"{len(failed)} of {len(results.runs)} runs have no result: {said}."
    return Table("failures", "Runs without a result", caption, columns, rows)
