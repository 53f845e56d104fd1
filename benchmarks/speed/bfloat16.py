"""What bfloat16 does to the direction of input gradients, which the negatives walk along.

    python benchmarks/speed/bfloat16.py

Cosines of input gradients with those in float64 at the same points, fresh networks: of engine "mixed", and of
networks that would compute in bfloat16 throughout.
"""

import os
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from ocsdf import LipschitzNet, build, dense, vgg  # noqa: E402
from ocsdf._mixed_engine import MixedEngine  # noqa: E402

FEATURES, ROWS, HIDDEN, SIZE = 21, 128, (512, 512, 512, 512), 28
Gradient = Callable[[np.ndarray], np.ndarray]


def throughout(net: LipschitzNet) -> Gradient:
    """Input gradient with weights, activations and slopes in bfloat16."""
    low = net.astype("float32")
    weights = [{k: tf.cast(tf.constant(v), tf.bfloat16) for k, v in p.items()} for p in low.params]

    def gradient(x: np.ndarray) -> np.ndarray:
        z = tf.cast(tf.constant(x), tf.bfloat16)[None]
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = z
            for layer, params in zip(low.layers, weights, strict=True):
                y = layer.tensor(params, y)
        return tf.cast(tape.gradient(y, z)[0], tf.float32).numpy()

    return gradient


def mixed(net: LipschitzNet) -> Gradient:
    """Input gradient of engine "mixed"."""
    engine = MixedEngine(net.astype("float32"))
    return lambda x: engine.value_and_gradient(x[None].astype(np.float32))[1][0]


def cosine(net: LipschitzNet, x: np.ndarray, rough: Gradient) -> float:
    """Mean cosine with the gradients in float64."""
    ours, exact = (g.reshape(len(x), -1) for g in (rough(x), net.value_and_gradient(x)[1]))
    norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(exact, axis=1)
    return float(np.mean((ours * exact).sum(axis=1) / norms))


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    rows, images = rng.normal(size=(ROWS, FEATURES)), rng.uniform(size=(32, SIZE, SIZE))
    print("| network | cosine with float64 |\n| --- | ---: |")
    for name, size in {"GroupSort2": 2, "GroupSort8": 8, "FullSort": None}.items():
        net = build(dense(HIDDEN, size), rows, rng=rng)
        if size == 2:
            print(f'| dense, {name}, engine "mixed" | {cosine(net, rows, mixed(net)):.4f} |')
        print(f"| dense, {name}, bfloat16 throughout | {cosine(net, rows, throughout(net)):.3f} |")
    for kernel in ("isometric", "orthogonal"):
        net = build(vgg(0.125, kernel), images, rng=rng)
        print(f"| vgg(0.125), {kernel}, bfloat16 throughout | {cosine(net, images, throughout(net)):.3f} |")


if __name__ == "__main__":
    main()
