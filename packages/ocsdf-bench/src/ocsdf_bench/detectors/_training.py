"""Seeded minibatch training and batched scoring of the TensorFlow detectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf

_SCORE_ROWS = 8_192  # bounds the memory of a pass over large tables


@dataclass(frozen=True)
class Schedule:
    """How long a network is trained: at most ``epochs`` passes and at most ``max_steps`` updates."""

    epochs: int
    batch_size: int
    learning_rate: float
    max_steps: int

    def batches(self, n_rows: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Row indices (n_steps, batch) of one epoch after the other; a remainder waits for its next epoch."""
        size = min(self.batch_size, n_rows)
        left = self.max_steps
        for _ in range(self.epochs):
            if left <= 0:
                return
            n_steps = min(n_rows // size, left)
            left -= n_steps
            yield rng.permutation(n_rows)[: n_steps * size].reshape(n_steps, size)


def minimise(
    loss: Callable[[tf.Tensor], tf.Tensor],
    variables: list[Any],
    X: np.ndarray,
    schedule: Schedule,
    seed: int,
    clip_norm: float | None = None,
) -> dict[str, Any]:
    """Minimise ``loss(batch)`` with Adam and return the budget spent.

    One call of the compiled graph runs a whole epoch, since the networks are so small that Python would
    otherwise cost more than they do.

    Raises
    ------
    FloatingPointError
        The loss is no longer finite.
    """
    import tensorflow as tf

    optimizer = tf.keras.optimizers.Adam(float(schedule.learning_rate), global_clipnorm=clip_norm)
    optimizer.build(variables)
    rows = tf.constant(X, tf.float32)

    @tf.function
    def epoch(indices: tf.Tensor) -> tf.Tensor:
        total = tf.constant(0.0)
        for step in tf.range(tf.shape(indices)[0]):
            with tf.GradientTape() as tape:
                value = loss(tf.gather(rows, indices[step]))
            optimizer.apply(tape.gradient(value, variables), variables)
            total += value
        return total

    steps = 0
    for indices in schedule.batches(len(X), np.random.default_rng(seed)):
        total = float(epoch(tf.constant(indices, tf.int32)))
        steps += len(indices)
        if not np.isfinite(total):
            raise FloatingPointError(f"the training loss is {total} after {steps} steps.")
    return {"steps": steps, "epochs": round(steps * min(schedule.batch_size, len(X)) / len(X), 2)}


def score_rows(score: Callable[[tf.Tensor], tf.Tensor], X: np.ndarray) -> np.ndarray:
    """Values (n, ...) of ``score`` at the rows of X, batch by batch, float64."""
    import tensorflow as tf

    parts = [
        score(tf.constant(X[start : start + _SCORE_ROWS], tf.float32)).numpy()
        for start in range(0, len(X), _SCORE_ROWS)
    ]
    return np.concatenate(parts).astype(float)


def gradient_rows(score: Callable[[tf.Tensor], tf.Tensor], X: np.ndarray) -> np.ndarray:
    """Gradient (like X) of ``score`` at the rows of X, batch by batch, float64."""
    import tensorflow as tf

    parts = []
    for start in range(0, len(X), _SCORE_ROWS):
        x = tf.constant(X[start : start + _SCORE_ROWS], tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(score(x))
        parts.append(tape.gradient(total, x).numpy())
    return np.concatenate(parts).astype(float)


def scaling(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (1 where constant) of each feature."""
    deviation = X.std(axis=0)
    return X.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
