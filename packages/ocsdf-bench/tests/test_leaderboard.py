"""The leaderboard's values for fixed runs: cells, marks, summary rows, failures, flags, comparison, notes."""

from __future__ import annotations

import doctest

import pytest

from ocsdf_bench.leaderboard import build_leaderboard, reading, structure
from ocsdf_bench.leaderboard.structure import Cell, Column, Row, Table
from ocsdf_bench.metric import Measurement


def _table(runs, name, causes=None):
    (section,) = build_leaderboard(runs, causes).sections
    return next(table for table in section.tables if table.name == name)


def _row(table, label):
    row = next(row for row in table.rows if row.cells[0].text.startswith(label))
    return dict(zip((c.title for c in table.columns), row.cells, strict=True))


def _ours(table, label):
    """Cells of the columns run here only: a published column may share a title."""
    row = next(row for row in table.rows if row.cells[0].text.startswith(label))
    pairs = zip(table.columns, row.cells, strict=True)
    return {column.title: cell for column, cell in pairs if "published" not in column.note}


@pytest.mark.parametrize("module", [structure, reading])
def test_doctests_of_the_modules_hold(module):
    assert doctest.testmod(module).failed == 0


def test_no_run_is_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match="`runs` of build_leaderboard must hold at least one run"):
        build_leaderboard([])


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="`rows` of Table must have 2 cells each"):
        Table("t", "t", "", (Column("a"), Column("b")), (Row((Cell("x"),)),))


def test_auroc_row_of_fixed_runs(invented_run):
    runs = [invented_run(seed=s, auroc=v) for s, v in enumerate((0.90, 0.92))]
    runs += [
        invented_run("KNN", auroc=0.85),
        invented_run("IForest", auroc=0.80),
        invented_run("COF", auroc=None),
    ]
    row = _ours(_table(runs, "auroc"), "wine")
    assert row["OCSDF"] == Cell("91.0 ± 1.4", pytest.approx(0.91), "best")
    assert row["KNN"] == Cell("85.0", 0.85, "second")
    assert row["IForest"] == Cell("80.0", 0.80, "")
    assert row["COF"] == Cell("failed", None, "missing")


def test_equal_printed_values_are_marked_alike(invented_run):
    values = {"OCSDF": 0.90004, "KNN": 0.89996, "IForest": 0.7, "PCA": 0.6}
    row = _ours(_table([invented_run(d, auroc=v) for d, v in values.items()], "auroc"), "wine")
    assert [row[name].mark for name in values] == ["best", "best", "second", ""]


def test_a_variant_and_a_chosen_column_are_never_marked_best(invented_runs):
    table = _table(invented_runs, "auroc")
    for column, cell in ((c, row.cells[i]) for row in table.rows for i, c in enumerate(table.columns)):
        if column.note:
            assert cell.mark in ("", "missing") or "transductive" in column.note


def test_columns_say_what_they_are(invented_runs):
    notes = {(c.title, c.note) for c in _table(invented_runs, "auroc").columns}
    assert ("OCSDF", "") in notes
    assert ("OCSDF (margin=0.05, recipe=paper)", "variant") in notes
    assert ("OCSDF-best-margin", "margin chosen with labels") in notes
    assert ("OCSDF-best-margin", "published, margin chosen with labels") in notes
    assert ("IForest", "published") in notes
    assert ("ECOD", "transductive") in notes


def test_a_partly_failed_cell_says_how_many_seeds_it_has(invented_run):
    runs = [invented_run(seed=0, auroc=0.9), invented_run(seed=1, auroc=None), invented_run("KNN", auroc=0.8)]
    assert _ours(_table(runs, "auroc"), "wine")["OCSDF"].text == "90.0 (1/2)"


def test_mean_row_counts_its_sets_and_an_incomplete_mean_is_not_best(invented_run):
    runs = [invented_run("KNN", d, auroc=0.8) for d in ("wine", "glass")]
    runs += [invented_run("PCA", "wine", auroc=0.99), invented_run("PCA", "glass", auroc=None)]
    runs += [invented_run("IForest", d, auroc=0.7) for d in ("wine", "glass")]
    row = _ours(_table(runs, "auroc"), "mean of 2")
    assert row["PCA"] == Cell("99.0 [1]", pytest.approx(0.99), "")
    assert row["KNN"] == Cell("80.0", pytest.approx(0.8), "best")


def test_mean_row_has_the_spread_of_the_means_over_seeds(invented_run):
    runs = [
        invented_run(dataset=dataset, seed=seed, auroc=value)
        for dataset, values in {"wine": (0.8, 0.9), "glass": (0.6, 0.7)}.items()
        for seed, value in enumerate(values)
    ]
    # Means per seed 0.7 and 0.8: mean 0.75, sample deviation 0.0707.
    assert _ours(_table(runs, "auroc"), "mean of 2")["OCSDF"].text == "75.0 ± 7.1"


def test_average_rank_row_gives_a_failure_the_worst_rank(invented_run):
    runs = [invented_run("KNN", auroc=0.8), invented_run("PCA", auroc=0.7), invented_run("COF", auroc=None)]
    row = _ours(_table(runs, "auroc"), "average rank among 3")
    assert {name: row[name].text for name in ("KNN", "PCA", "COF")} == {
        "KNN": "1.00",
        "PCA": "2.00",
        "COF": "3.00",
    }


def test_a_set_nobody_could_load_stays_in_the_table_and_out_of_the_means(invented_runs):
    table = _table(invented_runs, "auroc")
    assert _ours(table, "speech")["KNN"] == Cell("skipped", None, "missing")
    assert any(row.cells[0].text == "mean of 6" for row in table.rows)


def test_published_means_are_over_the_rows_we_have(invented_runs):
    table = _table(invented_runs, "auroc")
    index = next(i for i, c in enumerate(table.columns) if c.note.startswith("published, margin"))
    mean = next(row for row in table.rows if row.cells[0].text == "mean of 6").cells[index]
    # breastw, cardio, glass, http, wbc, wine of the paper, without speech.
    assert mean.value == pytest.approx((82.6 + 95.0 + 73.9 + 67.5 + 93.6 + 81.5) / 600)


def test_every_failed_run_is_in_the_failures_table_with_its_reason(invented_runs):
    table = _table(invented_runs, "failures")
    failed = [run for run in invented_runs if run.status != "ok"]
    assert len(table.rows) == len(failed) == 6
    reasons = {(row.cells[0].text, row.cells[1].text): row.cells[4].text for row in table.rows}
    assert reasons["http", "COF"] == "MemoryError: no room"
    assert "1 failed, 5 skipped" in table.caption


def test_no_failures_table_without_a_failure(invented_run):
    (section,) = build_leaderboard([invented_run(), invented_run("KNN")]).sections
    assert "failures" not in {table.name for table in section.tables}


def test_certified_tables_hold_every_detector_with_a_proven_constant_and_no_other(invented_runs):
    table = _table(invented_runs, "certified-auroc-summary-both")
    assert {row.cells[0].text for row in table.rows} == {
        "OCSDF",
        "KNN",
        "OCSDF (margin=0.05, recipe=paper)",
        "OCSDF-best-margin",
    }
    assert [c.title for c in table.columns[2:]] == ["clean", "radius 0.1", "radius 0.25", "radius 0.5"]
    for row in table.rows:
        values = [cell.value for cell in row.cells[2:]]
        assert values == sorted(values, reverse=True)


def test_bounds_row_by_row_have_a_line_below_of_what_the_constant_alone_proves(invented_run):
    run = invented_run(slope=0.2)
    weaker = [
        type(m)("certified_auroc:constant", m.value - 0.05, m.radius, m.threat)
        for m in run.metrics
        if m.metric == "certified_auroc"
    ]
    both = invented_run(slope=0.2, metrics=(*run.metrics, *weaker))
    table = _table([both, invented_run("KNN", slope=0.5)], "certified-auroc-summary-both")
    lines = {row.cells[0].text: row.cells[2:] for row in table.rows}
    assert list(lines) == ["OCSDF", "OCSDF, by its constant alone", "KNN"]
    ours, alone = lines["OCSDF"], lines["OCSDF, by its constant alone"]
    assert alone[0].value == ours[0].value
    assert [a.value - b.value for a, b in zip(ours[1:], alone[1:], strict=True)] == pytest.approx([0.05] * 3)
    assert {cell.mark for cell in alone} == {""}
    assert "second line" in table.caption
    assert "second line" not in _table([run], "certified-auroc-summary-both").caption


def test_a_mean_over_fewer_rows_is_not_marked_as_the_best(invented_run):
    runs = [invented_run("OCSDF", dataset, auroc=0.7, slope=0.2) for dataset in ("a", "b")]
    runs.append(invented_run("KNN-distance", "a", auroc=0.9, slope=0.2))
    table = _table(runs, "certified-auroc-summary-both")
    marks = {row.cells[0].text: (row.cells[2].text[-3:], row.cells[2].mark) for row in table.rows}
    assert marks["KNN-distance"] == ("[1]", "")
    assert marks["OCSDF"][1] == "best"
    assert "not marked" in table.caption
    assert "not marked" not in _table(runs[:2], "certified-auroc-summary-both").caption


def test_attack_table_shows_clean_attacked_and_certified_of_the_same_rows(invented_runs):
    table = _table(invented_runs, "attack-l2-pgd-both")
    assert [(c.title, c.note) for c in table.columns[2:6]] == [
        ("rows", ""),
        ("clean", ""),
        ("attacked", "0.1"),
        ("certified", "0.1"),
    ]
    (row,) = table.rows
    clean, *pairs = [cell.value for cell in row.cells[3:]]
    for attacked, certified in zip(pairs[::2], pairs[1::2], strict=True):
        assert certified <= attacked <= clean


def test_image_radii_are_printed_as_they_were_meant(invented_run):
    run = invented_run(
        dataset="mnist", normal_class="3", protocol="one-versus-rest", radii=(0.1412,), slope=0.5
    )
    table = _table(
        [run, invented_run("KNN", "mnist", normal_class="3", protocol="one-versus-rest")],
        "certified-auroc-summary-both",
    )
    assert table.columns[-1].title == "radius 36/255"
    assert "pixel" in table.caption


def test_published_certified_figures_stand_beside_ours(invented_run):
    run = invented_run(
        dataset="mnist", normal_class="3", protocol="one-versus-rest", radii=(0.1412,), slope=0.5
    )
    table = _table([run], "certified-auroc-both-0.1412")
    index = next(i for i, c in enumerate(table.columns) if c.note == "published")
    assert table.rows[0].cells[index].text == "66.2 ± 4.6"


def test_classes_have_a_mean_per_data_set(invented_run):
    runs = [
        invented_run("KNN", dataset, auroc=0.8, normal_class=c, protocol="one-versus-rest")
        for dataset in ("mnist", "cifar10")
        for c in ("1", "2")
    ]
    table = _table(runs, "auroc")
    assert _ours(table, "mnist: mean of 2 classes")["KNN"].text == "80.0"


BEST_MARGIN = {
    "params": {"recipe": "paper", "margin": [0.05, 1.0]},
    "built": "OCSDF",
    "build_params": {"recipe": "paper", "margin": 0.05},
}


@pytest.mark.parametrize(
    ("auroc", "verdict"),
    # The paper prints 81.5 ± 0.9 for wine, which 81.5499 ± 0.9499 is rounded to.
    [(0.815, "yes"), (0.8345, "yes"), (0.8346, "above"), (0.7955, "yes"), (0.7954, "below")],
)
def test_comparison_marks_what_is_outside_two_deviations(invented_run, auroc, verdict):
    runs = [invented_run("OCSDF-best-margin", auroc=auroc, **BEST_MARGIN), invented_run(auroc=0.9)]
    row = _row(_table(runs, "comparison"), "wine")
    assert row["within 2 std"].text == verdict
    assert (row["within 2 std"].mark == "warn") == (verdict != "yes")
    assert row["setting"].text == "margin=0.05; steps=400"


def test_each_reduced_run_of_the_papers_images_is_compared_with_the_paper(invented_run):
    at = {"dataset": "mnist", "normal_class": "3", "protocol": "one-versus-rest", "auroc": 0.5}
    params = {"recipe": "paper"}
    runs = [invented_run("OCSDF-VGG", **at), invented_run("OCSDF", params=params, build_params=params, **at)]
    columns = [_table(runs, name).columns[2].title for name in ("comparison", "comparison-2")]
    assert columns == ["OCSDF-VGG", "OCSDF (recipe=paper)"]
    assert _row(_table(runs, "comparison"), "mnist / 3")["within 2 std"].text == "below"


def test_the_best_margin_of_another_recipe_is_no_repetition_of_the_paper(invented_run):
    other = {**BEST_MARGIN, "params": {"margin": [0.05, 1.0]}, "build_params": {"margin": 0.05}}
    (section,) = build_leaderboard([invented_run("OCSDF-best-margin", **other)], None).sections
    assert "comparison" not in {table.name for table in section.tables}


def test_comparison_shows_the_cause_only_where_one_is_needed(invented_run):
    inside = [invented_run("OCSDF-best-margin", auroc=0.815, **BEST_MARGIN)]
    outside = [invented_run("OCSDF-best-margin", auroc=0.6, **BEST_MARGIN)]
    causes = {"wine": "80 steps where the paper takes 400"}
    assert _row(_table(inside, "comparison", causes), "wine")["cause"].text == ""
    assert _row(_table(outside, "comparison", causes), "wine")["cause"].text == causes["wine"]
    assert _row(_table(outside, "comparison"), "wine")["cause"].text == "none given"


def test_a_cause_of_a_data_set_holds_for_its_classes_and_one_of_a_class_comes_first(invented_run):
    at = {"dataset": "mnist", "protocol": "one-versus-rest", "auroc": 0.5}
    runs = [invented_run("OCSDF-VGG", normal_class=digit, **at) for digit in "34"]
    table = _table(runs, "comparison", {"mnist": "the set's", "mnist / 4": "the digit's"})
    assert [_row(table, f"mnist / {digit}")["cause"].text for digit in "34"] == ["the set's", "the digit's"]


def test_a_figure_printed_without_its_spread_is_compared_by_its_difference_alone(invented_run):
    at = {"dataset": "cats-vs-dogs", "normal_class": "cat", "protocol": "one-versus-rest"}
    runs = [invented_run("OCSDF-VGG", auroc=0.529, **at), invented_run("OCSDF", auroc=0.525, **at)]
    table = _table(runs, "comparison", {"cats-vs-dogs": "fewer images"})
    row = _row(table, "cats-vs-dogs / cat")
    assert (row["difference"].text, row["difference of OCSDF"].text) == ("-2.1", "-2.5")
    assert row["within 2 std"] == Cell("no spread printed")
    assert row["cause"].text == "fewer images"
    assert "rows lie outside" not in table.caption


def test_pyod_table_stands_beside_the_same_detectors_only(invented_runs):
    table = _table(invented_runs, "pyod")
    assert {c.title for c in table.columns[1:]} == {"KNN", "IForest"}
    assert _row(table, "glass")["KNN"].value == pytest.approx(0.8508)


def _flags(*runs):
    (section,) = build_leaderboard(runs).sections
    tables = [table for table in section.tables if table.name == "red-flags"]
    return [row.cells[2].text for table in tables for row in table.rows]


def test_red_flags_worse_than_chance_few_scores_and_an_ignored_seed(invented_run):
    assert "AUROC under 0.5" in _flags(invented_run("KNN", auroc=0.4))[0]
    assert "few distinct scores (3 on 378 rows)" in _flags(invented_run("KNN", distinct_scores=3))[0]
    same = [invented_run("IForest", seed=s, scores_sha256="a" * 64) for s in (0, 1)]
    assert _flags(*same) == ["two seeds gave the same scores: the seed may be ignored"]
    assert _flags(invented_run("IForest"), invented_run("IForest", seed=1)) == []


def test_a_footnote_names_every_flagged_column(invented_run):
    flagged = [invented_run("KNN", name, auroc=0.4) for name in ("wine", "glass")]
    (section,) = build_leaderboard([*flagged, invented_run("LOF", auroc=0.3), invented_run()]).sections
    assert section.notes[-1].startswith("Red flags: KNN 2, LOF 1. ")
    (section,) = build_leaderboard([invented_run()]).sections
    assert not [note for note in section.notes if note.startswith("Red flags")]


def test_red_flag_where_an_attack_beats_a_certificate(invented_run):
    good = invented_run(slope=0.2, attacked=True)
    worse = [m for m in good.metrics if m.metric == "certified_auroc" and m.n_test][0]
    metrics = tuple(
        type(m)(m.metric, m.value + 0.2, m.radius, m.threat, m.n_test) if m == worse else m
        for m in good.metrics
    )
    assert _flags(good) == []
    (flag,) = _flags(invented_run(slope=0.2, attacked=True, metrics=metrics))
    assert flag == "l2-pgd at radius 0.1 beats the certificate: the stated constant is wrong"


def test_red_flag_where_an_attack_is_no_better_than_noise(invented_run):
    weak = [
        Measurement(f"attacked_auroc:{name}", value, 0.1, "both", 100)
        for name, value in (("l2-pgd", 0.85), ("noise", 0.84))
    ]
    metrics = (Measurement("auroc", 0.9), *weak)
    assert _flags(invented_run(metrics=metrics)) == ["l2-pgd at radius 0.1 is no better than random noise"]


def test_budget_caps_and_constants_are_in_the_detectors_table(invented_runs):
    table = _table(invented_runs, "detectors")
    assert _row(table, "COF")["row cap"].text == "2,000"
    assert _row(table, "OCSDF")["budget"].text == "steps 400"
    assert _row(table, "KNN")["proven constant"].text == "1"
    assert _row(table, "OCSDF-best-margin")["parameters"].text == '{"margin":[0.05,1.0],"recipe":"paper"}'


def test_notes_state_protocol_threat_unit_versions_hardware_and_commit(invented_runs):
    (section,) = build_leaderboard(invented_runs).sections
    notes = " ".join(section.notes)
    for expected in (
        "fit on all rows",
        "anomalies and normals move",
        "standardised units",
        "numpy 2.4.6",
        "invented CPU",
        "0123456789ab",
        "transductive",
        "Chosen with labels",
        "2303.01978",
    ):
        assert expected.lower() in notes.lower()


def test_leaderboard_does_not_depend_on_the_order_of_runs(invented_runs):
    forward, backward = (build_leaderboard(runs).sections[0] for runs in (invented_runs, invented_runs[::-1]))
    assert forward.tables == backward.tables
    assert forward.notes == backward.notes


def test_ranking_lists_every_column_and_tests_against_ocsdf(invented_runs):
    table = _table(invented_runs, "ranking")
    assert len(table.rows) == 8
    assert table.rows[0].cells[0].text == "OCSDF"
    assert "Friedman" in table.caption
    assert "breast-cancer-wisconsin" in table.caption


def test_training_rows_stand_beside_new_ones_with_their_gap_and_what_collapsed(invented_run):
    measured = (Measurement("auroc", 0.8), Measurement("train_auroc", 0.95))
    image = {"protocol": "one-versus-rest", "metrics": measured, "budget": {"collapsed": True}}
    runs = [invented_run("DeepSVDD", "mnist", 0, normal_class=c, **image) for c in ("0", "1")]
    table = _table(runs, "training-gap")
    assert [cell.text for cell in table.rows[0].cells] == [
        "mnist",
        "DeepSVDD",
        "95.0",
        "80.0",
        "+15.0",
        "2 of 2",
    ]
    assert table.rows[0].cells[-1].mark == "warn"


def test_the_papers_attacked_means_stand_under_ours(invented_run):
    radius = 36 / 255
    measured = tuple(
        Measurement(name, value, radius, "both", 400)
        for name, value in (("auroc", 0.9), ("attacked_auroc:l2-pgd", 0.8))
    )
    run = invented_run("DeepSVDD", "mnist", 0, normal_class="0", protocol="one-versus-rest", metrics=measured)
    table = _table([run], "attack-l2-pgd-both")
    shown = {row.cells[1].text: [cell.text for cell in row.cells[3:]] for row in table.rows}
    assert shown["DeepSVDD"] == ["90.0", "80.0", "–"]
    assert shown["DeepSVDD, published"][1:] == ["88.2", "–"]
    assert shown["OCSDF, published"][2] == "78.4"  # certified at 36/255


def test_intervals_that_overlap_the_best_of_a_class_are_marked(invented_run):
    values = {"OCSDF": (0.90, 0.94), "IForest": (0.88, 0.91), "KNN": (0.70, 0.71)}
    runs = [
        invented_run(name, "mnist", seed, value, normal_class="0", protocol="one-versus-rest")
        for name, pair in values.items()
        for seed, value in enumerate(pair)
    ]
    table = _table(runs, "auroc")
    cells = zip(table.columns, table.rows[0].cells, strict=True)
    marked = {column.title: cell.text for column, cell in cells if column.note != "published"}
    assert marked["IForest"].endswith("≈")
    assert not marked["OCSDF"].endswith("≈")
    assert not marked["KNN"].endswith("≈")
