"""Distance to the centre of the training rows."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo


class CentreDistance:
    """Euclidean distance to the mean or the median: 1-Lipschitz by the triangle inequality."""

    lipschitz = 1.0

    def __init__(self, centre: str) -> None:
        self._reduce = np.median if centre == "median" else np.mean

    def fit(self, X: np.ndarray) -> None:
        self._centre = self._reduce(X.reshape(len(X), -1), axis=0)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return np.linalg.norm(X.reshape(len(X), -1) - self._centre, axis=1)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        distance = self.anomaly_score(X)[:, None]
        away = X.reshape(len(X), -1) - self._centre
        return (away / np.where(distance > 0, distance, 1)).reshape(X.shape)


def build(*, seed: int, centre: Literal["mean", "median"] = "mean") -> Detector:
    return CentreDistance(centre)


DETECTORS.add(
    DetectorInfo(
        name="Mean-distance",
        build=build,
        source="distance to the mean or the median; constant from the triangle inequality",
        deterministic=True,
    )
)
