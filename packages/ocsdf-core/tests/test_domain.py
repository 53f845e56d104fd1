"""Box and ball: projection, law and signed distance, on arrays and on tensors."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ocsdf._domain import Ball, Box

DOMAINS = [
    Box(-1.0, 2.0),
    Box([-1.0, -2.0, 0.0], [1.0, 3.0, 0.5]),
    Box([0.0, 1.0, 2.0], [0.0, 1.0, 2.0]),
    Ball(5.0),
    Ball(0.5, [1.0, -2.0, 3.0]),
]
every_domain = pytest.mark.parametrize("domain", DOMAINS, ids=repr)
points = hnp.arrays(np.float64, (5, 3), elements=st.floats(-1e30, 1e30))


@every_domain
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=40, deadline=None)
@given(z=points)
def test_projection_lies_in_the_set_keeps_dtype_and_is_idempotent(domain, dtype, z):
    projected = domain.project(z.astype(dtype))
    assert projected.dtype == dtype
    assert domain.contains(projected).all()
    assert np.array_equal(domain.project(projected), projected)


@every_domain
def test_points_inside_do_not_move(domain):
    z = domain.sample(200, 3, np.random.default_rng(0))
    assert domain.contains(z).all()
    np.testing.assert_allclose(domain.project(z), z, rtol=1e-14)


@every_domain
def test_outside_the_signed_distance_is_minus_the_distance_to_the_projection(domain):
    z = 10 * np.random.default_rng(1).normal(size=(200, 3))
    outside = ~domain.contains(z)
    distance = np.linalg.norm(z - domain.project(z), axis=1)
    np.testing.assert_allclose(domain.signed_distance(z)[outside], -distance[outside], rtol=1e-12)


def test_signed_distance_of_a_box_and_a_ball_has_the_closed_form():
    z = np.array([[0.0, 0.0], [0.5, -0.75], [2.0, 0.0], [4.0, 5.0]])
    assert Box(-1.0, 1.0).signed_distance(z).tolist() == [1.0, 0.25, -1.0, -5.0]
    assert Ball(5.0, [4.0, 1.0]).signed_distance(
        np.array([[4.0, 1.0], [7.0, 5.0], [10.0, 9.0]])
    ).tolist() == [
        5.0,
        0.0,
        -5.0,
    ]


@every_domain
@settings(max_examples=40, deadline=None)
@given(a=points, b=points)
def test_signed_distance_changes_no_faster_than_the_point_moves(domain, a, b):
    change = np.abs(domain.signed_distance(a) - domain.signed_distance(b))
    moved = np.linalg.norm(a - b, axis=1)
    size = np.abs(a).max(axis=1) + np.abs(b).max(axis=1) + 10
    assert np.all(change <= moved + 1e-14 * size)


@every_domain
def test_gradient_agrees_with_central_differences_where_there_is_one(domain):
    z = 4 * np.random.default_rng(2).normal(size=(100, 3))
    gradient, h = domain.gradient(z), 1e-6
    for feature in range(3):
        shift = h * np.eye(3)[feature]
        slope = (domain.signed_distance(z + shift) - domain.signed_distance(z - shift)) / (2 * h)
        np.testing.assert_allclose(gradient[:, feature], slope, atol=1e-6)


@pytest.mark.parametrize("domain", [Box(0.0, 1.0), Ball(2.0, 0.5)], ids=repr)
def test_scalar_bounds_serve_images_of_any_shape(domain):
    images = domain.sample(4, (5, 6, 3), np.random.default_rng(3))
    assert images.shape == (4, 5, 6, 3)
    assert domain.contains(images).all()
    assert domain.signed_distance(images).shape == (4,)
    assert domain.project(images + 10).shape == images.shape
    assert domain.gradient(images).shape == images.shape


def test_samples_are_uniform():
    """Moments over 200,000 draws; 4 standard errors."""
    rng = np.random.default_rng(4)
    box = Box([0.0, -1.0], [1.0, 3.0]).sample(200_000, 2, rng)
    np.testing.assert_allclose(box.mean(axis=0), [0.5, 1.0], atol=4 * 1.2 / 447)
    ball = Ball(2.0, [1.0, 0.0]).sample(200_000, 2, rng)
    radius = np.linalg.norm(ball - [1.0, 0.0], axis=1)
    assert np.mean(radius < 1.0) == pytest.approx(0.25, abs=4 * 0.44 / 447)
    np.testing.assert_allclose(ball.mean(axis=0), [1.0, 0.0], atol=4 * 1.0 / 447)


def test_tensors_give_what_arrays_give_and_finite_gradients():
    tf = pytest.importorskip("tensorflow")
    z = 4 * np.random.default_rng(5).normal(size=(50, 3)).astype(np.float32)
    z[0], z[1], z[2] = 0.0, 1e30, [1.0, -2.0, 3.0]

    def evaluate(x, domain):
        with tf.GradientTape() as tape:
            tape.watch(x)
            distance = domain.signed_distance(x)
        return domain.project(x), distance, tape.gradient(distance, x)

    for domain in DOMAINS:
        projected, distance, gradient = evaluate(tf.constant(z), domain)
        assert projected.dtype == distance.dtype == tf.float32
        np.testing.assert_allclose(projected, domain.project(z), rtol=1e-6)
        np.testing.assert_allclose(distance, domain.signed_distance(z), rtol=1e-6, atol=1e-6)
        assert np.linalg.norm(gradient.numpy().astype(np.float64), axis=1).max() <= 1 + 1e-6


def test_projection_compiles_into_a_graph():
    tf = pytest.importorskip("tensorflow")
    z = tf.constant([[3.0, -4.0]])
    assert tf.function(Box(-1.0, 2.0).project)(z).numpy().tolist() == [[2.0, -1.0]]


@every_domain
def test_a_domain_is_frozen_copied_and_compared_by_value(domain):
    assert copy.deepcopy(domain) == domain
    assert hash(copy.deepcopy(domain)) == hash(domain)
    assert domain != Ball(77.0)
    with pytest.raises(AttributeError):
        domain.low = 0.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Box(1.0, 0.0), r"`high` of Box must be >= low in every feature; got 0.0"),
        (
            lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]),
            r"`high` of Box must be of the shape of low; got an array",
        ),
        (lambda: Box(np.nan, 0.0), r"`low` of Box must be finite real numbers; got nan"),
        (
            lambda: Box(0.0, 1.0, -1.0),
            r"`deviation` of Box must be >= 0, .*; got -1",
        ),
        (lambda: Box(0.0, 1.0, [1.0, 2.0]), r"`deviation` of Box must be >= 0, one number or one for each"),
        (lambda: Ball(0.0), r"`radius` of Ball must be a finite number > 0; got 0.0"),
        (lambda: Ball(1.0, [np.inf]), r"`center` of Ball must be finite real numbers; got inf at index 0"),
    ],
)
def test_wrong_bounds_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
