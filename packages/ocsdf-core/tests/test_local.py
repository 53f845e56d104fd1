"""No pair of points in a ball is steeper than its local constant, which is never above the global one."""

import numpy as np
import pytest

from ocsdf import OCSDF, LipschitzNet, build, dense, references
from ocsdf._local import local_lipschitz

RADII = [0.0, 1e-3, 0.03, 0.3, 3.0]


def nets() -> dict[str, LipschitzNet]:
    rng = np.random.default_rng(0)
    sample = rng.normal(size=(300, 4))
    return {
        "dense": build(dense((16, 16)), sample, members=3, rng=rng),
        "fullsort": build(dense((8, 8), None), sample, rng=rng),
        "references": build(references(), sample, members=4, rng=rng),
        "patches": OCSDF(network="patches", max_steps=0, random_state=0).fit(sample).net_,
        "trained": OCSDF(hidden=(16, 16), max_steps=30, random_state=0).fit(sample).net_,
    }


@pytest.fixture(scope="module")
def fitted() -> dict[str, LipschitzNet]:
    return nets()


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("name", ["dense", "fullsort", "references", "patches", "trained"])
def test_no_pair_inside_the_ball_is_steeper(fitted: dict[str, LipschitzNet], name: str, radius: float):
    net, rng = fitted[name], np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=(60, 4)), 4 * rng.normal(size=(20, 4))])
    bound = local_lipschitz(net, x, radius)
    assert (bound <= net.lipschitz()).all()
    for _ in range(60):
        a, b = (ball(rng, x.shape) * radius + x for _ in range(2))
        length = np.linalg.norm(a - b, axis=1)
        assert (np.abs(net(a) - net(b)) <= bound * length + 1e-9).all()


@pytest.mark.parametrize("name", ["dense", "references", "patches", "trained"])
def test_no_gradient_inside_the_ball_is_longer(fitted: dict[str, LipschitzNet], name: str):
    """Steepest points are found by climbing the gradient norm among random points near the boundary."""
    net, rng, radius = fitted[name], np.random.default_rng(2), 0.2
    x = rng.normal(size=(40, 4))
    bound = local_lipschitz(net, x, radius)
    for _ in range(60):
        inside = ball(rng, x.shape) * radius + x
        _, slope = net.value_and_gradient(inside)
        assert (np.linalg.norm(slope, axis=1) <= bound + 1e-9).all()


@pytest.mark.parametrize("name", ["dense", "trained", "references"])
def test_at_radius_zero_it_is_the_gradient_norm(fitted: dict[str, LipschitzNet], name: str):
    x = np.random.default_rng(3).normal(size=(50, 4))
    _, slope = fitted[name].value_and_gradient(x)
    np.testing.assert_allclose(
        local_lipschitz(fitted[name], x, 0.0), np.linalg.norm(slope, axis=1), atol=1e-5
    )


def test_it_grows_with_the_radius_and_saves_something_on_a_small_ball(fitted: dict[str, LipschitzNet]):
    x = np.random.default_rng(4).normal(size=(50, 4))
    for name in ("references", "trained"):
        bounds = np.array([local_lipschitz(fitted[name], x, radius) for radius in RADII])
        assert (np.diff(bounds, axis=0) >= -1e-5).all()
        assert np.median(bounds[1]) < 0.9 * fitted[name].lipschitz()


def test_the_estimator_bounds_what_an_attack_along_the_gradient_reaches():
    X = np.random.default_rng(5).normal(size=(300, 5))
    model = OCSDF(random_state=0, scale="none").fit(X)
    radius = 0.25
    bound = model.local_lipschitz(X, radius)
    score, moved = model.score_samples(X), X.copy()
    for _ in range(20):
        step = moved - 0.05 * model.input_gradient(moved)
        away = step - X
        moved = X + away * np.minimum(1, radius / np.maximum(np.linalg.norm(away, axis=1), 1e-12))[:, None]
    assert (score - model.score_samples(moved) <= bound * radius + 1e-9).all()
    assert bound.mean() < model.lipschitz_


def test_the_wall_of_the_domain_keeps_its_own_constant():
    X = np.random.default_rng(6).normal(size=(100, 3))
    model = OCSDF(random_state=0, outside="anomalous").fit(X)
    assert (model.local_lipschitz(X, 0.0) >= 1.0).all()


def test_a_negative_radius_is_refused():
    model = OCSDF(random_state=0).fit(np.eye(4))
    with pytest.raises(ValueError, match=r"`radius` of OCSDF.local_lipschitz must be"):
        model.local_lipschitz(np.eye(4), -0.1)


def ball(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Points of the unit ball, half of them on its surface."""
    direction = rng.normal(size=shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = np.where(rng.uniform(size=(len(direction), 1)) < 0.5, 1.0, rng.uniform(size=(len(direction), 1)))
    return direction * length
