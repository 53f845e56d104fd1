"""Newton steps along the gradient to a target: a score beyond the most extreme one of the sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.attack import ATTACKS, Attack, column, project, unit

STEPS = 20


def _newton(
    detector: Any,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    domain: tuple[float, float] | None,
    seed: int,
) -> np.ndarray:
    score = np.asarray(detector.anomaly_score(X), dtype=float)
    spread = float(np.ptp(score)) or 1.0
    target = np.where(direction > 0, score.max() + spread, score.min() - spread)
    rows, candidates = X, []
    for _ in range(STEPS):
        slope = np.asarray(detector.gradient(rows), dtype=float)
        norm = np.linalg.norm(slope.reshape(len(X), -1), axis=1)
        length = (target - score) / np.maximum(norm, np.finfo(float).tiny)
        # From inside the ball no point of it is further than two radii.
        rows = project(
            rows + unit(slope) * column(np.clip(length, -2 * radius, 2 * radius), X), X, radius, domain
        )
        score = np.asarray(detector.anomaly_score(rows), dtype=float)
        candidates.append(rows)
    return np.stack(candidates)


ATTACKS.add(
    Attack(
        "newton",
        _newton,
        needs="gradient",
        source=f"{STEPS} Newton-Raphson steps to a score beyond the extreme of the sample, every point kept",
    )
)
