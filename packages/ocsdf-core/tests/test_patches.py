"""The distance to affine patches is what it says, 1-Lipschitz up to its stated rounding, and it can learn."""

import numpy as np
import pytest

from ocsdf import OCSDF, AffinePatches, LipschitzNet, affine_warp, build, load
from ocsdf._network import BUILDERS


def net(rows: np.ndarray, members: int = 1, **settings: int) -> LipschitzNet:
    layer = AffinePatches(**{"count": 4, "directions": 2, **settings})
    return build((layer,), rows, members=members, rng=np.random.default_rng(0))


def digits(label: int) -> np.ndarray:
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.images[data.target == label] / 16


def test_value_is_the_bias_less_the_distance_to_the_nearest_subspace():
    rng = np.random.default_rng(1)
    f, x = net(rng.normal(size=(60, 5))), rng.normal(size=(20, 5))
    (params,) = f.params
    distances = []
    for centre, basis in zip(params["centre"][0], params["kernel"][0], strict=True):
        across = np.eye(5) - basis @ basis.T
        distances.append(np.linalg.norm((x - centre) @ across, axis=1))
    np.testing.assert_allclose(f(x), params["bias"].item() - np.min(distances, axis=0), atol=1e-12)


def test_the_mean_row_that_it_starts_from_scores_zero():
    rows = np.random.default_rng(2).normal(size=(200, 6))
    assert net(rows)(rows).mean() == pytest.approx(0, abs=1e-12)


def test_data_on_a_line_are_at_no_distance_from_one_patch():
    line = np.outer(np.linspace(-1, 1, 30), np.arange(1.0, 5.0)) + 3
    np.testing.assert_allclose(net(line, count=1, directions=1)(line), 0, atol=1e-12)


def test_no_pair_of_rows_is_steeper_than_the_proven_constant():
    rng = np.random.default_rng(3)
    f = net(rng.normal(size=(300, 5)), members=3)
    x, y = rng.normal(size=(2, 400, 5)) * np.geomspace(1e-3, 1e3, 400)[:, None]
    slack = 2 * (f.rounding[0] * np.maximum(*np.linalg.norm([x, y], axis=-1)) + f.rounding[1])
    assert (np.abs(f(x) - f(y)) <= f.lipschitz() * np.linalg.norm(x - y, axis=1) + slack).all()
    assert 1.0 <= f.lipschitz() <= 1.0 + 1e-12


def test_the_constant_of_bases_that_are_too_long_is_above_one():
    f = net(np.random.default_rng(3).normal(size=(50, 5)))
    long = {**f.params[0], "kernel": 2 * f.params[0]["kernel"]}
    assert f.layers[0].lipschitz(long, (5,)) == pytest.approx(3.0)  # the eigenvalue 1 - 2²


def test_the_gradient_norm_is_one():
    rng = np.random.default_rng(4)
    _, slope = net(rng.normal(size=(100, 6))).value_and_gradient(rng.normal(size=(50, 6)))
    np.testing.assert_allclose(np.linalg.norm(slope, axis=1), 1.0, atol=1e-12)


def test_gradients_match_central_differences():
    rng = np.random.default_rng(5)
    f, x, step = net(rng.normal(size=(60, 5)), members=2), rng.normal(size=(8, 5)), 1e-6
    _, gradient = f.value_and_gradient(x)
    numeric = np.stack([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(5)], axis=1)
    np.testing.assert_allclose(gradient, numeric, atol=1e-7)
    rows = np.broadcast_to(x, (2, *x.shape))
    _, saved = f.forward(rows)
    moved = f.layers[0].gradient(f.params[0], saved[0], np.ones((2, len(x), 1)))
    for name, array in f.params[0].items():
        direction = rng.normal(size=array.shape)
        sides = []
        for sign in (1, -1):
            params = {**f.params[0], name: array + sign * step * direction}
            sides.append(LipschitzNet(f.layers, (params,), f.input_shape).forward(rows)[0].sum())
        assert (sides[0] - sides[1]) / (2 * step) == pytest.approx((moved[name] * direction).sum(), rel=1e-5)


def test_images_are_read_as_vectors_and_tensorflow_agrees():
    import tensorflow as tf

    images = np.random.default_rng(6).uniform(size=(80, 4, 4, 3))
    f = net(images, members=2)
    x = tf.constant(images[:10])
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = f.tensor(x)
    numpy_value, numpy_gradient = f.value_and_gradient(images[:10])
    np.testing.assert_allclose(value.numpy(), numpy_value, atol=1e-10)
    np.testing.assert_allclose(tape.gradient(value, x).numpy(), numpy_gradient, atol=1e-8)


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_any_number_of_rows_gives_finite_scores(n: int):
    X = np.random.default_rng(n).normal(size=(n, 4, 4))
    assert np.isfinite(OCSDF.images(max_steps=2, random_state=0).fit(X).score_samples(X)).all()


def test_equal_rows_give_finite_scores():
    X = np.ones((20, 4, 4))
    assert np.isfinite(OCSDF.images(max_steps=2, random_state=0).fit(X).score_samples(X)).all()


def test_training_tells_new_images_from_new_warps_better_and_stays_certified():
    from sklearn.metrics import roc_auc_score

    images = digits(8)
    warped = affine_warp(images[100:], np.random.default_rng(9))
    auroc = {}
    for steps in (0, 150):
        layers = (AffinePatches(5, 3),)
        model = OCSDF.images(network=layers, max_steps=steps, random_state=0).fit(images[:100])
        score = np.concatenate([model.score_samples(images[100:]), model.score_samples(warped)])
        auroc[steps] = roc_auc_score(np.arange(len(score)) < len(warped), score)
        assert model.lipschitz_ <= 1 + 1e-12
    assert auroc[150] > auroc[0]


def test_an_attack_along_the_gradient_moves_the_score_by_the_radius_and_no_more():
    images = digits(0)
    model = OCSDF.images(max_steps=20, random_state=0, network=(AffinePatches(5, 3),)).fit(images)
    others = digits(1)
    slope, radius = model.input_gradient(others), 0.3
    moved = others + radius * slope
    rise = model.score_samples(moved) - model.score_samples(others)
    assert (rise <= radius * model.lipschitz_ + 1e-9).all()
    assert np.median(rise) == pytest.approx(radius, rel=1e-6)


def test_save_and_load_keep_the_scores(tmp_path):
    images = digits(0)
    model = OCSDF.images(max_steps=5, random_state=0).fit(images)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        load(tmp_path / "model.npz").score_samples(images), model.score_samples(images)
    )


def test_the_image_recipe_needs_images():
    with pytest.raises(ValueError, match='`negatives` of OCSDF.fit must be "warp" for images only'):
        OCSDF.images(random_state=0).fit(np.ones((10, 4)))


def test_the_builder_is_known_by_name():
    assert BUILDERS["patches"](count=3) == (AffinePatches(3),)


def test_a_warp_keeps_shape_dtype_and_range_and_differs_from_image_to_image():
    images = np.random.default_rng(7).uniform(size=(6, 9, 7, 3)).astype(np.float32)
    same = np.repeat(images[:1], 6, axis=0)
    warped = affine_warp(same, np.random.default_rng(0))
    assert warped.shape == images.shape
    assert warped.dtype == np.float32
    assert 0 <= warped.min() <= warped.max() <= 1 + 1e-6
    assert len({image.tobytes() for image in warped}) == 6


def test_a_pure_shift_by_one_pixel_is_exact():
    image = np.arange(25.0).reshape(1, 5, 5)

    class Fixed:
        def uniform(self, low: float, high: float, size: tuple[int, ...]) -> np.ndarray:
            return np.zeros(size) if size[1:] == (2, 2) else np.full(size, 0.5)

    moved = affine_warp(image, Fixed())  # 0.5 of the half-frame of 5 pixels is one pixel
    np.testing.assert_allclose(moved[0, :4, :4], image[0, 1:, 1:])
    np.testing.assert_allclose(moved[0, 4], moved[0, 3])  # the edge goes on


@pytest.mark.parametrize(("width", "shape"), [(8, (30, 8, 7)), (784, (30, 784, 10)), (1600, (15, 1600, 20))])
def test_larger_rows_get_more_directions_and_fewer_patches(width, shape):
    rows = np.random.default_rng(7).normal(size=(40, width))
    params = AffinePatches().init(np.random.default_rng(0), 1, rows[None])
    assert params["kernel"].shape[1:] == shape
