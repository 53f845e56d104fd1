"""The constraints on kernels do to the kernel what they say they do to the whole convolution."""

import numpy as np
import pytest

from ocsdf import Conv2D
from ocsdf._kernels import Isometric, Orthogonal

PIXELS = 8


def matrix_of(kernel, stride, padding="circular"):
    """Outputs of all unit images (PIXELS² n_in, outputs n_out): the transpose of the convolution's matrix."""
    layer = Conv2D(kernel.shape[-1], kernel.shape[1], stride, padding)
    images = np.eye(PIXELS * PIXELS * kernel.shape[3]).reshape(1, -1, PIXELS, PIXELS, kernel.shape[3])
    params = {"kernel": kernel, "bias": np.zeros((1, 1, 1, 1, kernel.shape[-1]))}
    return layer.forward(params, images)[0].reshape(images.shape[1], -1)


def kernel_of(matrix, like, stride):
    """The taps of one output in the middle of the image."""
    _, kh, kw, n_in, n_out = like.shape
    outputs = PIXELS // stride
    at = outputs // 2
    matrix = matrix.reshape(PIXELS, PIXELS, n_in, outputs, outputs, n_out)
    first = at * stride - Conv2D(1, kh, stride)._padding(PIXELS)[0]
    return matrix[first : first + kh, first : first + kw, :, at, at][None]


CASES = {
    "wide": ((1, 3, 3, 2, 5), 1),
    "square": ((1, 3, 3, 3, 3), 1),
    "tall": ((1, 3, 3, 4, 2), 1),
    "stride 2": ((1, 3, 3, 2, 4), 2),
    "stride 2, wide": ((1, 3, 3, 1, 6), 2),
    "even": ((1, 2, 2, 2, 3), 1),
}


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def case(request):
    shape, stride = request.param
    return np.random.default_rng(0).normal(size=shape), stride


def test_the_step_is_newton_and_schulz_of_the_convolution_cut_to_its_kernel(case):
    kernel, stride = case
    w = matrix_of(kernel, stride)
    expected = kernel_of(1.5 * w - 0.5 * w @ w.T @ w, kernel, stride)
    np.testing.assert_allclose(Isometric(stride).constrain(kernel), expected, atol=1e-10)


def test_the_direction_is_the_tangent_of_the_convolution_cut_to_its_kernel(case):
    kernel, stride = case
    gradient = np.random.default_rng(1).normal(size=kernel.shape)
    w, g = matrix_of(kernel, stride), matrix_of(gradient, stride)
    keeps_inputs = w.shape[0] <= w.shape[1]
    across = g @ w.T @ w if keeps_inputs else w @ w.T @ g
    across += w @ g.T @ w
    expected = kernel_of(g - 0.5 * across, kernel, stride)
    np.testing.assert_allclose(Isometric(stride).along(kernel, gradient), expected, atol=1e-10)


def test_a_fresh_isometric_kernel_keeps_all_norms_of_the_smaller_side(case):
    kernel, stride = case
    first = Conv2D(1, kernel.shape[1], stride)._padding(PIXELS)[0]
    fresh = Isometric(stride).start(np.random.default_rng(2), kernel.shape, (first, first))
    np.testing.assert_allclose(np.linalg.svd(matrix_of(fresh, stride), compute_uv=False), 1.0, atol=1e-12)


@pytest.mark.parametrize("n_out", [2, 3, 5])
def test_a_step_along_the_constraint_leaves_it_by_the_square_of_its_length_only(n_out):
    """From the start at stride 1, where the cut takes nothing away."""
    rng = np.random.default_rng(3)
    fresh = Isometric(1).start(rng, (1, 3, 3, 3, n_out), (1, 1))
    step = Isometric(1).along(fresh, rng.normal(size=fresh.shape))
    for length in (1e-2, 1e-3):
        values = np.linalg.svd(matrix_of(fresh + length * step, 1), compute_uv=False)
        assert np.abs(values - 1).max() <= 40 * length**2 * np.linalg.norm(step) ** 2


def test_finish_brings_a_kernel_that_random_steps_moved_within_three_percent_of_an_isometry():
    """From 5.3 percent. An exact isometry of that size need not be near, so the steps come closer slowly."""
    rng = np.random.default_rng(4)
    constraint = Isometric(1)
    kernel = constraint.start(rng, (1, 3, 3, 4, 6), (1, 1)).astype(np.float32)
    for _ in range(100):
        step = constraint.along(kernel, rng.normal(size=kernel.shape).astype(np.float32))
        kernel = constraint.constrain(kernel - 0.01 * step)
    finished = constraint.finish(kernel)
    assert finished.dtype == np.float64
    before, after = (
        np.abs(np.linalg.svd(matrix_of(k, 1), compute_uv=False) - 1).max() for k in (kernel, finished)
    )
    assert before > 0.05
    assert after <= 0.03


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_an_orthogonal_kernel_is_one_lipschitz_whatever_it_is(stride, size, padding):
    rng = np.random.default_rng(5)
    constraint = Orthogonal(stride)
    for spread in (0.01, 1.0, 100.0):
        # The constant filter, in one channel, is the one that comes nearest to the constant.
        kernel = constraint.finish(1 + spread * rng.normal(size=(1, size, size, 1, 2)))
        values = np.linalg.svd(matrix_of(kernel, stride, padding), compute_uv=False)
        assert values.max() <= 1 + 1e-12
    factor = 1 / -(-size // stride)
    reshaped = np.linalg.svd(kernel.reshape(size * size, 2), compute_uv=False)
    np.testing.assert_allclose(reshaped, factor, rtol=1e-12)


def test_the_constant_filter_attains_the_orthogonal_constant_on_the_torus():
    kernel = Orthogonal(1).finish(np.ones((1, 3, 3, 1, 1)))
    values = np.linalg.svd(matrix_of(kernel, 1), compute_uv=False)
    assert values.max() == pytest.approx(1.0, abs=1e-12)  # so no larger factor would do


def test_an_orthogonal_kernel_moves_on_its_constraint():
    rng = np.random.default_rng(6)
    constraint = Orthogonal(1)
    kernel = constraint.start(rng, (2, 3, 3, 3, 5), (1, 1))
    step = constraint.along(kernel, rng.normal(size=kernel.shape))
    moved = constraint.constrain(kernel - 1e-2 * step / np.linalg.norm(step)).reshape(2, 27, 5)
    np.testing.assert_allclose(np.linalg.svd(moved, compute_uv=False), 1 / 3, atol=1e-6)
