"""Negatives: points outside the support, which the network is taught to score low."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ocsdf import _check
from ocsdf._domain import Domain

ValueAndGradient = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def newton_raphson(
    value_and_gradient: ValueAndGradient,
    start: np.ndarray,
    *,
    steps: int,
    domain: Domain | None = None,
    level: float = 0.0,
    pull: str = "both",
    random_state: Any = None,
) -> np.ndarray:
    """Points of ``start`` moved towards the set f = level (Algorithm 1 of the paper).

    Each of the ``steps`` (T) is ``z <- project(z - (eta / T) (f(z) - level) grad f / |grad f|^2)`` with one
    eta, uniform on [0, 1], per point: the points spread between where they began and the level.

    Parameters
    ----------
    value_and_gradient : callable
        (n, ...) -> f (n,) and its gradient (n, ...).
    start : array (n, ...)
        Usually uniform on the domain.
    steps : int
        T >= 0; 0 returns the start.
    domain : Domain or None
        Points are projected on it after each step.
    level : float
        Unit of the scaled features; the paper prints minus the margin, the authors' tabular code has 0.
    pull : {"both", "inward"}
        "inward" leaves a point alone that is already above the level.
    random_state : int, Generator or None
        Draws eta.

    Returns
    -------
    array, shape and dtype of ``start``

    Raises
    ------
    ValueError
        If ``steps`` is negative or ``pull`` is unknown.

    References
    ----------
    Béthune, Novello et al., "Robust one-class classification with signed distance function using 1-Lipschitz
    neural networks", ICML 2023, arXiv:2303.01978.

    Examples
    --------
    >>> import numpy as np
    >>> def plane(z):
    ...     return z[:, 0] - 1.0, np.tile([1.0, 0.0], (len(z), 1))
    >>> z = newton_raphson(plane, np.array([[-3.0, 2.0]]), steps=1, level=-1.0, random_state=0)
    >>> bool(-3.0 <= z[0, 0] <= 0.0 and z[0, 1] == 2.0)
    True
    """
    steps = _check.integer(steps, "steps", "newton_raphson", low=0)
    _check.choice(pull, "pull", "newton_raphson", ("both", "inward"))
    if steps == 0:
        return start
    rng = _check.generator(random_state, "random_state", "newton_raphson")
    fraction = (rng.uniform(size=len(start)) / steps).astype(start.dtype)
    z = start
    for _ in range(steps):
        z = newton_step(value_and_gradient, z, fraction, domain, level, pull)[0]
    return z


def newton_step(
    value_and_gradient: ValueAndGradient,
    z: np.ndarray,
    fraction: np.ndarray,
    domain: Domain | None,
    level: float,
    pull: str = "both",
) -> tuple[np.ndarray, np.ndarray]:
    """One step: the moved points (n, ...), and the squared gradient norms (n,) at the old ones."""
    value, gradient = value_and_gradient(z)
    flat = gradient.reshape(len(z), -1)
    squared = np.einsum("ij,ij->i", flat, flat)
    gap = value - level
    if pull == "inward":
        gap = np.minimum(gap, 0)
    # A point with no gradient has no direction to go: it stays.
    reach = np.where(squared > 0, fraction * gap / np.where(squared > 0, squared, 1), 0)
    moved = z - reach.astype(z.dtype).reshape(-1, *(1,) * (z.ndim - 1)) * gradient
    return (moved if domain is None else domain.project(moved)), squared


def jitter(rows: np.ndarray, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, ...) plus isotropic Gaussian noise whose deviation, per row, is uniform on [0, spread]."""
    deviation = spread * rng.uniform(size=(len(rows), *(1,) * (rows.ndim - 1)))
    return rows + (deviation * rng.standard_normal(rows.shape)).astype(rows.dtype)
