"""What a shape suite measured, as its runs.csv has it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from ocsdf_bench.shapes.suite import ShapeSuite


@dataclass(frozen=True)
class Results:
    """Rows of runs.csv by (dataset, detector, n): values by metric, and the reason of what is missing."""

    values: dict[tuple[str, str, int], dict[str, float]]
    reasons: dict[tuple[str, str, int], dict[str, str]]

    def value(self, name: str, label: str, n: int, metric: str) -> float | None:
        """A figure, or None where it is not defined; ``name`` as the suite writes it."""
        return self.values.get((Path(name).stem, label, n), {}).get(metric)

    def reason(self, name: str, label: str, n: int) -> str:
        """Why a whole run has no figures, or an empty string."""
        return self.reasons.get((Path(name).stem, label, n), {}).get("", "")


def read_results(path: Path) -> Results:
    """The runs.csv of a shape suite."""
    values: dict[tuple[str, str, int], dict[str, float]] = {}
    reasons: dict[tuple[str, str, int], dict[str, str]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = (row["dataset"], row["detector"], int(row["n_train"]))
            if row["value"]:
                values.setdefault(key, {})[row["metric"]] = float(row["value"])
                reasons.get(key, {}).pop("", None)  # it failed before and was measured again
            else:
                reasons.setdefault(key, {})[row["metric"]] = row["reason"]
    return Results(values, reasons)


def best_comparator(suite: ShapeSuite, results: Results, name: str) -> str | None:
    """The method other than OCSDF with the smallest Chamfer distance to a shape; None if there is none."""
    others = [m.label for m in suite.methods if m.method != "OCSDF"]
    chamfer = {label: results.value(name, label, suite.n_points, "chamfer") for label in others}
    measured = [(c, label) for label, c in chamfer.items() if c is not None]
    return min(measured)[1] if measured else None
