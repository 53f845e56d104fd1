"""One-class SVM with a Gaussian kernel and the Lipschitz constant of its decision function."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors._gaussian import gaussian_sum, gaussian_sum_gradient


class OCSVMRBF:
    """s(x) = rho - sum_i a_i exp(-g ||x - x_i||^2), a_i >= 0.

    Two constants hold, and the smaller is stated. (1) The gradient of one kernel has norm
    2 g r exp(-g r^2), largest at r = 1 / sqrt(2 g), where it is sqrt(2 g) exp(-1/2): the sum is
    sum(a) sqrt(2 g) exp(-1/2). (2) In the kernel's feature space s is linear with weight w, and
    ||phi(x) - phi(y)||^2 = 2 - 2 exp(-g ||x - y||^2) <= 2 g ||x - y||^2, so ||w|| sqrt(2 g) with
    ||w||^2 = a^T K a, which is smaller where the support vectors lie apart.

    Parameters
    ----------
    nu : float
    gamma : float, "auto" or "scale"
        "auto": 1 / n_features, as PyOD; "scale": 1 / (n_features * variance of all entries), as scikit-learn.
    """

    def __init__(self, nu: float, gamma: float | str) -> None:
        self._nu = nu
        self._gamma = gamma
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        from sklearn.svm import OneClassSVM

        rows = X.reshape(len(X), -1)
        gamma = _named_gamma(self._gamma, rows) if isinstance(self._gamma, str) else self._gamma
        model = OneClassSVM(nu=self._nu, gamma=gamma).fit(rows)
        self._expansion = (model.support_vectors_, model.dual_coef_[0], gamma)
        self._offset = -float(model.intercept_[0])
        self.lipschitz = _constant(*self._expansion)
        self.budget = {"gamma": gamma, "nu": self._nu, "n_support": len(model.support_vectors_)}

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return self._offset - gaussian_sum(X.reshape(len(X), -1), *self._expansion)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        return -gaussian_sum_gradient(X.reshape(len(X), -1), *self._expansion).reshape(X.shape)


def _named_gamma(name: str, rows: np.ndarray) -> float:
    variance = float(rows.var()) if name == "scale" else 1.0
    return 1.0 / (rows.shape[1] * variance) if variance > 0 else 1.0


def _constant(support: np.ndarray, weights: np.ndarray, gamma: float) -> float:
    squared_norm = float(weights @ gaussian_sum(support, support, weights, gamma))
    steepest = min(weights.sum() * np.exp(-0.5), np.sqrt(max(squared_norm, 0.0)))
    return float(steepest * np.sqrt(2 * gamma) * (1 + 1e-9))  # above the rounding of the sums


def build(*, seed: int, nu: float = 0.5, gamma: float | Literal["auto", "scale"] = "auto") -> Detector:
    return OCSVMRBF(nu, gamma)


DETECTORS.add(
    DetectorInfo(
        name="OCSVM-RBF",
        build=build,
        source="Schölkopf et al., Estimating the support of a high-dimensional distribution, 2001",
        deterministic=True,
        row_cap=10_000,
        preload=("sklearn.svm", "sklearn.metrics.pairwise"),
    )
)
