"""l2 projected gradient in NumPy, for detectors that state the gradient of their score."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.attack import ATTACKS, Attack, project

STEPS, RELATIVE_STEP, RESTARTS = 50, 0.025, 3  # steps as in Béthune et al., ICML 2023


def _l2_pgd(
    detector: Any,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    domain: tuple[float, float] | None,
    seed: int,
) -> np.ndarray:
    rng, shape = np.random.default_rng([seed, 2]), (-1,) + (1,) * (X.ndim - 1)
    # Steps this small do not undo a random start; where the gradient hardly turns, X itself is the best one.
    starts = [X] + [project(X + _in_ball(rng, X, radius), X, radius, domain) for _ in range(RESTARTS)]
    candidates = []
    for rows in starts:
        for _ in range(STEPS):
            step = _unit(detector.gradient(rows)) * direction.reshape(shape)
            rows = project(rows + RELATIVE_STEP * radius * step, X, radius, domain)
        candidates.append(rows)
    return np.stack(candidates)


def _in_ball(rng: np.random.Generator, X: np.ndarray, radius: float) -> np.ndarray:
    n_features = int(np.prod(X.shape[1:]))
    length = radius * rng.random(len(X)) ** (1 / n_features)
    return _unit(rng.standard_normal(X.shape)) * length.reshape((-1,) + (1,) * (X.ndim - 1))


def _unit(step: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(step.reshape(len(step), -1), axis=1)
    return step / np.maximum(norm, np.finfo(float).tiny).reshape((-1,) + (1,) * (step.ndim - 1))


ATTACKS.add(
    Attack(
        "l2-pgd-reference",
        _l2_pgd,
        needs="gradient",
        source="Madry et al., ICLR 2018: 50 steps of 0.025 radius from the row and from three random points",
    )
)
