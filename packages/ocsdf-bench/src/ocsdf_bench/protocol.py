"""How rows become a training and a test part. A split has no training labels: a detector cannot see any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Split:
    """Rows as the detector sees them: scaled on the training part (standardised; min-max for adbench; images
    as their data set prepared them).

    X_train (n_train, ...), X_test (n_test, ...), float64; y_test (n_test,), 1 = anomaly; checksum: sha256
    over all three, the identity two stores must share to be compared.
    """

    X_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    checksum: str
    scaling: str  # "standard", "min-max", "none"
    domain: tuple[float, float] | None = None
