"""The estimator on images: the pixel cube, its units, and a certificate that no attack beats."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

import ocsdf
from ocsdf import OCSDF, Box, build, vgg

RADII = np.array([1, 8, 36, 144]) / 255
SETTINGS = {"n_networks": 1, "max_steps": 15, "batch_size": 16, "margin": 0.5, "random_state": 0}


def images():
    """Zeros and other digits, uint8 (n, 8, 8)."""
    digits = load_digits()
    pixels = np.round(digits.images * 255 / 16).astype(np.uint8)
    return pixels[digits.target == 0][:40], pixels[digits.target != 0][:20]


def detector(kernel="isometric", negatives="newton", **settings):
    network = vgg(width=1 / 32, kernel=kernel)
    return OCSDF(network=network, negatives=negatives, engine="numpy", **SETTINGS, **settings)


@pytest.fixture(scope="module", params=["isometric", "orthogonal"])
def fitted(request):
    normal, _ = images()
    return detector(request.param).fit(normal)


def l2_pgd(model, x, direction, radius, rng, steps=10):
    """Worst scores (n,) within the ball of pixels in [0, 1]: +1 raises them, -1 lowers them."""

    def project(z):
        offset = (z - x).reshape(len(x), -1)
        norm = np.linalg.norm(offset, axis=1)[:, None]
        return x + (offset * np.minimum(1, radius * (1 - 1e-9) / np.maximum(norm, 1e-300))).reshape(x.shape)

    worst, z = model.score_samples(255 * x), project(x + radius * rng.normal(size=x.shape))
    for step in range(steps):
        slope = model.input_gradient(255 * z).reshape(len(x), -1)
        slope /= np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)
        z = project(z + direction * 2 * radius * (1 - step / steps) * slope.reshape(x.shape))
        worst = direction * np.maximum(direction * worst, direction * model.score_samples(255 * z))
    return worst


def test_attack_never_beats_the_certificate_of_images_and_moves_their_scores(fitted):
    rng = np.random.default_rng(1)
    x = np.concatenate(images()) / 255
    certificate = fitted.certify(255 * x)
    for radius in RADII:
        down, up = (l2_pgd(fitted, x, direction, radius, rng) for direction in (-1, 1))
        assert np.all(certificate.lower(radius) <= down)
        assert np.all(up <= certificate.upper(radius))
        decision = certificate.decision(radius)
        assert np.all(down[decision == 1] >= fitted.offset_)
        assert np.all(up[decision == -1] < fitted.offset_)
        slope = 255 * np.linalg.norm(fitted.input_gradient(255 * x).reshape(len(x), -1), axis=1).mean()
        assert np.mean(up - down) >= radius * slope  # a broken attack would pass the lines above


@pytest.mark.parametrize("kernel", ["isometric", "orthogonal"])
def test_no_measured_slope_exceeds_the_proven_constant_before_and_after_training(kernel, fitted):
    rng = np.random.default_rng(2)
    x = np.concatenate([*(part / 255 for part in images()), rng.uniform(size=(20, 8, 8))])
    fresh = build(vgg(width=1 / 32, kernel=kernel), x, members=2, rng=rng)
    for net in (fresh, fresh.finished(), fitted.net_):
        _, gradient = net.value_and_gradient(x)
        assert np.linalg.norm(gradient.reshape(len(x), -1), axis=1).max() <= net.lipschitz()
    assert fitted.lipschitz_ == fitted.net_.lipschitz()
    assert fresh.lipschitz() <= 1 + 1e-6


def test_isometric_kernels_start_with_longer_gradients_than_orthogonal_ones():
    rng = np.random.default_rng(3)
    x = images()[0][:10] / 255
    lengths = {}
    for kernel in ("isometric", "orthogonal"):
        net = build(vgg(width=1 / 8, kernel=kernel), x, rng=rng)
        _, gradient = net.value_and_gradient(x)
        lengths[kernel] = np.linalg.norm(gradient.reshape(len(x), -1), axis=1).mean() / net.lipschitz()
    assert lengths["isometric"] > 10 * lengths["orthogonal"]


def test_pixels_of_uint8_and_of_unit_floats_are_the_same_images():
    normal, _ = images()
    bytes_, floats = detector().fit(normal), detector().fit(normal / 255)
    np.testing.assert_allclose(bytes_.score_samples(normal), floats.score_samples(normal / 255), atol=1e-9)
    assert bytes_.domain_ == floats.domain_ == Box(0.0, 1.0)
    scaled, pixels = bytes_.certified_radius(normal), bytes_.certified_radius(normal, unit="input")
    np.testing.assert_allclose(pixels, 255 * scaled, rtol=1e-12)
    assert bytes_.net_.input_shape == (8, 8)


def test_colour_images_of_any_size_are_fitted_with_jitter_too():
    x = np.random.default_rng(4).uniform(size=(20, 6, 9, 3))
    model = detector(negatives="jitter").fit(x)
    assert np.isfinite(model.certified_radius(x)).all()
    assert model.input_gradient(x).shape == x.shape


def test_a_saved_detector_of_images_scores_and_certifies_without_tensorflow(fitted, tmp_path):
    normal, _ = images()
    fitted.save(tmp_path / "model")
    np.save(tmp_path / "normal", normal)
    again = ocsdf.load(tmp_path / "model")
    np.testing.assert_array_equal(again.score_samples(normal), fitted.score_samples(normal))
    np.testing.assert_array_equal(again.certified_radius(normal), fitted.certified_radius(normal))
    code = (
        f"import sys, numpy, ocsdf; x = numpy.load({str(tmp_path / 'normal.npy')!r});"
        f"ocsdf.load({str(tmp_path / 'model')!r}).certify(x); print('tensorflow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_images_are_synthesised_at_the_mean_score_of_the_fitted_rows(fitted):
    """A level that exists: after these few updates f = 0 need not be anywhere in the pixel cube."""
    level = fitted.score_samples(images()[0]).mean()
    points, residuals = fitted.sample_boundary(5, level=level, random_state=0)
    assert points.shape == (5, 8, 8)
    reached = np.abs(fitted.score_samples(points) - level)
    np.testing.assert_allclose(reached, residuals, atol=1e-9)
    assert np.median(residuals) <= 1e-3


def test_float32_scores_break_a_certificate_of_a_tiny_radius_and_float64_scores_do_not(fitted):
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(500, 8, 8))
    moved = x + 1e-10 * rng.normal(size=x.shape)
    distance = np.linalg.norm((moved - x).reshape(500, -1), axis=1)
    single = fitted.net_.astype(np.float32)
    assert np.max(np.abs(single(moved) - single(x)) - fitted.lipschitz_ * distance) > 0
    slope, offset = fitted.net_.rounding
    rounding = 2 * (slope * np.linalg.norm(x.reshape(500, -1), axis=1) + offset)
    allowed = (fitted.lipschitz_ + slope) * distance + rounding
    assert np.all(np.abs(fitted.net_(moved) - fitted.net_(x)) <= allowed)
    assert rounding.max() <= 1e-9


def test_rows_without_a_channel_or_of_another_rank_are_refused_with_the_remedy():
    from ocsdf import Conv2D, Dense, Flatten

    layers = (Conv2D(2), Flatten(), Dense(1))
    with pytest.raises(
        ValueError, match=r"of images \(h, w, c\); got a row of shape \(8, 8\); start the net"
    ):
        build(layers, np.zeros((3, 8, 8)), rng=np.random.default_rng(0))
