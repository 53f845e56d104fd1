"""What a network's arithmetic can be off by is proven, and its layers work together."""

from fractions import Fraction

import numpy as np
import pytest

from ocsdf import GroupSort, LipschitzNet, build, dense


def dense_net(rng, widths, members=1):
    """Orthonormal kernels, full sorts, and biases that are not zero."""
    net = build(dense(widths[1:-1], sort=None), np.zeros((1, widths[0])), members=members, rng=rng)
    for params in net.params:
        if params:
            params["bias"] += rng.normal(size=params["bias"].shape)
    return net


def exact_score(net, row):
    """One dense network on one row, in rational arithmetic."""
    values = [Fraction(float(v)) for v in row]
    for params in net.params:
        if not params:
            values = sorted(values)
            continue
        columns = [[Fraction(float(w)) for w in column] for column in params["kernel"][0].T]
        values = [
            sum(w * v for w, v in zip(column, values, strict=True)) + Fraction(float(b))
            for column, b in zip(columns, params["bias"][0, 0], strict=True)
        ]
    return values[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_computed_score_is_within_the_rounding_bound_of_the_exact_one(dtype, scale):
    rng = np.random.default_rng(6)
    net = dense_net(rng, (3, 8, 8, 1)).astype(dtype)
    slope, offset = net.rounding_error(dtype)
    rows = (scale * rng.normal(size=(30, 3))).astype(dtype)
    for row, computed in zip(rows, net(rows), strict=True):
        error = abs(Fraction(float(computed)) - exact_score(net, row))
        assert error <= slope * np.linalg.norm(row.astype(np.float64)) + offset


def test_float32_scores_break_a_certificate_of_a_tiny_radius_and_float64_scores_do_not():
    """Two rows 1e-9 apart: the float32 scores differ by an ulp of the score, 60 times what is allowed."""
    rng = np.random.default_rng(7)
    net = dense_net(rng, (4, 64, 64, 1), members=3)
    rows = rng.normal(size=(2000, 4))
    moved = rows + 1e-9 * rng.normal(size=rows.shape)
    distance = np.linalg.norm(moved - rows, axis=1)
    single = net.astype(np.float32)
    assert np.max(np.abs(single(moved) - single(rows)) / distance) > 10 * net.lipschitz()
    slope, offset = net.rounding
    allowed = (net.lipschitz() + slope) * distance + 2 * (slope * np.linalg.norm(rows, axis=1) + offset)
    assert np.all(np.abs(net(moved) - net(rows)) <= allowed)
    assert np.all(allowed <= 1.01 * net.lipschitz() * distance)


def test_rounding_term_is_a_trillionth_at_full_width():
    slope, offset = dense_net(np.random.default_rng(8), (21, 512, 512, 512, 512, 1)).rounding
    assert 0 < slope < 1e-11
    assert 0 < offset < 1e-9


def test_float32_weights_are_taken_as_the_numbers_they_hold():
    net = dense_net(np.random.default_rng(9), (4, 8, 1)).astype(np.float32)
    widened = LipschitzNet(net.layers, net.astype(np.float64).params, net.input_shape)
    assert net.lipschitz() == widened.lipschitz()
    assert net.rounding_error(np.float32) == widened.rounding_error(np.float32)


@pytest.mark.parametrize("sort", [2, 3, None])
@pytest.mark.parametrize("members", [1, 3])
def test_scoring_gives_what_the_forward_pass_of_training_gives(sort, members):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 5))
    net = build((GroupSort(sort), *dense((9, 8), sort)), x, members=members, rng=rng)
    before = x.copy()
    value, _ = net.forward(np.broadcast_to(x, (members, *x.shape)))
    np.testing.assert_allclose(net(x), value.mean(axis=0), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(x, before)  # sorts in place, but never in the caller's rows
