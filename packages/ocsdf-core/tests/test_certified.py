"""Certified metrics against counts by brute force in exact arithmetic, scikit-learn, and random attacks."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from ocsdf import (
    Certificate,
    certified_accuracy,
    certified_auroc,
    certified_average_precision,
    certified_f1,
    certified_fpr_at_tpr,
)

THREATS = ("both", "anomalies", "normals")
METRICS = (
    certified_auroc,
    certified_average_precision,
    certified_fpr_at_tpr,
    certified_accuracy,
    certified_f1,
)
# Quarters tie often and are exact in float64, so that the brute force sees the very same ties.
scores = st.lists(st.integers(-8, 8).map(lambda k: k / 4), min_size=1, max_size=12)
radius_grid = [0.0, 0.125, 0.25, 0.5, 1.0, 3.0]


def shifts(radius, lipschitz, threat):
    shift = Fraction(radius) * Fraction(lipschitz)
    return shift * (threat != "anomalies"), shift * (threat != "normals")


def worst_scores(normal, anomaly, radius, lipschitz, threat):
    fall, rise = shifts(radius, lipschitz, threat)
    return [Fraction(s) - fall for s in normal], [Fraction(s) + rise for s in anomaly]


def brute_auroc(normal, anomaly):
    pairs = [(a < n) + (a == n) / 2 for n in normal for a in anomaly]
    return sum(pairs) / len(pairs)


def brute_average_precision(normal, anomaly):
    """Rows one by one from the most anomalous on, the normals of a tie first."""
    rows = sorted([(s, 0) for s in normal] + [(s, 1) for s in anomaly])
    found, total = 0, 0.0
    for position, (_, positive) in enumerate(rows, start=1):
        found += positive
        total += positive * found / position
    return total / len(anomaly)


def brute_fpr(normal, anomaly, tpr=0.95):
    candidates = [
        sum(s <= t for s in normal) / len(normal)
        for t in anomaly
        if sum(s <= t for s in anomaly) / len(anomaly) >= tpr
    ]
    return min(candidates)


def brute_accuracy(normal, anomaly):
    return (sum(s >= 0 for s in normal) + sum(s < 0 for s in anomaly)) / (len(normal) + len(anomaly))


def brute_f1(normal, anomaly):
    caught, false_alarms = sum(s < 0 for s in anomaly), sum(s < 0 for s in normal)
    return 2 * caught / (caught + false_alarms + len(anomaly))


BRUTE = dict(
    zip(METRICS, (brute_auroc, brute_average_precision, brute_fpr, brute_accuracy, brute_f1), strict=True)
)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("threat", THREATS)
@settings(max_examples=30, deadline=None)
@given(normal=scores, anomaly=scores, lipschitz=st.sampled_from([0.5, 1.0, 2.0]))
def test_metric_equals_the_count_on_worst_scores_with_ties(metric, threat, normal, anomaly, lipschitz):
    got = metric(normal, anomaly, radius_grid, lipschitz=lipschitz, threat=threat)
    for value, radius in zip(got, radius_grid, strict=True):
        worst = worst_scores(normal, anomaly, radius, lipschitz, threat)
        assert value == pytest.approx(BRUTE[metric](*worst), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=30, deadline=None)
@given(
    normal=st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=20),
    anomaly=st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=20),
    radii=st.lists(st.floats(0, 1e31), min_size=2, max_size=6).map(sorted),
    lipschitz=st.floats(1e-6, 1e6),
    threat=st.sampled_from(THREATS),
)
def test_metric_never_improves_with_the_radius(metric, normal, anomaly, radii, lipschitz, threat):
    value = metric(normal, anomaly, radii, lipschitz=lipschitz, threat=threat)
    better = 1 if metric is certified_fpr_at_tpr else -1
    assert np.all(better * np.diff(value) >= 0)
    assert np.all((value >= 0) & (value <= 1))


def test_radius_zero_gives_the_plain_metrics_of_scikit_learn():
    rng = np.random.default_rng(0)
    normal, anomaly = rng.normal(1, 1, 400), rng.normal(0, 1, 60)
    truth = np.r_[np.zeros(400), np.ones(60)]
    anomaly_score = -np.r_[normal, anomaly]
    fpr, tpr, _ = metrics.roc_curve(truth, anomaly_score)
    flagged = anomaly_score > 0
    expected = {
        certified_auroc: metrics.roc_auc_score(truth, anomaly_score),
        certified_average_precision: metrics.average_precision_score(truth, anomaly_score),
        certified_fpr_at_tpr: fpr[tpr >= 0.95][0],
        certified_accuracy: metrics.accuracy_score(truth, flagged),
        certified_f1: metrics.f1_score(truth, flagged),
    }
    for metric, value in expected.items():
        assert metric(normal, anomaly, 0.0, lipschitz=1.0) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("threat", THREATS)
def test_no_attack_within_the_radius_gets_under_the_certified_metric(metric, threat):
    rng = np.random.default_rng(1)
    normal, anomaly = rng.normal(0.6, 1, 50), rng.normal(-0.4, 1, 20)
    for radius in (0.05, 0.3, 1.0):
        bound = metric(normal, anomaly, radius, lipschitz=2.0, threat=threat)
        for _ in range(50):
            fall, rise = 2.0 * radius * rng.choice([-1, 0, 1], (2, 50)) * rng.uniform(0.9, 1, (2, 50))
            moved_normal = normal - fall * (threat != "anomalies")
            moved_anomaly = anomaly + rise[:20] * (threat != "normals")
            attacked = metric(moved_normal, moved_anomaly, 0.0, lipschitz=2.0)
            worse = attacked > bound if metric is certified_fpr_at_tpr else attacked < bound
            assert not worse


def test_gap_equal_to_the_shift_counts_one_half():
    assert certified_auroc([2.0], [0.0], [0.5, 1.0, 1.5], lipschitz=1.0).tolist() == [1.0, 0.5, 0.0]
    one_group = certified_auroc([2.0], [0.0], [1.0, 2.0, 3.0], lipschitz=1.0, threat="normals")
    assert one_group.tolist() == [1.0, 0.5, 0.0]


def test_scores_that_absorb_the_shift_do_not_keep_a_pair():
    """At 1e30 a shift of 1 is lost in a float64 subtraction; the next number up or down is the bound."""
    certificate = Certificate([1e30, -1e30], lipschitz=1.0)
    assert certificate.lower(1.0)[0] < 1e30
    assert certificate.upper(1.0)[1] > -1e30
    above = np.nextafter(1e30, np.inf)
    assert certified_auroc([1e30], [1e30], [0.0, 1.0], lipschitz=1.0).tolist() == [0.5, 0.0]
    assert certified_auroc([above], [1e30], [0.0, 1.0], lipschitz=1.0).tolist() == [1.0, 0.5]


def test_a_hundred_thousand_rows_a_group_take_no_pair_matrix():
    rng = np.random.default_rng(5)
    value = certified_auroc(rng.normal(size=100_000), rng.normal(size=100_000), [0.0, 0.1], lipschitz=1.0)
    assert value == pytest.approx([0.5, 0.444], abs=0.01)  # a 1e10 pair matrix would not fit in memory


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score_normal": []}, r"`score_normal` of .* at least 1 entries; got an array of shape \(0,\)"),
        ({"score_anomaly": [0.0, np.nan]}, r"`score_anomaly` of .* finite real numbers; got nan at index 1"),
        ({"score_normal": ["a"]}, r"`score_normal` of .* must be finite real numbers; got an array of dtype"),
        ({"radius": [0.1, -0.1]}, r"`radius` of .* >= 0 \(l2 distance.*\); got -0.1 at index 1"),
        (
            {"radius": [[0.1]]},
            r"`radius` of .* a number or of shape \(n_radii,\); got an array of shape \(1, 1\)",
        ),
        ({"lipschitz": 0.0}, r"`lipschitz` of .* > 0; got 0.0; only a proven constant gives a certificate"),
        (
            {"threat": "anomaly"},
            r"`threat` of .* one of 'both', 'anomalies', 'normals'; .*did you mean 'anomalies'",
        ),
    ],
)
def test_wrong_input_is_named_with_value_and_remedy(metric, change, message):
    arguments = {"score_normal": [1.0], "score_anomaly": [0.0], "radius": 0.1, "lipschitz": 1.0} | change
    with pytest.raises((ValueError, TypeError), match=message):
        metric(**arguments)


def test_a_rate_outside_the_unit_interval_is_refused():
    with pytest.raises(ValueError, match=r"`tpr` of certified_fpr_at_tpr must be .* > 0 and <= 1; got 0"):
        certified_fpr_at_tpr([1.0], [0.0], 0.0, lipschitz=1.0, tpr=0)
