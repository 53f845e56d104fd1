"""Speed of a training step and of scoring, against bare matrix products, the official style and IForest.

    python benchmarks/speed/speed.py [--rounds 20] [--threads 1] [--width 512]

Every round runs all competitors one after the other, so that a busy machine slows them alike; the table
shows the median CPU time of the process, and of each ratio its median over rounds. Nothing here is a test:
ratios on a shared machine move by 15 %.
"""

import argparse
import importlib.util
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rounds", type=int, default=20)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--rows", type=int, default=20_480, help="that are scored, whole parts of 1,024")
ARGUMENTS = parser.parse_args()
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # deel-lip 1.5 is Keras 2
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ[name] = str(ARGUMENTS.threads)

import numpy as np  # noqa: E402

from ocsdf import OCSDF, Box, build, dense  # noqa: E402
from ocsdf._numpy_engine import NumpyEngine  # noqa: E402
from ocsdf._train import Recipe, _Loop  # noqa: E402

FEATURES, BATCH, STEPS, DEPTH = 21, 128, 4, 4
CHUNK = 1024  # rows that the products of the scoring limit take at a time
Step = Callable[[], object]


def products(width: int, dtype: str = "float32") -> Step:
    """The matrix products of one step and nothing else: T value-and-gradients, one loss and its gradients."""
    rng = np.random.default_rng(0)
    sizes = [FEATURES, *[width] * DEPTH, 1]
    kernels = [rng.normal(size=shape).astype(dtype) for shape in zip(sizes, sizes[1:], strict=False)]
    values = {n: [rng.normal(size=(n, size)).astype(dtype) for size in sizes] for n in (BATCH, 2 * BATCH)}

    def sweep(n: int, weights: bool) -> None:
        for kernel, x in zip(kernels, values[n], strict=False):
            x @ kernel
        for i in range(len(kernels) - 1, -1, -1):
            if weights:
                values[n][i].T @ values[n][i + 1]
            if i or not weights:
                values[n][i + 1] @ kernels[i].T

    def step() -> None:
        for _ in range(STEPS):
            sweep(BATCH, weights=False)
        sweep(2 * BATCH, weights=True)

    return step


def ours(width: int, sort: int | None, mixed: bool = False) -> Step:
    """A step of this library's loop: negatives, loss, update, retraction."""
    from ocsdf._mixed_engine import MixedEngine

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, FEATURES)).astype("float32")
    net = build(dense([width] * DEPTH, sort), rows, rng=rng).astype("float32")
    recipe = Recipe(
        margin=0.05, weight=100.0, negatives="newton", domain=Box(-5.0, 5.0), updates=10**9, steps=STEPS,
        level=-0.05, batch_size=BATCH, learning_rate=5e-4, learning_rate_end=5e-4,
    )  # fmt: skip
    engine = MixedEngine(net) if mixed else NumpyEngine(net)
    loop = _Loop(engine, rows, recipe, rng, lambda update, history: None)
    return lambda: loop.step(loop.negatives())


def official(width: int, full: bool) -> Step:
    """The step of the authors' code: free weights, projected on every forward pass that trains."""
    import tensorflow as tf
    from deel.lip.activations import FullSort, GroupSort2
    from deel.lip.layers import SpectralDense
    from deel.lip.model import Sequential
    from tf_keras.layers import Input
    from tf_keras.optimizers import RMSprop

    layers = [Input((FEATURES,))]
    for _ in range(DEPTH):
        layers += [SpectralDense(width), FullSort() if full else GroupSort2()]
    model, optimizer = Sequential([*layers, SpectralDense(1)]), RMSprop(5e-4)
    rows = tf.constant(np.random.default_rng(0).normal(size=(BATCH, FEATURES)), tf.float32)

    def negatives() -> tf.Tensor:
        z = tf.random.uniform((BATCH, FEATURES), -5.0, 5.0)
        fraction = tf.random.uniform((BATCH, 1)) / STEPS
        for t in range(STEPS):
            with tf.GradientTape() as tape:
                tape.watch(z)
                value = model(z, training=t == 0)
            slope = tape.gradient(value, z)
            square = tf.reduce_sum(slope**2, axis=1, keepdims=True)
            z = tf.clip_by_value(z - fraction * (value + 0.05) * slope / (square + 1e-9), -5.0, 5.0)
        return z

    @tf.function
    def step() -> tf.Tensor:
        z = negatives()
        with tf.GradientTape() as tape:
            inside, outside = model(rows, training=True), model(z, training=True)
            hinge = tf.nn.relu(0.05 - inside) + tf.nn.relu(0.05 + outside)
            loss = tf.reduce_mean(100.0 * hinge - inside + outside)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    return lambda: step().numpy()


def scorers(rows: int, width: int = 128) -> dict[str, Step]:
    """Scoring of the same rows: this library in float64 and float32, their products, IForest."""
    from sklearn.ensemble import IsolationForest

    X = np.random.default_rng(0).normal(size=(rows, FEATURES))
    found: dict[str, Step] = {
        "IForest, 100 trees": _bound(IsolationForest(random_state=0).fit(X).score_samples, X)
    }
    sizes = [FEATURES, *[width] * DEPTH, 1]
    for dtype in ("float64", "float32"):
        kernels = [np.ones(shape, dtype) for shape in zip(sizes, sizes[1:], strict=False)]
        parts = [np.ones((CHUNK, size), dtype) for size in sizes]
        found[f"products, {dtype}"] = _chain(kernels, parts, rows // CHUNK)
        for sort in (2, None):
            model = OCSDF(network=dense([width] * DEPTH, sort), n_networks=1, max_steps=0).fit(X[:1000])
            model.net_ = model.net_.astype(dtype)
            name = "GroupSort2" if sort == 2 else "FullSort"
            found[f"OCSDF, {name}, {dtype}"] = _bound(model.score_samples, X)
    return found


def _chain(kernels: list[np.ndarray], parts: list[np.ndarray], times: int) -> Step:
    """The products of as many parts, none of which is kept."""

    def step() -> None:
        for _ in range(times):
            for x, kernel in zip(parts, kernels, strict=False):
                x @ kernel

    return step


def _bound(function: Callable[[np.ndarray], np.ndarray], X: np.ndarray) -> Step:
    return lambda: function(X)


def measure(steps: dict[str, Step], rounds: int) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """CPU seconds (rounds,) of each, alternating, and the wall seconds of each first call."""
    first, seconds = {}, {name: np.empty(rounds) for name in steps}
    for name, step in steps.items():
        start = time.perf_counter()
        step()
        first[name] = time.perf_counter() - start
        step()
    for i in range(rounds):
        for name, step in steps.items():
            start = time.process_time()
            step()
            seconds[name][i] = time.process_time() - start
    return seconds, first


def ratio(seconds: dict[str, np.ndarray], name: str, other: str) -> float:
    """Median over rounds of one time over the other of the same round."""
    return float(np.median(seconds[name] / seconds[other]))


def report_steps(rounds: int, width: int) -> None:
    steps = {"products": products(width), "FullSort": ours(width, None), "GroupSort2": ours(width, 2)}
    steps["GroupSort2, mixed"] = ours(width, 2, mixed=True)
    if importlib.util.find_spec("deel") is None:
        print("official style: skipped, needs pip install 'ocsdf-core[deel-lip]'\n")
    else:
        steps |= {"official FullSort": official(width, True), "official GroupSort2": official(width, False)}
    seconds, first = measure(steps, rounds)
    setting = f"d = {FEATURES}, width {width}, batch {BATCH}, T = {STEPS}"
    print(f"| step: {setting} | ms | x products | official / this | first call, s |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in steps:
        rival = f"official {name.removesuffix(', mixed')}"
        gain = f"{ratio(seconds, rival, name):.1f}" if rival in steps else ""
        print(
            f"| {name} | {1e3 * np.median(seconds[name]):.1f} | {ratio(seconds, name, 'products'):.2f} "
            f"| {gain} | {first[name]:.1f} |"
        )


def report_scoring(rounds: int, rows: int) -> None:
    steps = scorers(rows)
    seconds, _ = measure(steps, rounds)
    print("\n| scoring, width 128 | thousand rows/s | of the products' rate | x IForest |")
    print("| --- | ---: | ---: | ---: |")
    for name in steps:
        share = (
            "" if "OCSDF" not in name else f"{ratio(seconds, 'products, ' + name.split(', ')[-1], name):.2f}"
        )
        faster = ratio(seconds, "IForest, 100 trees", name)
        print(f"| {name} | {rows / 1e3 / np.median(seconds[name]):.0f} | {share} | {faster:.1f} |")


def hardware() -> str:
    """Processor, threads and libraries, in a line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.processor())
    return f"{model}, {ARGUMENTS.threads} thread(s), NumPy {np.__version__}"


if __name__ == "__main__":
    print(hardware() + "\n")
    report_steps(ARGUMENTS.rounds, ARGUMENTS.width)
    report_scoring(max(3, ARGUMENTS.rounds // 4), ARGUMENTS.rows)
