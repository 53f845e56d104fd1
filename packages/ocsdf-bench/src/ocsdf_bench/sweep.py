"""AUROC, clean and certified, against one parameter of a detector that a suite ran at several values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocsdf_bench.figure import COLOURS, MARKERS, canvas
from ocsdf_bench.grid import Block, Key, Method, Results
from ocsdf_bench.leaderboard.quality import mean_over
from ocsdf_bench.leaderboard.reading import is_pixels, radius_text
from ocsdf_bench.suite import canonical

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST = 3  # values that make a curve


@dataclass(frozen=True)
class Sweep:
    """``methods`` that differ in the value of ``parameter`` alone, in the order of ``values``.

    default : the method that leaves the parameter to the detector, where it was run.
    """

    detector: str
    parameter: str
    rest: str
    values: tuple[float, ...]
    methods: tuple[Method, ...]
    default: Method | None

    @property
    def columns(self) -> tuple[Method, ...]:
        """The methods and the default."""
        return self.methods if self.default is None else (*self.methods, self.default)


def sweeps(results: Results) -> Iterator[Sweep]:
    """Every numeric parameter that was run at three values or more, the other parameters being equal."""
    params = {m: json.loads(m.params) for m in results.methods if m.role != "chosen"}
    groups: dict[tuple[str, str, str], dict[float, Method]] = {}
    for method, given in params.items():
        for name, value in given.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                rest = canonical({k: v for k, v in given.items() if k != name})
                groups.setdefault((method.detector, name, rest), {})[float(value)] = method
    for (detector, name, rest), found in groups.items():
        if len(found) >= FEWEST:
            default = next((m for m in params if (m.detector, m.params) == (detector, rest)), None)
            values = tuple(sorted(found))
            yield Sweep(detector, name, rest, values, tuple(found[v] for v in values), default)


def draw_sweep(results: Results, sweep: Sweep) -> Figure:
    """A line for the clean AUROC and for each certified radius, over the rows that every value has; the
    default, whose value may differ from row to row, stands at the right."""
    certified = [k for k in results.keys("certified_auroc") if k.n_test is None and k.threat == "both"]
    keys = [Key("auroc"), *certified]
    blocks = _common(results, sweep)
    pixels = is_pixels(results)
    with canvas(5.5, 3.2) as (figure, axes):
        places = list(range(len(sweep.values)))
        for i, key in enumerate(keys):
            colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
            line = [100 * mean_over(results, key, blocks, m)[0] for m in sweep.methods]
            label = f"radius {radius_text(key.radius, pixels)}" if key.radius else "clean"
            axes.plot(places, line, color=colour, marker=marker, markersize=4, lw=1.2, label=label)
            if sweep.default is not None:
                value = 100 * mean_over(results, key, blocks, sweep.default)[0]
                axes.plot([len(places)], [value], color=colour, marker=marker, markersize=6, mfc="none")
        named = [f"{value:g}" for value in sweep.values] + ["default"] * (sweep.default is not None)
        axes.set_xticks(range(len(named)), named)
        axes.set_xlabel(sweep.parameter.replace("_", " "))
        axes.set_ylabel(f"AUROC, percent (mean of {len(blocks)})")
        figure.legend(loc="outside right center")
    return figure


def _common(results: Results, sweep: Sweep) -> tuple[Block, ...]:
    key = Key("auroc")
    return tuple(
        block for block in results.blocks if all(results.values(key, block, m) for m in sweep.columns)
    )
