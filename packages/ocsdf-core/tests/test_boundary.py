"""Points of a level set: they reach it, stay in the domain and come back in the units of the data."""

import numpy as np
import pytest

from ocsdf import OCSDF, Box, sample_boundary


def cone(z):
    norm = np.linalg.norm(z, axis=1)
    return 2.0 - norm, -z / np.where(norm > 0, norm, 1.0)[:, None]


def test_a_signed_distance_is_reached_in_one_step():
    start = np.random.default_rng(0).uniform(-5, 5, (50, 3))
    points, residuals = sample_boundary(cone, start, level=0.5, steps=1)
    assert np.allclose(np.linalg.norm(points, axis=1), 1.5)
    assert residuals.max() < 1e-14  # one rounding of a norm of about 2


def test_a_level_outside_the_domain_shows_in_the_residual():
    points, residuals = sample_boundary(cone, np.ones((4, 2)), level=-8.0, domain=Box(-1.0, 1.0))
    assert Box(-1.0, 1.0).contains(points).all()
    assert (residuals > 1).all()


@pytest.mark.parametrize(("steps", "level"), [(0, 0.0), (3, np.nan)])
def test_steps_and_level_are_checked(steps, level):
    with pytest.raises(ValueError, match="of sample_boundary must be"):
        sample_boundary(cone, np.ones((4, 2)), level=level, steps=steps)


def test_the_estimator_reaches_its_threshold_in_input_units():
    X = np.random.default_rng(0).normal(10.0, 3.0, (300, 2))
    model = OCSDF.paper(hidden=(16, 16), max_steps=60, random_state=0).fit(X)
    points, residuals = model.sample_boundary(40, level=0.0, random_state=1)
    inside = np.abs(model.score_samples(points))
    assert np.allclose(inside, residuals, atol=1e-9)  # the way to input units and back
    assert np.median(residuals) < 1e-9
    again, _ = model.sample_boundary(40, level=0.0, random_state=1)
    assert np.array_equal(points, again)
