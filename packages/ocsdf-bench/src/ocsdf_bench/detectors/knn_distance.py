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
        self._mean_row = rows.mean(axis=0)
        centred = (rows - self._mean_row).astype(np.float32)
        self._centred = centred, (centred**2).sum(axis=1) / 2
        self.budget = {"n_reference": len(rows)}

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        distance, _ = self._search.kneighbors(X.reshape(len(X), -1))
        return distance.mean(axis=1) if self._mean else distance[:, -1]

    def gradient(self, X: np.ndarray) -> np.ndarray:
        """Mean of the unit vectors away from the neighbours that the score is made of.

        They are searched in float32, in half the time: an attack asks a thousand times, and a neighbour that
        ties with the right one is as good to walk from.
        """
        rows = X.reshape(len(X), -1)
        gradient = np.zeros_like(rows)
        neighbours = self._nearest(rows)
        for index in neighbours.T:
            away = rows - self._reference[index]
            distance = np.linalg.norm(away, axis=1, keepdims=True)
            gradient += away / np.where(distance > 0, distance, 1)
        return (gradient / neighbours.shape[1]).reshape(X.shape)

    def _nearest(self, rows: np.ndarray) -> np.ndarray:
        """Numbers (n, k) of the k nearest reference rows, or (n, 1) of the k-th alone."""
        # ||x - r||^2 / 2 less what r does not change; from the mean, so that float32 has digits to spare.
        reference, half = self._centred
        height = half - (rows - self._mean_row).astype(np.float32) @ reference.T
        if self._k == 1:
            return height.argmin(axis=1)[:, None]
        last = min(self._k, len(reference)) - 1
        nearest = np.argpartition(height, last, axis=1)
        return nearest[:, : last + 1] if self._mean else nearest[:, last : last + 1]


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
