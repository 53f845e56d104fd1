"""The manifold of orthonormal matrices: where training starts, how it stays near, where it ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from ocsdf._stiefel import SpectralCap, orthonormal, polar, retract, rotate, skew, tangent

SHAPES = [(2, 6, 3), (2, 3, 6), (1, 5, 5), (3, 4, 1), (3, 1, 4)]


def singular_values(w):
    return np.linalg.svd(w, compute_uv=False)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_a_random_kernel_has_singular_values_one(rows, columns, seed):
    w = orthonormal(np.random.default_rng(seed), (2, rows, columns))
    assert w.shape == (2, rows, columns)
    np.testing.assert_allclose(singular_values(w), 1.0, atol=1e-12)


def test_a_random_kernel_is_centred_so_signs_are_drawn_too():
    w = orthonormal(np.random.default_rng(0), (4000, 2, 2))
    # Entries of a uniform rotation or reflection have variance 1/2: five standard errors.
    assert np.abs(w.mean(axis=0)).max() < 5 * np.sqrt(0.5 / 4000)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_tangent_part_moves_the_gram_matrix_in_second_order_only(shape):
    rng = np.random.default_rng(1)
    w = orthonormal(rng, shape)
    along = tangent(w, rng.normal(size=shape))
    tall = shape[-2] >= shape[-1]
    gram = w.swapaxes(-1, -2) @ along if tall else w @ along.swapaxes(-1, -2)
    np.testing.assert_allclose(gram + gram.swapaxes(-1, -2), 0.0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_taking_the_tangent_part_twice_changes_nothing(shape):
    rng = np.random.default_rng(2)
    w = orthonormal(rng, shape)
    along = tangent(w, rng.normal(size=shape))
    np.testing.assert_allclose(tangent(w, along), along, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("error", [-0.03, 0.0, 0.03])
def test_a_retraction_leaves_the_cube_of_the_error(shape, error):
    w = (1 + error) * orthonormal(np.random.default_rng(3), shape)
    square = (1 + error) ** 2 - 1
    expected = (1 + error) * (1 - square / 2 + 0.375 * square**2)
    np.testing.assert_allclose(singular_values(retract(w)), expected, atol=1e-12)
    assert abs(expected - 1) <= 2.5 * abs(error) ** 3 + 4 * error**4
    assert abs(expected**2 - 1) <= 1.5e-4


def test_the_part_in_the_frame_of_a_square_matrix_is_the_tangent_part():
    rng = np.random.default_rng(4)
    w, gradient = orthonormal(rng, (2, 6, 6)), rng.normal(size=(2, 6, 6))
    np.testing.assert_allclose(w @ skew(w.swapaxes(-1, -2) @ gradient), tangent(w, gradient), atol=1e-12)


def test_a_rotation_follows_the_exponential_and_leaves_the_fourth_power_of_its_length():
    rng = np.random.default_rng(5)
    w, k = orthonormal(rng, (2, 7, 7)), skew(rng.normal(size=(2, 7, 7)))
    k *= 0.03 / np.linalg.norm(k, 2, axis=(1, 2))[:, None, None]
    moved = rotate(w, k)
    exact = np.stack([a @ expm(-b) for a, b in zip(w, k, strict=True)])
    assert np.linalg.norm(moved - exact, 2, axis=(1, 2)).max() <= 1.01 * 0.03**3 / 6
    expected = np.sqrt(1 + singular_values(k) ** 4 / 4)
    np.testing.assert_allclose(np.sort(singular_values(moved)), np.sort(expected), atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_polar_factor_is_orthonormal_and_the_nearest_such_matrix(shape):
    rng = np.random.default_rng(4)
    w = rng.normal(size=shape).astype("f4")
    factor = polar(w)
    assert factor.dtype == np.float64
    np.testing.assert_allclose(singular_values(factor), 1.0, atol=1e-12)
    distance = np.linalg.norm(factor - w, axis=(-1, -2))
    for _ in range(50):
        other = np.linalg.norm(orthonormal(rng, shape) - w, axis=(-1, -2))
        assert (distance <= other + 1e-12).all()


def test_the_polar_factor_of_an_orthonormal_matrix_is_itself():
    w = orthonormal(np.random.default_rng(5), (2, 6, 4))
    np.testing.assert_allclose(polar(w), w, atol=1e-12)


def test_the_cap_leaves_a_short_step_as_it_is():
    step = 0.01 * orthonormal(np.random.default_rng(6), (2, 5, 3))
    np.testing.assert_array_equal(SpectralCap(0.03)(step.copy()), step)


def test_the_cap_shortens_a_long_step_in_place_and_keeps_its_direction():
    step = orthonormal(np.random.default_rng(7), (2, 5, 3))
    given_in = step.copy()
    capped = SpectralCap(0.03)(given_in)
    assert capped is given_in
    # All singular values are equal, so one power iteration already finds the norm.
    np.testing.assert_allclose(capped, 0.03 * step, rtol=1e-12)


def test_the_caps_estimate_closes_in_on_the_spectral_norm_over_calls():
    step = np.random.default_rng(8).normal(size=(2, 8, 5))
    cap = SpectralCap(0.03)
    for _ in range(200):
        capped = cap(step.copy())
    np.testing.assert_allclose(singular_values(capped).max(axis=-1), 0.03, rtol=1e-6)


def test_the_cap_takes_a_zero_step():
    np.testing.assert_array_equal(SpectralCap(0.03)(np.zeros((1, 4, 2))), 0.0)
