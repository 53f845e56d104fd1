"""l2 projected gradient in NumPy, for detectors that state the gradient of their score."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.attack import ATTACKS, Attack, column, in_ball, project, unit

STEPS, RELATIVE_STEP, RESTARTS = 50, 0.025, 3  # steps as in Béthune et al., ICML 2023


def l2_pgd(
    detector: Any,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    domain: tuple[float, float] | None,
    seed: int,
) -> np.ndarray:
    """Last point of each walk along the gradient of ``detector``, (1 + RESTARTS, n, ...)."""
    rng = np.random.default_rng([seed, 2])
    # Steps this small do not undo a random start; where the gradient hardly turns, X itself is the best one.
    starts = [X] + [project(X + in_ball(rng, X, radius), X, radius, domain) for _ in range(RESTARTS)]
    candidates = []
    for rows in starts:
        for _ in range(STEPS):
            step = unit(detector.gradient(rows)) * column(direction, X)
            rows = project(rows + RELATIVE_STEP * radius * step, X, radius, domain)
        candidates.append(rows)
    return np.stack(candidates)


ATTACKS.add(
    Attack(
        "l2-pgd-reference",
        l2_pgd,
        needs="gradient",
        source="Madry et al., ICLR 2018: 50 steps of 0.025 radius from the row and from three random points",
    )
)
