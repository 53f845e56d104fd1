"""Centred and reduced channels: the constant and the attack are exact in pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocsdf_bench.attack import ATTACKS, attack_scores
from ocsdf_bench.dataset import Data
from ocsdf_bench.datasets.cifar10 import CHANNELS
from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.standardised import Standardised

MEAN, DEVIATION = (np.array(values) for values in CHANNELS)


def images(n: int = 12) -> np.ndarray:
    return np.random.default_rng(0).random((n, 4, 4, 3))


def seen(name: str, **params: Any) -> tuple[Standardised, Any]:
    """A detector of pixels and the same one fitted on the standardised images."""
    own = DETECTORS[name].build(seed=0, **params)
    own.fit((images() - MEAN) / DEVIATION)
    composed = Standardised(DETECTORS[name].build(seed=0, **params), MEAN, DEVIATION)
    composed.fit(images())
    return composed, own


def test_pixels_score_as_the_standardised_images_do() -> None:
    composed, own = seen("Mean-distance")
    np.testing.assert_array_equal(
        composed.anomaly_score(images()), own.anomaly_score((images() - MEAN) / DEVIATION)
    )


def test_the_constant_in_pixels_is_the_detectors_times_the_largest_stretch_and_is_reached() -> None:
    composed, own = seen("Mean-distance")
    assert composed.lipschitz == pytest.approx(own.lipschitz * 1 / 0.2435, rel=1e-15)
    assert composed.lipschitz >= own.lipschitz / 0.2435
    # Far away in green, the channel of the smallest deviation, the score grows at exactly that rate.
    far = np.zeros((1, 4, 4, 3))
    far[..., 1] = 1e6
    further = far * (1 + 1e-3)
    step = np.linalg.norm(further - far)
    slope = (composed.anomaly_score(further) - composed.anomaly_score(far))[0] / step
    assert slope == pytest.approx(composed.lipschitz, rel=1e-5)


@pytest.mark.parametrize("k", [8, 36, 255])
def test_an_attack_of_k_255_moves_pixels_within_0_and_1_and_stays_under_the_bound(k: int) -> None:
    composed, _ = seen("KNN-distance", k=1, n_reference=4)
    rows = images(30)[12:]
    direction = np.where(np.arange(len(rows)) % 2, 1, -1)
    clean = composed.anomaly_score(rows)
    worst = attack_scores(ATTACKS["apgd"], composed, rows, direction, k / 255, domain=(0.0, 1.0))
    assert (direction * (worst - clean) >= 0).all()
    assert (np.abs(worst - clean) <= composed.lipschitz * k / 255 * (1 + 1e-12)).all()
    # In standardised units the same ball is an ellipsoid: a step along green alone nearly reaches the bound.
    assert np.abs(worst - clean).max() > 0.5 * k / 255 / 0.2616 or k == 255


def test_gradient_is_that_of_the_composition() -> None:
    composed, _ = seen("Mean-distance")
    rows, step = images(3), 1e-6
    direction = np.random.default_rng(1).standard_normal(rows.shape)
    ahead, behind = (
        composed.anomaly_score(rows + step * direction),
        composed.anomaly_score(rows - step * direction),
    )
    slope = (composed.gradient(rows) * direction).sum(axis=(1, 2, 3))
    np.testing.assert_allclose((ahead - behind) / (2 * step), slope, rtol=1e-5)


def test_what_a_detector_lacks_its_composition_lacks() -> None:
    composed, _ = seen("IForest")
    for name in ("lipschitz", "gradient", "tensorflow_score", "xla"):
        assert getattr(composed, name, None) is None


def test_data_seen_another_way_have_another_identity() -> None:
    X, y = images(), np.arange(12)
    assert Data.of(X, y).checksum != Data.of(X, y, channels=CHANNELS).checksum


def test_the_domain_of_standardised_cifar_is_the_papers() -> None:
    """The paper prints [-2.1, 2.14] for the image of [0, 1] under its own rounding."""
    low, high = (np.array([0.0, 1.0])[:, None] - MEAN) / DEVIATION
    assert low.min() == pytest.approx(-2.1, abs=0.15)
    assert high.max() == pytest.approx(2.14, abs=0.02)


def test_bounds_in_pixels_are_those_of_the_stretched_radius() -> None:
    composed, own = seen("OCSDF", recipe="detection")
    for ours, theirs in zip(
        composed.score_bounds(images(), np.array([0.0, 0.1])),
        own.score_bounds((images() - MEAN) / DEVIATION, np.array([0.0, 0.1 / 0.2435])),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    with pytest.raises(AttributeError):
        seen("Mean-distance")[0].score_bounds  # noqa: B018
