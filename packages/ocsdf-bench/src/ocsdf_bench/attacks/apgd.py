"""Auto-PGD on the score: long steps that are halved where they stop to pay, and a restart from the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.attack import ATTACKS, Attack, column, in_ball, project, unit

STEPS = 50
MOMENTUM = 0.75  # share of the new step; the rest goes on in the last direction
SUCCESSES = 0.75  # share of steps that must raise the score for the step to stay


def _apgd(
    detector: Any,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    domain: tuple[float, float] | None,
    seed: int,
) -> np.ndarray:
    rng = np.random.default_rng([seed, 7])
    starts = [X, project(X + in_ball(rng, X, radius), X, radius, domain)]
    return np.stack([_ascend(detector, start, X, direction, radius, domain) for start in starts])


def _ascend(
    detector: Any,
    rows: np.ndarray,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    domain: tuple[float, float] | None,
) -> np.ndarray:
    """Best rows (n, ...) that one run finds."""

    def height(rows: np.ndarray) -> np.ndarray:
        return direction * np.asarray(detector.anomaly_score(rows), dtype=float)

    best, last, top = rows, rows, height(rows)
    before, step = top, np.full(len(X), 2.0 * radius)
    halved, top_then, successes = np.zeros(len(X), dtype=bool), top, np.zeros(len(X))
    checkpoints = _checkpoints(STEPS)
    for number in range(1, STEPS + 1):
        uphill = unit(detector.gradient(rows)) * column(direction * step, X)
        ahead = project(rows + uphill, X, radius, domain)
        moved = rows + MOMENTUM * (ahead - rows) + (1 - MOMENTUM) * (rows - last if number > 1 else 0.0)
        last, rows = rows, project(moved, X, radius, domain)
        now = height(rows)
        successes += now > before
        best, top, before = np.where(column(now > top, X), rows, best), np.maximum(top, now), now
        if number in checkpoints:
            stuck = (successes < SUCCESSES * checkpoints[number]) | (~halved & (top_then == top))
            step, halved = np.where(stuck, step / 2, step), stuck
            rows, last = (np.where(column(stuck, X), best, part) for part in (rows, last))
            before, top_then = np.where(stuck, top, before), top
            successes = np.zeros(len(X))
    return best


def _checkpoints(n_steps: int) -> dict[int, int]:
    """Steps after which the step size is judged, with the number of steps since the one before.

    >>> _checkpoints(50)
    {11: 11, 21: 10, 29: 8, 34: 5, 37: 3, 40: 3, 43: 3, 46: 3, 49: 3}
    """
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    steps = [round(share * n_steps) for share in shares if share <= 1]
    return {step: step - before for before, step in zip(steps, steps[1:], strict=False)}


ATTACKS.add(
    Attack(
        "apgd",
        _apgd,
        needs="gradient",
        source=f"Croce & Hein, ICML 2020, on the score: {STEPS} steps from 2 radius down, from the row and "
        "from a random point",
    )
)
