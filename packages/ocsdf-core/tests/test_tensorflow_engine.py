"""TensorFlow computes what NumPy computes, and the score as a tensor function is the score."""

import numpy as np
import pytest

from ocsdf import OCSDF, build, dense, references
from ocsdf._numpy_engine import NumpyEngine

NETWORKS = {
    "groupsort2": dense((16, 16)),
    "fullsort": dense((12,), sort=None),
    "uneven groups": dense((10,), sort=4),
    "references": references(trim=0.1),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", NETWORKS)
def test_both_engines_have_the_same_gradients(name, rng):
    from ocsdf._tensorflow_engine import TensorflowEngine

    rows = rng.normal(size=(40, 5))
    net = build(NETWORKS[name], rows, members=2, rng=rng).astype("float32")
    numpy, tensorflow = NumpyEngine(net), TensorflowEngine(net)
    normal, negative = rng.normal(size=(2, 2, 16, 5)).astype(np.float32) * 2
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
            np.testing.assert_allclose(array, theirs[key], atol=2e-5)  # sums of 32 float32 products


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
