"""COF by PyOD's formula, vectorised: PyOD's loop needs 1 to 6 s for a block of 2,000 rows, this a tenth."""

from __future__ import annotations

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo


def connectivity_outlier_factor(X: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Connectivity-based outlier factor of each row among the rows of X.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    n_neighbors : int
        Neighbours k; at most n - 1 are used.

    Returns
    -------
    ndarray of shape (n,)
        Average chaining distance of a row over that of its neighbours; 0 where both are 0.

    References
    ----------
    Tang et al., Enhancing effectiveness of outlier detections for low density patterns, PAKDD 2002.

    Examples
    --------
    >>> line = np.arange(6.0)[:, None]
    >>> connectivity_outlier_factor(np.vstack([line, [[30.0]]]), 2).argmax()
    np.int64(6)
    """
    from scipy.spatial.distance import cdist

    k = min(n_neighbors, len(X) - 1)
    distance = cdist(X, X)
    nearest = np.argpartition(distance, k, axis=1)[:, : k + 1]
    order = np.argsort(np.take_along_axis(distance, nearest, axis=1), axis=1, kind="stable")
    path = np.take_along_axis(nearest, order, axis=1)
    within = distance[path[:, :, None], path[:, None, :]]  # distances among a row's path
    step = np.arange(k + 1)
    within[:, step[:, None] <= step] = np.inf  # a step starts from a row that the path already holds
    cost = within[:, 1:].min(axis=2)
    weight = 2.0 * (k + 1 - step[1:]) / (k * (k + 1))
    chaining = cost @ weight
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = chaining * k / chaining[path[:, 1:]].sum(axis=1)
    return np.nan_to_num(factor)


class COFDetector:
    """Scores a batch by itself: like PyOD's, it keeps nothing of the training rows but their number."""

    def __init__(self, n_neighbors: int) -> None:
        self._n_neighbors = n_neighbors

    def fit(self, X: np.ndarray) -> None:
        self._k = min(self._n_neighbors, len(X) - 1)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return connectivity_outlier_factor(np.asarray(X, float).reshape(len(X), -1), self._k)


def build(*, seed: int, n_neighbors: int = 20) -> Detector:
    return COFDetector(n_neighbors)


DETECTORS.add(
    DetectorInfo(
        name="COF",
        build=build,
        source="Tang et al., Enhancing effectiveness of outlier detections, PAKDD 2002",
        deterministic=True,
        transductive=True,
        row_cap=2_000,
        score_block=2_000,
        preload=("scipy.spatial.distance",),
    )
)
