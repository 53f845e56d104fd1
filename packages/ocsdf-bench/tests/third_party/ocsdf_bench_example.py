"""Distance to the median: an example of a detector in a package of its own."""

import numpy as np

from ocsdf_bench.detector import DetectorInfo


class Median:
    lipschitz = 1.0  # a distance to a point

    def fit(self, X: np.ndarray) -> None:
        self.centre = np.median(X, axis=0)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return np.linalg.norm(X - self.centre, axis=1)


def build(*, seed: int) -> Median:
    return Median()


MEDIAN = DetectorInfo(
    name="Median", build=build, source="an example", deterministic=True, kinds=("table", "toy")
)
