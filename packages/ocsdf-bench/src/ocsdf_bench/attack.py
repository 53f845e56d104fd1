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
    ``surrogate`` names a detector that is fitted on the same training rows and handed to ``run`` in place of
    the attacked one (a transfer attack); ``needs`` is then what the surrogate must have.
    """

    name: str
    run: Callable[..., np.ndarray]
    needs: str  # "gradient", "tensorflow_score" or "" (black box)
    source: str
    preload: tuple[str, ...] = ()
    surrogate: str = ""


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
    surrogate: Detector | None = None,
) -> np.ndarray:
    """Worst score (n,) each row reaches: the clean row is among the candidates, each candidate is projected
    on the ball and the domain, must be finite, and its score is recomputed here.

    Parameters
    ----------
    X : (n, ...) array
        Rows inside ``domain``.
    direction : (n,) array
        +1 where the score is to be raised, -1 where it is to be lowered.
    radius : float
        l2 norm, unit of X. At 0 the clean scores come back.
    surrogate : Detector, optional
        What a transfer attack looks at; its candidates are scored by ``detector`` like those of any other.

    Raises
    ------
    ValueError
        On a negative radius, another direction, or rows outside the domain.

    Examples
    --------
    >>> class Norm:
    ...     def anomaly_score(self, X):
    ...         return np.linalg.norm(X, axis=1)
    >>> card = Attack("far", lambda d, X, direction, *_: X[None] * 100, "", "an example")
    >>> attack_scores(card, Norm(), np.array([[3.0, 4.0]]), np.array([1]), 1.0).round(12)
    array([6.])
    """
    if not (np.isfinite(radius) and radius >= 0):
        raise ValueError(f"`radius` of attack_scores must be >= 0 (l2 distance, unit of X); got {radius!r}.")
    if not np.isin(direction, (-1, 1)).all():
        raise ValueError("`direction` of attack_scores must be +1 or -1 in each row.")
    if domain is not None and (domain[0] > X.min() or domain[1] < X.max()):
        raise ValueError(f"`X` of attack_scores must be inside the domain {domain}.")
    best = np.asarray(detector.anomaly_score(X), dtype=np.float64)
    if radius == 0:
        return best
    for candidate in attack.run(surrogate or detector, X, direction, radius, domain, seed):
        rows = _admissible(np.asarray(candidate, dtype=np.float64), X, radius, domain)
        score = np.asarray(detector.anomaly_score(rows), dtype=np.float64)
        better = np.isfinite(score) & (direction * (score - best) > 0)
        best = np.where(better, score, best)
    return best


def project(rows: np.ndarray, X: np.ndarray, radius: float, domain: tuple[float, float] | None) -> np.ndarray:
    """Nearest multiple of the step from X that lies in the ball, then clipped to the domain.

    Clipping towards a box that holds X brings each coordinate nearer to X, so that the result is in both.
    """
    step = rows - X
    flat = step.reshape(len(X), -1)
    norm = np.linalg.norm(flat, axis=1)
    shrink = np.where(norm > radius, radius / np.maximum(norm, np.finfo(float).tiny), 1.0)
    rows = X + step * column(shrink, X)
    return rows if domain is None else np.clip(rows, *domain)


def unit(step: np.ndarray) -> np.ndarray:
    """Each row of ``step`` (n, ...) at l2 norm 1; zeros stay zeros."""
    norm = np.linalg.norm(step.reshape(len(step), -1), axis=1)
    return step / column(np.maximum(norm, np.finfo(float).tiny), step)


def in_ball(rng: np.random.Generator, X: np.ndarray, radius: float) -> np.ndarray:
    """A perturbation of each row, uniform in the l2 ball."""
    length = radius * rng.random(len(X)) ** (1 / int(np.prod(X.shape[1:])))
    return unit(rng.standard_normal(X.shape)) * column(length, X)


def column(values: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Values (n,) in a shape that multiplies the rows of X (n, ...)."""
    return values.reshape((-1,) + (1,) * (X.ndim - 1))


def _admissible(
    rows: np.ndarray, X: np.ndarray, radius: float, domain: tuple[float, float] | None
) -> np.ndarray:
    if rows.shape != X.shape:
        raise ValueError(f"an attack must return candidates of shape {X.shape} each; got {rows.shape}.")
    finite = np.isfinite(rows).reshape(len(X), -1).all(axis=1)
    rows = np.where(column(finite, X), rows, X)
    return project(rows, X, radius, domain)
