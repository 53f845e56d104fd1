"""PyOD's own Deep SVDD, which needs PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo


class DeepSVDDPyOD:
    """``pyod.models.deep_svdd.DeepSVDD``, built at fit because it wants the number of features."""

    def __init__(self, pyod_class: Any, params: dict[str, Any], max_steps: int) -> None:
        self._class = pyod_class
        self._params = params
        self._max_steps = max_steps
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        X = X.reshape(len(X), -1)
        steps_per_epoch = -(-len(X) // self._params["batch_size"])
        epochs = max(1, min(self._params["epochs"], self._max_steps // steps_per_epoch))
        self._model = self._class(X.shape[1], **{**self._params, "epochs": epochs}, verbose=0).fit(X)
        self.budget = {"epochs": epochs, "steps": epochs * steps_per_epoch}

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._model.decision_function(X.reshape(len(X), -1)), float)


def build(
    *,
    seed: int,
    hidden_neurons: tuple[int, ...] = (64, 32),
    epochs: int = 100,
    batch_size: int = 32,
    learning_rate: float = 1e-4,
    max_steps: int = 20_000,
) -> Detector:
    """Deep SVDD of PyOD at its defaults; ``max_steps`` (ours) caps the epochs, one at least."""
    try:
        importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            "detector DeepSVDD-PyOD needs PyTorch; install it with `pip install 'ocsdf-bench[torch]'`."
        ) from error
    params = {
        "hidden_neurons": list(hidden_neurons),
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "random_state": seed,
    }
    return DeepSVDDPyOD(importlib.import_module("pyod.models.deep_svdd").DeepSVDD, params, max_steps)


DETECTORS.add(
    DetectorInfo(
        name="DeepSVDD-PyOD",
        build=build,
        source="Ruff et al., Deep one-class classification, ICML 2018; PyOD's implementation",
        extra="torch",
        needs=("torch",),
    )
)
