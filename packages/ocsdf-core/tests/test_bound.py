"""Norm bounds against singular values of explicit matrices built by sliding windows over unit images."""

import numpy as np
import pytest

from ocsdf import _bound
from ocsdf._bound import dense_norm_bound, operator_norm_bound

# A singular value by LAPACK is itself off by a few units in the last place.
SVD_ERROR = 1e-13


def tensorflow_padding(n, window, stride, padding):
    if padding == "valid":
        return 0, 0
    total = max((-(-n // stride) - 1) * stride + window - n, 0)
    return total // 2, total - total // 2


def convolution_matrix(kernel, size, stride=1, padding="same"):
    """Outputs of all unit images, one a row: the transpose of the operator's matrix."""
    kh, kw, n_in, n_out = kernel.shape
    images = np.eye(size[0] * size[1] * n_in).reshape(-1, *size, n_in)
    if padding == "circular":
        images = np.pad(images, ((0, 0), (0, kh - 1), (0, kw - 1), (0, 0)), mode="wrap")
    else:
        pads = [tensorflow_padding(n, w, stride, padding) for n, w in zip(size, (kh, kw), strict=True)]
        images = np.pad(images, ((0, 0), *pads, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(images, (kh, kw), axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("nijcab,abco->nijo", windows, kernel, optimize=True).reshape(len(images), -1)


def exact_norm(*arguments):
    return np.linalg.norm(convolution_matrix(*arguments), 2)


def adversarial_kernels(rng):
    grid = np.arange(3) - 1
    yield "constant", np.ones((3, 3, 1, 1))
    yield "one corner", np.pad(np.ones((1, 1, 1, 1)), ((0, 2), (2, 0), (0, 0), (0, 0)))
    yield "identity", np.pad(np.eye(2)[None, None], ((1, 1), (1, 1), (0, 0), (0, 0)))
    yield "checkerboard", np.where((grid[:, None] + grid) % 2, -1.0, 1.0)[..., None, None]
    yield "frequency between grid points", np.cos(1.9 * (grid[:, None] + 0.7 * grid))[..., None, None]
    yield "Sobel", (np.array([1.0, 2.0, 1.0])[:, None] * grid)[..., None, None]
    yield "rank one channels", np.ones((3, 3, 3, 2)) * rng.normal(size=(3, 3, 1, 1))
    yield "orthogonal taps", np.linalg.qr(rng.normal(size=(9, 3, 3)))[0].reshape(3, 3, 3, 3)
    yield "huge and tiny", 10.0 ** rng.uniform(-30, 30, size=(3, 3, 2, 2))
    yield "huge", np.full((3, 3, 1, 1), 1e200)
    yield "tiny", np.full((3, 3, 1, 1), 1e-200)
    yield "zero", np.zeros((3, 3, 1, 1))
    yield "larger than the image", rng.normal(size=(7, 5, 1, 1))


@pytest.fixture(params=["explicit", "torus"])
def path(request, monkeypatch):
    """Both ways to bound a convolution, at sizes where only the first would be taken."""
    if request.param == "torus":
        monkeypatch.setattr(_bound, "_EXPLICIT", -1)
    return request.param


CASES = [
    (size, stride, padding)
    for size in [(4, 4), (5, 7), (6, 4), (8, 8), (11, 9), (12, 12), (16, 16)]
    for stride in (1, 2, 3)
    for padding in ("same", "circular", "valid")
    if padding != "circular" or size[0] % stride == size[1] % stride == 0
]


@pytest.mark.parametrize(("size", "stride", "padding"), CASES)
def test_bound_is_never_below_the_exact_norm_of_random_kernels(path, size, stride, padding):
    rng = np.random.default_rng([*size, stride])
    for window in [(3, 3), (2, 3), (1, 1), (4, 4)]:
        channels = (2, 3) if max(size) < 10 else (1, 2)
        kernel = rng.normal(size=(*window, *channels))
        norm = exact_norm(kernel, size, stride, padding)
        bound = operator_norm_bound(kernel, size, stride, padding)
        assert bound >= norm * (1 - SVD_ERROR)
        if path == "explicit" or padding == "circular":
            assert bound <= norm * (1 + 1e-8)


@pytest.mark.parametrize("size", [(4, 4), (5, 7), (8, 8), (14, 14)])
@pytest.mark.parametrize("stride", [1, 2])
def test_bound_is_never_below_the_exact_norm_of_adversarial_kernels(path, size, stride):
    for name, kernel in adversarial_kernels(np.random.default_rng(0)):
        scale = np.abs(kernel).max() or 1.0  # LAPACK itself fails on squares of 1e200
        norm = exact_norm(kernel / scale, size, stride, "same")
        bound = operator_norm_bound(kernel, size, stride, "same") / scale
        assert bound >= norm * (1 - SVD_ERROR), name


@pytest.mark.parametrize(("sizes", "limit"), [((4, 6, 8, 10), 0.3), ((12, 14, 16), 0.05)])
@pytest.mark.parametrize("stride", [1, 2])
def test_torus_bound_is_within_thirty_percent_and_five_from_twelve_pixels_on(
    monkeypatch, sizes, limit, stride
):
    monkeypatch.setattr(_bound, "_EXPLICIT", -1)
    rng = np.random.default_rng(1)
    excess = []
    for n in sizes:
        for channels in [(1, 1), (2, 1), (1, 3)]:
            kernel = rng.normal(size=(3, 3, *channels))
            excess.append(
                operator_norm_bound(kernel, (n, n), stride) / exact_norm(kernel, (n, n), stride) - 1
            )
    assert np.median(excess) <= limit


def test_constant_3x3_filter_that_breaks_the_deel_lip_constant():
    """deel-lip scales the reshaped kernel to spectral norm 1 and multiplies by a border correction.

    With it, n / (3 n - 2) for a 3 x 3 kernel on n x n pixels, the norm is 1.020 where 1 is claimed.
    """
    n = 14
    kernel = np.full((3, 3, 1, 1), 1 / 3) * n / (3 * n - 2)
    norm = exact_norm(kernel, (n, n))
    assert norm == pytest.approx(1.020, abs=5e-4)
    assert norm <= operator_norm_bound(kernel, (n, n)) <= norm * (1 + 1e-8)


def test_stride_two_pads_as_tensorflow_does():
    """At even sizes TensorFlow pads a 3 x 3 kernel at the end only: the matrix of its own convolution."""
    tf = pytest.importorskip("tensorflow")
    rng = np.random.default_rng(2)
    for size in [(4, 4), (6, 5), (7, 8)]:
        kernel = rng.normal(size=(3, 3, 2, 2))
        images = np.eye(size[0] * size[1] * 2).reshape(-1, *size, 2)
        outputs = tf.nn.conv2d(images, kernel, 2, "SAME").numpy().reshape(len(images), -1)
        np.testing.assert_allclose(outputs, convolution_matrix(kernel, size, 2), atol=1e-12)
        norm = np.linalg.norm(outputs, 2)
        assert norm * (1 - SVD_ERROR) <= operator_norm_bound(kernel, size, 2) <= norm * (1 + 1e-8)


def test_64_to_64_channels_at_28_pixels_need_no_explicit_matrix(monkeypatch):
    """The matrix would hold 2.5e9 numbers."""
    monkeypatch.delattr(_bound, "_explicit_matrix")
    kernel = np.random.default_rng(3).normal(size=(3, 3, 64, 64))
    bound = operator_norm_bound(kernel, (28, 28))
    assert bound >= largest_norm_by_power_iteration(kernel, (28, 28))


def largest_norm_by_power_iteration(kernel, size, steps=4):
    """A lower bound of the norm: the gain of one image that a few steps have aligned with it."""
    image = np.random.default_rng(4).normal(size=(*size, kernel.shape[2]))
    gain = 0.0
    for _ in range(steps):
        padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
        output = np.einsum("ijcab,abco->ijo", windows, kernel, optimize=True)
        gain = np.linalg.norm(output) / np.linalg.norm(image)
        padded = np.pad(output, ((1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
        image = np.einsum("ijoab,abco->ijc", windows, kernel[::-1, ::-1], optimize=True)
        image /= np.linalg.norm(image)
    return gain


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (3, 7), (64, 64), (21, 512), (512, 1)])
@pytest.mark.parametrize("kind", ["random", "orthonormal", "rank one", "ill-conditioned", "float32"])
def test_dense_bound_is_the_largest_singular_value_rounded_up(shape, kind):
    rng = np.random.default_rng([*shape, len(kind)])
    kernel = rng.normal(size=shape)
    if kind == "orthonormal":
        kernel = np.linalg.qr(kernel)[0]
    elif kind == "rank one":
        kernel = np.outer(kernel[:, 0], kernel[0])
    elif kind == "ill-conditioned":
        kernel *= 10.0 ** rng.uniform(-20, 20, size=shape[1])
    elif kind == "float32":
        kernel = kernel.astype(np.float32)
    norm = np.linalg.svd(kernel.astype(np.float64), compute_uv=False)[0]
    assert norm * (1 - SVD_ERROR) <= dense_norm_bound(kernel) <= norm * (1 + 1e-9)


def test_dense_bound_exceeds_exact_integer_norms_that_float64_cannot_hold():
    """The norm of ones(n, m) is sqrt(n m): compared in integers, no rounding of the oracle."""
    for n, m in [(2, 1), (3, 1), (3, 5), (7, 11), (13, 29)]:
        bound = float(dense_norm_bound(np.ones((n, m))))
        numerator, denominator = bound.as_integer_ratio()
        assert numerator**2 >= n * m * denominator**2


def test_stack_of_networks_and_complex_blocks_are_bounded_one_by_one():
    rng = np.random.default_rng(5)
    real = rng.normal(size=(3, 2, 8, 5))
    for kernels in (real, real + 1j * rng.normal(size=real.shape)):
        bounds = dense_norm_bound(kernels)
        norms = np.linalg.norm(kernels, 2, axis=(-2, -1))
        assert bounds.shape == (3, 2)
        assert np.all((bounds >= norms * (1 - SVD_ERROR)) & (bounds <= norms * (1 + 1e-10)))


def test_extreme_scales_neither_overflow_nor_vanish():
    for scale in (1e300, 1e-300, 1e30):
        assert dense_norm_bound(np.full((2, 2), scale)) == pytest.approx(2 * scale, rel=1e-10)
    assert dense_norm_bound(np.zeros((3, 2))) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.zeros((2, 2, 2)),),
            r"`kernel` of operator_norm_bound must be \(n_in, n_out\), or .*\(2, 2, 2\)",
        ),
        ((np.zeros((3, 3, 1, 1)),), r"`input_size` of .* a pair \(height, width\); got None"),
        ((np.zeros((3, 3, 1, 1)), (4, 0)), r"`input_size` of .* an integer >= 1; got 0"),
        ((np.zeros((3, 3, 1, 1)), (4, 4), 0), r"`stride` of .* an integer >= 1; got 0"),
        ((np.zeros((3, 3, 1, 1)), (4, 4), 1, "full"), r"`padding` of .* one of 'same', 'circular', 'valid'"),
        ((np.zeros((3, 3, 1, 1)), (5, 4), 2, "circular"), r"`input_size` of .* a multiple of the stride 2"),
        ((np.zeros((3, 3, 1, 1)), (2, 4), 1, "valid"), r"`input_size` of .* at least \(3, 3\); got \(2, 4\)"),
        ((np.full((2, 2), np.nan),), r"`kernel` of .* finite real numbers; got nan at index \(0, 0\)"),
    ],
)
def test_wrong_input_is_named_with_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        operator_norm_bound(*arguments)
