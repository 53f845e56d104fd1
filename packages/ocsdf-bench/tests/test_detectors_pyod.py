"""The adapter of PyOD, and our own COF and SOD against PyOD's."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import numpy as np
import pytest

from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.detectors.cof import connectivity_outlier_factor
from ocsdf_bench.detectors.sod import shared_neighbours, subspace_outlier_degree

NAMES = ["PCA", "OCSVM", "LOF", "CBLOF", "HBOS", "KNN", "COPOD", "ECOD", "LODA", "IForest"]


def rows(n: int = 150, d: int = 4) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(n, d))


def pyod(name: str, **params: Any) -> Any:
    return getattr(importlib.import_module(f"pyod.models.{name.lower()}"), name)(**params)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_pyods(name: str) -> None:
    theirs = inspect.signature(type(pyod(name)).__init__).parameters
    for parameter, value in DETECTORS[name].defaults.items():
        assert theirs[parameter].default == value


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_pyods_decision_function(name: str) -> None:
    seed = {"random_state": 7} if name in ("PCA", "CBLOF", "LODA", "IForest") else {}
    theirs = pyod(name, **seed).fit(rows()).decision_function(rows(60))
    ours = DETECTORS[name].build(seed=7)
    ours.fit(rows())
    # OCSVM sums its kernels in another order
    np.testing.assert_allclose(ours.anomaly_score(rows(60)), theirs, rtol=1e-9, atol=1e-10)


def test_cof_is_pyods() -> None:
    theirs = pyod("COF").fit(rows()).decision_function(rows())
    # 1e-9: the same sums in another order
    np.testing.assert_allclose(connectivity_outlier_factor(rows(), 20), theirs, rtol=1e-9)


def test_sod_is_pyods_where_the_reference_sets_are() -> None:
    """PyOD leaves equal counts to its sort; given our sets, the degree must be the same."""
    X, model = rows(), pyod("SOD")
    model._snn = lambda rows: shared_neighbours(rows, 20, 10)
    np.testing.assert_allclose(subspace_outlier_degree(X, 20, 10, 0.8), model.decision_function(X), rtol=1e-9)


def test_sod_reference_sets_share_the_most_neighbours() -> None:
    from sklearn.neighbors import NearestNeighbors

    X = rows(60)
    neighbours = NearestNeighbors(n_neighbors=8).fit(X).kneighbors(return_distance=False)
    sets = [set(line) for line in neighbours]
    for i, chosen in enumerate(shared_neighbours(X, 8, 5)):
        counts = {j: len(sets[i] & sets[j]) for j in range(len(X)) if j != i}
        assert i not in chosen
        assert sorted((counts[j] for j in chosen), reverse=True) == sorted(counts.values(), reverse=True)[:5]


def test_pca_leaves_out_components_without_variance() -> None:
    X = np.hstack([rows(), np.ones((150, 1)), rows()[:, :1]])  # PyOD's scores of this are infinite
    detector = DETECTORS["PCA"].build(seed=0)
    detector.fit(X)
    assert detector.budget == {"n_components": 4}  # type: ignore[attr-defined]
    assert np.isfinite(detector.anomaly_score(X)).all()


def test_cblof_takes_more_clusters_where_pyods_rule_fails() -> None:
    corners = np.array(np.meshgrid([0, 9.0], [0, 9.0], [0, 9.0])).reshape(3, -1).T
    X = np.repeat(corners, 20, axis=0) + np.random.default_rng(0).normal(size=(160, 3)) * 0.1
    with pytest.raises(ValueError, match="valid cluster separation"):
        pyod("CBLOF", random_state=0).fit(X)
    detector = DETECTORS["CBLOF"].build(seed=0)
    detector.fit(X)
    assert detector.budget["n_clusters"] in (9, 10, 11)  # type: ignore[attr-defined]
    assert np.isfinite(detector.anomaly_score(X)).all()


def test_what_a_suite_writes_is_never_changed() -> None:
    X = np.repeat(rows(2), 50, axis=0)
    detector = DETECTORS["CBLOF"].build(seed=0, n_clusters=8)
    with pytest.raises(ValueError, match="cluster"):
        detector.fit(X)


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(TypeError, match="contamination"):
        DETECTORS["HBOS"].build(seed=0, contamination=0.3)
