import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from ocsdf_bench.metric import (
    THREATS,
    Measurement,
    ScoreError,
    auroc,
    average_precision,
    fpr_at_95_tpr,
    measure_attacked,
    measure_certified,
    measure_clean,
    require_scores,
)

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=25)


def _arrays(rows):
    y, score = (np.array(column) for column in zip(*rows, strict=True))
    assume(0 < y.sum() < len(y))
    return y, score.astype(float)


@given(ROWS)
def test_auroc_is_the_pair_count_with_ties_as_one_half(rows):
    y, score = _arrays(rows)
    gap = score[y == 1][:, None] - score[y == 0][None, :]
    assert auroc(y, score) == pytest.approx((gap > 0).mean() + 0.5 * (gap == 0).mean(), abs=1e-12)


@given(ROWS)
def test_metrics_agree_with_scikit_learn(rows):
    y, score = _arrays(rows)
    assert auroc(y, score) == roc_auc_score(y, score)
    assert average_precision(y, score) == average_precision_score(y, score)


@given(ROWS)
def test_fpr_at_95_tpr_is_the_best_over_every_threshold(rows):
    y, score = _arrays(rows)
    reached = [(score[y == 0] >= t).mean() for t in np.unique(score) if (score[y == 1] >= t).mean() >= 0.95]
    assert fpr_at_95_tpr(y, score) == pytest.approx(min(reached), abs=1e-12)


def test_fpr_at_95_tpr_counts_19_of_20_anomalies_as_enough():
    y = np.r_[np.ones(20, int), np.zeros(10, int)]
    score = np.r_[np.full(19, 2.0), -1.0, np.zeros(10)]
    assert fpr_at_95_tpr(y, score) == 0.0


@given(ROWS, st.floats(0, 3), st.sampled_from(THREATS))
def test_certified_never_exceeds_clean_and_falls_with_the_radius(rows, radius, threat):
    y, score = _arrays(rows)
    clean = {m.metric: m.value for m in measure_clean(y, score)}
    near = {m.metric: m.value for m in measure_certified(y, score, 1.0, [radius], [threat])}
    far = {m.metric: m.value for m in measure_certified(y, score, 1.0, [2 * radius], [threat])}
    assert far["certified_auroc"] <= near["certified_auroc"] <= clean["auroc"] + 1e-12
    assert near["certified_average_precision"] <= clean["average_precision"] + 1e-12
    assert near["certified_fpr_at_95_tpr"] >= clean["fpr_at_95_tpr"] - 1e-12


def test_certified_auroc_is_measured_on_anomaly_scores():
    y, score = np.array([0, 0, 1, 1]), np.array([0.0, 1.0, 3.0, 9.0])
    values = {m.radius: m.value for m in measure_certified(y, score, 1.0, [0.0, 1.25], ["both"])
              if m.metric == "certified_auroc"}  # fmt: skip
    assert values == {0.0: 1.0, 1.25: 0.75}  # the gap of 2 is closed by 2 * 1.25, the others are not


def test_attacked_is_reported_beside_clean_and_certified_of_the_same_rows():
    y, clean = np.array([0, 0, 1, 1]), np.array([0.0, 1.0, 1.5, 9.0])
    attacked = clean + np.array([0.4, 0.4, -0.4, -0.4])
    found = measure_attacked("x", y, clean, attacked, 0.4, ["both", "normals"], 1.0)
    assert {m.metric for m in found} == {"attacked_auroc:x", "auroc", "certified_auroc"}
    assert all(m.radius == 0.4 and m.n_test == 4 for m in found)
    both = {m.metric: m.value for m in found if m.threat == "both"}
    assert both["certified_auroc"] <= both["attacked_auroc:x"] == 0.75 < both["auroc"] == 1.0
    assert {m.value for m in found if m.threat == "normals"} == {1.0}


def test_a_detectors_own_bounds_take_the_place_of_its_constant_which_is_reported_beside():
    y, score = np.array([0, 0, 1, 1]), np.array([0.0, 1.0, 3.0, 9.0])
    bounds = {1.25: np.array([1.0, 2.0, 1.75, 7.75])}  # by its constant the normals reach 1.25 and 2.25
    found = {
        (m.metric, m.radius, m.threat): m.value
        for m in measure_certified(y, score, 1.0, [0.0, 1.25], ["both", "normals"], bounds)
    }
    assert found["certified_auroc", 0.0, "both"] == 1.0
    assert found["certified_auroc", 1.25, "both"] == 0.75
    assert found["certified_auroc:constant", 1.25, "both"] == 0.75
    assert found["certified_fpr_at_95_tpr", 1.25, "both"] == 0.5
    assert found["certified_auroc", 1.25, "normals"] == 1.0
    assert ("certified_auroc:constant", 0.0, "both") not in found
    tighter = {1.25: np.array([0.5, 1.5, 1.75, 7.75])}
    values = {m.metric: m.value for m in measure_certified(y, score, 1.0, [1.25], ["both"], tighter)}
    assert (values["certified_auroc"], values["certified_auroc:constant"]) == (1.0, 0.75)
    attacked = measure_attacked("x", y, score, score, 1.25, ["both"], 1.0, tighter)
    assert {m.metric: m.value for m in attacked}["certified_auroc"] == 1.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused_with_their_place(bad):
    with pytest.raises(ScoreError, match="in 1 of 3 rows, first at 1"):
        require_scores([0.0, bad, 1.0], 3)


def test_scores_of_another_shape_are_refused():
    with pytest.raises(ScoreError, match=r"shape \(3,\); got \(3, 1\)"):
        require_scores(np.zeros((3, 1)), 3)


def test_a_measurement_survives_json():
    for entry in (Measurement("auroc", 0.5), Measurement("attacked_auroc:x", 0.5, 0.1, "both", 20)):
        assert Measurement.from_json(entry.to_json()) == entry
