"""Figures of a shape suite: what was made, error and query time against n, and a picture by safe rays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ocsdf_bench.dataset import Source
from ocsdf_bench.figure import COLOURS, MARKERS, canvas, save_png
from ocsdf_bench.shapes.loader import get_shape
from ocsdf_bench.shapes.measure import FLOOR, mesh_path, traced_path
from ocsdf_bench.shapes.query_time import N_QUERIES, TREE, network_label
from ocsdf_bench.shapes.render import Camera, camera_for, render_mesh
from ocsdf_bench.shapes.results import Results, best_comparator
from ocsdf_bench.shapes.shape import sample_surface
from ocsdf_bench.shapes.suite import ShapeSuite

COLUMNS = ("ground truth", "points", "OCSDF", "best comparator")
"""The paper's order."""

_ROWS = 4
"""Shapes a picture: more do not fit a page."""


def draw_figures(
    suite: ShapeSuite, out: Path, results: Results, source: Source, budget: str
) -> dict[str, Path]:
    """Write every figure into ``out/figures``; ``budget`` is printed under each. Name to path."""
    measured = [name for name in suite.shapes if results.value(name, "OCSDF", suite.n_points, "chamfer")]
    drawn = {
        f"shapes-{i // _ROWS + 1}": _gallery(suite, out, measured[i : i + _ROWS], results, source, budget)
        for i in range(0, len(measured), _ROWS)
    }
    if suite.traced_shape in measured:
        drawn["example"] = _gallery(suite, out, [suite.traced_shape], results, source, budget)
        drawn["traced"] = _traced(suite, suite.traced_shape, out, budget)
    if suite.sweep_shapes:
        drawn["error"] = _error(suite, results, budget)
    if suite.query_dimensions:
        drawn["query_time"] = _query_time(suite, results)
    (out / "figures").mkdir(exist_ok=True)
    return {name: save_png(figure, out / "figures" / f"{name}.png") for name, figure in drawn.items()}


def _gallery(
    suite: ShapeSuite, out: Path, names: list[str], results: Results, source: Source, budget: str
) -> Any:
    """Ground truth, points, OCSDF, best comparator: the paper's order of columns, a row a shape."""
    with canvas(7.0, 1.78 * len(names) + 0.65) as (figure, axes):
        axes.remove()
        figure.supxlabel(f"\n{budget}", fontsize=7)
        panels = figure.subplots(len(names), 4, squeeze=False)
        for row, name in zip(panels, names, strict=True):
            shape, camera = get_shape(name, source), camera_for(name)
            best = best_comparator(suite, results, name)
            made = [_load(mesh_path(out, name, m, suite.n_points)) if m else None for m in ("OCSDF", best)]
            for panel, mesh in zip((row[0], row[2], row[3]), (shape.mesh, *made), strict=True):
                if mesh is not None:
                    panel.imshow(render_mesh(mesh, camera), extent=(-1, 1, -1, 1))
            if shape.cloud is not None:
                _scatter(row[0], shape.cloud, camera)
            _scatter(row[1], sample_surface(shape, suite.n_points, suite.seed).points, camera)
            _caption(row, name, best, suite, results)
        for panel, title in zip(panels[0], COLUMNS, strict=True):
            panel.set_title(title)
    return figure


def _scatter(panel: Any, points: np.ndarray, camera: Camera) -> None:
    """Points in their order of depth, the near ones darker."""
    right, up, depth = camera.project(points).T / camera.half_width
    order = np.argsort(depth)
    panel.scatter(right[order], up[order], c=depth[order], s=0.8, cmap="Blues", vmin=-2, vmax=1)


def _caption(row: Any, name: str, best: str | None, suite: ShapeSuite, results: Results) -> None:
    row[0].set_ylabel(Path(name).stem)
    texts = ["", f"n = {suite.n_points:,}"]
    for label in ("OCSDF", best):
        chamfer = results.value(name, label, suite.n_points, "chamfer") if label else None
        prefix = "" if label == "OCSDF" else f"{label}, "
        texts.append("none measured" if chamfer is None else f"{prefix}Chamfer {chamfer:.4f}")
    for panel, text in zip(row, texts, strict=True):
        panel.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xticks=[], yticks=[])
        panel.set_xlabel(text, fontsize=7)
        panel.grid(False)
        panel.spines[:].set_visible(False)


def _load(path: Path) -> Any:
    import trimesh

    if not path.is_file():
        raise FileNotFoundError(
            f"`out` of shapes must hold the surfaces of its rows; {path.name} is gone: install what its "
            "method needs, or use an empty folder."
        )
    return trimesh.load_mesh(path)


def _traced(suite: ShapeSuite, name: str, out: Path, budget: str) -> Any:
    """The same level as a mesh and by sphere tracing, with the evaluations each ray took."""
    traced = np.load(traced_path(out), allow_pickle=False)
    mesh = _load(mesh_path(out, name, "OCSDF", suite.n_points))
    with canvas(7.0, 2.75) as (figure, axes):
        axes.remove()
        figure.supxlabel(budget, fontsize=7)
        left, middle, right = figure.subplots(1, 3)
        left.imshow(render_mesh(mesh, camera_for(name), supersample=1))
        left.set_title(f"marching cubes on {suite.resolution}³")
        middle.imshow(traced["image"])
        middle.set_title("sphere tracing")
        evaluations = right.imshow(traced["evaluations"], cmap="cividis", norm="log")
        right.set_title("evaluations a ray")
        for panel in (left, middle, right):
            panel.set(xticks=[], yticks=[])
            panel.grid(False)
            panel.spines[:].set_visible(False)
        ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200) if t <= traced["evaluations"].max()]
        bar = figure.colorbar(evaluations, ax=right, shrink=0.8, ticks=ticks, format="%d")
        bar.minorticks_off()
    return figure


def _error(suite: ShapeSuite, results: Results, budget: str) -> Any:
    sizes = sorted({suite.n_points, *suite.sweep_n_points})
    with canvas(7.0, 3.0) as (figure, axes):
        axes.remove()
        figure.supxlabel(budget, fontsize=7)
        panels = figure.subplots(1, len(suite.sweep_shapes), squeeze=False, sharey=True)[0]
        for panel, name in zip(panels, suite.sweep_shapes, strict=True):
            swept = [method for method in suite.methods if not method.shapes]
            for method, colour, marker in zip(swept, COLOURS, MARKERS, strict=False):
                errors = [results.value(name, method.label, n, "chamfer") for n in sizes]
                line = {"color": colour, "marker": marker, "markersize": 4, "label": method.label}
                panel.plot(sizes, [np.nan if e is None else e for e in errors], **line)
            panel.axhline(
                results.value(name, FLOOR, suite.n_compared, "chamfer") or np.nan,
                color="#808080",
                linestyle="--",
                linewidth=1,
                label="sampled twice",
            )
            panel.set(xscale="log", yscale="log", xlabel="points n", title=Path(name).stem)
            panel.set_xticks(sizes, [f"{n:,}" for n in sizes])
            panel.minorticks_off()
        panels[0].set_ylabel("Chamfer distance")
        _plain_ticks(panels[0], (0.005, 0.01, 0.02, 0.05, 0.1, 0.2))
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure


def _query_time(suite: ShapeSuite, results: Results) -> Any:
    labels = (TREE, *(network_label(h) for h in suite.query_networks))
    with canvas(7.0, 2.8) as (figure, axes):
        axes.remove()
        panels = figure.subplots(1, len(suite.query_dimensions), squeeze=False, sharey=True)[0]
        for panel, dimension in zip(panels, suite.query_dimensions, strict=True):
            for label, colour, marker in zip(labels, COLOURS, MARKERS, strict=False):
                seconds = [
                    results.value(f"gaussian-{dimension}d", label, n, "query_seconds")
                    for n in suite.query_n_points
                ]
                line = {"color": colour, "marker": marker, "markersize": 4, "label": label}
                panel.plot(suite.query_n_points, [np.nan if s is None else 1e3 * s for s in seconds], **line)
            panel.set(xscale="log", yscale="log", xlabel="rows n", title=f"{dimension} dimensions")
            panel.set_xticks(suite.query_n_points, [f"{n:,}" for n in suite.query_n_points], fontsize=7)
            panel.minorticks_off()
        panels[0].set_ylabel(f"CPU milliseconds\nfor {N_QUERIES:,} queries")
        _plain_ticks(panels[0], (0.1, 1, 10, 100, 1000, 10_000))
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    return figure


def _plain_ticks(panel: Any, ticks: tuple[float, ...]) -> None:
    """Those of ``ticks`` that lie within the limits, without powers."""
    low, high = panel.get_ylim()
    shown = [t for t in ticks if low <= t <= high]
    panel.set_yticks(shown, [f"{t:,}" for t in shown])
