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
            self._patches = [_patch(part, directions) for part in members if len(part)]
            group, _ = self._nearest(rows)
        self.budget = {"n_patches": len(self._patches), "n_directions": directions}

    def _nearest(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Index of the nearest patch and the distance to it, of each row."""
        parts = np.array_split(rows, max(1, -(-len(rows) // _ROWS)))
        distance = np.vstack([self._distances(part) for part in parts])
        return distance.argmin(axis=1), distance.min(axis=1)

    def _distances(self, rows: np.ndarray) -> np.ndarray:
        residuals = (_residual(rows, *patch) for patch in self._patches)
        return np.stack([np.linalg.norm(residual, axis=1) for residual in residuals], axis=1)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return self._nearest(X.reshape(len(X), -1))[1]

    def gradient(self, X: np.ndarray) -> np.ndarray:
        rows = X.reshape(len(X), -1)
        index, distance = self._nearest(rows)
        unit = np.empty_like(rows)
        for k, patch in enumerate(self._patches):
            unit[index == k] = _residual(rows[index == k], *patch)
        return (unit / np.where(distance > 0, distance, 1)[:, None]).reshape(X.shape)


def _patch(rows: np.ndarray, n_directions: int) -> tuple[np.ndarray, np.ndarray]:
    centre = rows.mean(axis=0)
    _, _, right = np.linalg.svd(rows - centre, full_matrices=False)
    return centre, right[: min(n_directions, len(rows) - 1)]


def _residual(rows: np.ndarray, centre: np.ndarray, directions: np.ndarray) -> np.ndarray:
    away = rows - centre
    return away - (away @ directions.T) @ directions


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
