"""Cells, means and ranks of fixed runs."""

from __future__ import annotations

import numpy as np
import pytest

from ocsdf_bench.grid import Block, Key, Results, natural, split_results

AUROC = Key("auroc")


def _results(runs) -> Results:
    (results,) = split_results(runs)
    return results


def test_cell_is_the_mean_and_sample_deviation_over_seeds(invented_run):
    runs = [invented_run(seed=seed, auroc=value) for seed, value in enumerate((0.8, 0.9, 1.0))]
    grid = _results(runs).grid(AUROC)
    assert grid.mean[0, 0] == pytest.approx(0.9)
    assert grid.std[0, 0] == pytest.approx(0.1)
    assert grid.n_seeds[0, 0] == 3


def test_a_failed_run_is_a_missing_value_and_never_a_zero(invented_run):
    runs = [invented_run(auroc=0.9), invented_run("KNN", auroc=None)]
    results = _results(runs)
    grid = results.grid(AUROC)
    assert [m.label for m in grid.methods] == ["OCSDF", "KNN"]
    assert np.isnan(grid.mean[0, 1])
    assert results.cells[Block("wine"), grid.methods[1]][0].status == "failed"


def test_one_failed_seed_leaves_the_mean_of_the_others(invented_run):
    grid = _results([invented_run(auroc=0.9), invented_run(seed=1, auroc=None)]).grid(AUROC)
    assert grid.mean[0, 0] == pytest.approx(0.9)
    assert np.isnan(grid.std[0, 0])
    assert grid.n_seeds[0, 0] == 1


def test_the_later_of_two_runs_of_one_key_counts(invented_run):
    grid = _results([invented_run(auroc=None), invented_run(auroc=0.7)]).grid(AUROC)
    assert grid.mean[0, 0] == pytest.approx(0.7)


def test_results_do_not_depend_on_the_order_in_which_runs_finished(invented_runs):
    forward, backward = _results(invented_runs), _results(invented_runs[::-1])
    assert forward.runs == backward.runs
    assert forward.methods == backward.methods


def test_roles_main_variant_chosen(invented_runs):
    roles = {m.label: m.role for m in _results(invented_runs).methods}
    assert roles["OCSDF"] == roles["KNN"] == "main"
    assert roles["OCSDF (margin=0.05, recipe=paper)"] == "variant"
    assert roles["OCSDF-best-margin"] == "chosen"


def test_label_free_ocsdf_comes_first_and_the_rest_by_rank(invented_runs):
    methods = _results(invented_runs).methods
    grid = _results(invented_runs).grid(AUROC)
    ranks = grid.average_ranks()
    assert methods[0].label == "OCSDF"
    main = [ranks[i] for i, m in enumerate(methods) if m.role == "main"][1:]
    assert main == sorted(main)
    assert [m.role for m in methods][-1] == "chosen"


def test_a_variant_is_ranked_in_place_of_its_base_and_pushes_nobody_down(invented_run):
    runs = [
        invented_run("OCSDF", auroc=0.9),
        invented_run("KNN", auroc=0.8),
        invented_run("IForest", auroc=0.7),
        invented_run("OCSDF", auroc=0.85, params={"margin": 1.0}),
        invented_run("OCSDF", auroc=0.75, params={"margin": 0.2}),
    ]
    grid = _results(runs).grid(AUROC)
    ranks = dict(zip((m.label for m in grid.methods), grid.average_ranks(), strict=True))
    assert ranks == {"OCSDF": 1, "KNN": 2, "IForest": 3, "OCSDF (margin=1.0)": 1, "OCSDF (margin=0.2)": 2}


def test_an_ablation_of_one_detector_ranks_every_column(invented_run):
    runs = [invented_run(auroc=0.5 + m / 10, params={"margin": m}) for m in (1, 2, 3)]
    grid = _results(runs).grid(AUROC)
    assert sorted(grid.average_ranks()) == [1, 2, 3]


def test_long_parameters_are_cut_where_the_column_is_told_from_the_others_without_them(invented_run):
    long = {f"parameter_{i}": i for i in range(5)}
    alone = _results([invented_run("KNN", params=long), invented_run("LOF", params={"k": 3})])
    assert {m.label for m in alone.methods} == {"KNN (…parameter_3=3, parameter_4=4)", "LOF (k=3)"}
    two = _results([invented_run("KNN", params=long), invented_run("KNN", params={**long, "parameter_0": 9})])
    assert all("parameter_0=" in m.label for m in two.methods)
    assert len({m.label for m in two.methods}) == 2


def test_a_rate_that_should_be_low_is_ranked_so(invented_run):
    results = _results([invented_run(auroc=0.9), invented_run("KNN", auroc=0.6)])
    assert results.grid(Key("fpr_at_95_tpr")).average_ranks().tolist() == [1, 2]


def test_values_of_a_sample_are_kept_apart_from_those_of_all_rows(invented_run):
    results = _results([invented_run(auroc=0.9, slope=0.2, attacked=True)])
    assert results.grid(AUROC).mean[0, 0] == 0.9
    assert results.grid(Key("auroc", 0.1, "both", 100)).mean[0, 0] == pytest.approx(0.89)
    assert len(results.keys("certified_auroc")) == 6


def test_protocols_of_one_suite_are_apart(invented_run):
    found = split_results([invented_run(), invented_run(protocol="adbench")])
    assert [r.protocol for r in found] == ["unsupervised", "adbench"]


def test_classes_are_in_their_natural_order(invented_run):
    results = _results([invented_run(normal_class=str(c)) for c in (10, 2, 1)])
    assert [b.label for b in results.blocks] == ["wine / 1", "wine / 2", "wine / 10"]
    assert sorted(["b10", "B2", "a"], key=natural) == ["a", "B2", "b10"]
    assert sorted(["m=1.0", "m=0.2", "m=0.05"], key=natural) == ["m=0.05", "m=0.2", "m=1.0"]


def test_filled_drops_what_has_no_value(invented_runs):
    grid = _results(invented_runs).grid(Key("certified_auroc", 0.1, "both")).filled()
    assert {m.detector for m in grid.methods} == {"OCSDF", "KNN", "OCSDF-best-margin"}
    assert "speech" not in {b.dataset for b in grid.blocks}
