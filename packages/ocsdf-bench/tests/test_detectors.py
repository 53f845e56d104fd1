"""What every registered detector promises, whoever wrote it."""

from __future__ import annotations

import importlib.util
import inspect
import json
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from ocsdf_bench.detector import DETECTORS, Detector
from ocsdf_bench.signature import parameter_problems

FEW_STEPS: dict[str, dict[str, Any]] = {name: {"max_steps": 60} for name in ("OCSDF", "ReLU-BCE")}
FEW_STEPS |= {name: {"max_steps": 20} for name in ("DAGMM", "DeepSVDD", "DeepSVDD-PyOD")}
ADBENCH = ["PCA", "OCSVM", "LOF", "CBLOF", "COF", "HBOS", "KNN", "SOD", "COPOD", "ECOD"]
ADBENCH += ["DeepSVDD", "DAGMM", "LODA", "IForest"]
GRADIENT = ["OCSDF", "KNN-distance", "KNN-mean", "Mean-distance", "PCA-residual", "Mahalanobis"]
GRADIENT += ["Affine-patches", "OCSVM-RBF", "PCA-OCSVM", "KDE"]
TENSORFLOW = ["OCSDF", "ReLU-BCE", "DeepSVDD", "DAGMM"]
# Other test modules of one process add detectors of their own.
OURS = [i for i in DETECTORS if getattr(i.build, "func", i.build).__module__.startswith("ocsdf_bench.")]
TABLES = [
    pytest.param(
        info.name,
        marks=[
            pytest.mark.skipif(
                info.fresh, reason="needs a fresh process: test_ocsdf_deel_lip.py gives it one"
            ),
            pytest.mark.skipif(
                any(importlib.util.find_spec(module) is None for module in info.needs),
                reason=f"the extra {info.extra!r} is not installed",
            ),
        ],
    )
    for info in OURS
    if "table" in info.kinds
]


def rows(seed: int = 0) -> np.ndarray:
    """200 correlated rows with a constant column and 20 duplicates: both are common in real tables."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)), np.ones((200, 1))])
    X[180:] = X[:20]
    return X


OUTLIER = np.array([[30.0, -30.0, 30.0, 30.0, 1.0]])


@lru_cache
def fitted(name: str, seed: int = 0) -> Detector:
    detector = DETECTORS[name].build(seed=seed, **FEW_STEPS.get(name, {}))
    detector.fit(rows())
    return detector


@pytest.mark.parametrize("name", ADBENCH)
def test_the_fourteen_of_adbench_are_registered(name: str) -> None:
    assert DETECTORS[name].source


@pytest.mark.parametrize("name", TABLES)
def test_scores_are_finite_one_a_row_and_not_constant(name: str) -> None:
    score = fitted(name).anomaly_score(rows())
    assert score.shape == (200,)
    assert score.dtype == float
    assert np.isfinite(score).all()
    assert len(np.unique(score)) > 20


@pytest.mark.parametrize("name", TABLES)
def test_higher_is_more_anomalous(name: str) -> None:
    score = fitted(name).anomaly_score(np.vstack([rows(), OUTLIER]))
    assert score[-1] > np.quantile(score[:-1], 0.9)


@pytest.mark.parametrize("name", TABLES)
def test_same_seed_same_scores_and_the_seed_is_used(name: str) -> None:
    score = fitted(name).anomaly_score(rows())
    again = DETECTORS[name].build(seed=0, **FEW_STEPS.get(name, {}))
    again.fit(rows())
    # torch sums in the order of how its arrays lie in memory.
    rounding = 1e-5 if "torch" in DETECTORS[name].needs else 0.0
    np.testing.assert_allclose(again.anomaly_score(rows()), score, rtol=rounding, atol=0)
    other = fitted(name, seed=1).anomaly_score(rows())
    subsamples = name in ("KNN-distance", "KNN-mean", "KDE")  # 200 rows are fewer than the reference
    if not subsamples:
        assert np.array_equal(score, other) == DETECTORS[name].deterministic


@pytest.mark.parametrize("name", TABLES)
def test_scores_depend_on_the_batch_only_where_marked(name: str) -> None:
    detector, X = fitted(name), rows()
    whole, part = detector.anomaly_score(X)[:50], detector.anomaly_score(X[:50])
    # 1e-4: float32 networks sum in another order for another batch size
    same = np.allclose(whole, part, rtol=1e-4, atol=1e-4 * np.ptp(whole))
    assert same != DETECTORS[name].transductive


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_left_as_they_were(name: str) -> None:
    X = rows()
    fitted(name).anomaly_score(X)
    np.testing.assert_array_equal(X, rows())


@pytest.mark.parametrize("name", TABLES)
def test_budget_is_json(name: str) -> None:
    budget = getattr(fitted(name), "budget", {})
    assert json.loads(json.dumps(budget)) == budget


@pytest.mark.parametrize("info", OURS, ids=lambda info: info.name)
def test_parameters_are_keywords_that_a_suite_can_check(info: Any) -> None:
    signature = inspect.signature(info.build).parameters
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in signature.values())
    assert signature["seed"].default is inspect.Parameter.empty
    defaults = {name: p.default for name, p in signature.items() if name != "seed"}
    assert not list(parameter_problems(info, defaults))
    assert list(parameter_problems(info, {"contamination": 0.1}))


@pytest.mark.parametrize("name", TABLES)
def test_images_are_taken_as_they_are(name: str) -> None:
    images = np.random.default_rng(0).normal(size=(60, 4, 4))
    detector = DETECTORS[name].build(seed=0, **FEW_STEPS.get(name, {}))
    detector.fit(images)
    assert detector.anomaly_score(images).shape == (60,)
    if hasattr(detector, "gradient"):
        assert detector.gradient(images).shape == images.shape


@pytest.mark.parametrize("name", GRADIENT)
def test_gradient_is_that_of_the_score(name: str) -> None:
    detector: Any = fitted(name)
    X = np.random.default_rng(5).normal(size=(20, 5)) * 3
    gradient, step = detector.gradient(X), 1e-6
    for column in range(5):
        shift = step * np.eye(5)[column]
        slope = (detector.anomaly_score(X + shift) - detector.anomaly_score(X - shift)) / (2 * step)
        # 1e-5: central differences of a float64 score; kinks between the two points have measure 0
        np.testing.assert_allclose(gradient[:, column], slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", TENSORFLOW)
def test_tensorflow_score_is_the_anomaly_score(name: str) -> None:
    detector: Any = fitted(name)
    X = rows()
    import tensorflow as tf

    x = tf.constant(X, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        score = detector.tensorflow_score(x)
    expected = detector.anomaly_score(X)
    # float32 against float64 weights
    np.testing.assert_allclose(score, expected, rtol=1e-3, atol=1e-4 * np.ptp(expected))
    slope = np.asarray(tape.gradient(score, x))
    assert np.isfinite(slope).all()
    assert np.abs(slope).max() > 0
