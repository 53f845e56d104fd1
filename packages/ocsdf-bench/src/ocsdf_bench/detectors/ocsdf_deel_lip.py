"""OCSDF from deel-lip layers, trained as its authors do: each update orthogonalises free weights anew.

deel-lip runs on Keras 2 alone, which a process has to choose before Keras is first used. A run has a process
of its own, and this detector's runs a fresh one, so that they alone choose it. Core computes the constant
from the weights that inference uses, since the library's own scaling of convolutions is no bound.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors._training import Schedule, gradient_rows, score_rows

if TYPE_CHECKING:
    import tensorflow as tf

_TABLE_DOMAIN = 5.0  # deviations: the box that negatives start from, of standardised rows


class OCSDFDeelLip:
    """HKR between rows and Newton-Raphson negatives, by RMSprop, on spectrally orthogonalised layers.

    Parameters
    ----------
    network : {"dense", "vgg"}
        Dense with full sort, or 3 x 3 convolutions with l2-norm pooling and pairwise sort.
    widths : tuple of int
        Of the dense layers, or of each block of convolutions.
    depth : int
        Convolutions a block.
    margin, weight, newton_steps : float, float, int
        m and lambda of HKR, and T of the negatives.
    schedule : Schedule
    seed : int
    """

    def __init__(
        self,
        network: str,
        widths: tuple[int, ...],
        depth: int,
        margin: float,
        weight: float,
        newton_steps: int,
        schedule: Schedule,
        seed: int,
    ) -> None:
        self._network = network
        self._widths = widths
        self._depth = depth
        self._margin = margin
        self._weight = weight
        self._newton_steps = newton_steps
        self._schedule = schedule
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        import tensorflow as tf

        from ocsdf.deel_lip import lipschitz_bound

        tf.keras.utils.set_random_seed(self._seed)
        self._random = tf.random.Generator.from_seed(self._seed)
        lip = importlib.import_module("deel.lip")
        create = {"dense": _dense, "vgg": _vgg}[self._network]
        shape = X.shape[1:] if self._network == "dense" or X.ndim == 4 else (*X.shape[1:], 1)
        self._model = create(lip, shape, self._widths, self._depth, self._seed)
        self._low, self._high = (
            (-_TABLE_DOMAIN, _TABLE_DOMAIN) if X.ndim == 2 else (float(X.min()), float(X.max()))
        )
        self._minimise(X.reshape(len(X), *shape))
        self.lipschitz = lipschitz_bound(self._model)

    def _minimise(self, X: np.ndarray) -> None:
        import tensorflow as tf

        optimizer = tf.keras.optimizers.RMSprop(self._schedule.learning_rate)
        rows, steps = tf.constant(X, tf.float32), 0

        @tf.function
        def epoch(indices: tf.Tensor) -> None:
            for step in tf.range(tf.shape(indices)[0]):
                batch = tf.gather(rows, indices[step])
                negatives = self._negatives(tf.shape(batch))
                with tf.GradientTape() as tape:
                    loss = self._loss(batch, negatives)
                weights = self._model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

        for indices in self._schedule.batches(len(X), np.random.default_rng(self._seed)):
            epoch(tf.constant(indices, tf.int32))
            steps += len(indices)
        epochs = steps * min(self._schedule.batch_size, len(X)) / len(X)
        self.budget = {"steps": steps, "epochs": round(epochs, 2), "newton_steps": self._newton_steps}

    def _negatives(self, shape: tf.Tensor) -> tf.Tensor:
        """Uniform points of the domain, moved part of the way to the level -m."""
        import tensorflow as tf

        z = self._random.uniform(shape, self._low, self._high)
        per_row = tf.concat([shape[:1], tf.ones(tf.size(shape) - 1, tf.int32)], axis=0)
        rate = self._random.uniform(per_row) / max(self._newton_steps, 1)
        for _ in range(self._newton_steps):
            with tf.GradientTape() as tape:
                tape.watch(z)
                f = self._model(z, training=False)[:, 0]
            slope = tape.gradient(f, z)
            axes = list(range(1, len(z.shape)))
            square = tf.maximum(tf.reduce_sum(slope**2, axis=axes, keepdims=True), 1e-12)
            z -= rate * tf.reshape(f + self._margin, per_row) * slope / square
            z = tf.clip_by_value(z, self._low, self._high)
        return tf.stop_gradient(z)

    def _loss(self, rows: tf.Tensor, negatives: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        inside, outside = self._model(rows, training=True), self._model(negatives, training=True)
        hinge = tf.nn.relu(self._margin - inside) + tf.nn.relu(self._margin + outside)
        return tf.reduce_mean(self._weight * hinge - inside + outside)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return score_rows(self.tensorflow_score, X)

    def gradient(self, X: np.ndarray) -> np.ndarray:
        return gradient_rows(self.tensorflow_score, X)

    def tensorflow_score(self, x: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        return -self._model(tf.reshape(x, (-1, *self._model.input_shape[1:])), training=False)[:, 0]


def _dense(lip: Any, shape: tuple[int, ...], widths: tuple[int, ...], depth: int, seed: int) -> Any:
    import tensorflow as tf

    starts = _starts(seed)
    layers: list[Any] = [tf.keras.layers.Input(shape), tf.keras.layers.Flatten()]
    for width in widths:
        layers += [
            lip.layers.SpectralDense(width, kernel_initializer=next(starts)),
            lip.activations.FullSort(),
        ]
    return lip.model.Sequential([*layers, lip.layers.SpectralDense(1, kernel_initializer=next(starts))])


def _vgg(lip: Any, shape: tuple[int, ...], widths: tuple[int, ...], depth: int, seed: int) -> Any:
    import tensorflow as tf

    starts = _starts(seed)
    layers: list[Any] = [tf.keras.layers.Input(shape)]
    for block, width in enumerate(widths):
        if block:
            layers.append(lip.layers.ScaledL2NormPooling2D((2, 2)))
        for _ in range(depth):
            layers += [
                lip.layers.SpectralConv2D(width, (3, 3), kernel_initializer=next(starts)),
                lip.activations.GroupSort2(),
            ]
    pool, head = lip.layers.ScaledGlobalL2NormPooling2D(), lip.layers.SpectralDense
    return lip.model.Sequential([*layers, pool, head(1, kernel_initializer=next(starts))])


def _starts(seed: int) -> Iterator[Any]:
    """Initializers of one layer after the other; the library's own has a seed nobody can set."""
    import tensorflow as tf

    return (tf.keras.initializers.Orthogonal(seed=number) for number in count(seed))


def build(
    *,
    seed: int,
    network: Literal["dense", "vgg"] = "dense",
    widths: tuple[int, ...] = (512, 512, 512, 512),
    depth: int = 4,
    margin: float = 0.05,
    weight: float = 100.0,
    newton_steps: int = 4,
    epochs: int = 40,
    batch_size: int = 128,
    learning_rate: float = 5e-4,
    max_steps: int = 1_000,
) -> Detector:
    """The paper's recipe of tables; ``max_steps`` (ours) caps the epochs."""
    _choose_keras_2()
    schedule = Schedule(epochs, batch_size, learning_rate, max_steps)
    return OCSDFDeelLip(network, tuple(widths), depth, margin, weight, newton_steps, schedule, seed)


def _choose_keras_2() -> None:
    for module in ("deel.lip", "tf_keras"):
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            raise ImportError(
                f"detector ocsdf-deel-lip needs {module}; install it with "
                "`pip install 'ocsdf-bench[deel-lip]'`."
            )
    if "keras" in sys.modules and os.environ.get("TF_USE_LEGACY_KERAS") != "1":
        raise RuntimeError(
            "detector ocsdf-deel-lip must be built before Keras is used in its process; got Keras 3 loaded; "
            "run it by a suite, where each run has a process of its own."
        )
    os.environ["TF_USE_LEGACY_KERAS"] = "1"


DETECTORS.add(
    DetectorInfo(
        name="ocsdf-deel-lip",
        build=build,
        source="Béthune, Novello et al., ICML 2023; layers of Serrurier et al., deel-lip 1.5",
        fresh=True,
        extra="deel-lip",
        needs=("deel", "tf_keras"),
    )
)
