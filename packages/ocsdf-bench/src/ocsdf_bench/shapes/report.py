"""From what was measured to a page: tables and figures of a shape suite."""

from __future__ import annotations

from pathlib import Path

from ocsdf_bench.dataset import Source
from ocsdf_bench.shapes.figures import draw_figures
from ocsdf_bench.shapes.measure import FLOOR
from ocsdf_bench.shapes.query_time import TREE, network_label
from ocsdf_bench.shapes.results import Results, read_results
from ocsdf_bench.shapes.suite import ShapeMethod, ShapeSuite

COLUMNS = {
    "chamfer": ("Chamfer", "{:.4f}"),
    "hausdorff95": ("Hausdorff 95 %", "{:.4f}"),
    "normal_consistency": ("normals", "{:.3f}"),
    "volume_iou": ("IoU", "{:.3f}"),
    "eikonal_residual": ("eikonal", "{:.3f}"),
    "fit_seconds": ("fit s", "{:.2g}"),
    "query_seconds": ("query s", "{:.2g}"),
}
"""Metric to heading and format."""

TABULAR = "the tabular net: 512-512-512-512 fullsort, λ = 100"


def budget_text(suite: ShapeSuite) -> str:
    """The first OCSDF's budget in words, for captions."""
    ours = [m for m in suite.methods if m.method == "OCSDF"]
    return f"OCSDF: {_budget(ours[0])}" if ours else "no OCSDF in this study"


def _budget(method: ShapeMethod) -> str:
    p = method.resolved
    width = "-".join(map(str, p["hidden"]))
    reduced = (tuple(p["hidden"]), p["activation"], p["weight"]) != ((512,) * 4, "fullsort", 100)
    note = f" (reduced: {TABULAR})" if reduced else ""
    return (
        f"{width} {p['activation']}, {p['max_steps']:,} updates, batch {p['batch_size']:,}, "
        f"T = {p['newton_steps']}, λ = {p['weight']:g}{note}"
    )


def write_report(suite: ShapeSuite, out: Path, source: Source) -> Path:
    """Write figures/ and README.md into ``out`` from its runs.csv and meshes/."""
    results = read_results(out / "runs.csv")
    drawn = draw_figures(suite, out, results, source, budget_text(suite))
    page = out / "README.md"
    page.write_text(_page(suite, results, drawn), encoding="utf-8")
    return page


def _page(suite: ShapeSuite, results: Results, drawn: dict[str, Path]) -> str:
    parts = [_head(suite), _surfaces(drawn), _merits(suite, results)]
    if "error" in drawn:
        parts.append(_sweep(suite, results))
    if "query_time" in drawn:
        parts.append(_queries(suite, results))
    if "traced" in drawn:
        parts.append(_RAYS)
    return "\n\n".join(parts) + "\n"


def _head(suite: ShapeSuite) -> str:
    rules = "\n".join(
        f"- {m.label}: {_budget(m)}; learned from points of the shape's {m.sample}; the level is the "
        f"{100 * m.resolved['quantile']:g} % quantile of the training scores."
        for m in suite.methods
        if m.method == "OCSDF"
    )
    return f"""# 3D shapes

Seed {suite.seed}, n = {suite.n_points:,} points of each shape, grid {suite.resolution}³. Shapes are
normalised: the farthest point lies at 0.8 of the origin, B is the ball of radius 1. What the pictures say is
told in [docs/shapes.md](../../docs/shapes.md); each number is in [runs.csv](runs.csv).

{rules}"""


def _surfaces(drawn: dict[str, Path]) -> str:
    pictures = "\n\n".join(
        f"![Ground truth, points, OCSDF, best comparator](figures/{path.name})"
        for name, path in drawn.items()
        if name.startswith("shapes-")
    )
    return f"""## Surfaces

{pictures}

Best comparator: the smallest Chamfer distance among the methods that are not OCSDF."""


def _merits(suite: ShapeSuite, results: Results) -> str:
    return f"""## Figures of merit

Lengths in units of B's radius, between {suite.n_compared:,} points on each surface. The first row of a shape
compares two samples of the shape itself, below which no method can be expected to come. Normals: mean
|cosine| with the nearest point's normal. IoU: volume inside both over volume inside either, where the shape
is watertight and the method has an inside. Eikonal: mean | ‖∇‖ − 1 | of the field on B. Seconds are CPU
seconds of one thread, because the machine was shared; a query is one of {suite.n_compared:,} points.
Poisson and DeepSDF-style are given the true outward normals, the others points alone.

{_merit_table(suite, results)}"""


def _sweep(suite: ShapeSuite, results: Results) -> str:
    return f"""## Error against n

![Chamfer distance against the number of points](figures/error.png)

{_sweep_table(suite, results)}"""


def _queries(suite: ShapeSuite, results: Results) -> str:
    return f"""## Query time against n

![Time of 1,000 queries against the number of rows](figures/query_time.png)

A network's query costs the same however many rows it was fitted on; a k-d tree's grows, and in many
dimensions it looks at nearly every row. CPU milliseconds for 1,000 queries on Gaussian rows, the best of
three.

{_query_table(suite, results)}"""


_RAYS = """## Rays

![Marching cubes, sphere tracing, evaluations a ray](figures/traced.png)

The zero level of the same network as a mesh and by sphere tracing. A ray advances by |f|/L with the *proven*
L, which cannot step over the surface, so no grid is needed."""


def _merit_table(suite: ShapeSuite, results: Results) -> str:
    head = [heading for heading, _ in COLUMNS.values()]
    lines = [f"| shape | method | {' | '.join(head)} |", f"| --- | --- |{' ---: |' * len(head)}"]
    for name in suite.shapes:
        floor = [_cell(results.value(name, FLOOR, suite.n_compared, metric), metric) for metric in COLUMNS]
        lines.append(f"| **{Path(name).stem}** | *{FLOOR}* | {' | '.join(floor)} |")
        tried = [method for method in suite.methods if method.has_case(name, suite.n_points, suite)]
        lines += [_merit_row(suite, results, name, method) for method in tried]
    return "\n".join(lines)


def _merit_row(suite: ShapeSuite, results: Results, name: str, method: ShapeMethod) -> str:
    n = suite.n_points
    reason = results.reason(name, method.label, n)
    if reason:
        return f"| | {method.label} | *{reason}* |{' |' * (len(COLUMNS) - 1)}"
    cells = [_cell(results.value(name, method.label, n, metric), metric) for metric in COLUMNS]
    return f"| | {method.label} | {' | '.join(cells)} |"


def _cell(value: float | None, metric: str) -> str:
    if value is None:
        return "–"
    whole = metric.endswith("seconds") and value >= 100
    return f"{value:,.0f}" if whole else COLUMNS[metric][1].format(value)


def _sweep_table(suite: ShapeSuite, results: Results) -> str:
    sizes = sorted({suite.n_points, *suite.sweep_n_points})
    shown = ("chamfer", "hausdorff95", "fit_seconds", "query_seconds")
    head = [f"{COLUMNS[metric][0]}, n = {n:,}" for metric in shown for n in sizes]
    lines = [f"| shape | method | {' | '.join(head)} |", f"| --- | --- |{' ---: |' * len(head)}"]
    for name in suite.sweep_shapes:
        for method in (m for m in suite.methods if not m.shapes):
            cells = [
                _cell(results.value(name, method.label, n, metric), metric) for metric in shown for n in sizes
            ]
            lines.append(f"| {Path(name).stem} | {method.label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _query_table(suite: ShapeSuite, results: Results) -> str:
    sizes = suite.query_n_points
    lines = [
        f"| dimensions | method | {' | '.join(f'n = {n:,}' for n in sizes)} |",
        f"| ---: | --- |{' ---: |' * len(sizes)}",
    ]
    for dimension in suite.query_dimensions:
        for label in (TREE, *(network_label(hidden) for hidden in suite.query_networks)):
            seconds = [results.value(f"gaussian-{dimension}d", label, n, "query_seconds") for n in sizes]
            cells = ["–" if s is None else f"{1e3 * s:,.1f}" for s in seconds]
            lines.append(f"| {dimension} | {label} | {' | '.join(cells)} |")
    return "\n".join(lines)
