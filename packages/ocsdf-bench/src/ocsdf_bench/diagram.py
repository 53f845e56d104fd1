"""Critical-difference diagram: average ranks on a line, bars over what the test cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.figure import COLOURS, INK, canvas, shorten
from ocsdf_bench.grid import Key, Results
from ocsdf_bench.latex import escape
from ocsdf_bench.ranking import cliques, critical_difference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.5  # of the picture, inches
LETTER = 0.07  # of a label, inches


@dataclass(frozen=True)
class Diagram:
    """A critical-difference diagram (Demšar, JMLR 2006), laid out once for the picture and for TikZ.

    labels, ranks : by rank, best first. bars : (best, worst) rank of each group that the test cannot part.
    """

    labels: tuple[str, ...]
    ranks: tuple[float, ...]
    bars: tuple[tuple[float, float], ...]
    distance: float

    @property
    def high(self) -> int:
        return len(self.labels)

    def rows(self) -> Iterator[tuple[str, float, float, bool]]:
        """Label, rank, depth under the axis and whether it stands at the left; each half from outside in."""
        half = (len(self.labels) + 1) // 2
        top = 1.0 + 0.45 * len(self.bars)
        for i, (label, rank) in enumerate(zip(self.labels, self.ranks, strict=True)):
            left = i < half
            yield label, rank, top + (i if left else len(self.labels) - 1 - i), left

    def draw(self) -> Figure:
        depth = max(y for _, _, y, _ in self.rows())
        with canvas(WIDTH, 0.7 + 0.19 * (depth + 1.5)) as (figure, axes):
            _draw_diagram(axes, self, depth)
        return figure

    def tikz(self) -> str:
        """A ``tikzpicture`` with the same content; needs the package tikz only."""
        lines = [r"\begin{tikzpicture}[x=1cm, y=-0.45cm, every node/.style={font=\small}]"]
        lines.append(rf"\draw (1,0) -- ({self.high},0);")
        for tick in range(1, self.high + 1):
            lines.append(rf"\draw ({tick},0) -- ({tick},-0.25) node[above] {{{tick}}};")
        lines.append(rf"\draw[very thick] (1,-2) -- ({1 + self.distance:.3f},-2) node[midway, above] {{CD}};")
        for i, (best, worst) in enumerate(self.bars):
            y = 0.55 + 0.45 * i
            lines.append(
                rf"\draw[line width=2pt] ({best - 0.05:.3f},{y:.2f}) -- ({worst + 0.05:.3f},{y:.2f});"
            )
        for label, rank, y, left in self.rows():
            x, anchor = (0.6, "left") if left else (self.high + 0.4, "right")
            text = escape(f"{label} ({rank:.2f})")
            lines.append(rf"\draw ({rank:.3f},0) |- ({x},{y:.2f}) node[{anchor}] {{{text}}};")
        return "\n".join([*lines, r"\end{tikzpicture}", ""])


def critical_difference_diagram(results: Results) -> Diagram:
    """Diagram of the ranked columns of AUROC."""
    grid = results.grid(Key("auroc")).filled()
    ranks = grid.average_ranks()
    order = sorted(grid.ranked, key=lambda j: (ranks[j], j))
    sorted_ranks = tuple(float(ranks[j]) for j in order)
    distance = critical_difference(len(order), len(grid.blocks))
    groups = cliques(sorted_ranks, distance)
    bars = tuple((sorted_ranks[group[0]], sorted_ranks[group[-1]]) for group in groups)
    return Diagram(tuple(shorten(grid.methods[j].label) for j in order), sorted_ranks, bars, distance)


def _draw_diagram(axes: Axes, diagram: Diagram, depth: float) -> None:
    high = diagram.high
    side = LETTER * (max(len(label) for label in diagram.labels) + 8)  # a label and its rank
    line = WIDTH - 2 * side
    margin = (high - 1) * side / line
    axes.set_xlim(1 - margin, high + margin)
    axes.set_ylim(depth + 0.6, -3.4)
    axes.axis("off")
    axes.plot([1, high], [0, 0], color=INK, linewidth=1)
    step = int(np.ceil(0.25 * (high - 1) / line))  # numbers stand a quarter of an inch apart at least
    for tick in range(1, high + 1, step):
        axes.plot([tick, tick], [0, -0.25], color=INK, linewidth=1)
        axes.text(tick, -0.4, str(tick), ha="center", va="bottom", in_layout=False)
    axes.plot([1, 1 + diagram.distance], [-2.1, -2.1], color=INK, linewidth=2)
    text = f"critical difference {diagram.distance:.2f}"
    axes.text(1, -2.4, text, ha="left", va="bottom", in_layout=False)
    for i, (best, worst) in enumerate(diagram.bars):
        y = 0.55 + 0.45 * i
        axes.plot(
            [best - 0.04, worst + 0.04], [y, y], color=COLOURS[1], linewidth=2.5, solid_capstyle="round"
        )
    for label, rank, y, left in diagram.rows():
        x = 1 - 0.15 if left else high + 0.15
        axes.plot([rank, rank, x], [0, y, y], color=INK, linewidth=0.7)
        text = f"{label}  {rank:.2f}" if left else f"{rank:.2f}  {label}"
        place: dict[str, Any] = {"ha": "right" if left else "left", "va": "center", "in_layout": False}
        axes.text(x - 0.08 if left else x + 0.08, y, text, **place)
