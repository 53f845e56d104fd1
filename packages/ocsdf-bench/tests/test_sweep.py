"""Curves against one parameter: which runs make one, and what is drawn."""

import pytest

from ocsdf_bench.grid import split_results
from ocsdf_bench.sweep import draw_sweep, sweeps


@pytest.fixture
def results(invented_run):
    runs = [invented_run(auroc=0.9)]
    for trim, auroc in ((0.0, 0.7), (0.3, 0.8), (0.05, 0.75)):
        runs.append(invented_run(params={"trim": trim}, auroc=auroc, slope=0.2))
    runs += [invented_run(params={"margin": m, "hidden": [4]}, auroc=0.6) for m in (1, 2)]
    return split_results(runs)[0]


def test_values_of_one_parameter_make_a_curve_from_three_on(results):
    (sweep,) = sweeps(results)
    assert (sweep.detector, sweep.parameter, sweep.rest) == ("OCSDF", "trim", "{}")
    assert sweep.values == (0.0, 0.05, 0.3)
    assert sweep.default is not None


def test_the_curve_is_the_mean_of_the_runs_with_the_default_at_the_right(results):
    (axes,) = draw_sweep(results, next(sweeps(results))).axes
    clean, default = axes.lines[:2]
    assert list(clean.get_ydata()) == pytest.approx([70, 75, 80])
    assert list(default.get_ydata()) == pytest.approx([90])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "0.05", "0.3", "default"]
