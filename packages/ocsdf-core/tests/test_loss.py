"""The loss at hand-worked points, its slopes against differences, and what trimming leaves out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocsdf import hkr_loss
from ocsdf._loss import hkr_slopes, kept_normals

VALUES = st.lists(st.floats(-10, 10), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("normal", "negative", "margin", "weight", "expected"),
    [
        ([2.0], [-2.0], 1.0, 10.0, -4.0),  # beyond both margins: the Wasserstein term alone
        ([0.0], [0.0], 1.0, 10.0, 20.0),  # on the boundary: two hinges of one margin
        ([1.0], [-1.0], 1.0, 10.0, -2.0),  # at the margin: no hinge
        ([-1.0], [1.0], 1.0, 10.0, 42.0),  # both on the wrong side: 10 * 2 + 1, twice
        ([3.0, -1.0], [0.5], 1.0, 0.0, -0.5),  # weight 0: mean of negatives less mean of normals
        ([0.25], [-4.0], 0.5, 4.0, -3.25),  # 4 * 0.25 - 0.25 - 4
    ],
)
def test_the_loss_at_hand_worked_points(normal, negative, margin, weight, expected):
    assert hkr_loss(normal, negative, margin=margin, weight=weight) == expected


@given(VALUES, VALUES)
def test_swapping_the_batches_and_the_sign_changes_nothing(normal, negative):
    settings = {"margin": 0.5, "weight": 10.0}
    mirrored = hkr_loss(-np.array(negative), -np.array(normal), **settings)
    assert hkr_loss(normal, negative, **settings) == pytest.approx(mirrored, rel=1e-12, abs=1e-12)


@given(VALUES, VALUES)
def test_the_engines_loss_is_the_public_one(normal, negative):
    loss, _, _ = hkr_slopes(np.array([normal]), np.array([negative]), 0.5, 10.0)
    assert loss[0] == pytest.approx(hkr_loss(normal, negative, margin=0.5, weight=10.0), abs=1e-11)


@pytest.mark.parametrize("n_trimmed", [0, 2])
def test_the_slopes_match_central_differences(n_trimmed):
    rng = np.random.default_rng(0)
    normal, negative, step = rng.normal(size=(2, 6)), rng.normal(size=(2, 4)), 1e-6
    _, slope_normal, slope_negative = hkr_slopes(normal, negative, 0.5, 10.0, n_trimmed)

    def total(normal, negative):
        return hkr_slopes(normal, negative, 0.5, 10.0, n_trimmed)[0].sum()

    for index in np.ndindex(normal.shape):
        moved = np.zeros_like(normal)
        moved[index] = step
        expected = (total(normal + moved, negative) - total(normal - moved, negative)) / (2 * step)
        assert slope_normal[index] == pytest.approx(expected, abs=1e-7)
    for index in np.ndindex(negative.shape):
        moved = np.zeros_like(negative)
        moved[index] = step
        expected = (total(normal, negative + moved) - total(normal, negative - moved)) / (2 * step)
        assert slope_negative[index] == pytest.approx(expected, abs=1e-7)


def test_each_network_has_a_loss_of_its_own():
    normal, negative = np.array([[2.0], [0.0]]), np.array([[-2.0], [0.0]])
    np.testing.assert_array_equal(hkr_slopes(normal, negative, 1.0, 10.0)[0], [-4.0, 20.0])


def test_trimming_drops_the_lowest_normals_of_each_network_and_divides_by_the_rest():
    normal = np.array([[3.0, -9.0, 2.0], [-9.0, 4.0, -8.0]])
    np.testing.assert_array_equal(kept_normals(normal, 1), [[True, False, True], [False, True, True]])
    loss, slope, _ = hkr_slopes(normal[:1], np.array([[-5.0]]), 1.0, 10.0, n_trimmed=1)
    np.testing.assert_array_equal(loss, [-2.5 - 5.0])
    np.testing.assert_array_equal(slope, [[-0.5, 0.0, -0.5]])


@given(st.integers(0, 5), st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=6, max_size=12))
def test_trimming_drops_as_many_as_asked_even_among_ties(n_trimmed, values):
    assert (~kept_normals(np.array([values]), n_trimmed)).sum() == n_trimmed


def test_the_slopes_keep_the_dtype_of_the_values():
    normal = np.zeros((1, 3), np.float32)
    _, slope_normal, slope_negative = hkr_slopes(normal, normal, 1.0, 10.0)
    assert slope_normal.dtype == slope_negative.dtype == np.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normal": []}, r"`normal` of hkr_loss must be an array of at least 1"),
        ({"negative": [np.nan]}, r"`negative` of hkr_loss must be finite .*; got nan at index 0"),
        ({"normal": [[1.0]]}, r"`normal` of hkr_loss must be 1-dimensional; got .*\(1, 1\)"),
        ({"margin": 0.0}, r"`margin` of hkr_loss must be .* > 0; got 0.0"),
        ({"weight": -1.0}, r"`weight` of hkr_loss must be .* >= 0; got -1.0"),
    ],
)
def test_a_bad_batch_or_parameter_is_refused(change, message):
    settings = {"normal": [1.0], "negative": [-1.0], "margin": 1.0, "weight": 10.0, **change}
    with pytest.raises(ValueError, match=message):
        hkr_loss(settings.pop("normal"), settings.pop("negative"), **settings)
