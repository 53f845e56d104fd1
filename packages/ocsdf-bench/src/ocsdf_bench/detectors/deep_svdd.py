"""Deep SVDD in TensorFlow, with PyOD's default network for tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors._training import Schedule, gradient_rows, minimise, scaling, score_rows

if TYPE_CHECKING:
    import tensorflow as tf

SOURCE = "Ruff et al., Deep one-class classification, ICML 2018"
_CENTRE_FLOOR = 0.1  # a centre entry near 0 can be reached with zero weights, which maps every row to it


class DeepSVDDDetector:
    """Squared distance of a network's output to a fixed centre, minimised over the training rows.

    The centre is the mean output of the untrained network. A collapsed network (constant scores, or an output
    that equals the centre to float32 rounding) is no error: budget says ``collapsed``.

    Parameters
    ----------
    create : callable
        (input shape, seed) to a Keras network.
    schedule : Schedule
    weight_decay : float
        Weight of half the squared norm of the network's weights.
    standardise : bool
        Standardise the features on the training rows, as PyOD does.
    seed : int
    """

    def __init__(
        self,
        create: Callable[[tuple[int, ...], int], Any],
        schedule: Schedule,
        weight_decay: float,
        standardise: bool,
        seed: int,
    ) -> None:
        self._create = create
        self._schedule = schedule
        self._weight_decay = weight_decay
        self._standardise = standardise
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        import tensorflow as tf

        shift, scale = scaling(X) if self._standardise else (np.zeros(()), np.ones(()))
        self._shift, self._scale = shift.astype(np.float32), scale.astype(np.float32)
        self._network = self._create(X.shape[1:], self._seed)
        outputs = score_rows(lambda x: self._network(self._scaled(x), training=False), X)
        self._centre = tf.constant(_away_from_zero(outputs.mean(axis=0)), tf.float32)
        weights = self._network.trainable_variables
        spent = minimise(self._loss, weights, (X - shift) / scale, self._schedule, self._seed)
        self.budget = {**spent, "collapsed": self._collapsed(X)}

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return score_rows(self.tensorflow_score, X)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        return gradient_rows(self.tensorflow_score, X)

    def tensorflow_score(self, x: tf.Tensor) -> tf.Tensor:
        return self._distance(self._network(self._scaled(x), training=False))

    def _scaled(self, x: tf.Tensor) -> tf.Tensor:
        return (x - self._shift) / self._scale

    def _distance(self, output: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        return tf.reduce_sum((output - self._centre) ** 2, axis=-1)

    def _loss(self, batch: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        squares = tf.add_n([tf.reduce_sum(w.value**2) for w in self._network.trainable_variables])
        distance = self._distance(self._network(batch, training=True))
        return tf.reduce_mean(distance) + 0.5 * self._weight_decay * squares

    def _collapsed(self, X: np.ndarray) -> bool:
        scores = self.anomaly_score(X)
        at_centre = scores.max() <= 1e-10 * float((self._centre.numpy() ** 2).sum())
        return bool(at_centre or np.ptp(scores) <= 1e-6 * scores.max())


def _away_from_zero(centre: np.ndarray) -> np.ndarray:
    small = (np.abs(centre) < _CENTRE_FLOOR) & (centre != 0)
    return np.where(small, np.sign(centre) * _CENTRE_FLOOR, centre)


def dense_network(
    shape: tuple[int, ...], seed: int, hidden: tuple[int, ...], dropout: float
) -> tf.keras.Model:
    """PyOD's network: bias-free layers with ReLU, the output's too, and dropout between inner ones."""
    import tensorflow as tf

    layers: list[Any] = [tf.keras.Input(shape), tf.keras.layers.Flatten()]
    for index, width in enumerate(hidden):
        uniform = tf.keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform", seed=seed + index)
        layers.append(tf.keras.layers.Dense(width, "relu", use_bias=False, kernel_initializer=uniform))
        if 0 < index < len(hidden) - 1 and dropout:
            layers.append(tf.keras.layers.Dropout(dropout, seed=seed + index))
    return tf.keras.Sequential(layers)


def build(
    *,
    seed: int,
    hidden: tuple[int, ...] = (64, 32),
    dropout: float = 0.2,
    epochs: int = 100,
    batch_size: int = 32,
    learning_rate: float = 1e-4,
    weight_decay: float = 5e-7,
    max_steps: int = 20_000,
) -> Detector:
    """Deep SVDD at PyOD 3's defaults; ``max_steps`` (ours) keeps tables over 6,400 rows to seconds."""
    return DeepSVDDDetector(
        lambda shape, network_seed: dense_network(shape, network_seed, tuple(hidden), dropout),
        Schedule(epochs, batch_size, learning_rate, max_steps),
        weight_decay,
        standardise=True,
        seed=seed,
    )


DETECTORS.add(DetectorInfo(name="DeepSVDD", build=build, source=SOURCE, preload=("tensorflow",)))
