"""Figures of a toy suite. Grey-safe and colour-blind-safe: lightness alone tells levels apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ocsdf_bench.figure import COLOURS, MARKERS, canvas, save_png
from ocsdf_bench.suite import canonical
from ocsdf_bench.toy2d.measure import HALF_WIDTH, KNOWN_HALF_WIDTH, ToySuite
from ocsdf_bench.toy2d.sets import KNOWN_SETS, RADIUS, TOY_SETS, grid_rows

DETECTORS = ("OCSDF", "conventional network", "OCSVM", "IForest")
_MAP = "cividis"
_ZERO = "#000000"
_MARK = "#D55E00"


def draw_figures(suite: ToySuite, out: Path, values: dict[Any, dict[str, float]], budget: str) -> list[Path]:
    """Write every figure into ``out/figures``; ``budget`` is printed under each."""
    arrays = {name: np.load(out / "arrays" / f"{name}.npz", allow_pickle=False) for name in suite.sets}
    drawn = {
        "level_sets": _level_sets(suite, arrays, budget),
        "histograms": _histograms(suite, arrays, budget),
        "signed_distance": _signed_distance(suite, values, budget),
        "known_sets": _known_sets(suite, out, budget),
        "negatives": _negatives(suite, np.load(out / "arrays" / "negatives.npz", allow_pickle=False), budget),
    }
    return [save_png(figure, out / "figures" / f"{name}.png") for name, figure in drawn.items()]


@contextmanager
def _grid(width: float, height: float, rows: int, columns: int, caption: str) -> Iterator[tuple[Any, Any]]:
    with canvas(width, height) as (figure, axes):
        axes.remove()
        figure.supxlabel(caption, fontsize=7)
        yield figure, figure.subplots(rows, columns, squeeze=False)


def _bare(axes: Any, half_width: float) -> None:
    axes.set(
        xlim=(-half_width, half_width), ylim=(-half_width, half_width), aspect="equal", xticks=[], yticks=[]
    )
    axes.grid(False)
    axes.spines[:].set_visible(True)


def _level_sets(suite: ToySuite, arrays: dict[str, Any], budget: str) -> Any:
    with _grid(8.0, 6.9, len(DETECTORS), len(suite.sets), budget) as (figure, axes):
        axis = np.linspace(-HALF_WIDTH, HALF_WIDTH, suite.resolution)
        for j, name in enumerate(suite.sets):
            for i, detector in enumerate(DETECTORS):
                panel, values = axes[i, j], arrays[name][f"{detector}/grid"].reshape(suite.resolution, -1)
                _bare(panel, HALF_WIDTH)
                levels = _levels(values)
                panel.contourf(axis, axis, values, levels, cmap=_MAP, extend="both")
                panel.contour(axis, axis, values, levels, colors="white", linewidths=0.25)
                panel.contour(axis, axis, values, [0.0], colors=_ZERO, linewidths=1.8)
                panel.scatter(*arrays[name]["rows"].T, s=0.3, color=_ZERO, linewidths=0)
                if detector == "OCSDF":
                    _circles(panel, arrays[name]["marked"], arrays[name]["radius"])
                if i == 0:
                    panel.set_title(TOY_SETS[name].title)
                if j == 0:
                    panel.set_ylabel(detector)
    return figure


def _levels(values: np.ndarray) -> np.ndarray:
    """About 14 evenly spaced levels with zero among them, over the central 98 % of the values."""
    low, high = np.quantile(values, [0.01, 0.99])
    step = (high - low) / 14
    return step * np.arange(np.floor(low / step), np.ceil(high / step) + 1)


def _circles(panel: Any, centers: np.ndarray, radii: np.ndarray) -> None:
    from matplotlib.patches import Circle

    for center, radius in zip(centers, radii, strict=True):
        panel.add_patch(Circle(center, radius, fill=False, color=_MARK, linewidth=1.1, zorder=3))
        panel.plot(*center, ".", color=_MARK, markersize=2.5, zorder=3)


def _histograms(suite: ToySuite, arrays: dict[str, Any], budget: str) -> Any:
    with _grid(8.0, 5.6, len(DETECTORS), len(suite.sets), f"score; height: rows in a bin\n{budget}") as (
        figure,
        axes,
    ):
        for j, name in enumerate(suite.sets):
            for i, detector in enumerate(DETECTORS):
                panel = axes[i, j]
                data, uniform = (arrays[name][f"{detector}/{kind}"] for kind in ("data", "uniform"))
                span = np.quantile(np.concatenate([data, uniform]), [0.005, 0.995])
                bins = np.linspace(span[0], span[1], 40)
                panel.hist(uniform, bins, color=COLOURS[4], alpha=0.8, label="uniform on B")
                panel.hist(data, bins, histtype="step", color=_ZERO, linewidth=1.1, label="data")
                panel.set(yscale="symlog", ylim=(0, 1500))
                panel.set_yticks([0, 1, 10, 100, 1000], ["0", "1", "10", "100", "1,000"] if j == 0 else [])
                panel.axvline(0, color=_MARK, linewidth=0.8, linestyle="--")
                panel.locator_params(axis="x", nbins=3)
                panel.tick_params(labelsize=6.5)
                panel.grid(False)
                panel.minorticks_off()
                if i == 0:
                    panel.set_title(TOY_SETS[name].title)
                if j == 0:
                    panel.set_ylabel(detector.replace(" ", "\n"))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2)
    return figure


def _signed_distance(suite: ToySuite, values: dict[Any, dict[str, float]], budget: str) -> Any:
    with _grid(7.0, 3.2, 1, 3, budget) as (figure, axes):
        largest, first = max(suite.known_n_points), suite.known_margins[0]
        for name, colour, marker in zip(suite.known_sets, COLOURS, MARKERS, strict=False):
            by = {(key[2], key[3]): v for key, v in values.items() if key[0] == name}
            weight = suite.known_weights[0]
            line = {"color": colour, "marker": marker, "markersize": 4, "label": KNOWN_SETS[name].title}
            of_n = [by[n, _params(first, weight)] for n in suite.known_n_points]
            margins = sorted(suite.known_margins)
            of_margin = [by[largest, _params(m, weight)] for m in margins]
            axes[0, 0].plot(suite.known_n_points, [v["sdf_error"] for v in of_n], **line)
            axes[0, 1].plot(margins, [v["sdf_error"] for v in of_margin], **line)
            share = [100 * v["gradient_norm_within_5_percent"] for v in of_margin]
            axes[0, 2].plot(margins, share, **line)
        axes[0, 0].set(xscale="log", xlabel="rows n", ylabel="mean |f − m − SDF|")
        axes[0, 0].set_xticks(suite.known_n_points, [f"{n:,}" for n in suite.known_n_points])
        axes[0, 0].set_title(f"margin {first}")
        for panel, label in (
            (axes[0, 1], "mean |f − m − SDF|"),
            (axes[0, 2], "‖∇f‖ within 5 % of 1 (% of grid)"),
        ):
            panel.set(xscale="log", xlabel="margin m", ylabel=label, title=f"n = {largest:,}")
            panel.set_xticks(sorted(suite.known_margins), [str(m) for m in sorted(suite.known_margins)])
        top = max(panel.get_ylim()[1] for panel in axes[0, :2])
        for panel in axes[0, :2]:
            panel.set_ylim(0, top)
        axes[0, 2].set_ylim(0, 104)  # a marker at 100 % is not cut
        for panel in axes.flat:
            panel.minorticks_off()
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _known_sets(suite: ToySuite, out: Path, budget: str) -> Any:
    from matplotlib.lines import Line2D

    n, margin = max(suite.known_n_points), suite.known_margins[0]
    caption = f"n = {n:,}, margin {margin}\n{budget}"
    with _grid(7.0, 2.5, 1, len(suite.known_sets), caption) as (figure, axes):
        axis = np.linspace(-KNOWN_HALF_WIDTH, KNOWN_HALF_WIDTH, 100)
        levels = np.arange(-2.0, 1.6, 0.4)
        for panel, name in zip(axes[0], suite.known_sets, strict=True):
            _bare(panel, KNOWN_HALF_WIDTH)
            truth = KNOWN_SETS[name].signed_distance(grid_rows(KNOWN_HALF_WIDTH, 100)).reshape(100, 100)
            learned = np.load(out / "arrays" / f"known-{name}.npz")["distance"].reshape(100, 100)
            for field, colour, style in ((truth, "#808080", "dashed"), (learned, COLOURS[0], "solid")):
                panel.contour(axis, axis, field, levels, colors=colour, linewidths=0.7, linestyles=style)
                panel.contour(axis, axis, field, [0.0], colors=colour, linewidths=1.8, linestyles=style)
            panel.set_title(KNOWN_SETS[name].title)
        key = [
            Line2D([], [], color="#808080", linestyle="dashed", label="true signed distance"),
            Line2D([], [], color=COLOURS[0], label="f − m (levels every 0.4, zero thick)"),
        ]
        figure.legend(handles=key, loc="outside upper center", ncols=2)
    return figure


def _negatives(suite: ToySuite, arrays: Any, budget: str) -> Any:
    with _grid(7.0, 2.2, 1, len(suite.strip_steps), budget) as (figure, axes):
        axis = np.linspace(-RADIUS, RADIUS, 150)
        for panel, steps in zip(axes[0], suite.strip_steps, strict=True):
            start, moved = arrays[f"{steps}/start"], arrays[f"{steps}/moved"]
            _bare(panel, RADIUS * 1.02)
            panel.scatter(*arrays["rows"].T, s=0.6, color=COLOURS[0], linewidths=0)
            panel.plot(*np.stack([start, moved], axis=-1).transpose(1, 2, 0), color="#bbbbbb", linewidth=0.3)
            panel.scatter(*start.T, s=1.2, color="#909090", linewidths=0)
            panel.scatter(*moved.T, s=3.0, color=_MARK, linewidths=0, zorder=3)
            panel.contour(
                axis, axis, arrays[f"{steps}/grid"].reshape(150, 150), [0.0], colors=_ZERO, linewidths=1.2
            )
            panel.set_title(f"after {steps:,} steps")
    return figure


def _params(margin: float, weight: float) -> str:
    return canonical({"margin": margin, "weight": weight})
