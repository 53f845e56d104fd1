"""TensorFlow computes what NumPy computes, and the score as a tensor function is the score."""

import numpy as np
import pytest

from ocsdf import (
    OCSDF,
    AveragePool,
    Channels,
    Conv2D,
    Dense,
    DownSample,
    Flatten,
    GroupSort,
    Residual,
    build,
    dense,
    references,
    vgg,
)
from ocsdf._numpy_engine import NumpyEngine

NETWORKS = {
    "groupsort2": dense((16, 16)),
    "fullsort": dense((12,), sort=None),
    "uneven groups": dense((10,), sort=4),
    "references": references(trim=0.1),
}


IMAGES = {
    "vgg": vgg(width=1 / 16),
    "orthogonal, circular": vgg(width=1 / 32, kernel="orthogonal", padding="circular"),
    "residual": (
        Channels(),
        DownSample(2),
        Residual((Conv2D(4), GroupSort(2))),
        Conv2D(6, stride=2),
        GroupSort(3),
        AveragePool(2),
        Flatten(),
        Dense(1),
    ),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def network(name, shape, rng):
    net = build({**NETWORKS, **IMAGES}[name], rng.normal(size=(40, *shape)), members=2, rng=rng)
    if name == "references":  # rows that share their neighbours share a reference: a tie that either may take
        net.params[0]["points"] += rng.normal(size=net.params[0]["points"].shape) / 100
    return net


@pytest.mark.parametrize("name", [*NETWORKS, *IMAGES])
def test_both_engines_have_the_same_gradients(name, rng):
    from ocsdf._tensorflow_engine import TensorflowEngine

    shape = (12, 16) if name in IMAGES else (5,)  # 3 x 4 after both poolings: the least that wraps around
    net = network(name, shape, rng).astype("float32")
    numpy, tensorflow = NumpyEngine(net), TensorflowEngine(net)
    normal, negative = rng.normal(size=(2, 2, 16, *shape)).astype(np.float32) * 2
    for ours, theirs in zip(
        numpy.value_and_gradient(normal), tensorflow.value_and_gradient(normal), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    settings = (0.5, 10.0, 3)
    loss, value, gradients = numpy.loss_and_gradient(normal, negative, *settings)
    other_loss, other_value, other_gradients = tensorflow.loss_and_gradient(normal, negative, *settings)
    np.testing.assert_allclose(loss, other_loss, rtol=1e-5)
    np.testing.assert_allclose(value, other_value, atol=1e-5)
    for ours, theirs in zip(gradients, other_gradients, strict=True):
        assert set(ours) == set(theirs)
        for key, array in ours.items():
            # Sums of thousands of float32 products that the weight of the hinge makes ten times as large.
            np.testing.assert_allclose(array, theirs[key], atol=1e-4 * max(1.0, np.abs(array).max()))


@pytest.mark.parametrize("name", [*NETWORKS, *IMAGES])
def test_in_float64_both_engines_have_the_same_weight_gradients_to_nine_digits(name, rng):
    from ocsdf._tensorflow_engine import TensorflowEngine

    shape = (12, 16) if name in IMAGES else (5,)
    net = network(name, shape, rng)
    normal, negative = rng.normal(size=(2, 2, 16, *shape)) * 2
    numpy, tensorflow = (
        e(net).loss_and_gradient(normal, negative, 0.5, 10.0, 3)[2] for e in (NumpyEngine, TensorflowEngine)
    )
    for ours, theirs in zip(numpy, tensorflow, strict=True):
        for key, array in ours.items():
            np.testing.assert_allclose(array, theirs[key], atol=1e-9 * max(1.0, np.abs(array).max()))


def test_slopes_at_ties_are_those_of_numpy_which_permutes_them(rng):
    """Flat backgrounds tie in every pair: two slopes that both went to one side would be too steep."""
    import tensorflow as tf

    from ocsdf._tensorflow_engine import TensorflowEngine

    net = build((Dense(6), GroupSort(2), Dense(1)), np.zeros((1, 6)), rng=rng).astype("float32")
    rows = np.zeros((1, 4, 6), np.float32)
    _, slope = TensorflowEngine(net).value_and_gradient(rows)
    np.testing.assert_allclose(slope, NumpyEngine(net).value_and_gradient(rows)[1], atol=1e-6)
    assert np.linalg.norm(slope, axis=-1).max() <= 1 + 1e-6
    x = tf.zeros((1, 1, 6))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = GroupSort(2).tensor({}, x)
    weights = tf.constant(np.arange(6.0), tf.float32)
    np.testing.assert_array_equal(np.sort(tape.gradient(y, x, weights[None, None])[0, 0]), weights)


def test_both_engines_train_to_the_same_detector(rng):
    X = rng.normal(size=(100, 3))
    numpy, tensorflow = (
        OCSDF(hidden=(8, 8), max_steps=5, random_state=0, engine=engine).fit(X)
        for engine in ("numpy", "tensorflow")
    )
    np.testing.assert_allclose(numpy.score_samples(X), tensorflow.score_samples(X), atol=1e-3)


@pytest.mark.parametrize("settings", [{}, {"hidden": (8,), "max_steps": 3, "outside": "anomalous"}])
def test_the_tensor_function_is_the_score_and_its_gradient(settings, rng):
    import tensorflow as tf

    X = rng.normal(size=(60, 3)) * [1.0, 10.0, 0.1]
    model = OCSDF(random_state=0, **settings).fit(X)
    score, x = model.to_tensorflow(), tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = score(x)
    np.testing.assert_allclose(value, model.score_samples(X), atol=1e-9)
    np.testing.assert_allclose(tape.gradient(value, x), model.input_gradient(X), atol=1e-8)
    assert score(tf.constant(X, tf.float32)).dtype == tf.float32
