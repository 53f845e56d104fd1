"""One-class SVM on the principal components of images, as the Deep SVDD article runs its baseline."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors.ocsvm_rbf import OCSVMRBF


class PCAOCSVM:
    """``OCSVM-RBF`` on x -> V^T (x - mean), with the components V that hold a share of the variance.

    The columns of V are orthonormal, so the map is 1-Lipschitz and the constant of the machine is kept.

    Parameters
    ----------
    variance : float
    machine : OCSVMRBF
    """

    def __init__(self, variance: float, machine: OCSVMRBF) -> None:
        self._variance = variance
        self._machine = machine
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        from sklearn.decomposition import PCA

        self._pca = PCA(self._variance, svd_solver="full").fit(X.reshape(len(X), -1))
        self._machine.fit(self._project(X))
        self.lipschitz = self._machine.lipschitz
        self.budget = {"n_components": int(self._pca.n_components_), **self._machine.budget}

    def _project(self, X: np.ndarray) -> np.ndarray:
        return self._pca.transform(X.reshape(len(X), -1))

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return self._machine.anomaly_score(self._project(X))

    def gradient(self, X: np.ndarray) -> np.ndarray:
        return (self._machine.gradient(self._project(X)) @ self._pca.components_).reshape(X.shape)


def build(
    *, seed: int, variance: float = 0.95, nu: float = 0.1, gamma: float | Literal["auto", "scale"] = "scale"
) -> Detector:
    """The article chooses gamma by labels; scikit-learn's rule takes its place."""
    return PCAOCSVM(variance, OCSVMRBF(nu, gamma))


DETECTORS.add(
    DetectorInfo(
        name="PCA-OCSVM",
        build=build,
        source="Ruff et al., Deep one-class classification, ICML 2018, its baseline",
        deterministic=True,
        row_cap=10_000,
        preload=("sklearn.svm", "sklearn.decomposition", "sklearn.metrics.pairwise"),
    )
)
