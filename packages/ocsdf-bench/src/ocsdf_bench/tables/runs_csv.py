"""runs.csv: one line per run and metric, tidy and long; a run without a result is a line with its reason."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ocsdf_bench.leaderboard import Leaderboard
from ocsdf_bench.store import Run
from ocsdf_bench.suite import canonical
from ocsdf_bench.table import FORMATS, Format

COLUMNS = (
    "suite", "protocol", "dataset", "normal_class", "detector", "params", "seed", "metric", "radius",
    "threat", "value", "status", "reason", "fit_seconds", "score_seconds", "peak_mb", "n_train", "n_test",
    "n_features", "budget", "reported_by", "scores",
)  # fmt: skip


def rows(run: Run) -> Iterator[dict[str, Any]]:
    """Lines of one run; numbers as Python prints them, so that nothing is lost. The long name of its scores
    stands on the first line only.
    """
    spec = run.spec
    fixed = {
        "suite": spec.suite,
        "protocol": spec.protocol,
        "dataset": spec.dataset,
        "normal_class": spec.normal_class,
        "detector": spec.detector,
        "params": canonical(spec.params),
        "seed": spec.seed,
        "status": run.status,
        "reason": run.reason,
        "fit_seconds": run.fit_seconds,
        "score_seconds": run.score_seconds,
        "peak_mb": run.peak_mb,
        "n_train": run.n_train,
        "n_test": run.n_test,
        "n_features": run.n_features,
        "budget": canonical(run.budget),
        "reported_by": run.reported_by,
    }
    scores = f"{run.fingerprint}.npz" if run.scores_sha256 else ""
    for m in run.metrics:
        n_test = run.n_test if m.n_test is None else m.n_test
        yield fixed | {
            "metric": m.metric, "radius": m.radius, "threat": m.threat, "value": m.value, "n_test": n_test,
            "scores": scores,
        }  # fmt: skip
        scores = ""
    if not run.metrics:
        yield fixed


def _write(leaderboard: Leaderboard, directory: Path) -> list[Path]:
    path = directory / "runs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for section in leaderboard.sections:
            for run in section.results.runs:
                writer.writerows(rows(run))
    return [path]


FORMATS.add(Format("csv", _write))
