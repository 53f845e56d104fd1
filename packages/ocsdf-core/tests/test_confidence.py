"""Bounds for the population: exact coverage by enumerating every sample, simulation, closed forms, limits."""

from functools import partial
from math import factorial

import numpy as np
import pytest

from ocsdf import (
    certified_accuracy,
    certified_auroc,
    certified_average_precision,
    certified_f1,
    certified_fpr_at_tpr,
)
from ocsdf._confidence import mean_lower, mean_upper, rank_above

METRICS = {
    "auroc": certified_auroc,
    "average precision": certified_average_precision,
    "false positives": partial(certified_fpr_at_tpr, tpr=0.5),
    "accuracy": partial(certified_accuracy, threshold=0.5),
    "f1": partial(certified_f1, threshold=0.5),
}
SUPPORT = np.array([0.0, 0.5, 1.0])  # few values, so most pairs tie
NORMAL, ANOMALY = np.array([1, 2, 7]), np.array([6, 3, 1])  # tenths


def samples(n, tenths):
    """Every sample of ``n`` of the three values, as a list of values with its probability."""
    for first in range(n + 1):
        for second in range(n + 1 - first):
            counts = np.array([first, second, n - first - second])
            ways = factorial(n) / np.prod([factorial(c) for c in counts])
            yield np.repeat(SUPPORT, counts), ways * np.prod((tenths / 10.0) ** counts)


def wrong_side(bound, value, name):
    return value > bound + 1e-9 if name == "false positives" else value < bound - 1e-9


@pytest.mark.parametrize("name", METRICS)
def test_coverage_is_exact_over_every_sample_of_a_law_with_ties(name):
    metric = partial(METRICS[name], radius=[0.0, 0.25], lipschitz=1.0)
    # 2,000 copies of each row: the average precision of a sample is the right-hand sum of its integral.
    population = metric(np.repeat(SUPPORT, 2000 * NORMAL), np.repeat(SUPPORT, 2000 * ANOMALY))
    covered, informative = np.zeros(2), np.zeros(2)
    for normal, p in samples(6, NORMAL):
        for anomaly, q in samples(6, ANOMALY):
            bound = metric(normal, anomaly, confidence=0.5)
            covered += p * q * ~wrong_side(bound, population, name)
            informative += p * q * ((bound > 0.05) & (bound < 0.95))
    assert (covered >= 0.5).all()
    assert (informative > 0.2).any()


@pytest.mark.parametrize("name", METRICS)
def test_at_most_ten_percent_of_samples_mislead_at_confidence_ninety(name):
    rng = np.random.default_rng(4)
    metric = partial(METRICS[name], radius=[0.0, 0.25], lipschitz=1.0)
    wide = rng.normal(1.5, 1, 200_000), rng.normal(0, 1, 100_000)  # the shares of the samples below
    population = metric(*wide)
    failures = np.zeros(2)
    for _ in range(200):
        draw = rng.normal(1.5, 1, 40), rng.normal(0, 1, 20)
        bound, value = metric(*draw, confidence=0.9), metric(*draw)
        assert not np.any(wrong_side(bound, value, name))
        failures += wrong_side(bound, population, name)
    assert (failures <= 20).all()


@pytest.mark.parametrize("name", METRICS)
def test_the_bound_closes_in_on_the_value_with_the_rows(name):
    rng = np.random.default_rng(5)
    metric = partial(METRICS[name], radius=0.1, lipschitz=1.0)
    normal, anomaly = rng.normal(2, 1, 400_000), rng.normal(0, 1, 100_000)
    gaps = [
        abs(metric(normal[:n], anomaly[:n], confidence=0.95) - metric(normal[:n], anomaly[:n]))
        for n in (100, 1000, 100_000)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert (
        gaps[2] < 0.01
    )  # by its width at the sample sizes, sqrt(3 / n), and the steps of the precision curve


@pytest.mark.parametrize("name", METRICS)
def test_the_bound_never_improves_with_radius_or_confidence(name):
    rng = np.random.default_rng(6)
    normal, anomaly = rng.normal(1, 1, 60), rng.normal(0, 1, 30)
    radii = np.linspace(0, 2, 9)
    values = np.array(
        [METRICS[name](normal, anomaly, radii, lipschitz=1.0, confidence=c) for c in (0.5, 0.9, 0.99)]
    )
    sign = 1 if name == "false positives" else -1
    assert values.shape == (3, 9)
    assert (sign * np.diff(values, axis=0) >= -1e-12).all()
    assert (sign * np.diff(values, axis=1) >= -1e-12).all()
    assert ((values >= 0) & (values <= 1)).all()


def test_a_perfect_auroc_has_the_closed_form():
    """KL(1, q) = -log q, so the bound is (1 - confidence)^(1/N) with N the smaller group."""
    bound = certified_auroc(np.ones(100), np.zeros(20), 0.0, lipschitz=1.0, confidence=0.95)
    assert bound == pytest.approx(0.05 ** (1 / 20), abs=1e-12)


def test_a_perfect_f1_has_the_closed_form():
    """Each group at sqrt(0.95), whose shares are lowered to (1 - sqrt(0.95))^(1/n)."""
    bound = certified_f1(np.ones(100), -np.ones(20), 0.0, lipschitz=1.0, confidence=0.95)
    kept, caught = (1 - 0.95**0.5) ** (1 / np.array([100, 20]))
    assert bound == pytest.approx(2 * 20 * caught / (20 * caught + 20 + 100 * (1 - kept)), abs=1e-12)


def test_too_few_anomalies_bound_no_false_positive_rate():
    assert certified_fpr_at_tpr(np.ones(1000), -np.ones(20), 0.0, lipschitz=1.0, confidence=0.95) == 1.0
    assert certified_fpr_at_tpr(np.ones(1000), -np.ones(200), 0.0, lipschitz=1.0, confidence=0.95) < 0.01


def test_means_are_bounded_from_both_sides_alike():
    means = np.linspace(0, 1, 11)
    low, high = mean_lower(means, 30, 3.0), mean_upper(means, 30, 3.0)
    np.testing.assert_allclose(low, 1 - high[::-1], atol=1e-12)
    assert (low <= means).all()
    assert low[0] == 0.0
    assert low[-1] == pytest.approx(np.exp(-3.0 / 30))


def test_the_rank_of_a_quantile_is_the_smallest_that_the_budget_allows():
    def divergence(p, q):
        return p * np.log(p / q) + ((1 - p) * np.log((1 - p) / (1 - q)) if p < 1 else 0.0)

    for n in (5, 58, 59, 60, 300):
        fits = [k for k in range(1, n + 1) if k / n > 0.95 and n * divergence(k / n, 0.95) >= 3.0]
        assert rank_above(0.95, n, 3.0) == (fits[0] if fits else None)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("confidence", [0, 1, 1.5, float("nan")])
def test_a_confidence_outside_the_open_unit_interval_is_refused(name, confidence):
    with pytest.raises(ValueError, match=r"`confidence` of certified_\w+ must be .* > 0 and < 1; got"):
        METRICS[name]([1.0], [0.0], 0.0, lipschitz=1.0, confidence=confidence)
