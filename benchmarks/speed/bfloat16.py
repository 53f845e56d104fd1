"""What bfloat16 would save in the Newton steps of the negatives, and what it would do to their directions.

    python benchmarks/speed/bfloat16.py [--rounds 20] [--threads 1] [--width 512]

Every round runs a float32 step of this library, its bare products, and one value and input gradient in
NumPy's float32, TensorFlow's float32 and TensorFlow's bfloat16, one after the other; the table shows medians
of CPU times, and of ratios within a round. A step whose Newton steps are in bfloat16 is estimated from them.
The cosines compare input gradients in bfloat16 with those in float64 at the same points.
"""

from collections.abc import Callable

import speed  # first: it sets the threads

# isort: split
import numpy as np
import tensorflow as tf

from ocsdf import GroupSort, LipschitzNet, build, dense, vgg
from ocsdf._numpy_engine import NumpyEngine

SIZE = 28


def gradient_in(net: LipschitzNet, dtype: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """Input gradient of one network, compiled; weights, activations and slopes in ``dtype``."""
    weights = [{k: tf.cast(tf.constant(v), dtype) for k, v in params.items()} for params in net.params]
    # As the TensorFlow engine: XLA for the pairs' sorts, oneDNN, which has bfloat16 products, for the rest.
    passes = [tf.function(f.tensor, jit_compile=True) if f == GroupSort(2) else f.tensor for f in net.layers]

    @tf.function
    def gradient(x: tf.Tensor) -> tf.Tensor:
        z = tf.cast(x, dtype)[None]
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = z
            for through, params in zip(passes, weights, strict=True):
                y = through(params, y)
        return tf.cast(tape.gradient(y, z)[0], tf.float32)

    return gradient


def cosine(net: LipschitzNet, x: np.ndarray) -> float:
    """Mean cosine of the input gradients in bfloat16 with those in float64."""
    rough = gradient_in(net, "bfloat16")(tf.constant(x, tf.float32)).numpy().reshape(len(x), -1)
    exact = net.value_and_gradient(x)[1].reshape(len(x), -1)
    norms = np.linalg.norm(rough, axis=1) * np.linalg.norm(exact, axis=1)
    return float(np.mean((rough * exact).sum(axis=1) / norms))


def report(net: LipschitzNet, rows: np.ndarray) -> None:
    """Print the times and the estimate, GroupSort2."""
    single, x = net.astype("float32"), rows[: speed.BATCH].astype(np.float32)
    engine, point = NumpyEngine(single), tf.constant(x)
    fine, rough = (gradient_in(single, dtype) for dtype in ("float32", "bfloat16"))
    steps: dict[str, speed.Step] = {
        "products of a step": speed.products(speed.ARGUMENTS.width),
        "step, float32": speed.ours(speed.ARGUMENTS.width, 2),
        "value and gradient, NumPy float32": lambda: engine.value_and_gradient(x[None]),
        "value and gradient, TensorFlow float32": lambda: fine(point).numpy(),
        "value and gradient, TensorFlow bfloat16": lambda: rough(point).numpy(),
    }
    seconds, _ = speed.measure(steps, speed.ARGUMENTS.rounds)
    setting = f"width {speed.ARGUMENTS.width}, batch {speed.BATCH}, T = {speed.STEPS}"
    print(f"| GroupSort2, {setting} | ms | x products |\n| --- | ---: | ---: |")
    floor, whole, numpy, _, fast = seconds.values()
    for name, measured in seconds.items():
        print(f"| {name} | {1e3 * np.median(measured):.1f} | {np.median(measured / floor):.2f} |")
    mixed = whole + speed.STEPS * (fast - numpy)
    print(f"| step, Newton steps in bfloat16: estimate | | {np.median(mixed / floor):.2f} |")


def main() -> None:
    """Print one table of times and one of cosines."""
    rng = np.random.default_rng(0)
    rows, hidden = rng.normal(size=(2000, speed.FEATURES)), [speed.ARGUMENTS.width] * speed.DEPTH
    report(build(dense(hidden), rows, rng=rng), rows)
    images = rng.uniform(size=(32, SIZE, SIZE))
    print("\n| fresh network | cosine of input gradients, bfloat16 with float64 |\n| --- | ---: |")
    for name, size in {"GroupSort2": 2, "GroupSort8": 8, "FullSort": None}.items():
        net = build(dense(hidden, size), rows, rng=rng)
        print(f"| dense, {name} | {cosine(net, rows[: speed.BATCH]):.3f} |")
    for kernel in ("isometric", "orthogonal"):
        print(f"| vgg(0.125), {kernel} | {cosine(build(vgg(0.125, kernel), images, rng=rng), images):.3f} |")


if __name__ == "__main__":
    main()
