"""Distance to the affine subspace of the leading principal components."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo


class PCAResidual:
    """Norm of what the leading principal components leave of x - mean.

    It is the distance to an affine subspace, s(x) = ||(I - V V^T)(x - c)||, hence 1-Lipschitz: I - V V^T is
    an orthogonal projection, of norm 1.

    Parameters
    ----------
    n_components : int or float
        Directions kept; below 1, the smallest number that holds this share of the variance. At least one
        direction is always left out, or every score would be 0.
    seed : int
        Of the randomised decomposition, used on wide data only.
    """

    lipschitz = 1.0

    def __init__(self, n_components: int | float, seed: int) -> None:
        self._n_components = n_components
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        from sklearn.decomposition import PCA

        rows = X.reshape(len(X), -1)
        limit = max(1, min(len(rows), rows.shape[1]) - 1)
        wanted = self._n_components
        model = PCA(wanted if wanted < 1 else min(int(wanted), limit), random_state=self._seed).fit(rows)
        kept = model.components_[:limit] if rows.shape[1] > 1 else model.components_[:0]
        self._mean, self._directions = model.mean_, kept
        self.budget = {"n_components": len(kept)}

    def _residual(self, X: np.ndarray) -> np.ndarray:
        away = X.reshape(len(X), -1) - self._mean
        return away - (away @ self._directions.T) @ self._directions

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return np.linalg.norm(self._residual(X), axis=1)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        residual = self._residual(X)
        norm = np.linalg.norm(residual, axis=1, keepdims=True)
        return (residual / np.where(norm > 0, norm, 1)).reshape(X.shape)


def build(*, seed: int, n_components: int | float = 0.5) -> Detector:
    return PCAResidual(n_components, seed)


DETECTORS.add(
    DetectorInfo(
        name="PCA-residual",
        build=build,
        source="Jackson and Mudholkar, Control procedures for residuals, 1979",
        deterministic=True,
        preload=("sklearn.decomposition",),
    )
)
