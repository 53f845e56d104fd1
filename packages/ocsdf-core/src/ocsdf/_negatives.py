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


def sample_boundary(
    value_and_gradient: ValueAndGradient,
    start: np.ndarray,
    *,
    level: float = 0.0,
    steps: int = 64,
    domain: Domain | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Points of the set f = level, by whole Newton steps from ``start``.

    The steps of :func:`newton_raphson` are shortened to spread negatives on the way; these go all the way.

    Parameters
    ----------
    value_and_gradient : callable
        (n, ...) -> f (n,) and its gradient (n, ...).
    start : array (n, ...)
        Usually uniform on the domain.
    level : float
        Value of f to reach, such as the mean score for the synthesis of typical rows.
    steps : int
        Newton steps, >= 1.
    domain : Domain or None
        Points are projected on it after each step.

    Returns
    -------
    points : array (n, ...)
        Of each path, the point that came nearest to the level.
    residuals : array (n,)
        ``|f - level|`` there: 0 up to rounding where the level was reached.

    Raises
    ------
    ValueError
        If ``steps`` is below 1 or ``level`` is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> def cone(z):
    ...     norm = np.linalg.norm(z, axis=1)
    ...     return 2.0 - norm, -z / norm[:, None]
    >>> sample_boundary(cone, np.array([[3.0, 4.0]]), level=1.0)
    (array([[0.6, 0.8]]), array([0.]))
    """
    steps = _check.integer(steps, "steps", "sample_boundary", low=1)
    level = _check.number(level, "level", "sample_boundary")
    z = best = start
    residual = np.full(len(start), np.inf)
    whole = np.ones(len(start))
    for step in range(steps + 1):
        gap = np.abs(value_and_gradient(z)[0] - level)
        better = gap < residual
        residual = np.where(better, gap, residual)
        best = np.where(better.reshape(-1, *(1,) * (z.ndim - 1)), z, best)
        if step < steps:
            z, _ = newton_step(value_and_gradient, z, whole, domain, level)
    return best, residual


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


def affine_warp(
    images: np.ndarray, rng: np.random.Generator, strength: float = 0.6, shift: float = 0.2
) -> np.ndarray:
    """Images read at strongly distorted places: negatives that look like data.

    Isotropic noise is too easily told from an image to teach anything about its shapes. Each image is read at
    ``A p + t``, bilinearly, for the points p of the square [-1, 1]²; beyond the frame its edge goes on, since
    a black border would be as easily told.

    Parameters
    ----------
    images : array (n, h, w) or (n, h, w, c)
    rng : numpy.random.Generator
        Draws one map an image.
    strength : float
        A is the identity plus uniform numbers of [-strength, strength].
    shift : float
        t is uniform on [-shift, shift]², unit half the frame.

    Returns
    -------
    array, shape and dtype of ``images``

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).uniform(size=(2, 5, 5))
    >>> same = affine_warp(images, np.random.default_rng(0), strength=0.0, shift=0.0)
    >>> bool(np.allclose(same, images))
    True
    """
    n, height, width = images.shape[:3]
    matrix = np.eye(2) + rng.uniform(-strength, strength, size=(n, 2, 2))
    offset = rng.uniform(-shift, shift, size=(n, 2, 1))
    axes = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    places = matrix @ np.stack(axes).reshape(2, -1) + offset
    row = ((places[:, 0] + 1) * (height - 1) / 2).clip(0, height - 1)
    column = ((places[:, 1] + 1) * (width - 1) / 2).clip(0, width - 1)
    flat, image = images.reshape(n, height, width, -1), np.arange(n)[:, None]
    top, left = row.astype(int), column.astype(int)
    down, right = row - top, column - left
    warped = np.zeros((n, height * width, flat.shape[3]), images.dtype)
    for y, near_y in ((top, 1 - down), (np.minimum(top + 1, height - 1), down)):
        for x, near_x in ((left, 1 - right), (np.minimum(left + 1, width - 1), right)):
            warped += (near_y * near_x)[..., None].astype(images.dtype) * flat[image, y, x]
    return warped.reshape(images.shape)
