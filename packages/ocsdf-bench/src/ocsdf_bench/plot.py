"""Figures of a leaderboard: critical differences, curves against the radius, a heat strip of AUROC.

Every figure is legible in print (8 pt at its own width), tells its lines apart without colour, and is drawn
on a `matplotlib.figure.Figure` of its own, so that no global state is touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.attack import ATTACKS
from ocsdf_bench.diagram import critical_difference_diagram
from ocsdf_bench.figure import COLOURS, MARKERS, canvas, shorten
from ocsdf_bench.grid import Block, Key, Method, Results
from ocsdf_bench.histogram import draw_scores, score_panels
from ocsdf_bench.leaderboard.quality import mean_over
from ocsdf_bench.leaderboard.reading import THREATS, is_pixels, missing_cell, radius_text, radius_unit
from ocsdf_bench.sweep import draw_sweep, sweeps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CURVES = 14  # that colours, markers and dashes tell apart
RANKED = 24  # labels of a critical-difference diagram


@dataclass(frozen=True)
class Picture:
    """A figure of one section that can be drawn when it is needed. ``name`` is unique in its section."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]
    tikz: Callable[[], str] | None = None


def pictures(results: Results, directory: Path | None = None) -> tuple[Picture, ...]:
    """The figures that ``results`` has something to show in; nothing is drawn yet.

    ``directory`` : its store; histograms of image scores are among the figures where the scores are there.
    """
    found = tuple(_pictures(results))
    if directory is None or not is_pixels(results):
        return found
    datasets = dict.fromkeys(block.dataset for block in results.blocks)
    drawn = (_score_picture(results, name, directory, f"scores-{_safe(name)}") for name in datasets)
    return (*found, *(picture for picture in drawn if picture is not None))


def _safe(name: str) -> str:
    """A name as a part of a file's name."""
    return re.sub(r"[^\w-]+", "-", name)


def _pictures(results: Results) -> Iterator[Picture]:
    grid = results.grid(Key("auroc")).filled()
    if 2 < len(grid.ranked) <= RANKED and len(grid.blocks) > 2:
        caption = (
            f"Average rank of AUROC over {len(grid.blocks)} rows, 1 = best. Detectors joined by a bar do not "
            "differ at level 0.05 by Nemenyi's test."
        )
        diagram = critical_difference_diagram(results)
        yield Picture("critical-difference", "Critical differences", caption, diagram.draw, diagram.tikz)
    certified = f"Mean over the rows; radius 0 is the clean AUROC. Radius: {radius_unit(results)}."
    yield from _certified_pictures(results, _parts(results), certified)
    yield from _attack_pictures(results)
    for number, sweep in enumerate(sweeps(results), 1):
        fixed = "" if sweep.rest == "{}" else f", with {sweep.rest}"
        caption = f"{sweep.detector}{fixed}: mean over the rows that every value has; radius 0 is clean."
        name = f"sweep-{number}-{_safe(sweep.parameter)}"
        yield Picture(name, f"AUROC against {sweep.parameter}", caption, partial(draw_sweep, results, sweep))
    if len(grid.methods) > 1 and len(grid.blocks) > 1:  # one row is the ranking's
        caption = "AUROC in percent; a cell without a number says why."
        yield Picture("auroc-strip", "AUROC per data set", caption, partial(draw_strip, results))


@dataclass(frozen=True)
class _Part:
    """What a figure of means is over: one data set, or all ("")."""

    dataset: str
    name: str = ""
    title: str = ""


def _parts(results: Results) -> list[_Part]:
    """Each set of images has figures of its own: what runs on one of them only is not compared across two."""
    datasets = list(dict.fromkeys(block.dataset for block in results.blocks))
    if len(datasets) < 2 or not is_pixels(results):
        return [_Part("")]
    return [_Part(dataset, f"-{_safe(dataset)}", f", {dataset}") for dataset in datasets]


def _few_curves(results: Results) -> list[Key]:
    """Certified AUROCs of all test rows, of no more detectors than a figure tells apart."""
    keys = [k for k in results.keys("certified_auroc") if k.n_test is None]
    return [k for k in keys if len(results.grid(k).filled().methods) <= CURVES]


def _blocks(results: Results, dataset: str) -> tuple[Block, ...]:
    """Blocks of ``dataset``; "": all."""
    return tuple(block for block in results.blocks if dataset in ("", block.dataset))


def _certified_pictures(results: Results, parts: Sequence[_Part], caption: str) -> Iterator[Picture]:
    curves = _few_curves(results)
    for threat in dict.fromkeys(key.threat for key in curves):
        keys = [key for key in curves if key.threat == threat]
        for part in parts:
            title = f"Certified AUROC against the radius, {THREATS[threat]}{part.title}"
            draw = partial(draw_certified, results, threat, part.dataset)
            blocks = _blocks(results, part.dataset)
            if any(results.values(key, b, m) for key in keys for b in blocks for m in results.methods):
                yield Picture(f"certified-auroc-{threat}{part.name}", title, caption, draw)


def _attack_pictures(results: Results) -> Iterator[Picture]:
    """A figure per attack, and one with every detector where several attacks were made."""
    metrics = [name for name in results.metrics() if name.startswith("attacked_auroc:")]
    unit = f"Radius: {radius_unit(results)}."
    caption = (
        "Solid: attacked; dotted: proven bound on the same rows, where there is one; mean over the rows "
        f"attacked. {unit}"
    )
    for metric in metrics:
        attack = metric.partition(":")[2]
        yield from _pictures_under(results, [metric], f"attack-{attack}", attack, caption)
    caption = (
        "Solid: what the strongest of the attacks leaves at each radius; dotted: proven bound on the same "
        f"rows. Mean over the rows attacked. {unit}"
    )
    if len(metrics) > 1:
        yield from _pictures_under(results, metrics, "attacked", "the strongest attack", caption)


def _pictures_under(
    results: Results, metrics: Sequence[str], name: str, attack: str, caption: str
) -> Iterator[Picture]:
    """A figure per threat and part where the attack of ``metrics``, or more than one of them, was made."""
    made = {part: _attacked(results, metrics, part.dataset) for part in _parts(results)}
    for threat in dict.fromkeys(key.threat for metric in metrics for key in results.keys(metric)):
        for part, attacks in made.items():
            title = f"AUROC under {attack}, {THREATS[threat]}{part.title}"
            draw = partial(draw_attacked, results, metrics, threat, part.dataset)
            if len(set().union(*attacks.values())) >= min(len(metrics), 2):
                yield Picture(f"{name}-{threat}{part.name}", title, caption + _blindly(attacks), draw)


def _attacked(results: Results, metrics: Sequence[str], dataset: str) -> dict[str, list[str]]:
    """Attacks made on each method, by its label, on the rows of ``dataset`` ("": of all)."""
    blocks = _blocks(results, dataset)
    found: dict[str, list[str]] = {}
    for metric in metrics:
        keys = results.keys(metric)
        for method in results.methods:
            if any(results.values(key, block, method) for key in keys for block in blocks):
                found.setdefault(method.label, []).append(metric.partition(":")[2])
    return found


def _blindly(made: dict[str, list[str]]) -> str:
    """A sentence on the methods that no attack saw a gradient of, where others were attacked by theirs."""
    # An attack that is not registered here came by a plug-in: nothing is claimed of it.
    sighted = [a.name for a in ATTACKS if a.needs and not a.surrogate]
    blind = [label for label, names in made.items() if all(n in ATTACKS and n not in sighted for n in names)]
    if not blind or len(blind) == len(made):
        return ""
    return f" No attack saw a gradient of {', '.join(blind)}: a stronger one may exist."


def _score_picture(results: Results, dataset: str, directory: Path, name: str = "scores") -> Picture | None:
    panels = score_panels(results, dataset, directory)
    block = next(block for block in results.blocks if block.dataset == dataset)
    caption = (
        "Share of the normals and of the anomalies (and of the fitted rows, where they were kept) per bin of "
        f"the anomaly score; {block.label}, first seed; scores beyond the 0.5 and 99.5 % quantiles lie in "
        "the outermost bins."
    )
    return Picture(name, f"Scores, {block.label}", caption, partial(draw_scores, panels)) if panels else None


def dataset_pictures(results: Results, dataset: str, directory: Path) -> tuple[Picture, ...]:
    """Curves of one data set, and histograms of its scores where they are stored in ``directory``."""
    found = _certified_pictures(results, [_Part(dataset)], f"Radius: {radius_unit(results)}.")
    scores = _score_picture(results, dataset, directory)
    return (*found, scores) if scores is not None else tuple(found)


def draw_certified(results: Results, threat: str, dataset: str = "") -> Figure:
    """Certified AUROC against the radius, a line per detector with a proven constant: mean over the blocks of
    ``dataset``, or over all."""
    keys = [k for k in results.keys("certified_auroc") if k.n_test is None and k.threat == threat]
    first = results.grid(keys[0]).filled()
    blocks = tuple(b for b in first.blocks if dataset in ("", b.dataset))
    methods = [m for m in first.methods if any(results.values(k, b, m) for k in keys for b in blocks)]
    with canvas(6.5, 3.4) as (figure, axes):
        for i, (method, name) in enumerate(zip(methods, _short(methods), strict=True)):
            points = [(0.0, mean_over(results, Key("auroc"), blocks, method)[0])]
            points += [(k.radius or 0.0, mean_over(results, k, blocks, method)[0]) for k in keys]
            _line(axes, i, points, name)
        label = "certified AUROC, percent" + (f" (mean of {len(blocks)})" if len(blocks) > 1 else "")
        _finish_curves(axes, results, [k.radius or 0.0 for k in keys], label)
    return figure


def draw_attacked(results: Results, metrics: Sequence[str], threat: str, dataset: str = "") -> Figure:
    """AUROC under the strongest attack (solid) and its proven bound (dotted), on the attacked rows of
    ``dataset``, or on all."""
    keys = [key for name in metrics for key in results.keys(name) if key.threat == threat]
    radii = sorted({key.radius or 0.0 for key in keys})
    over = partial(_over, results, keys, _blocks(results, dataset))
    methods = [m for m in results.methods if any(over(r, m) is not None for r in radii)]
    with canvas(6.5, 3.4) as (figure, axes):
        for i, (method, label) in enumerate(zip(methods, _short(methods), strict=True)):
            # The same rows at every radius, but a method may be attacked at some of them only.
            clean = (over(r, method, "auroc") for r in radii)
            start = [(0.0, value) for value in clean if value is not None][:1]
            attacked, bound = (
                [(r, v) for r in radii if (v := over(r, method, name)) is not None]
                for name in ("", "certified_auroc")
            )
            _line(axes, i, start + attacked, label)
            _line(axes, i, start + bound, None, dotted=True)
        _finish_curves(axes, results, radii, "AUROC, percent (mean)")
    return figure


def _over(
    results: Results,
    keys: Sequence[Key],
    blocks: Sequence[Block],
    radius: float,
    method: Method,
    metric: str = "",
) -> float | None:
    """Mean over ``blocks`` of the lowest value at one radius among ``keys``, or of another ``metric`` on the
    same rows; None where there is none."""
    at = dict.fromkeys(
        Key(metric or k.metric, k.radius, k.threat, k.n_test) for k in keys if k.radius == radius
    )
    lowest = []
    for block in blocks:
        cells = [results.values(key, block, method) for key in at]
        means = [float(np.mean(list(seeds.values()))) for seeds in cells if seeds]
        lowest += [min(means)] if means else []
    return float(np.mean(lowest)) if lowest else None


def _line(
    axes: Axes, i: int, points: list[tuple[float, float]], label: str | None, *, dotted: bool = False
) -> None:
    if len(points) < 2 and dotted:
        return
    x, y = [p[0] for p in points], [100 * p[1] for p in points]
    style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
    line = ":" if dotted else ("-", "--")[(i // len(COLOURS)) % 2]
    axes.plot(x, y, linestyle=line, markersize=4, linewidth=1.4, label=label, **style)


def _finish_curves(axes: Axes, results: Results, radii: list[float], label: str) -> None:
    ticks = sorted({0.0, *radii})
    texts = [radius_text(tick, is_pixels(results)) for tick in ticks]
    steps = all(text.endswith("/255") for text in texts)
    room, free, labels = 0.08 * ticks[-1], 0.0, []
    for tick, text in zip(ticks, texts, strict=True):  # a label only where there is room for it
        shown = tick >= free or tick == ticks[-1]
        labels.append(text.removesuffix("/255") if shown else "")
        free = tick + room if shown else free
    axes.set_xticks(ticks, labels)
    axes.set_ylim(0, 100)
    axes.axhline(50, color="#808080", linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xlabel("radius, in 1/255 (l2)" if steps else "radius (l2)")
    axes.set_ylabel(label)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def _short(methods: Sequence[Method]) -> list[str]:
    """Names that fit beside an axis; those of the tables where short ones do not tell two variants apart."""
    short = [shorten(method.label) for method in methods]
    return short if len(set(short)) == len(short) else [method.label for method in methods]


def draw_strip(results: Results) -> Figure:
    """AUROC of each data set and detector as colour and number."""
    grid = results.grid(Key("auroc"))
    n_rows, n_columns = grid.mean.shape
    labels = _short(grid.methods)
    below = 0.3 + 0.05 * max(map(len, labels))
    with canvas(1.6 + 0.42 * n_columns, below + 0.2 * n_rows) as (figure, axes):
        axes.grid(visible=False)
        image = axes.imshow(100 * grid.mean, cmap="cividis", vmin=30, vmax=100, aspect="auto")
        for i, block in enumerate(grid.blocks):
            for j, method in enumerate(grid.methods):
                _strip_text(axes, results, block, method, j, i, 100 * grid.mean[i, j])
        axes.set_xticks(range(n_columns), labels, rotation=50, ha="right")
        axes.set_yticks(range(n_rows), [shorten(b.label) for b in grid.blocks])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        if n_rows > 4:  # a scale of fewer has no room for its label, and the cells say their number
            figure.colorbar(image, ax=axes, label="AUROC, percent", shrink=0.8, pad=0.01, extend="min")
    return figure


def _strip_text(
    axes: Axes, results: Results, block: Block, method: Method, x: int, y: int, value: float
) -> None:
    if value != value:
        text = missing_cell(results, block, method).text
        axes.text(x, y, text, ha="center", va="center", fontsize=5.5, rotation=0 if len(text) < 4 else 20)
        return
    colour = "#fefefe" if value < 68 else "#010101"  # not INK: it lies on the cell, not on the page
    axes.text(x, y, f"{value:.0f}", ha="center", va="center", fontsize=7, color=colour)
