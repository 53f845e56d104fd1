"""Random points on the sphere: what chance alone does. An attack that is no better does nothing."""

from __future__ import annotations

import numpy as np

from ocsdf_bench.attack import ATTACKS, Attack
from ocsdf_bench.detector import Detector

N_POINTS = 50


def _noise(
    detector: Detector,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    domain: tuple[float, float] | None,
    seed: int,
) -> np.ndarray:
    # A stream of its own: rows drawn from the plain seed would otherwise equal the first steps.
    step = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, *X.shape))
    norm = np.linalg.norm(step.reshape(N_POINTS, len(X), -1), axis=2)
    return X + step * (radius / norm).reshape((N_POINTS, len(X)) + (1,) * (X.ndim - 1))


ATTACKS.add(
    Attack("noise", _noise, needs="", source=f"{N_POINTS} uniform points on the l2 sphere of each row")
)
