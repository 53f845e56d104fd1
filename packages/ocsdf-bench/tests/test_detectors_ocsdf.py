"""The adapter of OCSDF: signs, recipes, budgets."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from ocsdf import OCSDF, Ball
from ocsdf_bench.attack import ATTACKS
from ocsdf_bench.detector import DETECTORS

SMALL = {"max_steps": 10, "hidden": (16, 16)}


def rows(n: int = 100) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 3))


def fitted(X: np.ndarray, **params: Any) -> Any:
    detector = DETECTORS["OCSDF"].build(seed=0, **params)
    detector.fit(X)
    return detector


def test_build_has_every_parameter_of_the_estimator_that_the_benchmark_does_not_set() -> None:
    ours = set(inspect.signature(DETECTORS["OCSDF"].build).parameters)
    theirs = set(inspect.signature(OCSDF).parameters)
    own = {"seed", "recipe", "count", "rank", "neighbours", "squash", "least_updates", "full_rows"}
    assert ours - own == theirs - {
        "scale",
        "random_state",
        "verbose",
        "contamination",
    }


def test_the_score_is_minus_f_with_its_constant() -> None:
    model = OCSDF(**SMALL, scale="none", random_state=0).fit(rows())
    detector = fitted(rows(), **SMALL)
    np.testing.assert_array_equal(detector.anomaly_score(rows()), -model.score_samples(rows()))
    assert detector.lipschitz == model.lipschitz_


@pytest.mark.parametrize(
    ("n", "params", "steps"),
    [
        (300, {}, 120),  # 40 epochs of 3 batches
        (2_001, {}, 1_000),  # 40 epochs of 16 batches are 640
        (10_000, {}, 1_000),
        (2_001, {"max_steps": 30}, 30),
        (300, {"least_updates": 600}, 600),  # 15 an epoch, as in the authors' notebook
        (2_001, {"least_updates": 600, "full_rows": 4_000}, 640),
        (4_001, {"least_updates": 600, "full_rows": 4_000}, 1_000),
    ],
)
def test_budget_of_the_papers_recipe(n: int, params: dict[str, Any], steps: int) -> None:
    detector = fitted(rows(n), recipe="paper", hidden=(4,), steps=1, **params)
    assert detector.budget["steps"] == steps
    assert detector.budget["epochs"] == round(steps * 128 / n, 2)


def test_the_notebooks_recipe_starts_from_a_gaussian_and_has_epochs_of_fifteen_updates() -> None:
    few = fitted(rows(300), recipe="notebook", hidden=(4,), steps=1)
    assert few.budget["steps"] == 45 * 15
    assert fitted(rows(2_500), recipe="notebook", hidden=(4,), full_rows=4_000).budget["steps"] == 45 * 20
    model = few._model
    np.testing.assert_allclose(
        model.domain_.deviation, np.abs(rows(300) - rows(300).mean(axis=0)).max(axis=0) / 2
    )
    assert (model.level, model.pull, model.warmup_epochs / model.epochs) == (0.0, "inward", 5 / 45)
    assert fitted(rows(), recipe="notebook", level=-1.0, max_steps=1, hidden=(4,))._model.level == -1.0


def test_width_and_margin_of_the_papers_recipe_are_recorded() -> None:
    few = fitted(rows(), recipe="paper", margin=0.2, max_steps=1)
    many = fitted(rows(2_001), recipe="paper", margin=0.2, max_steps=1)
    assert sum("512" in layer for layer in few.budget["layers"]) == 4
    assert sum("256" in layer for layer in many.budget["layers"]) == 4
    assert few.budget["margin"] == 0.2


def test_novelty_is_the_recipe_of_rows_without_anomalies() -> None:
    budget = fitted(rows(60), recipe="novelty").budget
    assert budget["layers"] == [
        "References(count=1024, rank=0.0, trim=(0.0, 0.0, 0.0, 0.6), neighbours=0.005)"
    ]
    assert budget["steps"] == 0


def test_a_distance_to_references_states_bounds_of_its_own_and_a_network_its_constant() -> None:
    detector, radii = fitted(rows()), np.array([0.1, 1.0])
    low, high = detector.score_bounds(rows(), radii)
    score = detector.anomaly_score(rows())
    assert (low <= score).all()
    assert (score <= high).all()
    assert ((high - low).mean(axis=1) < 0.95 * 2 * radii).all()
    assert fitted(rows(), **SMALL).score_bounds is None


def test_settings_of_the_distance_reach_its_references() -> None:
    detector = fitted(rows(), count=40, rank=0.0, neighbours=0.1, squash="clip", trim=0.3)
    assert detector.budget["layers"] == [
        "Squash(curve='clip', limit=2.0)",
        "References(count=40, rank=0.0, trim=0.3, neighbours=0.1)",
    ]
    assert detector.budget["steps"] == 0
    assert detector.score_bounds is not None
    default = fitted(rows(), neighbours=0.08).anomaly_score(rows())
    np.testing.assert_array_equal(default, fitted(rows()).anomaly_score(rows()))


def test_the_domain_may_be_given_and_is_that_of_the_pixels_for_images() -> None:
    images = np.random.default_rng(0).uniform(-1, 1, size=(40, 3, 3))
    images[0, 0, 0], images[0, 0, 1] = -1, 1
    given = fitted(rows(), domain=[-3.0, 3.0], negatives="newton", **SMALL)
    inferred = fitted(images, negatives="newton", **SMALL)
    assert (float(np.min(given._model.domain_.low)), float(np.max(given._model.domain_.high))) == (-3, 3)
    assert fitted(rows(), domain=5.0, negatives="newton", **SMALL)._model.domain_ == Ball(5.0)
    assert (float(np.min(inferred._model.domain_.low)), float(np.max(inferred._model.domain_.high))) == (
        -1,
        1,
    )


def test_the_image_recipe_sees_images_and_is_attacked_as_such() -> None:
    images = np.random.default_rng(0).uniform(size=(40, 4, 4, 1))
    detector = fitted(images, max_steps=2)
    assert detector.budget["layers"] == ["AffinePatches(count=None, directions=None)"]
    assert detector.gradient(images).shape == images.shape
    assert detector.lipschitz <= 1 + 1e-12


def test_the_papers_network_of_images_is_fitted_by_profile() -> None:
    images = np.random.default_rng(0).uniform(size=(12, 8, 8))
    build = DETECTORS["OCSDF-VGG"].build
    detector = build(seed=0, width=1 / 32, max_steps=2)
    detector.fit(images)
    assert detector.budget["steps"] == 2
    assert detector.budget["layers"][1].startswith("Conv2D(filters=2")
    assert np.isfinite(detector.anomaly_score(images)).all()
    assert detector.lipschitz < 3
    printed = build(seed=0, profile="paper", kernel="orthogonal")._params
    assert [layer.filters for layer in printed["network"] if hasattr(layer, "filters")] == (
        [64] * 4 + [128] * 4 + [256] * 3
    )
    assert (printed["steps"], printed["epochs"], printed["warmup_epochs"]) == (16, 70, 10)


def test_an_attack_takes_the_same_walk_compiled_by_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of grey images, whose axis of channels is added inside the graph."""
    images = np.random.default_rng(0).uniform(size=(12, 8, 8))
    detector = DETECTORS["OCSDF-VGG"].build(seed=0, width=1 / 32, max_steps=2)
    detector.fit(images)
    assert detector.xla
    attack, arguments = ATTACKS["l2-pgd"].run, (images, np.ones(12), 0.05, (0.0, 1.0), 0)
    compiled = attack(detector, *arguments)
    monkeypatch.setattr(type(detector), "xla", False)
    np.testing.assert_allclose(attack(detector, *arguments), compiled, atol=1e-5)
    assert not fitted(rows(), **SMALL).xla
