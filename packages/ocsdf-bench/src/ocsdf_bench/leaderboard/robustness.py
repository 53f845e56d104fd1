"""Tables of robustness: what is proven to survive a radius, and what an attack leaves."""

from __future__ import annotations

import numpy as np

from ocsdf_bench.grid import Key, Method, Results
from ocsdf_bench.leaderboard.printed import same_radius
from ocsdf_bench.leaderboard.quality import grid_table, mean_over
from ocsdf_bench.leaderboard.reading import THREATS, is_pixels, method_column, radius_text, radius_unit
from ocsdf_bench.leaderboard.structure import Cell, Column, Row, Table, percent, text_cell
from ocsdf_bench.published import published

SUMMARIES = {
    "certified_auroc": ("auroc", "Certified AUROC"),
    "certified_average_precision": ("average_precision", "Certified average precision"),
    "certified_fpr_at_95_tpr": ("fpr_at_95_tpr", "Certified FPR at 95 % TPR"),
}


def certified_tables(results: Results) -> list[Table]:
    """Certified metrics against the radius (means over the sets), then certified AUROC per set and radius."""
    tables = [
        _summary(results, metric, threat)
        for metric in SUMMARIES
        for threat in dict.fromkeys(key.threat for key in _whole(results, metric))
    ]
    keys = _whole(results, "certified_auroc")
    threats = list(dict.fromkeys(key.threat for key in keys))
    shown = "both" if "both" in threats else next(iter(threats), "")
    tables += [_per_set(results, key) for key in keys if key.threat == shown]
    return tables


def _whole(results: Results, metric: str) -> list[Key]:
    """Keys that are of all test rows, not of an attack's sample."""
    return [key for key in results.keys(metric) if key.n_test is None]


def _summary(results: Results, metric: str, threat: str) -> Table:
    clean, title = SUMMARIES[metric]
    keys = [key for key in _whole(results, metric) if key.threat == threat]
    first = results.grid(keys[0]).filled()
    constant = [Key(f"{metric}:constant", key.radius, threat) for key in keys]
    complete = {m: all(results.values(Key(clean), b, m) for b in first.blocks) for m in first.methods}
    rows, ranked = [], []
    for method in first.methods:
        lines = [(method.label, keys, method.role != "chosen" and complete[method])]
        if any(results.values(key, block, method) for key in constant for block in first.blocks):
            lines.append((f"{method.label}, by its constant alone", constant, False))
        for label, at, counts in lines:
            cells = [_mean_cell(results, key, first.blocks, method) for key in [Key(clean), *at]]
            note = text_cell(method_column(results, method).note)
            rows.append(Row((text_cell(label), note, *cells)))
            ranked.append(counts)
    alone = len(rows) > len(first.methods)
    rows = _mark_columns(rows, ranked, lower=first.key.lower_is_better)
    pixels = is_pixels(results)
    caption = (
        f"Mean over {len(first.blocks)} rows, percent. Threat: {THREATS[threat]}. Radius: "
        f"{radius_unit(results)}. A certified value is a proven bound on what any attack of that radius can "
        "leave; every detector with a proven Lipschitz constant has one."
        + (" A detector that proves bounds row by row has a second line without them." if alone else "")
        + ("" if all(complete.values()) else " [n]: a mean of n rows only, which is not marked.")
    )
    titles = ["clean", *(f"radius {radius_text(key.radius or 0.0, pixels)}" for key in keys)]
    columns = (Column("detector", numeric=False), Column("note", numeric=False), *map(Column, titles))
    name = f"{metric.replace('_', '-')}-summary-{threat}"
    return Table(name, f"{title}, {THREATS[threat]}", caption, columns, tuple(rows))


def _mean_cell(results: Results, key: Key, blocks: tuple, method: Method) -> Cell:
    mean, std = mean_over(results, key, blocks, method)
    n = sum(bool(results.values(key, block, method)) for block in blocks)
    if mean != mean:
        return Cell("–", None, "missing")
    return Cell(percent(mean, std) + (f" [{n}]" if n < len(blocks) else ""), mean)


def _mark_columns(rows: list[Row], ranked: list[bool], *, lower: bool) -> list[Row]:
    """Best and second of each numeric column among the ranked rows, whose parameters saw no label."""
    cells = [list(row.cells) for row in rows]
    free = [i for i, counts in enumerate(ranked) if counts]
    for column in range(2, len(cells[0]) if cells else 0):
        sign = -1 if lower else 1
        values = {i: v for i in free if (v := cells[i][column].value) is not None}
        shown = {i: sign * round(1000 * v) for i, v in values.items()}
        levels = sorted(set(shown.values()), reverse=True)[:2]
        for i, level in shown.items():
            if level in levels:
                old = cells[i][column]
                cells[i][column] = Cell(old.text, old.value, ("best", "second")[levels.index(level)])
    return [Row(tuple(row)) for row in cells]


def _per_set(results: Results, key: Key) -> Table:
    radius = radius_text(key.radius or 0.0, is_pixels(results))
    caption = f"Threat: {THREATS[key.threat]}. Radius: {radius_unit(results)}."
    name = f"certified-auroc-{key.threat}-{key.radius:g}"
    title = f"Certified AUROC at radius {radius}"
    return grid_table(results, key, name, title, cut=True, caption=caption)


def attack_tables(results: Results) -> list[Table]:
    """Clean, attacked and certified AUROC of the same rows, a table per attack and threat."""
    tables = []
    for metric in results.metrics():
        if metric.startswith("attacked_auroc:"):
            keys = results.keys(metric)
            tables += [
                _attack_table(results, metric, threat, [k for k in keys if k.threat == threat])
                for threat in dict.fromkeys(key.threat for key in keys)
            ]
    return tables


def _attack_table(results: Results, metric: str, threat: str, keys: list[Key]) -> Table:
    attack = metric.partition(":")[2]
    radii = sorted({key.radius or 0.0 for key in keys})
    rows = []
    for dataset in dict.fromkeys(block.dataset for block in results.blocks):
        for method in results.methods:
            row = _attack_row(results, dataset, method, keys, radii)
            if row is not None:
                rows.append(row)
        rows += _printed_attacks(results, metric, dataset, radii) if threat == "both" else []
    pixels = is_pixels(results)
    columns = [
        Column("data set", numeric=False),
        Column("detector", numeric=False),
        Column("rows"),
        Column("clean"),
    ]
    for radius in radii:
        columns += [
            Column("attacked", radius_text(radius, pixels)),
            Column("certified", radius_text(radius, pixels)),
        ]
    caption = (
        f"AUROC in percent of the same sample of test rows: clean, attacked by {attack}, and the proven "
        "bound where the detector has one (certified ≤ attacked ≤ clean); mean over classes and seeds. "
        f"Threat: {THREATS[threat]}. Radius: {radius_unit(results)}. An attack bounds robustness from above; "
        f"it proves nothing.{_obstacles(results, attack)}"
    )
    title = f"Attacked by {attack}, {THREATS[threat]}"
    return Table(f"attack-{attack}-{threat}", title, caption, tuple(columns), tuple(rows))


def _obstacles(results: Results, attack: str) -> str:
    """Why some detectors could not be attacked."""
    reasons = dict.fromkeys(
        f"{run.spec.detector} ({run.budget[f'attack {attack}']})"
        for run in results.runs
        if f"attack {attack}" in run.budget
    )
    return f" Not attacked: {'; '.join(reasons)}." if reasons else ""


def _attack_row(
    results: Results, dataset: str, method: Method, keys: list[Key], radii: list[float]
) -> Row | None:
    blocks = tuple(b for b in results.blocks if b.dataset == dataset)
    mine = [k for k in keys if any(results.values(k, b, method) for b in blocks)]
    if not mine:
        return None
    samples = sorted({k.n_test or 0 for k in mine})
    cells = [text_cell(dataset), text_cell(method.label), Cell(_span(samples), float(samples[-1]))]
    by_radius = []
    for radius in radii:
        at = [k for k in mine if k.radius == radius]
        for metric in ("auroc", at[0].metric if at else "", "certified_auroc"):
            pairs = [(Key(metric, k.radius, k.threat, k.n_test), b) for k in at for b in blocks]
            by_radius.append(_mean_of(results, pairs, method))
    clean = next((c for c in by_radius[::3] if c.value is not None), Cell("–", None, "missing"))
    shown = [cell for i, cell in enumerate(by_radius) if i % 3]
    return Row((*cells, clean, *shown))


def _printed_attacks(results: Results, metric: str, dataset: str, radii: list[float]) -> list[Row]:
    """The paper's means over the classes, where it attacked the same data set in the same way."""
    figures = {
        (p.detector, p.metric, p.radius): p.mean
        for name in (metric, "auroc", "certified_auroc")
        for p in published(results.protocol, name)
        if p.dataset == dataset and p.normal_class == "mean"
    }
    rows = []
    for detector in dict.fromkeys(d for d, name, _ in figures if name == metric):
        mine = {(name, radius): mean for (d, name, radius), mean in figures.items() if d == detector}
        cells = [_figure(mine, "auroc", None)]
        for radius in radii:
            cells += [_figure(mine, metric, radius), _figure(mine, "certified_auroc", radius)]
        rows.append(Row((text_cell(dataset), text_cell(f"{detector}, published"), text_cell("–"), *cells)))
    return rows


def _figure(figures: dict[tuple[str, float | None], float], metric: str, radius: float | None) -> Cell:
    for (name, printed), mean in figures.items():
        if name == metric and same_radius(printed, radius):
            return Cell(percent(mean), mean)
    return Cell("–", None, "missing")


def _span(values: list[int]) -> str:
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} – {values[-1]}"


def _mean_of(results: Results, pairs: list[tuple], method: Method) -> Cell:
    values = [list(results.values(key, block, method).values()) for key, block in pairs]
    values = [seeds for seeds in values if seeds]
    if not values:
        return Cell("–", None, "missing")
    mean = float(np.mean([np.mean(seeds) for seeds in values]))
    return Cell(percent(mean), mean)
