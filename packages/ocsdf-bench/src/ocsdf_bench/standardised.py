"""Centred and reduced channels: what the detector sees, while radius, domain and attack stay in pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf


class Standardised:
    """A detector of pixels in [0, 1] by one of (x - mean) / deviation, channel by channel.

    The map stretches a step by at most max(1 / deviation), and one in that channel by exactly as much, so the
    constant in pixels is the detector's own times that: a certificate at k/255 is one of pixels, with no
    slack. The score at a pixel row, its gradient and its TensorFlow form are those of the composition, so an
    attack moves pixels within [0, 1].

    Parameters
    ----------
    detector : Detector
    mean, deviation : (n_channels,) arrays
        Of the last axis of the images.
    """

    def __init__(self, detector: Any, mean: np.ndarray, deviation: np.ndarray) -> None:
        self._detector = detector
        self._mean = mean
        self._deviation = deviation

    def fit(self, X: np.ndarray) -> None:
        self._detector.fit(self._seen(X))

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return self._detector.anomaly_score(self._seen(X))

    @property
    def budget(self) -> dict[str, Any]:
        return getattr(self._detector, "budget", {})

    # What the detector lacks, its composition lacks too: these raise the detector's own AttributeError.
    @property
    def lipschitz(self) -> float | None:
        own = self._detector.lipschitz
        return None if own is None else float(np.nextafter(own * self._stretch, np.inf))

    @property
    def score_bounds(self) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None:
        own = self._detector.score_bounds
        if own is None:
            return None
        return lambda X, radii: own(self._seen(X), np.nextafter(radii * self._stretch, np.inf) * (radii > 0))

    @property
    def gradient(self) -> Callable[[np.ndarray], np.ndarray]:
        own = self._detector.gradient
        return lambda X: own(self._seen(X)) / self._deviation

    @property
    def tensorflow_score(self) -> Callable[[tf.Tensor], tf.Tensor]:
        own = self._detector.tensorflow_score
        mean, deviation = self._mean.astype(np.float32), self._deviation.astype(np.float32)
        return lambda x: own((x - mean) / deviation)

    @property
    def xla(self) -> bool:
        return self._detector.xla

    @property
    def _stretch(self) -> float:
        return float(np.nextafter(np.max(1 / self._deviation), np.inf))

    def _seen(self, X: np.ndarray) -> np.ndarray:
        return (X - self._mean) / self._deviation
