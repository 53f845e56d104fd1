"""The distance to reference rows is what it says, and 1-Lipschitz to the last bit of its rounding."""

import numpy as np
import pytest

from ocsdf import OCSDF, build
from ocsdf._network import references
from ocsdf._references import References


def net(rows: np.ndarray, members: int = 1, **settings: float) -> object:
    return build((References(**settings),), rows, members=members, rng=np.random.default_rng(0))


def test_value_is_minus_the_distance_to_the_fourth_nearest_reference():
    rng = np.random.default_rng(1)
    rows, x = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    distances = np.sort(np.linalg.norm(x[:, None] - rows[None], axis=-1), axis=1)
    np.testing.assert_allclose(net(rows, trim=0.0)(x), -distances[:, 3], rtol=1e-12)


def test_trim_drops_a_small_far_cluster_and_keeps_the_rest():
    rng = np.random.default_rng(2)
    rows = np.vstack([rng.normal(size=(95, 2)), 20 + 0.01 * rng.normal(size=(5, 2))])
    points = net(rows, trim=0.05).params[0]["points"]
    assert points.shape == (1, 95, 2)
    assert points.max() < 10


def test_no_pair_of_rows_is_steeper_than_one():
    rng = np.random.default_rng(3)
    f = net(rng.normal(size=(300, 5)), members=4)
    x, y = rng.normal(size=(2, 400, 5)) * np.geomspace(1e-3, 1e3, 400)[:, None]
    slack = 2 * (f.rounding[0] * np.maximum(*np.linalg.norm([x, y], axis=-1)) + f.rounding[1])
    assert (np.abs(f(x) - f(y)) <= np.linalg.norm(x - y, axis=1) + slack).all()


def test_gradients_match_central_differences():
    rng = np.random.default_rng(4)
    f, x, step = net(rng.normal(size=(60, 3)), members=2), rng.normal(size=(8, 3)), 1e-6
    _, gradient = f.value_and_gradient(x)
    numeric = np.stack([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(3)], axis=1)
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)
    rows = np.broadcast_to(x, (2, *x.shape))
    _, saved = f.forward(rows)
    moved = f.layers[0].gradient(f.params[0], saved[0], np.ones((2, len(x), 1)))
    point = np.argwhere(np.abs(moved["points"]).sum(axis=-1) > 0)[0]
    for column in range(3):
        up = {k: v.copy() for k, v in f.params[0].items()}
        up["points"][point[0], point[1], column] += step
        difference = (type(f)(f.layers, (up,), f.input_shape).forward(rows)[0] - f.forward(rows)[0]).sum()
        assert difference / step == pytest.approx(moved["points"][point[0], point[1], column], abs=1e-4)


@pytest.mark.parametrize("n", [2, 3, 5, 300])
def test_any_number_of_rows_from_two_up_gives_finite_scores(n: int):
    X = np.random.default_rng(n).normal(size=(n, 4))
    assert np.isfinite(OCSDF(random_state=0).fit(X).score_samples(X)).all()


def test_the_default_estimator_is_this_network_and_is_proven_one_lipschitz():
    X = np.random.default_rng(5).normal(size=(200, 3))
    detector = OCSDF(random_state=0).fit(X)
    assert detector.net_.layers == references(trim=detector.trim)
    assert 1.0 <= detector.lipschitz_ <= 1.0 + 1e-12
    assert detector.history_["update"] == []


def test_references_can_be_trained():
    X = np.random.default_rng(6).normal(size=(200, 3))
    still, moved = OCSDF(random_state=0).fit(X), OCSDF(random_state=0, max_steps=10).fit(X)
    assert np.abs(still.net_.params[0]["points"] - moved.net_.params[0]["points"]).max() > 1e-4
    assert moved.lipschitz_ == still.lipschitz_


def test_the_novelty_recipe_keeps_every_row_and_looks_past_five():
    line = np.arange(1024.0)[:, None]
    model = OCSDF.novelty(scale="none", random_state=0).fit(line)
    assert model.score_samples([[0.0], [512.0], [1033.0]]).tolist() == [-5.0, -3.0, -15.0]
    assert 1 <= model.lipschitz_ < 1 + 1e-12


def test_the_novelty_recipe_draws_different_rows_for_each_network():
    rows = np.random.default_rng(0).normal(size=(5000, 2))
    points = OCSDF.novelty(random_state=0).fit(rows).net_.params[0]["points"]
    assert points.shape == (4, 1024, 2)
    assert len(np.unique(points.reshape(-1, 2), axis=0)) > 2048
