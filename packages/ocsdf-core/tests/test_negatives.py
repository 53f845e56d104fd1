"""Newton-Raphson negatives: where a step lands, what it never leaves, and when a point stays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocsdf import Ball, Box, newton_raphson
from ocsdf._negatives import jitter, newton_step

SLOPE = np.array([3.0, 4.0])  # norm 5: a step must divide by its square


def affine(z):
    return z @ SLOPE - 2.0, np.tile(SLOPE, (len(z), 1))


def flat(z):
    return np.full(len(z), 7.0), np.zeros_like(z)


def random_points(n=50, seed=0):
    return np.random.default_rng(seed).uniform(-4, 4, (n, 2))


@pytest.mark.parametrize("level", [-1.0, 0.0, 2.5])
def test_one_whole_step_on_an_affine_function_lands_on_the_level(level):
    start = random_points()
    points, squared = newton_step(affine, start, np.ones(len(start)), None, level)
    np.testing.assert_allclose(affine(points)[0], level, atol=1e-13)
    np.testing.assert_array_equal(squared, 25.0)


def test_a_step_at_a_hand_worked_point():
    # f = 23 at (3, 4), so half a step moves by 0.5 * 23 / 25 of the slope.
    points, _ = newton_step(affine, np.array([[3.0, 4.0]]), np.array([0.5]), None, 0.0)
    np.testing.assert_allclose(points, [[3.0 - 0.46 * 3.0, 4.0 - 0.46 * 4.0]], rtol=1e-15)


@given(st.integers(1, 8), st.integers(0, 99))
def test_each_point_closes_the_share_of_its_gap_that_its_eta_says(steps, seed):
    start = random_points()
    points = newton_raphson(affine, start, steps=steps, random_state=seed)
    eta = np.random.default_rng(seed).uniform(size=len(start))
    left = affine(points)[0] / affine(start)[0]
    np.testing.assert_allclose(left, (1 - eta / steps) ** steps, rtol=1e-9)


def test_a_point_without_gradient_stays():
    start = random_points()
    points, squared = newton_step(flat, start, np.ones(len(start)), None, 0.0)
    np.testing.assert_array_equal(points, start)
    np.testing.assert_array_equal(squared, 0.0)
    np.testing.assert_array_equal(newton_raphson(flat, start, steps=3, random_state=0), start)


def test_one_point_without_gradient_does_not_hold_the_others():
    def half(z):
        value, slope = affine(z)
        return value, np.where(z[:, :1] > 0, slope, 0.0)

    start = np.array([[1.0, 1.0], [-1.0, 1.0]])
    points, _ = newton_step(half, start, np.ones(2), None, 0.0)
    assert affine(points[:1])[0] == pytest.approx(0.0, abs=1e-14)
    np.testing.assert_array_equal(points[1], start[1])


def test_an_inward_pull_moves_the_points_below_the_level_only():
    start = random_points()
    inward = newton_raphson(affine, start, steps=4, level=1.0, pull="inward", random_state=0)
    both = newton_raphson(affine, start, steps=4, level=1.0, pull="both", random_state=0)
    below = affine(start)[0] < 1.0
    assert 0 < below.sum() < len(start)
    np.testing.assert_array_equal(inward[~below], start[~below])
    np.testing.assert_array_equal(inward[below], both[below])
    assert (affine(both)[0][~below] < affine(start)[0][~below]).all()


@pytest.mark.parametrize("domain", [Box(-4.0, 4.0), Box([-4.0, -1.0], [4.0, 1.0]), Ball(2.0)])
@pytest.mark.parametrize("level", [-100.0, 0.0, 100.0])
def test_negatives_stay_in_the_domain(domain, level):
    start = domain.sample(200, (2,), np.random.default_rng(1))
    points = newton_raphson(affine, start, steps=4, domain=domain, level=level, random_state=0)
    assert domain.contains(points).all()


def test_no_steps_return_the_start():
    start = random_points()
    assert newton_raphson(affine, start, steps=0) is start


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(6, 2), (6, 4, 4, 1)])
def test_shape_and_dtype_are_those_of_the_start(shape, dtype):
    def total(z):
        return z.reshape(len(z), -1).sum(axis=1), np.ones_like(z)

    start = np.random.default_rng(2).normal(size=shape).astype(dtype)
    points = newton_raphson(total, start, steps=2, domain=Box(-5.0, 5.0), random_state=0)
    assert points.shape == shape
    assert points.dtype == start.dtype


def test_the_start_is_not_written_to_and_a_seed_repeats():
    start = random_points()
    kept = start.copy()
    first, again, other = (newton_raphson(affine, start, steps=3, random_state=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(start, kept)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": -1}, r"`steps` of newton_raphson must be .* >= 0; got -1"),
        ({"steps": 1, "pull": "inwards"}, r"`pull` of newton_raphson must be .*; got 'inwards'.*'inward'\?"),
        ({"steps": 1, "random_state": -1}, r"`random_state` of newton_raphson must be .*; got -1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        newton_raphson(affine, random_points(), **settings)


def test_jitter_of_spread_zero_is_the_rows_and_keeps_their_dtype():
    rows = random_points().astype(np.float32)
    still = jitter(rows, 0.0, np.random.default_rng(0))
    np.testing.assert_array_equal(still, rows)
    assert still.dtype == np.float32


def test_jitter_has_the_variance_of_a_uniform_deviation():
    noise = jitter(np.zeros((20_000, 3)), 3.0, np.random.default_rng(0))
    # E s^2 = 9 / 3 for s uniform on [0, 3]; the fourth moment 3 E s^4 = 48.6 makes 5 standard errors 0.15.
    assert (noise**2).mean() == pytest.approx(3.0, abs=0.15)
    assert np.abs(noise.mean()) < 5 * np.sqrt(3.0 / 60_000)
