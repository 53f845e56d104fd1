"""Figures: which are drawn, what their numbers are, and that they are the same bytes each time."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from ocsdf_bench.diagram import Diagram, critical_difference_diagram
from ocsdf_bench.figure import INK, save_png, shorten, to_svg
from ocsdf_bench.grid import split_results
from ocsdf_bench.histogram import Panel, draw_scores
from ocsdf_bench.metric import Measurement
from ocsdf_bench.plot import draw_attacked, draw_certified, draw_strip, pictures


@pytest.fixture(scope="module")
def results(invented_runs):
    (found,) = split_results(invented_runs)
    return found


def _lines(figure):
    (axes, *_) = figure.axes
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def test_figures_are_those_the_runs_have_something_to_show_in(results, invented_run):
    names = [picture.name for picture in pictures(results)]
    assert names == ["critical-difference", "certified-auroc-both", "attack-l2-pgd-both", "auroc-strip"]
    (bare,) = split_results([invented_run("KNN")])
    assert pictures(bare) == ()


def test_more_detectors_than_a_figure_tells_apart_are_left_to_the_tables(invented_run):
    for n, expected in ((14, ["critical-difference", "certified-auroc-both"]), (25, [])):
        runs = [
            invented_run(f"D{i:02d}", dataset, slope=0.2)
            for i in range(n)
            for dataset in ("wine", "glass", "wbc")
        ]
        (many,) = split_results(runs)
        assert [picture.name for picture in pictures(many)] == [*expected, "auroc-strip"]


def test_every_figure_is_drawn_as_well_formed_svg_in_the_colour_of_the_page(results):
    for picture in pictures(results):
        svg = to_svg(picture.draw(), picture.name)
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "currentColor" in svg
        assert INK not in svg
        assert picture.title
        assert picture.caption


def test_the_same_figure_is_the_same_bytes(results, tmp_path):
    first, second = (save_png(draw_strip(results), tmp_path / f"{i}.png").read_bytes() for i in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")
    assert to_svg(draw_strip(results), "a") == to_svg(draw_strip(results), "a")


def test_certified_curves_start_at_the_clean_auroc_and_fall(results):
    lines = _lines(draw_certified(results, "both"))
    assert set(lines) == {"OCSDF", "KNN", "OCSDF (margin=0.05, recipe=paper)", "OCSDF-best-margin"}
    for line in lines.values():
        assert line.get_xdata()[0] == 0
        assert list(line.get_ydata()) == sorted(line.get_ydata(), reverse=True)
    variant = lines["OCSDF (margin=0.05, recipe=paper)"]
    assert list(variant.get_ydata()) == pytest.approx([75, 55, 25, 0])


def test_no_two_lines_share_marker_and_colour(invented_run):
    runs = [invented_run(f"D{i:02d}", slope=0.2) for i in range(20)]
    (many,) = split_results(runs)
    looks = [
        (x.get_color(), x.get_marker(), x.get_linestyle())
        for x in _lines(draw_certified(many, "both")).values()
    ]
    assert len(set(looks)) == len(looks) == 20


def test_attacked_curve_lies_between_the_bound_and_the_clean_value(results):
    axes = draw_attacked(results, ["attacked_auroc:l2-pgd"], "both").axes[0]
    attacked, bound = axes.lines[0], axes.lines[1]
    assert bound.get_linestyle() == ":"
    assert (attacked.get_ydata() >= bound.get_ydata()).all()


def test_radius_labels_leave_room_and_name_their_unit(invented_run):
    radii = (0.0314, 0.0627, 0.1412, 1.0)
    image = {"protocol": "one-versus-rest", "normal_class": "3", "radii": radii}
    (found,) = split_results([invented_run("KNN", "mnist", slope=0.2, **image)])
    axes = draw_certified(found, "both").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "", "", "36", "255"]
    assert axes.get_xlabel() == "radius, in 1/255 (l2)"


def test_diagram_has_the_ranks_and_joins_what_cannot_be_parted(results):
    diagram = critical_difference_diagram(results)
    assert list(diagram.ranks) == sorted(diagram.ranks)
    assert diagram.labels[0] == "OCSDF"
    assert sum(diagram.ranks) == pytest.approx(6 * 7 / 2)
    for best, worst in diagram.bars:
        assert 0 < worst - best < diagram.distance


def test_diagram_labels_do_not_overlap():
    diagram = Diagram(tuple("abcdefg"), (1.0, 2.0, 2.1, 2.2, 5.0, 6.0, 7.0), ((2.0, 2.2),), 1.0)
    places = [(left, depth) for _, _, depth, left in diagram.rows()]
    assert len(set(places)) == 7
    assert min(depth for _, depth in places) > 1.0  # under the bars


def test_tikz_is_balanced_and_escapes_names(results):
    text = critical_difference_diagram(results).tikz()
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert r"\begin{tikzpicture}" in text
    assert r"\textless{}script" in text
    assert not re.search(r"(?<!\\)[&#%$]", text)
    assert all(f"({rank:.2f})" in text for rank in critical_difference_diagram(results).ranks)


def test_names_beside_an_axis_are_one_short_line():
    assert shorten("KNN") == "KNN"
    assert shorten("a\nb") == "a b"
    assert len(shorten("x" * 100)) == 34


def test_a_name_with_dollars_is_no_mathematics(invented_run, tmp_path):
    (found,) = split_results([invented_run(name, slope=0.2) for name in ("$\\frac{$", "$x$")])
    assert save_png(draw_certified(found, "both"), tmp_path / "x.png").stat().st_size > 0


def test_the_figure_of_several_attacks_shows_the_strongest_at_each_radius(invented_run):
    measured = [Measurement("auroc", 0.9)]
    for attack, values in {"l2-pgd": (0.8, 0.0), "apgd": (0.7, 0.6)}.items():
        for radius, value in zip((0.1, 0.2), values, strict=True):
            measured += [Measurement("auroc", 0.9, radius, "both", 100)]
            measured += [Measurement(f"attacked_auroc:{attack}", value, radius, "both", 100)]
    (results,) = split_results([invented_run("DeepSVDD", "mnist", 0, metrics=tuple(measured))])
    assert "attacked-both" in {picture.name for picture in pictures(results)}
    axes = draw_attacked(results, ["attacked_auroc:l2-pgd", "attacked_auroc:apgd"], "both").axes[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [90, 70, 0])  # 0 is a result


def attacked_by(attack: str) -> tuple[Measurement, ...]:
    """A clean AUROC, and that of 100 rows before and after an attack of radius 0.1."""
    sample = (0.1, "both", 100)
    before, after = Measurement("auroc", 0.9, *sample), Measurement(f"attacked_auroc:{attack}", 0.8, *sample)
    return Measurement("auroc", 0.9), before, after


def test_the_figure_says_whom_no_attack_saw_a_gradient_of(invented_run):
    attacks = {"OCSDF": "l2-pgd", "IForest": "random-search", "KNN": "transfer"}
    runs = [invented_run(name, "mnist", 0, metrics=attacked_by(attack)) for name, attack in attacks.items()]
    captions = []
    for some in (runs, runs[:1]):
        (results,) = split_results(some)
        captions += [p.caption for p in pictures(results) if p.name == "attacked-both"]
    assert "No attack saw a gradient of IForest, KNN: a stronger one may exist." in captions[0]
    assert len(captions) == 1  # one attack alone has its own figure


def test_two_sets_of_images_have_a_figure_each(invented_run):
    cells = [("OCSDF", "mnist"), ("OCSDF", "cifar10"), ("DeepSVDD", "mnist")]
    runs = [invented_run(*cell, 0, metrics=attacked_by("l2-pgd")) for cell in cells]
    (results,) = split_results(runs)
    attacked = [picture for picture in pictures(results) if picture.name.startswith("attack-")]
    assert [p.name for p in attacked] == ["attack-l2-pgd-both-cifar10", "attack-l2-pgd-both-mnist"]
    curves = [[line.get_label() for line in p.draw().axes[0].lines[:-1]] for p in attacked]
    assert curves == [["OCSDF"], ["OCSDF", "DeepSVDD"]]


def test_a_set_of_images_without_a_bound_has_no_figure_of_bounds(invented_run):
    runs = [invented_run("OCSDF", "mnist", slope=0.2), invented_run("KNN", "cifar10")]
    (results,) = split_results(runs)
    names = [picture.name for picture in pictures(results) if picture.name.startswith("certified-")]
    assert names == ["certified-auroc-both-mnist"]


def test_an_attacked_curve_starts_clean_even_where_the_smallest_radius_was_not_attacked(invented_run):
    runs = []
    for name, radii in (("OCSDF", (0.1, 0.2)), ("DeepSVDD", (0.2,))):
        measured = [Measurement("auroc", 0.9)]
        for radius in radii:
            measured += [Measurement("auroc", 0.8, radius, "both", 100)]
            measured += [Measurement("attacked_auroc:l2-pgd", 0.3, radius, "both", 100)]
        runs.append(invented_run(name, "mnist", 0, metrics=tuple(measured)))
    (results,) = split_results(runs)
    axes = draw_attacked(results, ["attacked_auroc:l2-pgd"], "both").axes[0]
    curves = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(curves["DeepSVDD"], [80, 30])


def test_scores_of_fitted_rows_are_a_third_group_of_a_histogram():
    score, y = np.arange(10.0), np.arange(10) // 5
    names = [name for name, _, _ in Panel("a", score, y, np.zeros(3)).groups()]
    assert names == ["training rows", "normals", "anomalies"]
    assert [name for name, _, _ in Panel("a", score, y).groups()] == ["normals", "anomalies"]
    figure = draw_scores((Panel("a", score, y, np.zeros(3)), Panel("b", score, y)))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names
