"""Mixed precision points where float32 points, keeps the constraint, and is refused where it would not."""

import numpy as np
import pytest

from ocsdf import OCSDF, Dense, GroupSort, build, dense
from ocsdf._numpy_engine import NumpyEngine

SETTINGS = (0.5, 10.0, 3)  # margin, weight, trimmed normals


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    net = build(dense((32, 32, 16, 16)), np.zeros((1, 5)), members=2, rng=rng)
    for params in net.params[::2]:
        params["bias"] += rng.normal(size=params["bias"].shape) / 10
    return net.astype("float32"), rng.normal(size=(2, 2, 16, 5)).astype(np.float32)


def cosine(a, b):
    return float((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))


def test_with_float32_products_it_is_the_float32_engine(pair):
    from ocsdf._mixed_engine import MixedEngine

    net, (normal, negative) = pair
    numpy, same = NumpyEngine(net), MixedEngine(net, low="float32")
    for ours, theirs in zip(numpy.value_and_gradient(normal), same.value_and_gradient(normal), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    loss, value, gradients = numpy.loss_and_gradient(normal, negative, *SETTINGS)
    other_loss, other_value, others = same.loss_and_gradient(normal, negative, *SETTINGS)
    np.testing.assert_allclose(loss, other_loss, rtol=1e-5)
    np.testing.assert_allclose(value, other_value, atol=1e-5)
    for ours, theirs in zip(gradients, others, strict=True):
        assert set(ours) == set(theirs)
        for key, array in ours.items():
            np.testing.assert_allclose(array, theirs[key], atol=1e-5 * max(1.0, np.abs(array).max()))


def test_in_bfloat16_gradients_keep_their_direction(pair):
    from ocsdf._mixed_engine import MixedEngine

    net, (normal, negative) = pair
    numpy, mixed = NumpyEngine(net), MixedEngine(net)
    value, slope = numpy.value_and_gradient(normal)
    other, other_slope = mixed.value_and_gradient(normal)
    assert 0 < np.abs(value - other).max() < 0.05
    assert cosine(slope, other_slope) > 0.98
    *_, gradients = numpy.loss_and_gradient(normal, negative, *SETTINGS)
    *_, others = mixed.loss_and_gradient(normal, negative, *SETTINGS)
    for ours, theirs in zip(gradients, others, strict=True):
        for key, array in ours.items():
            assert cosine(array, theirs[key]) > 0.98


def test_a_detector_of_mixed_precision_is_as_certified_as_any():
    X = np.random.default_rng(1).normal(size=(200, 5))
    X[:10] += 6
    exact, mixed = (
        OCSDF(hidden=(32, 32, 32), max_steps=60, random_state=0, engine=engine).fit(X)
        for engine in ("numpy", "mixed")
    )
    assert mixed.net_.dtype == np.float64
    assert 1 <= mixed.lipschitz_ < 1 + 1e-9
    assert np.corrcoef(exact.score_samples(X), mixed.score_samples(X))[0, 1] > 0.98


@pytest.mark.parametrize(
    "params", [{"activation": "fullsort"}, {"activation": "groupsort4"}, {"hidden": (9, 8)}, {"hidden": None}]
)
def test_other_networks_are_refused_in_a_sentence(params):
    detector = OCSDF(hidden=(8, 8), max_steps=2, engine="mixed").set_params(**params)
    with pytest.raises(ValueError, match="`engine` of OCSDF must be 'auto', 'numpy' or 'tensorflow' for"):
        detector.fit(np.random.default_rng(2).normal(size=(20, 3)))


def test_a_layer_between_the_sorts_is_refused():
    from ocsdf._mixed_engine import MixedEngine

    layers = (Dense(4), GroupSort(2), Dense(4), Dense(1))
    net = build(layers, np.zeros((1, 3)), rng=np.random.default_rng(3)).astype("float32")
    with pytest.raises(ValueError, match="`engine` of OCSDF"):
        MixedEngine(net)
