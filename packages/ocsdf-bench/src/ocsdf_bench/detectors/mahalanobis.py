"""Mahalanobis distance, the root and not the square that libraries return."""

from __future__ import annotations

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo


class Mahalanobis:
    """s(x) = sqrt((x - c)^T S^-1 (x - c)) with the mean c and the covariance S of the training rows.

    s(x) = ||S^-1/2 (x - c)||, and S^-1/2 has norm 1 / sqrt(smallest eigenvalue of S), so this is its
    Lipschitz constant. The square has none: its slope grows without limit away from the mean.

    Parameters
    ----------
    floor : float
        Eigenvalues of S below ``floor`` times their mean are raised to it: a direction of almost no variance
        would make the constant, and noise in it the score, as large as one likes.
    """

    def __init__(self, floor: float) -> None:
        self._floor = floor

    def fit(self, X: np.ndarray) -> None:
        rows = X.reshape(len(X), -1)
        self._mean = rows.mean(axis=0)
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(rows, rowvar=False)))
        least = self._floor * values.mean() if values.mean() > 0 else 1.0
        deviation = np.sqrt(np.maximum(values, least))
        self._whiten = vectors / deviation
        # eigh is backward stable: its vectors are orthonormal to a few units of rounding
        self.lipschitz = float((1 + 1e-9) / deviation.min())

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return np.linalg.norm((X.reshape(len(X), -1) - self._mean) @ self._whiten, axis=1)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        white = (X.reshape(len(X), -1) - self._mean) @ self._whiten
        norm = np.linalg.norm(white, axis=1, keepdims=True)
        return ((white / np.where(norm > 0, norm, 1)) @ self._whiten.T).reshape(X.shape)


def build(*, seed: int, floor: float = 0.1) -> Detector:
    return Mahalanobis(floor)


DETECTORS.add(
    DetectorInfo(
        name="Mahalanobis",
        build=build,
        source="Mahalanobis, On the generalised distance in statistics, 1936",
        deterministic=True,
    )
)
