"""The TensorFlow detectors: what their articles define, on small closed cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.detectors import dagmm, deep_svdd
from ocsdf_bench.detectors._training import Schedule, minimise


def rows(n: int = 120) -> np.ndarray:
    return np.random.default_rng(4).normal(size=(n, 3))


def test_batches_keep_to_both_limits_and_visit_rows_once_an_epoch() -> None:
    schedule = Schedule(epochs=5, batch_size=8, learning_rate=0.1, max_steps=12)
    epochs = list(schedule.batches(43, np.random.default_rng(0)))
    assert [len(epoch) for epoch in epochs] == [5, 5, 2]
    assert len(np.unique(epochs[0])) == 40


def test_minimise_finds_the_mean_of_rows() -> None:
    import tensorflow as tf

    point = tf.keras.Variable(np.zeros(3, np.float32))
    X = rows() + 2
    spent = minimise(
        lambda batch: tf.reduce_mean((batch - point) ** 2), [point], X, Schedule(300, 120, 0.05, 300), 0
    )
    np.testing.assert_allclose(point.numpy(), X.mean(axis=0), atol=1e-2)  # Adam's last steps of 0.05 or less
    assert spent == {"steps": 300, "epochs": 300.0}


def test_a_loss_that_is_not_finite_stops_the_fit() -> None:
    import tensorflow as tf

    point = tf.keras.Variable(np.ones(3, np.float32))
    with pytest.raises(FloatingPointError, match="training loss is nan"):
        minimise(
            lambda batch: tf.math.log(-tf.reduce_sum(point**2)), [point], rows(), Schedule(1, 8, 1, 1), 0
        )


def test_deep_svdd_pulls_the_rows_to_its_centre() -> None:
    before, after = (_deep_svdd(steps).anomaly_score(rows()).mean() for steps in (1, 400))
    assert after < before


def test_deep_svdd_scores_are_squared_distances_to_the_mean_of_the_first_outputs() -> None:
    detector = _deep_svdd(0)
    X = (rows() - rows().mean(axis=0)) / rows().std(axis=0)
    output = np.asarray(detector._network(X.astype(np.float32)))
    expected = ((output - np.asarray(detector._centre)) ** 2).sum(axis=1)
    # float32
    np.testing.assert_allclose(detector.anomaly_score(rows()), expected, rtol=1e-4)
    near = np.abs(output.mean(axis=0)) >= 0.1
    np.testing.assert_allclose(np.asarray(detector._centre)[near], output.mean(axis=0)[near], rtol=1e-4)


def test_a_centre_near_zero_is_moved_away_from_it() -> None:
    moved = deep_svdd._away_from_zero(np.array([0.01, -0.02, 0.5, -0.3]))
    np.testing.assert_array_equal(moved, [0.1, -0.1, 0.5, -0.3])


def test_a_collapsed_network_is_reported_and_a_working_one_is_not() -> None:
    assert _deep_svdd(20).budget["collapsed"] is False
    detector = _deep_svdd(0)
    for weight in detector._network.trainable_variables:
        weight.assign(np.zeros(weight.shape))
    assert detector._collapsed(rows())


def test_dagmm_energy_is_the_negative_log_likelihood() -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    z = rng.normal(size=(30, 3))
    share = np.array([0.3, 0.7])
    mean = rng.normal(size=(2, 3))
    root = rng.normal(size=(2, 3, 3))
    covariance = root @ root.transpose(0, 2, 1) + np.eye(3)
    expected = -np.log(sum(share[k] * multivariate_normal(mean[k], covariance[k]).pdf(z) for k in range(2)))
    import tensorflow as tf

    energy = dagmm._energy(z, *(tf.constant(part) for part in (share, mean, covariance)))
    np.testing.assert_allclose(energy, expected, rtol=1e-9)


def test_dagmm_mixture_of_hard_shares_is_that_of_each_group() -> None:
    z = rows()
    shares = np.repeat(np.eye(2), [50, 70], axis=0)
    share, mean, covariance = (np.asarray(part) for part in dagmm._mixture(z, shares))
    np.testing.assert_allclose(share, [50 / 120, 70 / 120])
    np.testing.assert_allclose(mean[1], z[50:].mean(axis=0))
    # the floor of 1e-6 on the diagonal
    np.testing.assert_allclose(covariance[0], np.cov(z[:50], rowvar=False, bias=True), atol=2e-6)


def test_dagmm_survives_rows_that_are_all_alike() -> None:
    detector = DETECTORS["DAGMM"].build(seed=0, max_steps=20)
    detector.fit(np.zeros((64, 3)))
    assert np.isfinite(detector.anomaly_score(np.zeros((5, 3)))).all()


def test_relu_classifier_tells_rows_from_noise_around_them() -> None:
    detector = DETECTORS["ReLU-BCE"].build(seed=0, max_steps=300)
    X = rows(400) * 0.2
    detector.fit(X)
    far = X[:200] + 2 * np.sign(rows(200))
    assert np.median(detector.anomaly_score(far)) > np.quantile(detector.anomaly_score(X), 0.95)


def test_a_missing_extra_is_one_sentence() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"ocsdf-bench\[torch\]"):
            DETECTORS["DeepSVDD-PyOD"].build(seed=0)
    else:
        pytest.skip("PyTorch is installed")


def _deep_svdd(steps: int) -> Any:
    detector = DETECTORS["DeepSVDD"].build(seed=0, max_steps=steps, learning_rate=1e-3)
    detector.fit(rows())
    return detector
