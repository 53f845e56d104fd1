"""What draws features in has slope 1 at most, the derivative it says, and one value in both libraries."""

import numpy as np
import pytest

from ocsdf import OCSDF, Squash, load, references

CURVES = [Squash("asinh"), Squash("asinh", 0.5), Squash("clip"), Squash("clip", 0.5)]


@pytest.mark.parametrize("layer", CURVES, ids=str)
def test_slope_is_the_derivative_and_at_most_one(layer: Squash):
    x, step = np.linspace(-9.05, 9.05, 400).reshape(1, 100, 4), 1e-6
    _, saved = layer.forward({}, x)
    slope = layer.backward({}, saved, np.ones_like(x))
    numeric = (layer.forward({}, x + step)[0] - layer.forward({}, x - step)[0]) / (2 * step)
    np.testing.assert_allclose(slope, numeric, atol=1e-8)
    assert slope.max() <= 1


@pytest.mark.parametrize("layer", CURVES, ids=str)
def test_both_libraries_have_one_value(layer: Squash):
    x = np.random.default_rng(0).normal(size=(1, 50, 3)) * 5
    np.testing.assert_allclose(layer.forward({}, x)[0], layer.tensor({}, x).numpy(), rtol=1e-12)


def test_far_values_stay_in_order_under_asinh_and_tie_under_clip():
    x = np.array([[[1e3], [1e6]]])
    near, far = Squash("asinh").forward({}, x)[0].ravel()
    assert 10 < near < far < 40
    assert (Squash("clip").forward({}, x)[0] == 2).all()


def test_a_squashed_detector_is_saved_with_its_certificate(tmp_path):
    rows = np.random.default_rng(1).standard_t(2, size=(200, 3))
    detector = OCSDF(network=(Squash("clip"), *references()), max_steps=0, random_state=0).fit(rows)
    detector.save(tmp_path / "detector")
    again = load(tmp_path / "detector")
    np.testing.assert_array_equal(again.score_samples(rows), detector.score_samples(rows))
    assert 1 <= again.lipschitz_ < 1 + 1e-12


@pytest.mark.parametrize(("setting", "match"), [({"curve": "sqrt"}, "curve"), ({"limit": 0.0}, "limit")])
def test_other_curves_and_limits_are_refused(setting: dict[str, object], match: str):
    with pytest.raises(ValueError, match=match):
        Squash(**setting)
