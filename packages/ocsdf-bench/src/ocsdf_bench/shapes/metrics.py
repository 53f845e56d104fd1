"""Figures of merit of a reconstruction. Lengths are in units of B, whose radius is 1."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from ocsdf_bench.shapes.shape import Field


def chamfer(points: np.ndarray, reference: np.ndarray) -> float:
    """Mean distance to the nearest point of the other cloud, averaged over both directions.

    Not squared. Two samples of one surface are not at 0 but at about half the sampling distance.

    Examples
    --------
    >>> chamfer(np.zeros((1, 3)), np.array([[3.0, 4.0, 0.0]]))
    5.0
    """
    there, back = _distances(points, reference)
    return float((there.mean() + back.mean()) / 2)


def hausdorff95(points: np.ndarray, reference: np.ndarray) -> float:
    """The larger of both directions' 95 % quantiles of the distance to the other cloud."""
    there, back = _distances(points, reference)
    return float(max(np.quantile(there, 0.95), np.quantile(back, 0.95)))


def normal_consistency(
    points: np.ndarray, normals: np.ndarray, reference: np.ndarray, reference_normals: np.ndarray
) -> float:
    """Mean |cosine| between a normal and that of the nearest point of the other cloud, both directions.

    Between 1/2 (no relation) and 1; the sign is dropped because leaky meshes have none.
    """
    there = KDTree(reference).query(points)[1]
    back = KDTree(points).query(reference)[1]
    cosine = np.abs((normals * reference_normals[there]).sum(1)).mean()
    return float((cosine + np.abs((reference_normals * normals[back]).sum(1)).mean()) / 2)


def volume_iou(inside: np.ndarray, reference_inside: np.ndarray) -> float:
    """Shared over joint volume, from membership (n,) of the same uniform points; 0 if both are empty."""
    joint = np.count_nonzero(inside | reference_inside)
    return np.count_nonzero(inside & reference_inside) / joint if joint else 0.0


def gradient(field: Field, points: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Gradient (n, 3) by central differences: the same yardstick for every field."""
    shifts = step * np.eye(points.shape[1])
    partial = [(field(points + shift) - field(points - shift)) / (2 * step) for shift in shifts]
    return np.stack(partial, axis=1)


def eikonal_residual(field: Field, points: np.ndarray, step: float = 1e-3) -> float:
    """Mean of | ‖∇field‖ − 1 |: 0 for a signed distance (but for its medial axis, a null set).

    Examples
    --------
    >>> round(eikonal_residual(lambda x: 0.5 * x[:, 0], np.zeros((2, 3))), 6)
    0.5
    """
    return float(np.abs(np.linalg.norm(gradient(field, points, step), axis=1) - 1).mean())


def _distances(points: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return KDTree(reference).query(points)[0], KDTree(points).query(reference)[0]
