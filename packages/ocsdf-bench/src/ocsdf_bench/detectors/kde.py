"""Gaussian kernel density and its Lipschitz constant; its logarithm, which libraries return, has none."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors._gaussian import gaussian_sum, gaussian_sum_gradient


class KernelDensity:
    """s(x) = -mean over i of exp(-||x - x_i||^2 / (2 h^2)): the density, up to its constant factor, negated.

    The gradient of one kernel has norm (r / h^2) exp(-r^2 / (2 h^2)), largest at r = h, where it is
    exp(-1/2) / h. A mean of such functions has at most this slope, so the constant is exp(-1/2) / h.

    Parameters
    ----------
    bandwidth : float or "median"
        h; "median": median distance between training rows (1,000 of them), at which no score underflows.
    n_reference : int
        Rows drawn without replacement from the training rows; all where there are fewer.
    seed : int
    """

    def __init__(self, bandwidth: float | str, n_reference: int, seed: int) -> None:
        self._bandwidth = bandwidth
        self._n_reference = n_reference
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        rows = np.random.default_rng(self._seed).permutation(X.reshape(len(X), -1))[: self._n_reference]
        bandwidth = _median_distance(rows) if isinstance(self._bandwidth, str) else self._bandwidth
        self._expansion = (rows, np.full(len(rows), 1 / len(rows)), 0.5 / bandwidth**2)
        self.lipschitz = float(np.exp(-0.5) / bandwidth * (1 + 1e-9))  # above the rounding of the sum
        self.budget = {"bandwidth": bandwidth, "n_reference": len(rows)}

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return -gaussian_sum(X.reshape(len(X), -1), *self._expansion)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        return -gaussian_sum_gradient(X.reshape(len(X), -1), *self._expansion).reshape(X.shape)


def _median_distance(rows: np.ndarray) -> float:
    from scipy.spatial.distance import pdist

    distance = float(np.median(pdist(rows[:1_000])))
    return distance if distance > 0 else 1.0


def build(
    *, seed: int, bandwidth: float | Literal["median"] = "median", n_reference: int = 2_000
) -> Detector:
    return KernelDensity(bandwidth, n_reference, seed)


DETECTORS.add(
    DetectorInfo(
        name="KDE",
        build=build,
        source="Parzen, On estimation of a probability density function and mode, 1962",
        preload=("scipy.spatial.distance", "sklearn.metrics.pairwise"),
    )
)
