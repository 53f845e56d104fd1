"""Detectors of images only: Deep SVDD's configurations, on a few images and a few updates."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.detectors.deep_svdd_images import lenet, vgg

NAMES = ["DeepSVDD-LeNet", "DeepSVDD-LeNet-BN", "DeepSVDD-VGG"]


def images(n: int = 24, size: int = 12) -> np.ndarray:
    """Squares of a random brightness on black."""
    X = np.zeros((n, size, size, 1))
    X[:, 3:9, 3:9, 0] = np.random.default_rng(0).uniform(0.5, 1, size=(n, 1, 1))
    return X


@lru_cache
def fitted(name: str) -> Any:
    small = {"width": 4} if name == "DeepSVDD-VGG" else {}
    detector = DETECTORS[name].build(seed=0, max_steps=3, batch_size=8, **small)
    detector.fit(images())
    return detector


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_finite_and_do_not_depend_on_the_batch(name: str) -> None:
    score = fitted(name).anomaly_score(images())
    assert score.shape == (24,)
    assert np.isfinite(score).all()
    # float32 convolutions sum in another order for another batch size
    np.testing.assert_allclose(fitted(name).anomaly_score(images()[:5]), score[:5], rtol=1e-3, atol=1e-6)
    assert fitted(name).budget["steps"] == 3
    assert fitted(name).budget["collapsed"] in (True, False)


@pytest.mark.parametrize("name", NAMES)
def test_an_attack_gets_a_gradient(name: str) -> None:
    import tensorflow as tf

    x = tf.constant(images(4), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        score = fitted(name).tensorflow_score(x)
    slope = np.asarray(tape.gradient(score, x))
    assert slope.shape == x.shape
    assert np.abs(slope).max() > 0


def test_no_configuration_has_a_bias_or_a_learned_shift() -> None:
    """Either lets the network map every image to the centre."""
    networks = [lenet((12, 12, 1), 0, batch_norm=False), lenet((12, 12, 1), 0, True), vgg((12, 12, 1), 0, 4)]
    for network in networks:
        assert all(variable.name == "kernel" for variable in network.trainable_variables)


def test_batch_norm_is_the_only_difference_of_the_two_lenets() -> None:
    plain, normalised = lenet((28, 28, 1), 0, False), lenet((28, 28, 1), 0, True)
    assert [w.shape for w in plain.trainable_variables] == [w.shape for w in normalised.trainable_variables]
    assert plain.trainable_variables[-1].shape == (7 * 7 * 4, 32)
    assert {type(layer).__name__ for layer in normalised.layers} - {
        type(layer).__name__ for layer in plain.layers
    } == {"BatchNormalization"}


def test_vgg_has_the_papers_widths_and_lenet_more_filters_for_colour() -> None:
    widths = [variable.shape[-1] for variable in vgg((32, 32, 3), 0, 64).trainable_variables]
    assert widths == [64] * 4 + [128] * 4 + [256] * 3 + [32]
    colour = [variable.shape[-1] for variable in lenet((32, 32, 3), 0, False).trainable_variables]
    assert colour == [32, 64, 128, 128]


def test_pca_ocsvm_keeps_its_share_of_the_variance() -> None:
    X = np.random.default_rng(0).normal(size=(200, 10)) * np.array([10.0] * 2 + [0.1] * 8)
    detector: Any = DETECTORS["PCA-OCSVM"].build(seed=0)
    detector.fit(X)
    assert detector.budget["n_components"] == 2
