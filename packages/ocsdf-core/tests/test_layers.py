"""Each layer's passes agree with central differences, and TensorFlow computes the same forward pass."""

import numpy as np
import pytest

from ocsdf._conv import Conv2D
from ocsdf._layers import Dense, GroupSort
from ocsdf._pool import AveragePool, L2NormPool
from ocsdf._residual import Residual
from ocsdf._shape import Channels, DownSample, Flatten

MEMBERS, ROWS, STEP = 2, 3, 1e-6
CASES = {
    "wide dense": (Dense(7), 4),
    "narrow dense": (Dense(3), 6),
    "maxmin": (GroupSort(2), 6),
    "maxmin, odd width": (GroupSort(2), 5),
    "groups of three": (GroupSort(3), 6),
    "groups of four, a smaller last one": (GroupSort(4), 6),
    "a group wider than the layer": (GroupSort(9), 4),
    "fullsort": (GroupSort(None), 6),
    "convolution": (Conv2D(3), (4, 5, 2)),
    "orthogonal convolution": (Conv2D(3, kernel="orthogonal"), (4, 5, 2)),
    "stride 2, even size": (Conv2D(3, stride=2), (4, 6, 2)),
    "stride 2, odd size": (Conv2D(3, stride=2, kernel="orthogonal"), (5, 3, 2)),
    "circular": (Conv2D(2, padding="circular"), (3, 4, 2)),
    "circular, stride 2": (Conv2D(4, padding="circular", stride=2, kernel="orthogonal"), (4, 6, 1)),
    "even kernel": (Conv2D(2, size=2, padding="circular"), (4, 3, 2)),
    "valid": (Conv2D(2, padding="valid", stride=2), (5, 6, 2)),
    "kernel larger than the image": (Conv2D(2, size=5), (2, 3, 1)),
    "norm pooling": (L2NormPool(2), (4, 6, 2)),
    "norm pooling, odd size": (L2NormPool(2), (5, 3, 2)),
    "norm pooling, odd size dropped": (L2NormPool(2, padding="valid"), (5, 3, 2)),
    "global norm pooling": (L2NormPool(None), (3, 4, 2)),
    "average pooling": (AveragePool(2), (4, 6, 2)),
    "average pooling, odd size": (AveragePool(3), (5, 3, 2)),
    "average pooling, odd size dropped": (AveragePool(2, padding="valid"), (5, 3, 2)),
    "global average pooling": (AveragePool(None), (3, 4, 2)),
    "grey images": (Channels(), (3, 4)),
    "colour images": (Channels(), (3, 4, 2)),
    "flatten": (Flatten(), (3, 2, 2)),
    "down-sampling": (DownSample(2), (4, 6, 3)),
    "residual of images": (Residual((Conv2D(2), GroupSort(2), Conv2D(2, size=1))), (3, 4, 2)),
    "residual of a residual": (Residual((Residual((Dense(4),)), GroupSort(2))), 4),
}


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def case(request):
    layer, shape = request.param
    rng = np.random.default_rng(0)
    x = rng.normal(size=(MEMBERS, ROWS, *np.atleast_1d(shape)))
    params = {name: array + 0.1 for name, array in layer.init(rng, MEMBERS, x).items()}
    return layer, params, x, rng


def differences(function, array):
    """Central differences of a scalar function with respect to each entry of ``array``."""
    result = np.empty_like(array)
    for index in np.ndindex(array.shape):
        up, down = array.copy(), array.copy()
        up[index] += STEP
        down[index] -= STEP
        result[index] = (function(up) - function(down)) / (2 * STEP)
    return result


def test_backward_is_the_gradient_with_respect_to_the_input(case):
    layer, params, x, rng = case
    y, saved = layer.forward(params, x)
    slope = rng.normal(size=y.shape)
    expected = differences(lambda z: (slope * layer.forward(params, z)[0]).sum(), x)
    # Where layers are linear, what is left is rounding, 1e-16 over a step of 1e-6.
    np.testing.assert_allclose(layer.backward(params, saved, slope), expected, atol=1e-8)


def test_gradient_is_the_one_with_respect_to_the_weights(case):
    layer, params, x, rng = case
    y, saved = layer.forward(params, x)
    slope = rng.normal(size=y.shape)
    gradient = layer.gradient(params, saved, slope)
    assert set(gradient) == set(params)
    for name, array in params.items():
        expected = differences(
            lambda w, name=name: (slope * layer.forward({**params, name: w}, x)[0]).sum(), array
        )
        np.testing.assert_allclose(gradient[name], expected, atol=1e-8)


def test_tensor_is_the_forward_pass(case):
    import tensorflow as tf

    layer, params, x, _ = case
    tensors = {name: tf.constant(array, tf.float32) for name, array in params.items()}
    y = layer.tensor(tensors, tf.constant(x, tf.float32))
    np.testing.assert_allclose(y, layer.forward(params, x)[0], atol=1e-5)  # float32 against float64


def test_no_pair_of_inputs_is_steeper_than_the_proven_constant_of_any_weights(case):
    layer, params, x, rng = case
    bound = layer.lipschitz(params, x.shape[2:])
    for scale in (1e-3, 1.0, 1e3):
        other = x + scale * rng.normal(size=x.shape)
        change = layer.forward(params, other)[0] - layer.forward(params, x)[0]
        lengths = [np.linalg.norm(a.reshape(MEMBERS, ROWS, -1), axis=2) for a in (change, other - x)]
        assert np.all(lengths[0] <= bound[:, None] * lengths[1] * (1 + 1e-12))


def test_float32_is_within_the_rounding_bound_of_float64(case):
    layer, params, x, _ = case
    single = {name: array.astype("f4") for name, array in params.items()}
    exact = {name: array.astype("f8") for name, array in single.items()}
    for scale in (0.0, 1e-21, 1.0, 1e3):
        rows = (scale * x).astype("f4")
        error = layer.forward(single, rows)[0] - layer.forward(exact, rows.astype("f8"))[0]
        slope, offset = layer.rounding(single, x.shape[2:], np.float32)
        norms = [np.linalg.norm(a.reshape(MEMBERS, ROWS, -1).astype("f8"), axis=2) for a in (error, rows)]
        assert np.all(norms[0] <= slope * norms[1] + offset)


def test_fresh_and_finished_weights_are_on_the_constraint_with_a_constant_near_one(case):
    layer, _, x, rng = case
    fresh = layer.init(rng, MEMBERS, x)
    still = {name: np.zeros_like(array) for name, array in fresh.items()}
    for params in (fresh, layer.move(fresh, still, True), layer.finish(fresh)):
        assert {name: array.shape for name, array in params.items()} == {
            name: array.shape for name, array in fresh.items()
        }
        assert np.all(layer.lipschitz(params, x.shape[2:]) <= 1 + 1e-8)


def test_one_set_of_rows_is_read_by_all_members(case):
    layer, params, x, _ = case
    shared = layer.forward(params, x[:1])[0]
    each = layer.forward(params, np.repeat(x[:1], MEMBERS, axis=0))[0]
    np.testing.assert_allclose(np.broadcast_to(shared, each.shape), each, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("size", "width"), [(2, 8), (2, 7), (3, 9), (4, 10), (16, 6), (None, 7)])
def test_a_sort_layer_sorts_each_group_as_numpy_does(size, width, dtype):
    x = np.random.default_rng(1).normal(size=(2, 40, width)).astype(dtype)
    y, _ = GroupSort(size).forward({}, x)
    step = size or width
    expected = [np.sort(x[..., i : i + step], axis=-1) for i in range(0, width, step)]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, np.concatenate(expected, axis=-1))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [2, 3, 4, None])
def test_ties_and_signed_zeros_still_permute_the_slopes(size, dtype):
    x = np.random.default_rng(2).choice([-1.0, -0.0, 0.0, 1.0], size=(2, 30, 7)).astype(dtype)
    slope = np.random.default_rng(3).normal(size=x.shape).astype(dtype)
    y, saved = GroupSort(size).forward({}, x)
    step = size or 7
    expected = [np.sort(x[..., i : i + step], axis=-1) for i in range(0, 7, step)]
    np.testing.assert_array_equal(y, np.concatenate(expected, axis=-1))
    back = GroupSort(size).backward({}, saved, slope)
    np.testing.assert_array_equal(np.sort(back, axis=-1), np.sort(slope, axis=-1))


@pytest.mark.parametrize("size", [2, None])
def test_norm_pooling_has_the_slope_zero_where_all_is_zero_in_numpy_and_tensorflow(size):
    import tensorflow as tf

    x = np.zeros((1, 2, 4, 4, 3))
    x[0, 1, 0, 0] = [3.0, 0.0, -4.0]  # one window has a norm, the others have none
    y, saved = L2NormPool(size).forward({}, x)
    slope = L2NormPool(size).backward({}, saved, np.ones_like(y))
    np.testing.assert_array_equal(slope, np.sign(x))
    pixels = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(pixels)
        value = L2NormPool(size).tensor({}, pixels)
    np.testing.assert_array_equal(tape.gradient(value, pixels), slope)


def test_a_dense_layer_starts_orthonormal_with_the_proven_constant_one():
    x = np.zeros((1, 1, 9))
    for units in (4, 9, 20):
        params = Dense(units).init(np.random.default_rng(4), 3, x)
        np.testing.assert_allclose(np.linalg.svd(params["kernel"], compute_uv=False), 1.0, atol=1e-12)
        bound = Dense(units).lipschitz(params, (9,))
        largest = np.linalg.svd(params["kernel"], compute_uv=False).max(axis=-1)
        assert (largest <= bound).all()
        assert (bound <= 1 + 1e-12).all()


def test_finish_puts_a_drifted_kernel_back_and_keeps_the_bias():
    rng = np.random.default_rng(5)
    params = Dense(4).init(rng, 2, np.zeros((1, 1, 6)))
    drifted = {"kernel": (1.01 * params["kernel"]).astype("f4"), "bias": params["bias"].astype("f4") + 0.5}
    finished = Dense(4).finish(drifted)
    assert {array.dtype for array in finished.values()} == {np.dtype("f8")}
    np.testing.assert_allclose(finished["kernel"], params["kernel"], atol=1e-6)  # float32 rounding
    np.testing.assert_array_equal(finished["bias"], 0.5)
    assert Dense(4).lipschitz(finished, (6,)).max() <= 1 + 1e-6


def test_a_sort_layer_has_no_weights_and_the_constant_one():
    layer = GroupSort(None)
    assert layer.init(np.random.default_rng(6), 2, np.zeros((1, 1, 4))) == {}
    assert layer.finish({}) == layer.move({}, {}, True) == layer.along({}, {}) == {}
    np.testing.assert_array_equal(layer.lipschitz({}, (4,)), 1.0)


@pytest.mark.parametrize(("size", "width"), [(2, 6), (2, 7), (3, 8), (None, 5), (9, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sorted_values_alone_are_those_of_the_forward_pass(size, width, dtype):
    x = np.random.default_rng(0).normal(size=(2, 7, width)).astype(dtype)
    kept = x.copy()
    np.testing.assert_array_equal(GroupSort(size).value(x), GroupSort(size).forward({}, x)[0])
    np.testing.assert_array_equal(x, kept)
