"""Histograms of stored anomaly scores: normals against anomalies, and the fitted rows where they are kept."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Scores of one run: ``score``, ``y`` (n_test,), 1 = anomaly; ``train`` (n_rows,), of fitted rows."""

    title: str
    score: np.ndarray
    y: np.ndarray
    train: np.ndarray | None = None

    def groups(self) -> Iterator[tuple[str, str, np.ndarray]]:
        """(name, colour, scores) of each group."""
        if self.train is not None:
            yield "training rows", COLOURS[2], self.train
        yield "normals", COLOURS[0], self.score[self.y == 0]
        yield "anomalies", COLOURS[1], self.score[self.y == 1]


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
        train = arrays.get("score_train")
        panels.append(Panel(shorten(method.label, 30), arrays["score"], arrays["y"], train))
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
            shown = np.concatenate([scores for _, _, scores in panel.groups()])
            low, high = np.quantile(shown, [0.005, 0.995])
            edges = np.linspace(low, high if high > low else low + 1.0, N_BINS + 1)
            for name, colour, scores in panel.groups():
                counts, _ = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)
                filled = name != "training rows"
                axes.stairs(
                    counts / max(len(scores), 1),
                    edges,
                    color=colour,
                    label=name,
                    fill=filled,
                    alpha=0.45 if filled else 1.0,
                )
            axes.set_title(panel.title, fontsize=7)
            axes.tick_params(labelsize=6)
            axes.set_yticks([])
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=3, fontsize=7)
    return figure
