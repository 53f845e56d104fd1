"""A conventional classifier of rows against generated negatives: no constraint, no certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors._training import Schedule, gradient_rows, minimise, score_rows

if TYPE_CHECKING:
    import tensorflow as tf


class ReLUClassifier:
    """Dense ReLU network trained with binary cross-entropy on rows against jittered rows.

    What OCSDF's detection recipe is without the Lipschitz constraint: the same negatives (a row plus Gaussian
    noise whose deviation is uniform on [0, ``spread``] typical deviations), the same widths, Adam. Its slope
    has no bound, so an attack that works must beat it. The score is minus the logit of "normal".

    Parameters
    ----------
    hidden : tuple of int
    spread : float
        Largest noise, in root mean square deviations of the features that vary.
    schedule : Schedule
    seed : int
    """

    def __init__(self, hidden: tuple[int, ...], spread: float, schedule: Schedule, seed: int) -> None:
        self._hidden = hidden
        self._spread = spread
        self._schedule = schedule
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        import tensorflow as tf

        deviation = X.std(axis=0)
        moving = deviation[deviation > 0]
        self._reach = self._spread * float(np.sqrt((moving**2).mean()) if moving.size else 1.0)
        self._random = tf.random.Generator.from_seed(self._seed)
        self._network = _network(X.shape[1:], self._hidden, self._seed)
        weights = self._network.trainable_variables
        self.budget = minimise(self._loss, weights, X, self._schedule, self._seed)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return score_rows(self.tensorflow_score, X)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        return gradient_rows(self.tensorflow_score, X)

    def tensorflow_score(self, x: tf.Tensor) -> tf.Tensor:
        return -self._network(x)[:, 0]

    def _loss(self, batch: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        per_row = tf.concat([tf.shape(batch)[:1], tf.ones(tf.rank(batch) - 1, tf.int32)], axis=0)
        deviation = self._reach * self._random.uniform(per_row)
        negative = batch + deviation * self._random.normal(tf.shape(batch))
        loss_normal = tf.nn.softplus(-self._network(batch))
        return tf.reduce_mean(loss_normal) + tf.reduce_mean(tf.nn.softplus(self._network(negative)))


def _network(shape: tuple[int, ...], hidden: tuple[int, ...], seed: int) -> tf.keras.Model:
    import tensorflow as tf

    layers: list[Any] = [tf.keras.Input(shape), tf.keras.layers.Flatten()]
    for index, width in enumerate((*hidden, 1)):
        start = tf.keras.initializers.HeNormal(seed=seed + index)
        kind = "relu" if index < len(hidden) else "linear"
        layers.append(tf.keras.layers.Dense(width, kind, kernel_initializer=start))
    return tf.keras.Sequential(layers)


def build(
    *,
    seed: int,
    hidden: tuple[int, ...] = (64, 64, 64, 64),
    spread: float = 3.0,
    epochs: int = 10_000,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    max_steps: int = 1_000,
) -> Detector:
    return ReLUClassifier(tuple(hidden), spread, Schedule(epochs, batch_size, learning_rate, max_steps), seed)


DETECTORS.add(
    DetectorInfo(
        name="ReLU-BCE",
        build=build,
        source="Béthune, Novello et al., arXiv:2303.01978: the conventional network it is compared with",
        preload=("tensorflow",),
    )
)
