"""The distance to reference rows is what it says, and 1-Lipschitz to the last bit of its rounding."""

import numpy as np
import pytest

from ocsdf import OCSDF, Dense, Squash, build
from ocsdf._layers import Layer
from ocsdf._network import references
from ocsdf._references import References


def net(rows: np.ndarray, members: int = 1, **settings: object) -> object:
    return build((References(**settings),), rows, members=members, rng=np.random.default_rng(0))


def test_value_is_minus_the_distance_to_the_fourth_nearest_reference():
    rng = np.random.default_rng(1)
    rows, x = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    distances = np.sort(np.linalg.norm(x[:, None] - rows[None], axis=-1), axis=1)
    np.testing.assert_allclose(net(rows, trim=0.0, neighbours=0.0)(x), -distances[:, 3], rtol=1e-12)


def test_value_is_the_root_mean_square_distance_to_the_neighbourhood_that_it_is_nearest_to():
    rng = np.random.default_rng(1)
    rows, x = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    order = np.argsort(np.linalg.norm(rows[:, None] - rows[None], axis=-1), axis=1)[:, :6]  # a row and five
    squares = ((x[:, None] - rows[None]) ** 2).sum(axis=-1)
    witnessed = np.sort(np.sqrt(squares[:, order].mean(axis=-1)), axis=1)
    for rank, k in ((0.0, 0), (0.1, 5)):
        value = net(rows, trim=0.0, neighbours=0.1, rank=rank)(x)
        np.testing.assert_allclose(value, -witnessed[:, k], rtol=1e-12)


def test_trim_drops_a_small_far_cluster_and_keeps_the_rest():
    rng = np.random.default_rng(2)
    rows = np.vstack([rng.normal(size=(95, 2)), 20 + 0.01 * rng.normal(size=(5, 2))])
    points = net(rows, trim=0.05).params[0]["points"]
    assert points.shape == (1, 95, 2)
    assert points.max() < 10


def test_each_network_takes_its_own_trim_and_repeats_what_is_left():
    rows = np.random.default_rng(2).normal(size=(40, 2))
    found = net(rows, members=3, trim=(0.0, 0.5), neighbours=0.0).params[0]["points"]
    assert [len(np.unique(points, axis=0)) for points in found] == [40, 20, 40]
    assert found.shape == (3, 40, 2)


def test_bounds_are_reached_on_a_line():
    f = net(np.arange(8.0)[:, None], trim=0.0, neighbours=0.0)  # the fourth nearest of 0 ... 7
    low, high = f.layers[0].bounds(f.params[0], np.full((1, 1, 1), 10.0), np.array([0.0, 2.0]))
    np.testing.assert_allclose(low[:, 0, 0], [-6.0, -8.0], rtol=1e-14)
    np.testing.assert_allclose(high[:, 0, 0], [-6.0, -4.0], rtol=1e-14)


@pytest.mark.parametrize(
    "layers",
    [
        references(),
        references(rank=0.0),
        references(neighbours=0.0),
        references(trim=(0.0, 0.5)),
        (Squash("asinh", 1.0), *references()),
        (Squash("clip"), Dense(3), *references()),
    ],
    ids=str,
)
def test_no_attack_leaves_the_bounds_and_they_are_never_wider_than_the_constant_says(
    layers: tuple[Layer, ...],
):
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(300, 4)) * [1, 2, 3, 0.1]
    detector = OCSDF(network=layers, scale="none", max_steps=0, random_state=0).fit(rows)
    x, radii = rng.normal(size=(50, 4)) * 2, np.array([0.0, 0.05, 0.3, 2.0])
    low, high = detector.score_bounds(x, radii)
    clean, certificate = detector.score_samples(x), detector.certify(x)
    assert (low[0] == clean).all()
    assert (high[0] == clean).all()
    assert (low >= certificate.lower(radii)).all()
    assert (high <= certificate.upper(radii)).all()
    assert (np.diff(low, axis=0) <= 0).all()
    assert (np.diff(high, axis=0) >= 0).all()
    for lower, upper, radius in zip(low, high, radii, strict=True):
        for side in (-1, 1):
            moved = x.copy()
            for _ in range(30):  # steepest steps of the full length, projected on the ball
                moved += side * radius / 5 * detector.input_gradient(moved) + radius / 50 * rng.normal(
                    size=x.shape
                )
                step = moved - x
                moved = (
                    x
                    + step * np.minimum(1, radius / np.maximum(np.linalg.norm(step, axis=1), 1e-300))[:, None]
                )
                score = detector.score_samples(moved)
                assert (lower <= score).all()
                assert (score <= upper).all()


def test_a_row_at_the_centre_of_its_neighbours_can_hardly_be_moved():
    square = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    detector = OCSDF(network=references(trim=0.0), scale="none", max_steps=0, random_state=0).fit(square)
    low, high = detector.score_bounds([[0.0, 0.0], [3.0, 0.0]], 0.75)  # one reference: mean 0, height 1
    np.testing.assert_allclose(low, [-np.hypot(0.75, 1), -np.hypot(3.75, 1)], atol=1e-6)
    np.testing.assert_allclose(high, [-1.0, -np.hypot(2.25, 1)], atol=1e-6)


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
    up = {k: v.copy() for k, v in f.params[0].items()}
    up["height"][point[0], point[1]] += step
    difference = (type(f)(f.layers, (up,), f.input_shape).forward(rows)[0] - f.forward(rows)[0]).sum()
    assert difference / step == pytest.approx(moved["height"][point[0], point[1]], abs=1e-4)


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


def test_the_novelty_recipe_keeps_every_row_in_three_of_four_networks():
    line = np.arange(1024.0)[:, None]
    model = OCSDF.novelty(scale="none", random_state=0).fit(line)
    # Six rows in a line have a height of sqrt(35 / 12); the fourth network keeps 40 % of them.
    nearest = model.net_.forward(np.zeros((4, 1, 1)))[0][:, 0]
    np.testing.assert_allclose(nearest[:3], -np.hypot(2.5, np.sqrt(35 / 12)), rtol=1e-6)
    kept = [len(np.unique(points)) for points in model.net_.params[0]["points"]]
    assert kept[3] < 0.4 * 1024 + 2 < kept[0]
    assert 1 <= model.lipschitz_ < 1 + 1e-12


def test_the_novelty_recipe_draws_different_rows_for_each_network():
    rows = np.random.default_rng(0).normal(size=(5000, 2))
    points = OCSDF.novelty(random_state=0).fit(rows).net_.params[0]["points"]
    assert points.shape == (4, 1024, 2)
    assert not np.isin(points[0], points[1]).any()
