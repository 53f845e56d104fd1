"""Each proven constant, attacked: |s(x + d) - s(x)| <= L ||d|| for random and for adversarial d."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocsdf_bench.detector import DETECTORS, Detector

CERTIFIED: dict[str, dict[str, Any]] = {
    "KNN-distance": {"k": 3},
    "KNN-mean": {"k": 3},
    "Mean-distance": {},
    "PCA-residual": {"n_components": 2},
    "Mahalanobis": {"floor": 0.01},
    "Affine-patches": {"n_patches": 4},
    "OCSVM-RBF": {"gamma": 0.7},
    "PCA-OCSVM": {"variance": 0.9},
    "KDE": {},
    "OCSDF": {"max_steps": 60},
}
RADII = (1e-3, 0.03, 0.3, 2.0)


def rows() -> np.ndarray:
    """Two stretched clusters: the constants of Mahalanobis and PCA depend on the scales of the data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5)) * np.array([3.0, 1.0, 0.3, 0.1, 1.0])
    X[:50, 1] += 6
    return X


@pytest.fixture(scope="module", params=list(CERTIFIED.items()), ids=lambda item: item[0])
def certified(request: pytest.FixtureRequest) -> Detector:
    name, params = request.param
    detector = DETECTORS[name].build(seed=0, **params)
    detector.fit(rows())
    return detector


def ascend(detector: Any, X: np.ndarray, radius: float, sign: float, start: np.ndarray) -> np.ndarray:
    """Projected gradient steps from ``start`` (n, d), a perturbation, within the ball."""
    move = start
    for _ in range(10):
        slope = sign * detector.gradient(X + move)
        norm = np.linalg.norm(slope, axis=1, keepdims=True)
        move = move + radius * slope / np.where(norm > 0, norm, 1)
        move *= np.minimum(1, radius / np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-300))
    return move


@pytest.mark.parametrize("radius", RADII)
def test_no_attack_moves_a_score_by_more_than_the_constant_allows(certified: Any, radius: float) -> None:
    rng = np.random.default_rng(1)
    X = np.vstack([rows(), rng.normal(size=(50, 5)) * 5])
    clean = certified.anomaly_score(X)
    start = rng.normal(size=X.shape)
    start *= radius / np.linalg.norm(start, axis=1, keepdims=True)
    for move in (start, ascend(certified, X, radius, 1, 0 * start), ascend(certified, X, radius, -1, start)):
        change = np.abs(certified.anomaly_score(X + move) - clean)
        allowed = certified.lipschitz * np.linalg.norm(move, axis=1)
        # rounding of two float64 scores, relative to their size
        assert (change <= allowed + 1e-9 * (1 + np.abs(clean))).all()


def test_the_constant_is_of_the_right_size(certified: Any) -> None:
    """A bound 20 times the steepest slope found would certify nothing: the derivation lost something."""
    X = np.random.default_rng(2).normal(size=(4_000, 5)) * np.array([3.0, 1.0, 0.3, 0.1, 1.0])
    steepest = np.linalg.norm(certified.gradient(X), axis=1).max()
    assert steepest <= certified.lipschitz * (1 + 1e-9)
    assert steepest >= certified.lipschitz / 20


@settings(max_examples=50, deadline=None)
@given(radius=st.floats(0.01, 100), bandwidth=st.floats(0.05, 20))
def test_one_kernel_is_steepest_where_the_derivation_says(radius: float, bandwidth: float) -> None:
    detector = DETECTORS["KDE"].build(seed=0, bandwidth=bandwidth)
    detector.fit(np.zeros((2, 1)))
    slopes = np.abs(detector.gradient(np.array([[radius], [bandwidth]])))  # type: ignore[attr-defined]
    assert slopes[0, 0] <= detector.lipschitz  # type: ignore[attr-defined]
    np.testing.assert_allclose(slopes[1, 0], detector.lipschitz)  # type: ignore[attr-defined]


def test_distances_on_hand_worked_points() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    expected = {"KNN-distance": [4.0], "KNN-mean": [3.0], "Mean-distance": [np.hypot(14 / 3, 0)]}
    for name, value in expected.items():
        detector = DETECTORS[name].build(seed=0, **({} if name == "Mean-distance" else {"k": 2}))
        detector.fit(X)
        at = np.array([[5.0, 0.0]]) if name != "Mean-distance" else np.array([[6.0, 0.0]])
        np.testing.assert_allclose(detector.anomaly_score(at), value)


def test_mahalanobis_agrees_with_scipy() -> None:
    from scipy.spatial.distance import cdist

    X = rows()
    detector = DETECTORS["Mahalanobis"].build(seed=0, floor=0.0)
    detector.fit(X)
    inverse = np.linalg.inv(np.cov(X, rowvar=False))
    expected = cdist(X, X.mean(axis=0, keepdims=True), "mahalanobis", VI=inverse)[:, 0]
    np.testing.assert_allclose(detector.anomaly_score(X), expected, rtol=1e-9)


def test_affine_patches_with_one_patch_are_the_pca_residual() -> None:
    X = rows()
    patches = DETECTORS["Affine-patches"].build(seed=0, n_patches=1, n_directions=2)
    residual = DETECTORS["PCA-residual"].build(seed=0, n_components=2)
    for detector in (patches, residual):
        detector.fit(X)
    np.testing.assert_allclose(patches.anomaly_score(X), residual.anomaly_score(X), rtol=1e-9)


def test_affine_patches_follow_two_lines_that_one_subspace_cannot() -> None:
    t = np.linspace(-1, 1, 100)
    X = np.vstack([np.column_stack([t, 0 * t]), np.column_stack([0 * t, t + 5])])
    detector = DETECTORS["Affine-patches"].build(seed=0, n_patches=2, n_directions=1)
    detector.fit(X)
    # the two lines cross at one of the rows only
    assert detector.anomaly_score(X).max() < 1e-9
    np.testing.assert_allclose(detector.anomaly_score(np.array([[3.0, -2.0]])), 2.0, atol=1e-9)


def test_ocsvm_rbf_is_pyods_ocsvm() -> None:
    X = rows()
    scores = []
    for name in ("OCSVM-RBF", "OCSVM"):
        detector = DETECTORS[name].build(seed=0)
        detector.fit(X)
        scores.append(detector.anomaly_score(X))
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-9)
