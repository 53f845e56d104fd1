"""What an attack is: a sealed call around ``run``, so that an attack cannot overstate itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ocsdf_bench.detector import Detector
from ocsdf_bench.registry import Registry


@dataclass(frozen=True)
class Attack:
    """Card of an attack on the anomaly score.

    ``run(detector, X, direction, radius, domain, seed)`` returns candidates (n_candidates, n, ...) of
    perturbed rows; ``direction`` (n,) is +1 where the score is to be raised (a normal) and -1 where it is
    to be lowered (an anomaly); radius is an l2 norm in the units of X; domain (low, high) or None.
    """

    name: str
    run: Callable[..., np.ndarray]
    needs: str  # "gradient", "tensorflow_score" or "" (black box)
    source: str
    preload: tuple[str, ...] = ()


ATTACKS: Registry[Attack] = Registry("attack", "ocsdf_bench.attacks")


def attack_scores(
    attack: Attack,
    detector: Detector,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    *,
    domain: tuple[float, float] | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Worst score (n,) each row reaches: the clean row is among the candidates, each candidate is projected
    on the ball and the domain, must be finite, and its score is recomputed here.
    """
    raise NotImplementedError
