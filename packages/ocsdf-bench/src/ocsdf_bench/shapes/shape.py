"""What a shape is: a reference surface in the ball of radius 1, with its signed distance where it has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import trimesh

Field = Callable[[np.ndarray], np.ndarray]

EXTENT = 0.8
"""Largest distance of a normalised shape's points to the origin; the domain B is the ball of radius 1."""


@dataclass(frozen=True)
class Shape:
    """A reference surface, normalised to B.

    Parameters
    ----------
    name : str
    mesh : trimesh.Trimesh or None
        The surface; None for a bare point cloud.
    signed_distance : callable or None
        (n, 3) -> (n,), positive inside, exact; None where nothing says what is inside.
    watertight : bool
        Whether the mesh bounds a volume. If not, inside is where the generalised winding number exceeds 1/2.
    cloud : (n, 3) array or None
        The points of a bare point cloud.
    centre, factor : (3,) array, float
        The shape is ``(file - centre) * factor``.
    """

    name: str
    mesh: trimesh.Trimesh | None
    signed_distance: Field | None
    watertight: bool
    cloud: np.ndarray | None = None
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    factor: float = 1.0

    def to_file_units(self, mesh: trimesh.Trimesh) -> trimesh.Trimesh:
        """A copy of ``mesh`` where the file had it, undoing the normalisation."""
        placed = mesh.copy()
        placed.apply_scale(1 / self.factor)
        placed.apply_translation(self.centre)
        return placed


@dataclass(frozen=True)
class Sample:
    """Points (n, 3) on a surface, with unit normals (n, 3) pointing outwards where they are known."""

    points: np.ndarray
    normals: np.ndarray | None


def to_domain(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre (3,) and factor that carry ``points`` into B as ``(points - centre) * factor``.

    The centre is that of the bounding box; the farthest point lands at distance ``EXTENT``.

    Examples
    --------
    >>> centre, factor = to_domain(np.array([[0.0, 0, 0], [4.0, 0, 0]]))
    >>> centre.tolist(), round(factor, 3)
    ([2.0, 0.0, 0.0], 0.4)
    """
    centre = (points.min(0) + points.max(0)) / 2
    radius = float(np.linalg.norm(points - centre, axis=1).max())
    if not radius > 0:
        raise ValueError(
            f"`points` of to_domain must be at least two different points; got {len(points)} equal ones."
        )
    return centre, EXTENT / radius


def sample_surface(shape: Shape, n: int, seed: int) -> Sample:
    """``n`` points drawn uniformly by area (a cloud: rows drawn without replacement), with outward normals.

    A mesh that is not watertight seldom orients its faces alike, so each normal is turned to the side
    where the signed distance falls.
    """
    rng = np.random.default_rng(seed)
    if shape.mesh is None:
        assert shape.cloud is not None
        rows = rng.choice(len(shape.cloud), min(n, len(shape.cloud)), replace=False)
        return Sample(shape.cloud[rows], None)
    import trimesh

    points, faces = trimesh.sample.sample_surface(shape.mesh, n, seed=rng)
    points, normals = np.asarray(points), np.asarray(shape.mesh.face_normals[faces])
    if shape.signed_distance is not None:
        step = 0.01 * normals
        inward = shape.signed_distance(points + step) > shape.signed_distance(points - step)
        normals = np.where(inward[:, None], -normals, normals)
    return Sample(points, normals)


def sample_volume(shape: Shape, n: int, seed: int) -> Sample:
    """``n`` points drawn uniformly inside the shape, by rejection; they have no normals."""
    if shape.signed_distance is None:
        raise ValueError(
            f"`shape` of sample_volume must have a signed distance; got the cloud '{shape.name}'."
        )
    rng = np.random.default_rng(seed)
    kept: list[np.ndarray] = []
    for _ in range(10_000):
        points = rng.uniform(-EXTENT, EXTENT, (4 * n, 3))
        kept.append(points[shape.signed_distance(points) > 0])
        if sum(map(len, kept)) >= n:
            return Sample(np.concatenate(kept)[:n], None)
    raise ValueError(f"`shape` of sample_volume must enclose a volume; got '{shape.name}', which is empty.")


def ball_points(n: int, seed: int) -> np.ndarray:
    """``n`` points (n, 3) drawn uniformly in B."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal((n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.uniform(size=(n, 1)) ** (1 / 3)
