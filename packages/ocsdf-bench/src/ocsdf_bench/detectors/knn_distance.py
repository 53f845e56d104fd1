"""Distance to neighbours in a fixed reference set: certified without training."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo


class NeighbourDistance:
    """k-th smallest, or mean of the k smallest, Euclidean distances to a reference set.

    Both are 1-Lipschitz. Each distance x -> ||x - r|| is, by the triangle inequality. If every one of n
    numbers moves by at most t, so does their k-th smallest (k of them stay under it plus t, and n - k + 1
    above it minus t), and so does a mean of the k smallest, which is a minimum over subsets of means.

    Parameters
    ----------
    k : int
        Neighbours; at most the reference rows. A row of the reference set is its own first neighbour.
    n_reference : int
        Rows drawn without replacement from the training rows; all where there are fewer, or where it is 0.
    mean : bool
        Mean of the k distances in place of the k-th.
    seed : int
    """

    lipschitz = 1.0

    def __init__(self, k: int, n_reference: int, mean: bool, seed: int) -> None:
        self._k = k
        self._n_reference = n_reference
        self._mean = mean
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        from sklearn.neighbors import NearestNeighbors

        rows = X.reshape(len(X), -1)
        if 0 < self._n_reference < len(rows):
            rng = np.random.default_rng(self._seed)
            rows = rows[rng.choice(len(rows), self._n_reference, replace=False)]
        self._reference = rows
        self._search = NearestNeighbors(n_neighbors=min(self._k, len(rows))).fit(rows)
        self.budget = {"n_reference": len(rows)}

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        distance, _ = self._search.kneighbors(X.reshape(len(X), -1))
        return distance.mean(axis=1) if self._mean else distance[:, -1]

    def gradient(self, X: np.ndarray) -> np.ndarray:
        rows = X.reshape(len(X), -1)
        distance, index = self._search.kneighbors(rows)
        if not self._mean:
            distance, index = distance[:, -1:], index[:, -1:]
        away = rows[:, None, :] - self._reference[index]
        unit = away / np.where(distance > 0, distance, 1)[:, :, None]
        return unit.mean(axis=1).reshape(X.shape)


def build_distance(*, seed: int, k: int = 20, n_reference: int = 256) -> Detector:
    return NeighbourDistance(k, n_reference, False, seed)


def build_mean(*, seed: int, k: int = 20, n_reference: int = 256) -> Detector:
    return NeighbourDistance(k, n_reference, True, seed)


for _name, _build in (("KNN-distance", build_distance), ("KNN-mean", build_mean)):
    DETECTORS.add(
        DetectorInfo(
            name=_name,
            build=_build,
            source="Ramaswamy et al., Efficient algorithms for mining outliers, SIGMOD 2000",
            preload=("sklearn.neighbors",),
        )
    )
