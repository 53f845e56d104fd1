"""A mesh from a field: marching cubes on a grid that is filled in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ocsdf_bench.shapes.shape import Field

if TYPE_CHECKING:
    import trimesh

Progress = Callable[[int, int], None]
BLOCK = 8
"""Grid cells along the edge of a block."""


def extract_surface(
    field: Field,
    resolution: int = 200,
    *,
    half_width: float = 1.0,
    lipschitz: float | None = None,
    rows: int = 65_536,
    progress: Progress | None = None,
) -> trimesh.Trimesh:
    """Zero level of ``field`` by marching cubes in Lewiner's form.

    Parameters
    ----------
    field : callable
        (n, 3) -> (n,), positive inside.
    resolution : int
        Grid points along each edge of the cube [-half_width, half_width]³.
    lipschitz : float or None
        Proven Lipschitz constant of ``field``. With it the blocks that provably hold no zero are not
        evaluated, which saves most of the work and changes no vertex.
    rows : int
        Most points handed to ``field`` at once; bounds the memory beside the grid (4 bytes a point).
    progress : callable or None
        Called with (blocks done, blocks in all).

    Returns
    -------
    trimesh.Trimesh
        With outward normals; empty where the field has no zero in the cube.

    Source: Lewiner et al., "Efficient implementation of marching cubes' cases", 2003 (scikit-image).
    """
    import trimesh
    from skimage.measure import marching_cubes

    grid = _grid_values(field, resolution, half_width, lipschitz, rows, progress)
    if not (grid.min() < 0 < grid.max()):
        return trimesh.Trimesh()
    spacing = 2 * half_width / (resolution - 1)
    # The level must lie strictly between values: a grid value of exactly 0 makes degenerate triangles.
    grid[grid == 0] = np.float32(1e-12)
    vertices, faces, _, _ = marching_cubes(grid, 0.0, spacing=(spacing,) * 3, gradient_direction="ascent")
    mesh = trimesh.Trimesh(vertices - half_width, faces, process=True)
    mesh.update_faces(mesh.nondegenerate_faces())
    return mesh


def _grid_values(
    field: Field,
    resolution: int,
    half_width: float,
    lipschitz: float | None,
    rows: int,
    progress: Progress | None,
) -> np.ndarray:
    axis = np.linspace(-half_width, half_width, resolution)
    starts = range(0, resolution, BLOCK)
    blocks = np.stack(np.meshgrid(starts, starts, starts, indexing="ij"), -1).reshape(-1, 3)
    grid = np.empty((resolution,) * 3, dtype=np.float32)
    if lipschitz is not None:
        blocks = _fill_empty(grid, field, axis, blocks, lipschitz, rows)
    at_once = max(1, rows // BLOCK**3)
    for first in range(0, len(blocks), at_once):
        part = blocks[first : first + at_once]
        points = [_block_points(axis, block) for block in part]
        values = np.split(field(np.concatenate(points)), np.cumsum([len(p) for p in points])[:-1])
        for (i, j, k), value in zip(part, values, strict=True):
            view = grid[i : i + BLOCK, j : j + BLOCK, k : k + BLOCK]
            view[...] = value.reshape(view.shape)
        if progress is not None:
            progress(first + len(part), len(blocks))
    return grid


def _block_points(axis: np.ndarray, block: np.ndarray) -> np.ndarray:
    spans = [axis[start : start + BLOCK] for start in block]
    return np.stack(np.meshgrid(*spans, indexing="ij"), -1).reshape(-1, 3)


def _fill_empty(
    grid: np.ndarray, field: Field, axis: np.ndarray, blocks: np.ndarray, lipschitz: float, rows: int
) -> np.ndarray:
    """Fill the blocks that hold no zero with their centre's value; return the others."""
    spacing = axis[1] - axis[0]
    centres = axis[0] + spacing * (blocks + (BLOCK - 1) / 2)
    values = np.concatenate([field(centres[i : i + rows]) for i in range(0, len(centres), rows)])
    # One cell more than the block: the edges that leave it must cross nothing either.
    reach = lipschitz * np.sqrt(3) * spacing * (BLOCK + 1) / 2
    empty = np.abs(values) > reach
    for (i, j, k), value in zip(blocks[empty], values[empty], strict=True):
        grid[i : i + BLOCK, j : j + BLOCK, k : k + BLOCK] = value
    return blocks[~empty]
