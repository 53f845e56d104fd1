"""Bounds of a row's score and decision, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from ocsdf import Certificate


def test_certificate_bounds_and_radius_hold_in_exact_arithmetic():
    rng = np.random.default_rng(2)
    distance = np.r_[rng.normal(0, 1, 100), rng.normal(0, 1e-8, 50), 1e30, -1e30, 0.0, 0.1]
    lipschitz, threshold, radius = 1.0000001, 0.1, 0.3
    certificate = Certificate(distance, lipschitz, threshold)
    shift = Fraction(lipschitz) * Fraction(radius)
    for s, low, high, safe in zip(
        distance, certificate.lower(radius), certificate.upper(radius), certificate.radius, strict=True
    ):
        assert Fraction(low) <= Fraction(s) - shift
        assert Fraction(high) >= Fraction(s) + shift
        assert Fraction(safe) * Fraction(lipschitz) <= abs(Fraction(s) - Fraction(threshold))


def test_decision_abstains_exactly_where_the_bounds_straddle_the_threshold():
    certificate = Certificate([1.0, 0.5, 0.25, -0.25, -0.5, -1.0], lipschitz=1.0)
    # A normal that an attack may bring down to the threshold itself is still normal; an anomaly is not.
    assert certificate.decision([0.0, 0.5]).tolist() == [[1, 1, 1, -1, -1, -1], [1, 1, 0, 0, 0, -1]]
    assert certificate.decision(0.0, threshold=0.3).tolist() == [1, 1, -1, -1, -1, -1]
    assert certificate.lower([0.0, 0.5]).shape == (2, 6)


def test_radius_of_a_row_is_where_its_decision_starts_to_abstain():
    certificate = Certificate(np.random.default_rng(3).normal(size=50), lipschitz=1.7, threshold=0.2)
    for row, radius in enumerate(certificate.radius):
        assert certificate.decision(0.999 * radius)[row] != 0
        assert certificate.decision(1.001 * radius)[row] == 0


def test_rounding_of_the_scores_widens_every_bound_but_that_of_no_attack():
    certificate = Certificate([1.0, -1.0], lipschitz=1.0, rounding=[0.25, 0.0])
    assert certificate.lower([0.0, 0.5]).tolist() == [[1.0, -1.0], [0.25, -1.5]]
    assert certificate.upper([0.0, 0.5]).tolist() == [[1.0, -1.0], [1.75, -0.5]]
    assert certificate.radius.tolist() == [0.75, 1.0]


def test_certificate_is_frozen():
    certificate = Certificate([1.0], lipschitz=1.0)
    with pytest.raises(AttributeError):
        certificate.lipschitz = 0.5
    with pytest.raises(ValueError, match="read-only"):
        certificate.distance[0] = 2.0
