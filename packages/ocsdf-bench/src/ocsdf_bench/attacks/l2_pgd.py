"""Foolbox's l2 projected gradient descent on the anomaly score."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.attack import ATTACKS, Attack

STARTS = (False, True, True, True)  # random or not


def _l2_pgd(
    detector: Any,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    domain: tuple[float, float] | None,
    seed: int,
) -> np.ndarray:
    import eagerpy
    import foolbox
    import tensorflow as tf

    sign = tf.constant(direction, tf.float32)

    def raised(x: Any) -> Any:
        return tf.reduce_sum(sign * tf.cast(detector.tensorflow_score(x), tf.float32))

    @tf.function(jit_compile=getattr(detector, "xla", False))
    def gradient(x: Any) -> tuple[Any, Any]:
        """As a graph: an eager tape takes the gradient of the network's weights as well."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            total = raised(x)
        return total, tape.gradient(total, x)

    class OnScore(foolbox.attacks.L2ProjectedGradientDescentAttack):
        """Raises ``direction * score`` instead of a cross-entropy."""

        def get_loss_fn(self, model: Any, labels: Any) -> Any:
            return lambda inputs: eagerpy.astensor(raised(inputs.raw))

        def value_and_grad(self, loss_fn: Any, x: Any) -> Any:
            return tuple(map(eagerpy.astensor, gradient(x.raw)))

    tf.random.set_seed(seed)  # Foolbox draws its random starts from the global generator
    # Steps this small do not undo a random start; where the gradient hardly turns, X itself is the best one.
    attacks = [OnScore(rel_stepsize=0.025, steps=50, random_start=start) for start in STARTS]
    # The bounds only clip; the model is not called, as the loss above is the detector's own score.
    model = foolbox.TensorFlowModel(lambda x: x, bounds=domain or (-np.inf, np.inf))
    inputs = tf.constant(X, dtype=tf.float32)
    labels = foolbox.criteria.Misclassification(tf.zeros(len(X), dtype=tf.int32))
    return np.stack([attack.run(model, inputs, labels, epsilon=radius).numpy() for attack in attacks]).astype(
        np.float64
    )


ATTACKS.add(
    Attack(
        "l2-pgd",
        _l2_pgd,
        needs="tensorflow_score",
        source="Foolbox L2ProjectedGradientDescentAttack (Rauber et al., 2020): 50 steps of 0.025 radius, "
        "as in Béthune et al., ICML 2023, and Foolbox's default; from the row and from three random points",
        preload=("tensorflow", "foolbox"),
    )
)
