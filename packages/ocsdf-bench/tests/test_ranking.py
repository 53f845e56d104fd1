"""Ranks and tests against cases worked by hand, tables of textbooks and independent libraries."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ocsdf_bench import ranking

NAN = float("nan")

# AUC of C4.5 and its variants on 14 data sets: Demšar, JMLR 7 (2006), table 6.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_doctests_of_the_module_hold():
    assert doctest.testmod(ranking).failed == 0


def test_average_ranks_equal_the_published_ones():
    assert ranking.average_ranks(DEMSAR) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)


def test_friedman_equals_the_published_statistic_and_scipy():
    found = ranking.friedman(DEMSAR)
    expected = stats.friedmanchisquare(*DEMSAR.T)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)


def test_friedman_without_ties_equals_the_published_statistic():
    # The article prints 9.28 without the correction for ties: 12 N / (k (k + 1)) (sum R^2 - k (k + 1)^2 / 4).
    uncorrected = 12 * 14 / 20 * (np.sum(ranking.average_ranks(DEMSAR) ** 2) - 25)
    untied = np.mean([stats.tiecorrect(row) for row in stats.rankdata(-DEMSAR, axis=1)])
    assert uncorrected == pytest.approx(9.28, abs=0.005)
    assert ranking.friedman(DEMSAR).statistic == pytest.approx(uncorrected / untied)


@pytest.mark.parametrize(
    ("values", "why"),
    [([[0.5, 0.6]] * 5, "two methods"), ([[0.1, 0.2, 0.3]], "one block"), ([[0.5] * 3] * 4, "all tied")],
)
def test_friedman_is_undefined_rather_than_wrong(values, why):
    assert np.isnan(ranking.friedman(np.array(values)).p_value), why


def test_critical_difference_equals_the_published_one():
    assert ranking.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_studentized_range_quantiles_equal_the_textbook_table(k, q):
    # Demšar's table 5(a); N = k (k + 1) / 6 leaves q alone under the root.
    n_blocks = 100
    root = np.sqrt(k * (k + 1) / (6 * n_blocks))
    assert ranking.critical_difference(k, n_blocks) / root == pytest.approx(q, abs=1e-3)


def test_holm_worked_by_hand():
    # sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 = 0.02, 0.03, 0.06, 0.04; never decreasing: 0.06
    assert ranking.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_ignores_undefined_tests():
    assert ranking.holm([0.02, NAN, 0.01]) == pytest.approx([0.02, NAN, 0.02], nan_ok=True)


def test_wilcoxon_worked_by_hand():
    # Six positive differences: the smallest possible two-sided p-value is 2 / 2^6.
    assert ranking.wilcoxon([1, 2, 3, 4, 5, 6], [0] * 6) == pytest.approx(2 / 64)


def test_wilcoxon_of_equal_methods_is_one_and_of_none_is_undefined():
    assert ranking.wilcoxon([0.5, 0.6], [0.5, 0.6]) == 1.0
    assert np.isnan(ranking.wilcoxon([NAN], [0.5]))


def test_wilcoxon_uses_only_the_common_blocks():
    first, second = [1, 2, 3, 4, 5, 6, NAN], [0, 0, 0, 0, 0, 0, 9]
    assert ranking.wilcoxon(first, second) == pytest.approx(2 / 64)


def test_pairs_against_a_reference_are_adjusted_over_those_only():
    values = np.column_stack([np.arange(6) + 2.0, np.arange(6) + 1.0, np.arange(6) * 1.0])
    against, everyone = ranking.wilcoxon_holm(values, reference=0), ranking.wilcoxon_holm(values)
    assert [(p.first, p.second) for p in against] == [(0, 1), (0, 2)]
    assert against[0].p_holm == pytest.approx(2 * 2 / 64)
    assert everyone[0].p_holm == pytest.approx(3 * 2 / 64)
    assert against[1].mean_difference == pytest.approx(2.0)


def test_missing_takes_the_worst_rank_and_never_improves_it():
    full = np.array([[0.9, 0.8, 0.7], [0.9, 0.1, 0.7]])
    missing = full.copy()
    missing[1, 1] = NAN
    assert ranking.ranks(missing)[1].tolist() == [1.0, 3.0, 2.0]
    missing[1, 2] = NAN
    assert ranking.ranks(missing)[1].tolist() == [1.0, 2.5, 2.5]


def test_a_block_without_any_result_is_left_out():
    values = np.array([[0.9, 0.8], [NAN, NAN]])
    assert ranking.average_ranks(values).tolist() == [1.0, 2.0]
    assert np.isnan(ranking.average_ranks(values[1:])).all()


def test_nemenyi_agrees_with_its_critical_difference():
    p = ranking.nemenyi(DEMSAR)
    average = ranking.average_ranks(DEMSAR)
    distance = ranking.critical_difference(4, len(DEMSAR))
    far = np.abs(average[:, None] - average[None, :]) > distance
    assert np.array_equal(p < 0.05, far)


def test_nemenyi_equals_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs", reason="scikit-posthocs is not installed")
    expected = posthocs.posthoc_nemenyi_friedman(DEMSAR).to_numpy()
    assert ranking.nemenyi(DEMSAR) == pytest.approx(expected, abs=1e-6)


def test_cliques_are_maximal_and_leave_single_methods_out():
    assert ranking.cliques([1.0, 1.2, 1.4, 5.0], 1.0) == ((0, 1, 2),)
    assert ranking.cliques([3.0, 1.0, 2.0], 1.5) == ((1, 2), (2, 0))
    assert ranking.cliques([1.0, 5.0], 1.0) == ()


def test_bootstrap_interval_covers_the_mean_and_is_reproducible():
    first, second = ranking.mean_intervals(DEMSAR), ranking.mean_intervals(DEMSAR)
    assert first == second
    for interval, mean in zip(first, DEMSAR.mean(axis=0), strict=True):
        assert interval.mean == pytest.approx(mean)
        assert interval.low < mean < interval.high


def test_bootstrap_interval_agrees_with_scipy():
    expected = stats.bootstrap((DEMSAR[:, 0],), np.mean, method="percentile", rng=1).confidence_interval
    found = ranking.mean_intervals(DEMSAR[:, :1])[0]
    # Two independent sets of 10,000 resamples: the ends move by about 1 % of the interval's width.
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.004)


def test_bootstrap_of_a_missing_method_is_undefined():
    interval = ranking.mean_intervals(np.array([[NAN, 0.5], [NAN, 0.5]]))
    assert np.isnan(interval[0].mean)
    assert interval[1] == ranking.Interval(0.5, 0.5, 0.5)


def test_families_vote_once_and_members_without_a_value_do_not_count():
    values = np.array([[0.5, NAN], [0.7, NAN], [0.9, 0.1], [0.2, 0.3]])
    merged, names = ranking.merge_families(values, ["cancer", "cancer", "", "cancer"])
    assert merged == pytest.approx(np.array([[1.4 / 3, 0.3], [0.9, 0.1]]))
    assert names == ("cancer", "")


def test_families_of_the_wrong_length_are_refused():
    with pytest.raises(ValueError, match="`families` of merge_families .* got 1 for 2 blocks"):
        ranking.merge_families(np.ones((2, 1)), ["a"])


@settings(max_examples=50, deadline=None)
@given(
    arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.floats(0, 1) | st.just(NAN))
)
def test_ranks_of_a_block_always_sum_to_the_same(values):
    table = ranking.ranks(values)
    k = values.shape[1]
    assert table.sum(axis=1) == pytest.approx(np.full(len(table), k * (k + 1) / 2))


@settings(max_examples=25, deadline=None)
@given(arrays(float, (8, 3), elements=st.floats(0, 1, width=16)))
def test_ranks_do_not_depend_on_a_monotone_rescaling(values):
    assert np.array_equal(ranking.ranks(values), ranking.ranks(values / 2 + 7))
