"""Certified conformal p-values: the formula, and the false-alarm rate under a real attack."""

import numpy as np
import pytest

from ocsdf._conformal import CertifiedConformal


def distance_score(X, centers):
    """Minus the distance to a set: 1-Lipschitz, higher = more normal."""
    return -np.sqrt(((X[:, None, :] - centers) ** 2).sum(axis=2)).min(axis=1)


def push_away(X, centers, radius):
    """The exact worst attack on the nearest center, kept only where it lowers the score."""
    nearest = centers[((X[:, None, :] - centers) ** 2).sum(axis=2).argmin(axis=1)]
    direction = X - nearest
    moved = X + radius * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    better = distance_score(moved, centers) < distance_score(X, centers)
    return np.where(better[:, None], moved, X)


def false_alarm_rates(alpha, radius, claimed_radius, n_trials=300, n_calibration=99, n_test=100):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(5, 4)) * 2

    def draw(n):
        return centers[rng.integers(5, size=n)] + rng.normal(size=(n, 4))

    rates = []
    for _ in range(n_trials):
        conformal = CertifiedConformal(lipschitz=1.0).fit(distance_score(draw(n_calibration), centers))
        attacked = push_away(draw(n_test), centers, radius)
        flagged = conformal.predict(distance_score(attacked, centers), alpha, radius=claimed_radius) == -1
        rates.append(flagged.mean())
    return np.mean(rates)


@pytest.mark.parametrize("radius", [0.0, 0.2, 0.5])
def test_attacked_normals_raise_at_most_alpha_false_alarms(radius):
    """300 calibrations of 99: the standard error of the mean rate is about 0.002 at alpha = 0.1."""
    assert false_alarm_rates(0.1, radius, radius) <= 0.1 + 3 * 0.002


def test_the_same_attack_breaks_the_plain_p_value():
    assert false_alarm_rates(0.1, 0.5, 0.0) > 0.2


def test_p_value_counts_calibration_scores_that_could_be_lower():
    rng = np.random.default_rng(1)
    calibration, scores = rng.integers(-8, 8, 30) / 4, rng.integers(-8, 8, 20) / 4
    conformal = CertifiedConformal(lipschitz=2.0).fit(calibration)
    for radius in (0.0, 0.125, 0.5):
        expected = [(1 + sum(c - 2.0 * radius <= s for c in calibration)) / 31 for s in scores]
        assert conformal.p_value(scores, radius).tolist() == expected


def test_p_value_grows_with_the_radius_and_radii_are_rows():
    conformal = CertifiedConformal(lipschitz=1.0).fit(np.arange(10.0))
    p = conformal.p_value([-1.0, 3.0, 20.0], [0.0, 1.0, 5.0])
    assert p.shape == (3, 3)
    assert np.all(np.diff(p, axis=0) >= 0)
    assert np.all((p > 0) & (p <= 1))


def test_wrong_use_is_refused_with_a_remedy():
    with pytest.raises(RuntimeError, match="not fitted; call fit"):
        CertifiedConformal(lipschitz=1.0).p_value([0.0])
    with pytest.raises(
        ValueError, match=r"`lipschitz` of CertifiedConformal must be a finite number > 0; got 0"
    ):
        CertifiedConformal(lipschitz=0)
    fitted = CertifiedConformal(lipschitz=1.0).fit([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"with n = 3 .*got 0.05; calibrate on 19 rows"):
        fitted.predict([0.0], alpha=0.05)
    with pytest.raises(ValueError, match="nan at index 1"):
        fitted.p_value([0.0, np.nan])
