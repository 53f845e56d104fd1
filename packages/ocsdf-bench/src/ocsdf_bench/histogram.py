"""Histograms of stored anomaly scores, normals against anomalies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ocsdf_bench.figure import COLOURS, STYLE, shorten
from ocsdf_bench.grid import Results
from ocsdf_bench.store import StoreCorruptError, read_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_BINS = 40
_COLUMNS = 3


@dataclass(frozen=True)
class Panel:
    """Scores of one run; ``score`` and ``y`` are (n_test,), 1 = anomaly."""

    title: str
    score: np.ndarray
    y: np.ndarray


def score_panels(results: Results, dataset: str, directory: Path) -> tuple[Panel, ...]:
    """First seed of each detector on the first block of ``dataset``; none where the scores are not here.

    Scores whose checksum is not the stored one are left out: a picture must not show what no run gave.
    """
    block = next(block for block in results.blocks if block.dataset == dataset)
    panels = []
    for method in results.methods:
        run = next((r for r in results.cells.get((block, method), ()) if r.status == "ok"), None)
        if run is None or not run.scores_sha256:
            continue
        try:
            arrays = read_scores(directory, run)
        except (FileNotFoundError, StoreCorruptError):
            continue
        panels.append(Panel(shorten(method.label, 30), arrays["score"], arrays["y"]))
    return tuple(panels)


def draw_scores(panels: tuple[Panel, ...]) -> Figure:
    """A small histogram per detector."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    n_rows = -(-len(panels) // _COLUMNS)
    with rc_context(STYLE):
        figure = Figure(figsize=(6.5, 0.4 + 1.25 * n_rows), layout="constrained")
        grid = figure.subplots(n_rows, _COLUMNS, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            low, high = np.quantile(panel.score, [0.005, 0.995])
            edges = np.linspace(low, high if high > low else low + 1.0, N_BINS + 1)
            for label, name, colour in ((0, "normals", COLOURS[0]), (1, "anomalies", COLOURS[1])):
                scores = np.clip(panel.score[panel.y == label], edges[0], edges[-1])
                counts, _ = np.histogram(scores, edges)
                axes.stairs(
                    counts / max(len(scores), 1), edges, color=colour, label=name, fill=True, alpha=0.45
                )
            axes.set_title(panel.title, fontsize=7)
            axes.tick_params(labelsize=6)
            axes.set_yticks([])
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=7)
    return figure
