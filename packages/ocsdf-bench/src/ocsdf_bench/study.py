"""Measurements that are no detector runs (pictures, shapes): rows of a runs.csv that grows as they finish."""

from __future__ import annotations

import csv
import resource
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ocsdf_bench.suite import canonical
from ocsdf_bench.tables.runs_csv import COLUMNS


@dataclass(frozen=True)
class Measurement:
    """One fit and what was measured of it.

    Parameters
    ----------
    dataset, detector : str
        Set or shape, and method.
    seed, n_train : int
    metrics : dict
        Name to value; a str instead of a number is the reason why the metric is not defined here.
    params, budget : dict
        What was asked for; what was resolved or reduced.
    fit_seconds, score_seconds : float or None
    n_test, n_features : int
    status, reason : str
        "ok", or why there are no metrics.
    """

    dataset: str
    detector: str
    seed: int
    n_train: int
    metrics: dict[str, float | str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    budget: dict[str, Any] = field(default_factory=dict)
    fit_seconds: float | None = None
    score_seconds: float | None = None
    n_test: int = 0
    n_features: int = 0
    status: str = "ok"
    reason: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two measurements the same one."""
        return (self.dataset, self.detector, canonical(self.params), str(self.seed), str(self.n_train))


class StudyLog:
    """The runs.csv of a study. What is in it with status ok or skipped is not measured again.

    A file keeps the columns it was begun with, so that a study which goes on under a later version stays one
    table.

    Parameters
    ----------
    path : Path
        Created with its folder and header where absent.
    suite, protocol : str
        Of every row.
    """

    def __init__(self, path: Path, suite: str, protocol: str) -> None:
        self.path, self.suite, self.protocol = path, suite, protocol
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writeheader()

    def rows(self) -> list[dict[str, str]]:
        """All rows, as text."""
        with self.path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def has(self, wanted: Measurement) -> bool:
        """Whether ``wanted`` was measured before, whatever its metrics."""
        keys = ("dataset", "detector", "params", "seed", "n_train")
        return any(
            tuple(row[k] for k in keys) == wanted.key for row in self.rows() if row["status"] != "failed"
        )

    def add_new(self, made: Measurement) -> None:
        """``add``, unless it is there: what was made again for a picture keeps its rows."""
        if not self.has(made):
            self.add(made)

    def add(self, made: Measurement) -> None:
        """Append one row per metric."""
        fixed = {
            "suite": self.suite,
            "protocol": self.protocol,
            "dataset": made.dataset,
            "detector": made.detector,
            "params": canonical(made.params),
            "seed": made.seed,
            "fit_seconds": _text(made.fit_seconds),
            "score_seconds": _text(made.score_seconds),
            "peak_mb": round(_peak_mb(), 1),
            "n_train": made.n_train,
            "n_test": made.n_test,
            "n_features": made.n_features,
            "budget": canonical(made.budget),
        }
        metrics: dict[str, float | str] = made.metrics or {"": made.reason}
        with self.path.open("r+", newline="", encoding="utf-8") as file:
            columns = next(csv.reader(file))
            file.seek(0, 2)
            writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
            for name, value in metrics.items():
                undefined = isinstance(value, str)
                status = made.status if made.status != "ok" else ("skipped" if undefined else "ok")
                own = {"metric": name, "value": "" if undefined else _text(value), "status": status}
                writer.writerow({**fixed, **own, "reason": value if undefined else made.reason})


def _text(value: float | str | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _peak_mb() -> float:
    """Largest resident memory of this process up to here, whichever fit needed it."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
