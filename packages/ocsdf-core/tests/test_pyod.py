"""The PyOD detector: PyOD's own conventions, and the certificate at PyOD's threshold."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pyod", reason="needs the extra ocsdf-core[pyod]")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ocsdf import OCSDF as Estimator
from ocsdf.pyod import OCSDF


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.r_[rng.normal(size=(190, 3)), rng.uniform(-8, 8, size=(10, 3))]


@pytest.fixture(scope="module")
def detector(rows):
    return OCSDF(contamination=0.05, estimator=Estimator(max_steps=80, random_state=0)).fit(rows)


def test_training_scores_threshold_and_labels_agree(detector, rows):
    assert np.array_equal(detector.decision_scores_, detector.decision_function(rows))
    assert np.array_equal(detector.labels_, detector.decision_scores_ > detector.threshold_)
    assert detector.labels_.sum() == 10
    assert np.array_equal(detector.predict(rows), detector.labels_)


def test_score_is_the_negative_of_the_estimators(detector, rows):
    assert np.array_equal(detector.decision_function(rows), -detector.estimator_.score_samples(rows))


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities_and_confidence_lie_in_the_unit_interval(detector, rows, method):
    probability, confidence = detector.predict_proba(rows, method=method, return_confidence=True)
    assert probability.shape == (200, 2)
    assert np.allclose(probability.sum(axis=1), 1)
    assert np.all((probability >= 0) & (probability <= 1))
    label, same_confidence = detector.predict(rows, return_confidence=True)
    assert set(label) == {0, 1}
    assert np.array_equal(confidence, same_confidence)
    assert np.all((confidence >= 0) & (confidence <= 1))


def test_rejection_marks_rows_of_low_confidence(detector, rows):
    assert set(detector.predict_with_rejection(rows, T=5, c_r=0.1)) <= {-2, 0, 1}


def test_certificate_decides_as_predict_does_where_nobody_attacks(detector, rows):
    label = detector.predict(rows)
    assert np.array_equal(detector.certify(rows).decision(0.0), np.where(label == 1, -1, 1))


def test_clone_keeps_the_settings_and_nested_parameters_are_reached(detector):
    copy = clone(detector)
    assert copy.get_params()["estimator__max_steps"] == 80
    assert copy.set_params(estimator__margin=0.5).estimator.margin == 0.5
    assert not hasattr(copy, "estimator_")


def test_defaults_are_the_detection_recipe(rows):
    assert OCSDF().fit(rows[:50]).estimator_.get_params() == Estimator().get_params()


def test_not_fitted_and_wrong_contamination_are_refused(rows):
    with pytest.raises(NotFittedError):
        OCSDF().decision_function(rows)
    with pytest.raises(ValueError, match="contamination must be in"):
        OCSDF(contamination=0.7)


def test_without_pyod_the_import_says_what_to_install():
    code = "import sys; sys.modules['pyod'] = None; import ocsdf.pyod"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ocsdf.pyod needs PyOD: pip install 'ocsdf-core[pyod]'" in done.stderr
