"""The standard error of an AUROC, against the spread of drawn samples, and where the table shows it."""

import numpy as np
import pytest

from ocsdf_bench.grid import split_results
from ocsdf_bench.leaderboard.precision import standard_error, standard_error_table


@pytest.mark.parametrize(("shift", "n_normal", "n_anomaly"), [(0.0, 30, 60), (1.0, 100, 100), (2.0, 40, 400)])
def test_the_error_covers_the_spread_over_samples(shift, n_normal, n_anomaly):
    rng = np.random.default_rng(0)
    score = rng.normal(size=(1_000, n_normal + n_anomaly)) + shift * (
        np.arange(n_normal + n_anomaly) >= n_normal
    )
    ranks = score.argsort(axis=1).argsort(axis=1)[:, n_normal:].sum(axis=1)
    auroc = (ranks - n_anomaly * (n_anomaly - 1) / 2) / (n_normal * n_anomaly)
    spread = auroc.std(ddof=1)
    assert 0.95 * spread <= standard_error(auroc.mean(), n_normal, n_anomaly) <= 1.5 * spread


def test_classes_are_averaged_with_their_errors(invented_run):
    at = {"dataset": "cifar10", "protocol": "one-versus-rest", "n_test": 1000, "n_anomaly": 900}
    runs = [invented_run(auroc=a, normal_class=c, **at) for a, c in ((0.6, "cat"), (0.7, "dog"))]
    (results,) = split_results(runs)
    (row,) = standard_error_table(results).rows
    error = np.hypot(standard_error(0.6, 100, 900), standard_error(0.7, 100, 900)) / 2
    assert row.cells[2].text == f"65.0 ± {100 * error:.1f}"


def test_runs_that_do_not_say_how_many_anomalies_they_had_are_left_out(invented_run):
    run = invented_run(normal_class="cat", dataset="cifar10", protocol="one-versus-rest")
    assert standard_error_table(split_results([run])[0]) is None
