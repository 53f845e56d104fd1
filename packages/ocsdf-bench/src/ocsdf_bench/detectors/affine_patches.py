"""Distance to a union of affine patches: local subspaces that follow curved data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo

_ROWS = 4_096  # rows scored at a time, to bound memory


class AffinePatches:
    """s(x) = min over k of ||(I - V_k V_k^T)(x - c_k)||, the distance to the nearest of K affine subspaces.

    Each term is 1-Lipschitz, since I - V V^T is an orthogonal projection, and so is a minimum of such terms.
    Patches come from k-means; then, ``rounds`` times, the mean and the leading directions of each group are
    computed and each row moves to its nearest patch.

    Parameters
    ----------
    n_patches, n_directions : int
        K and the columns of each V_k; at least one direction is left out, or every score would be 0.
    rounds : int
    seed : int
    """

    lipschitz = 1.0

    def __init__(self, n_patches: int, n_directions: int, rounds: int, seed: int) -> None:
        self._n_patches = n_patches
        self._n_directions = n_directions
        self._rounds = rounds
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        from sklearn.cluster import KMeans

        rows = X.reshape(len(X), -1)
        n_patches = min(self._n_patches, len(np.unique(rows, axis=0)))
        group = KMeans(n_patches, n_init=1, random_state=self._seed).fit_predict(rows)
        directions = min(self._n_directions, rows.shape[1] - 1)
        for _ in range(self._rounds):
            members = [rows[group == k] for k in range(n_patches)]
            patches = [_patch(part, directions) for part in members if len(part)]
            self._centres, self._directions = (np.stack(parts) for parts in zip(*patches, strict=True))
            group = self._nearest(rows)
        self.budget = {"n_patches": len(self._centres), "n_directions": directions}

    def _nearest(self, rows: np.ndarray) -> np.ndarray:
        """Index of the nearest patch of each row."""
        parts = np.array_split(rows, max(1, -(-len(rows) // _ROWS)))
        return np.concatenate([self._squares(part).argmin(axis=1) for part in parts])

    def _squares(self, rows: np.ndarray) -> np.ndarray:
        """||x - c||^2 - ||V^T (x - c)||^2 less ||x||^2, (n, K): two products, where residuals would be K."""
        centres, directions = self._centres, self._directions
        offsets = np.einsum("kmd,kd->km", directions, centres)
        along = (rows @ directions.reshape(-1, rows.shape[1]).T).reshape(len(rows), *offsets.shape) - offsets
        return (centres**2).sum(axis=1) - 2 * rows @ centres.T - (along**2).sum(axis=2)

    def _residual(self, rows: np.ndarray) -> np.ndarray:
        """(I - V V^T)(x - c) of the nearest patch, like rows."""
        index, away = self._nearest(rows), np.empty_like(rows)
        for k, (centre, directions) in enumerate(zip(self._centres, self._directions, strict=True)):
            part = rows[index == k] - centre
            away[index == k] = part - (part @ directions.T) @ directions
        return away

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return np.linalg.norm(self._residual(X.reshape(len(X), -1)), axis=1)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        away = self._residual(X.reshape(len(X), -1))
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        return (away / np.where(distance > 0, distance, 1)).reshape(X.shape)


def _patch(rows: np.ndarray, n_directions: int) -> tuple[np.ndarray, np.ndarray]:
    """Centre (d,) and directions (n_directions, d); zeros for those that so few rows do not span."""
    centre, directions = rows.mean(axis=0), np.zeros((n_directions, rows.shape[1]))
    _, _, right = np.linalg.svd(rows - centre, full_matrices=False)
    spanned = min(n_directions, len(rows) - 1)
    directions[:spanned] = right[:spanned]
    return centre, directions


def build(*, seed: int, n_patches: int = 10, n_directions: int = 1, rounds: int = 4) -> Detector:
    return AffinePatches(n_patches, n_directions, rounds, seed)


DETECTORS.add(
    DetectorInfo(
        name="Affine-patches",
        build=build,
        source="Kambhatla and Leen, Dimension reduction by local PCA, 1997",
        preload=("sklearn.cluster",),
    )
)
