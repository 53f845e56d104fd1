"""Shapes with a signed distance in closed form (positive inside): what every figure of merit is checked on.

Source: Quilez, "Distance functions"; the formulas are exact for these three.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ocsdf_bench.shapes.shape import EXTENT, Shape


def sphere_distance(points: np.ndarray, radius: float) -> np.ndarray:
    """Signed distance (n,) of points (n, 3) to the sphere around the origin.

    Examples
    --------
    >>> sphere_distance(np.array([[0.0, 0, 0], [0, 0, 2]]), 0.5).tolist()
    [0.5, -1.5]
    """
    return radius - np.linalg.norm(points, axis=1)


def box_distance(points: np.ndarray, half: tuple[float, float, float]) -> np.ndarray:
    """Signed distance (n,) to the axis-aligned box of half-widths ``half``.

    Examples
    --------
    >>> box_distance(np.array([[0.0, 0, 0], [4, 5, 0]]), (1, 1, 1)).tolist()
    [1.0, -5.0]
    """
    gap = np.abs(points) - np.asarray(half)
    return -np.linalg.norm(np.maximum(gap, 0), axis=1) - np.minimum(gap.max(1), 0)


def torus_distance(points: np.ndarray, major: float, minor: float) -> np.ndarray:
    """Signed distance (n,) to the torus around the third axis.

    Examples
    --------
    >>> torus_distance(np.array([[2.0, 0, 0], [0, 0, 0]]), 2.0, 0.5).tolist()
    [0.5, -1.5]
    """
    ring = np.linalg.norm(points[:, :2], axis=1) - major
    return minor - np.hypot(ring, points[:, 2])


def sphere() -> Shape:
    """The sphere of radius 0.8."""
    import trimesh

    mesh = trimesh.creation.icosphere(subdivisions=5, radius=EXTENT)
    return Shape("sphere", mesh, partial(sphere_distance, radius=EXTENT), True)


def box() -> Shape:
    """A box with edges in proportion 3 : 2 : 1.5 whose corners lie at distance 0.8."""
    import trimesh

    edges = np.array([3.0, 2.0, 1.5])
    half = edges / np.linalg.norm(edges) * EXTENT
    mesh = trimesh.creation.box(extents=2 * half)
    return Shape("box", mesh, partial(box_distance, half=tuple(half)), True)


def torus() -> Shape:
    """The torus of radii 0.55 and 0.25."""
    import trimesh

    mesh = trimesh.creation.torus(0.55, 0.25, major_sections=192, minor_sections=96)
    return Shape("torus", mesh, partial(torus_distance, major=0.55, minor=0.25), True)


ANALYTIC = {"sphere": sphere, "box": box, "torus": torus}
