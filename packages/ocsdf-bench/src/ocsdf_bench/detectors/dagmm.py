"""DAGMM in TensorFlow, with the network and the settings of its article's KDDCup experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.detectors._training import Schedule, minimise, score_rows

if TYPE_CHECKING:
    import tensorflow as tf

_NORM_FLOOR = 1e-3  # a row at the origin has no relative reconstruction error
_COVARIANCE_FLOOR = 1e-6  # keeps a component that shrinks to a point invertible


class DAGMMDetector:
    """Energy of a Gaussian mixture over an autoencoder's code and two measures of its reconstruction.

    The mixture is computed in float64: its 3 x 3 covariances come close to singular during training. After
    training its weights, means and covariances are those of all training rows, so that the score of a row
    does not depend on the others in its batch.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the encoder; the decoder mirrors them.
    latent_dim, n_components, estimation_width : int
        Width of the code, number of Gaussians, hidden width of the estimation network.
    dropout : float
        In the estimation network.
    weight_energy, weight_covariance : float
        Weights of the mean energy and of the sum of inverse variances in the loss.
    schedule : Schedule
    seed : int
    """

    def __init__(
        self,
        hidden: tuple[int, ...],
        latent_dim: int,
        n_components: int,
        estimation_width: int,
        dropout: float,
        weight_energy: float,
        weight_covariance: float,
        schedule: Schedule,
        seed: int,
    ) -> None:
        self._hidden = hidden
        self._latent_dim = latent_dim
        self._n_components = n_components
        self._estimation_width = estimation_width
        self._dropout = dropout
        self._weights = (weight_energy, weight_covariance)
        self._schedule = schedule
        self._seed = seed
        self.budget: dict[str, Any] = {}

    def fit(self, X: np.ndarray) -> None:
        X = X.reshape(len(X), -1)
        self._build_networks(X.shape[1])
        networks = (self._encoder, self._decoder, self._estimator)
        variables = [variable for network in networks for variable in network.trainable_variables]
        self.budget = minimise(self._loss, variables, X, self._schedule, self._seed, clip_norm=5.0)
        features = score_rows(lambda x: self._features(x)[0], X)
        shares = score_rows(lambda z: self._estimator(z, training=False), features)
        self._mixture = _mixture(features, shares)

    def anomaly_score(self, X: np.ndarray) -> np.ndarray:
        return score_rows(self.tensorflow_score, X)

    def tensorflow_score(self, x: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        features, _ = self._features(tf.reshape(x, (tf.shape(x)[0], -1)))
        return tf.cast(_energy(features, *self._mixture), tf.float32)

    def _build_networks(self, n_features: int) -> None:
        mirrored, last = tuple(reversed(self._hidden)), self._n_components
        code = self._latent_dim
        self._encoder = _network(n_features, self._hidden, code, self._seed)
        self._decoder = _network(code, mirrored, n_features, self._seed + 100)
        widths = (self._estimation_width,)
        self._estimator = _network(code + 2, widths, last, self._seed + 200, self._dropout, "softmax")

    def _features(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Code, relative distance and cosine between x and its reconstruction; the reconstruction."""
        import tensorflow as tf

        code = self._encoder(x)
        rebuilt = self._decoder(code)
        norm, norm_rebuilt = _norm(x), _norm(rebuilt)
        relative = _norm(x - rebuilt) / norm
        cosine = tf.reduce_sum(x * rebuilt, axis=1, keepdims=True) / (norm * norm_rebuilt)
        return tf.concat([code, relative, cosine], axis=1), rebuilt

    def _loss(self, batch: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        features, rebuilt = self._features(batch)
        share, mean, covariance = _mixture(features, self._estimator(features, training=True))
        energy = tf.reduce_mean(_energy(features, share, mean, covariance))
        penalty = tf.reduce_sum(1.0 / tf.linalg.diag_part(covariance))
        weight_energy, weight_covariance = self._weights
        mixture = tf.cast(weight_energy * energy + weight_covariance * penalty, tf.float32)
        return tf.reduce_mean((batch - rebuilt) ** 2) + mixture


def _norm(x: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    return tf.sqrt(tf.reduce_sum(x**2, axis=1, keepdims=True) + _NORM_FLOOR**2)


def _network(
    n_inputs: int,
    hidden: tuple[int, ...],
    n_outputs: int,
    seed: int,
    dropout: float = 0.0,
    last: str = "linear",
) -> tf.keras.Model:
    import tensorflow as tf

    layers: list[Any] = [tf.keras.Input((n_inputs,))]
    for index, width in enumerate((*hidden, n_outputs)):
        final = index == len(hidden)
        if final and dropout:
            layers.append(tf.keras.layers.Dropout(dropout, seed=seed))
        glorot = tf.keras.initializers.GlorotUniform(seed=seed + index)
        layers.append(tf.keras.layers.Dense(width, last if final else "tanh", kernel_initializer=glorot))
    return tf.keras.Sequential(layers)


def _mixture(features: Any, shares: Any) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Weights (K,), means (K, D) and covariances (K, D, D), float64, of rows (n, D) with shares (n, K)."""
    import tensorflow as tf

    rows, shares = tf.cast(features, tf.float64), tf.cast(shares, tf.float64)
    total = tf.reduce_sum(shares, axis=0) + 1e-12
    mean = tf.einsum("nk,nd->kd", shares, rows) / total[:, None]
    centred = rows[:, None, :] - mean
    covariance = tf.einsum("nk,nkd,nke->kde", shares, centred, centred) / total[:, None, None]
    floor = _COVARIANCE_FLOOR * tf.eye(tf.shape(rows)[1], dtype=tf.float64)
    return total / tf.reduce_sum(total), mean, covariance + floor


def _energy(features: Any, share: tf.Tensor, mean: tf.Tensor, covariance: tf.Tensor) -> tf.Tensor:
    """Negative log-likelihood (n,) of rows under the mixture, float64."""
    import tensorflow as tf

    centred = tf.transpose(tf.cast(features, tf.float64)[:, None, :] - mean, (1, 2, 0))
    root = tf.linalg.cholesky(covariance)
    squared = tf.reduce_sum(tf.linalg.triangular_solve(root, centred) ** 2, axis=1)
    log_root = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)), axis=1)
    constant = 0.5 * np.log(2 * np.pi) * mean.shape[1]
    return -tf.reduce_logsumexp((tf.math.log(share) - log_root - constant)[:, None] - 0.5 * squared, axis=0)


def build(
    *,
    seed: int,
    hidden: tuple[int, ...] = (60, 30, 10),
    latent_dim: int = 1,
    n_components: int = 4,
    estimation_width: int = 10,
    dropout: float = 0.5,
    weight_energy: float = 0.1,
    weight_covariance: float = 0.005,
    epochs: int = 200,
    batch_size: int = 256,
    learning_rate: float = 1e-4,
    max_steps: int = 10_000,
) -> Detector:
    """DAGMM as its article sets it for KDDCup, with ADBench's batch of 256; ``max_steps`` (ours) bounds the
    time on tables over 12,800 rows.
    """
    return DAGMMDetector(
        tuple(hidden),
        latent_dim,
        n_components,
        estimation_width,
        dropout,
        weight_energy,
        weight_covariance,
        Schedule(epochs, batch_size, learning_rate, max_steps),
        seed,
    )


DETECTORS.add(
    DetectorInfo(
        name="DAGMM",
        build=build,
        source="Zong et al., Deep autoencoding Gaussian mixture model, ICLR 2018",
        preload=("tensorflow",),
    )
)
