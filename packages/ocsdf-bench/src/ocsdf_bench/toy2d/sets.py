"""Points in the plane: the paper's five sets, and four whose signed distance is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.preprocessing import StandardScaler

RADIUS = 5.0
"""Radius of B, the ball that holds all negatives."""


@dataclass(frozen=True)
class ToySet:
    """One of the paper's sets, with its margin; ``draw(n, seed)`` gives rows (n, 2), not standardised."""

    title: str
    margin: float
    draw: Callable[[int, int], np.ndarray]

    def rows(self, n: int, seed: int) -> np.ndarray:
        """``n`` standardised rows (n, 2)."""
        return StandardScaler().fit_transform(self.draw(n, seed))


def _blobs(centers: list[list[float]], spread: list[float]) -> Callable[[int, int], np.ndarray]:
    return lambda n, seed: make_blobs(n, centers=centers, cluster_std=spread, random_state=seed)[0]


TOY_SETS = {
    "one_cloud": ToySet("one blob", 0.05, _blobs([[0, 0]], [0.5])),
    "two_circles": ToySet(
        "two circles", 0.05, lambda n, seed: make_circles(n, noise=0.05, factor=0.5, random_state=seed)[0]
    ),
    "two_blobs": ToySet("two blobs", 0.05, _blobs([[2, 2], [-2, -2]], [0.5, 0.5])),
    "blob_and_cloud": ToySet("blob and cloud", 0.1, _blobs([[2, 2], [-2, -2]], [1.5, 0.3])),
    "two_moons": ToySet("two moons", 0.05, lambda n, seed: make_moons(n, noise=0.05, random_state=seed)[0]),
}


@dataclass(frozen=True)
class KnownSet:
    """A region of the plane with its signed distance (n, 2) -> (n,), positive inside, exact."""

    title: str
    signed_distance: Callable[[np.ndarray], np.ndarray]

    def rows(self, n: int, seed: int) -> np.ndarray:
        """``n`` rows (n, 2) uniform in the region, by rejection."""
        rng = np.random.default_rng(seed)
        kept = np.empty((0, 2))
        while len(kept) < n:
            points = rng.uniform(-2.5, 2.5, (4 * n, 2))
            kept = np.concatenate([kept, points[self.signed_distance(points) > 0]])
        return kept[:n]


def disc_distance(x: np.ndarray, radius: float, center: tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """Signed distance (n,) to the circle.

    Examples
    --------
    >>> disc_distance(np.array([[0.0, 3.0]]), 1.0).tolist()
    [-2.0]
    """
    return radius - np.linalg.norm(x - np.asarray(center), axis=1)


def ring_distance(x: np.ndarray, inner: float, outer: float) -> np.ndarray:
    """Signed distance (n,) to the boundary of the ring between two radii.

    Examples
    --------
    >>> ring_distance(np.array([[0.0, 0.0], [1.5, 0.0]]), 1.0, 2.0).tolist()
    [-1.0, 0.5]
    """
    radius = np.linalg.norm(x, axis=1)
    return np.minimum(outer - radius, radius - inner)


def square_distance(x: np.ndarray, half: float) -> np.ndarray:
    """Signed distance (n,) to the boundary of the axis-aligned square.

    Examples
    --------
    >>> square_distance(np.array([[4.0, 5.0], [0.5, 0.0]]), 1.0).tolist()
    [-5.0, 0.5]
    """
    gap = np.abs(x) - half
    return -np.linalg.norm(np.maximum(gap, 0), axis=1) - np.minimum(gap.max(1), 0)


def two_discs_distance(x: np.ndarray, radius: float, apart: float) -> np.ndarray:
    """Signed distance (n,) to two discs that do not overlap, centres ``apart`` on the first axis."""
    pair = (disc_distance(x, radius, (side * apart / 2, 0.0)) for side in (-1, 1))
    return np.maximum(*pair)


KNOWN_SETS = {
    "disc": KnownSet("disc", lambda x: disc_distance(x, 1.5)),
    "ring": KnownSet("ring", lambda x: ring_distance(x, 0.8, 1.6)),
    "square": KnownSet("square", lambda x: square_distance(x, 1.3)),
    "two_discs": KnownSet("two discs", lambda x: two_discs_distance(x, 0.8, 2.6)),
}


def disc_rows(n: int, seed: int, radius: float = RADIUS) -> np.ndarray:
    """``n`` rows (n, 2) uniform in the ball B."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    return radius * np.sqrt(rng.uniform(size=(n, 1))) * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def grid_rows(half_width: float, resolution: int) -> np.ndarray:
    """Rows (resolution², 2) of a square grid, first axis fastest."""
    axis = np.linspace(-half_width, half_width, resolution)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
