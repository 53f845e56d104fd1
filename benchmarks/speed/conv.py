"""Speed of a training step of the network of images, against its bare convolutions.

    python benchmarks/speed/conv.py [--rounds 5] [--threads 1] [--width 0.25] [--batch 32]

Both sides run one after the other in every round, so that a busy machine slows them alike; the table shows
the median CPU time of the process and the median ratio. Nothing here is a test: ratios on a shared machine
move by 15 %.
"""

import argparse
import os
import time
from collections.abc import Callable

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--width", type=float, default=0.25)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--kernel", default="isometric")
ARGUMENTS = parser.parse_args()
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ[name] = str(ARGUMENTS.threads)

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from ocsdf import Box, Conv2D, LipschitzNet, build, vgg  # noqa: E402
from ocsdf._tensorflow_engine import TensorflowEngine  # noqa: E402
from ocsdf._train import Recipe, _Loop  # noqa: E402

STEPS, SIZE = 4, 28
Step = Callable[[], object]


def training(net: LipschitzNet, batch: int) -> Step:
    """One update: the negatives' Newton steps, loss, gradients, optimiser and constraints."""
    rows = np.random.default_rng(0).uniform(size=(4 * batch, SIZE, SIZE)).astype(np.float32)
    recipe = Recipe(0.4, 100.0, "newton", Box(0.0, 1.0), updates=10_000, batch_size=batch, steps=STEPS)
    engine = TensorflowEngine(net.astype("float32"))
    loop = _Loop(engine, rows, recipe, np.random.default_rng(1), lambda update, history: None)
    return lambda: loop.step(loop.negatives())


def convolutions(net: LipschitzNet, batch: int) -> Step:
    """The convolutions of one update and nothing else: T value-and-gradients, one loss and its gradients."""
    shapes, sample = [], np.zeros((1, 1, SIZE, SIZE))
    for layer, params in zip(net.layers, net.params, strict=True):
        if isinstance(layer, Conv2D):
            shapes.append((sample.shape[2:], params["kernel"][0].astype(np.float32)))
        sample, _ = layer.forward(params, sample)
    rng = np.random.default_rng(0)

    def images(n: int, size: tuple[int, ...]) -> tf.Tensor:
        return tf.constant(rng.normal(size=(n, *size)), tf.float32)

    pairs = {
        n: [(images(n, size), images(n, (*size[:2], kernel.shape[-1]))) for size, kernel in shapes]
        for n in (batch, 2 * batch)
    }
    kernels = [tf.constant(kernel) for _, kernel in shapes]

    def sweep(n: int, weights: bool) -> list[tf.Tensor]:
        results = []
        for i, ((x, y), kernel) in enumerate(zip(pairs[n], kernels, strict=True)):
            places = {"strides": [1, 1, 1, 1], "padding": "SAME"}
            results.append(tf.raw_ops.Conv2D(input=x, filter=kernel, **places))
            if i or not weights:
                results.append(
                    tf.raw_ops.Conv2DBackpropInput(
                        input_sizes=tf.shape(x), filter=kernel, out_backprop=y, **places
                    )
                )
            if weights:
                results.append(
                    tf.raw_ops.Conv2DBackpropFilter(
                        input=x, filter_sizes=tf.shape(kernel), out_backprop=y, **places
                    )
                )
        return results

    newton, loss = (tf.function(lambda n=n, w=w: sweep(n, w)) for n, w in ((batch, False), (2 * batch, True)))

    def step() -> None:
        for _ in range(STEPS):
            newton()
        loss()

    return step


def main() -> None:
    """Print the first call, the medians and their ratio."""
    batch = ARGUMENTS.batch
    layers = vgg(ARGUMENTS.width, kernel=ARGUMENTS.kernel)
    net = build(layers, np.zeros((1, SIZE, SIZE)), rng=np.random.default_rng(0))
    sides = {"training step": training(net, batch), "its convolutions": convolutions(net, batch)}
    for name, step in sides.items():
        start = time.process_time()
        step()
        print(f"{name}: first call {time.process_time() - start:.1f} s CPU")
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ARGUMENTS.rounds):
        for name, step in sides.items():
            start = time.process_time()
            step()
            seconds[name].append(time.process_time() - start)
    for name, measured in seconds.items():
        print(f"{name}: {1e3 * np.median(measured):.0f} ms CPU")
    ours, floor = (np.array(measured) for measured in seconds.values())
    print(f"ratio: {np.median(ours / floor):.2f}")


if __name__ == "__main__":
    main()
