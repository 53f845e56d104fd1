"""Proven upper bounds of l2 operator norms, in float64, every rounding accounted for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ocsdf import _check

_EXPLICIT = 2**20  # entries up to which a convolution's own matrix is cheap to bound
_UNIT = 2.0**-53  # largest relative rounding error of one float64 operation


def operator_norm_bound(
    kernel: ArrayLike,
    input_size: tuple[int, int] | None = None,
    stride: int = 1,
    padding: str = "same",
) -> float:
    """Proven upper bound of the l2 operator norm of a dense layer or a convolution.

    Parameters
    ----------
    kernel : array (n_in, n_out) or (kh, kw, n_in, n_out)
        Dense kernel, or kernel of a 2D convolution (a cross-correlation, as in TensorFlow).
    input_size : (int, int)
        Height and width of the convolution's input; not for a dense kernel.
    stride : int, default 1
        The same in both directions.
    padding : {"same", "circular", "valid"}
        "same": zeros, placed as TensorFlow does: ``max((ceil(h / stride) - 1) * stride + kh - h, 0)`` rows,
        the smaller half above; so with stride 2 and an even height the kernel 3 x 3 is padded at the bottom
        only. "circular": wraps around, and the stride divides both sizes. "valid": no padding.

    Returns
    -------
    float
        Never below the exact norm. It exceeds it by rounding alone (1e-9) for dense kernels, circular
        convolutions, and where the explicit matrix has at most 2^20 entries; else by about 1 % for a 3 x 3
        kernel from 12 x 12 pixels on, and 5 % for 5 x 5.

    Raises
    ------
    ValueError, TypeError
        On another shape, NaN or inf, or a size, stride and padding that do not fit each other.

    Notes
    -----
    A zero-padded convolution on h x w is a piece of a circular one on a larger torus: put the image on an
    N x M torus, zeros elsewhere, with N >= h + the larger padding, so that no read wraps around into the
    image (N = h for "valid"); then restrict the output. Embedding and restriction have norm 1, so the norm on
    the torus is a bound, and needs no correction for a grid of frequencies: the torus has no other ones. The
    discrete Fourier transform is unitary and makes the circular convolution block diagonal, with one block
    ``K(t) = sum_ab kernel[a, b] exp(-2 pi i (a t_1 / N + b t_2 / M))`` for each frequency t. With stride s,
    dividing N and M, the s^2 frequencies that fall on one after subsampling share a block, their K(t) side by
    side, divided by s; an offset of the output lattice is a shift of the torus and changes nothing. The
    largest block norm, each with :func:`dense_norm_bound` and the rounding of the transform added, is the
    result. The frequencies are those of H. Sedghi, V. Gupta, P. Long, "The singular values of convolutional
    layers", ICLR 2019, who treat the circular case.

    Examples
    --------
    >>> import numpy as np
    >>> constant = np.full((3, 3, 1, 1), 1 / 9)
    >>> round(operator_norm_bound(constant, input_size=(14, 14), padding="circular"), 6)
    1.0
    >>> operator_norm_bound(constant, input_size=(14, 14)) < 1
    True
    """
    k = _check.array(kernel, "kernel", "operator_norm_bound")
    if k.ndim == 2 and input_size is None:
        return float(dense_norm_bound(k))
    size = _conv_size(k, input_size, stride, padding)
    pads = [paddings(n, window, stride, padding) for n, window in zip(size, k.shape[:2], strict=True)]
    outputs = [
        (n + sum(pad) - window) // stride + 1 for n, pad, window in zip(size, pads, k.shape, strict=False)
    ]
    if padding == "circular":
        return _torus_bound(k, size, stride)
    if math.prod(size) * math.prod(outputs) * math.prod(k.shape[2:]) <= _EXPLICIT:
        return float(dense_norm_bound(_explicit_matrix(k, size, outputs, stride, [pad[0] for pad in pads])))
    needed = [n + max(pad) for n, pad in zip(size, pads, strict=True)]
    torus = [-(-n // stride) * stride for n in needed]
    return _torus_bound(k, torus, stride)


def dense_norm_bound(kernel: np.ndarray) -> np.ndarray:
    """Upper bound of the largest singular value of a matrix, or of each matrix of a stack.

    Parameters
    ----------
    kernel : array (..., n_in, n_out)
        Real or complex, finite. float32 kernels are taken as the exact numbers they hold.

    Returns
    -------
    array (...)
        Never below the exact norm; above it by a relative 1e-9 at most up to 1024 x 1024.

    Notes
    -----
    A singular value as LAPACK returns it is no bound, so its vectors only serve as a good basis. For any
    square V close to unitary, ``||W|| <= ||W V|| / sqrt(1 - ||V* V - I||)`` and, with P = W V,
    ``||P||^2 = ||P* P||`` is at most the largest absolute row sum of the Hermitian matrix P* P, which is
    nearly diagonal here. Each computed product of inner length n is off by at most
    ``gamma_n |A| |B|`` entry by entry, ``gamma_n = n u / (1 - n u)`` in any order of summation (Higham,
    *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.5; for complex numbers, as two real
    sums of length 2n, ``sqrt(2) gamma_2n``). These terms are added; the last factor covers the additions
    themselves. The idea is that of Rump, "Verified bounds for singular values", BIT 51 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> bool(1.0 <= dense_norm_bound(np.eye(3)) <= 1.0 + 1e-12)
    True
    """
    w = np.asarray(kernel)
    if not np.isfinite(w).all():
        raise ValueError(_check.sentence("kernel", "dense_norm_bound", "finite", "a value of NaN or inf"))
    w = w.astype(np.result_type(w.dtype, np.float64))
    if w.shape[-1] > w.shape[-2]:
        w = w.swapaxes(-1, -2)
    n_rows, n_columns = w.shape[-2:]
    scale = _power_of_two_above(np.abs(w).max(axis=(-1, -2), keepdims=True))
    w = w / scale  # exact, and no square under- or overflows
    _, v = np.linalg.eigh(_adjoint(w) @ w)
    product = w @ v
    squared = _gram_norm_bound(product, np.zeros(n_columns))
    rounding = _gamma(n_columns, w) * _frobenius(w) * _frobenius(v)
    skew = _gram_norm_bound(v, np.ones(n_columns))
    with np.errstate(invalid="ignore", divide="ignore"):
        bound = (np.sqrt(squared) + rounding) / np.sqrt(1 - skew)
    bound = np.where(skew < 0.5, bound, np.inf)
    slack = 1 + 8 * (n_rows * n_columns + 16) * _UNIT
    tightest = np.minimum(bound, _frobenius(w))
    return tightest * slack * scale[..., 0, 0]


def relative_error(terms: int, dtype: DTypeLike = np.float64) -> float:
    """``gamma_n = n u / (1 - n u)``: of a sum of n products, in any order, against the sum of their sizes.

    Half a percent more covers the rounding of the few numbers that it is multiplied with.
    """
    unit = float(np.finfo(dtype).eps) / 2
    return 1.005 * terms * unit / (1 - terms * unit)


def _gram_norm_bound(a: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Bound of the norm of the Hermitian A* A - diag(shift): largest row sum, with its rounding."""
    gram = _adjoint(a) @ a
    diagonal = np.arange(a.shape[-1])
    gram[..., diagonal, diagonal] -= shift
    magnitude = np.abs(a)
    error = _gamma(a.shape[-2], a) * (magnitude.swapaxes(-1, -2) @ magnitude.sum(axis=-1)[..., None])[..., 0]
    return (np.abs(gram).sum(axis=-1) + error).max(axis=-1) + 4 * _UNIT * shift.max()


def _gamma(n: int, a: np.ndarray) -> float:
    terms, factor = (2 * n, np.sqrt(2.0)) if np.iscomplexobj(a) else (n, 1.0)
    return factor * (terms + 2) * _UNIT / (1 - (terms + 2) * _UNIT)


def _frobenius(a: np.ndarray) -> np.ndarray:
    return np.sqrt((np.abs(a) ** 2).sum(axis=(-1, -2)))


def _adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)


def _power_of_two_above(value: np.ndarray) -> np.ndarray:
    return np.where(value > 0, np.exp2(np.ceil(np.log2(np.where(value > 0, value, 1.0)))), 1.0)


def _conv_size(k: np.ndarray, input_size: object, stride: object, padding: object) -> tuple[int, int]:
    caller = "operator_norm_bound"
    if k.ndim != 4:
        allowed = "(n_in, n_out), or (kh, kw, n_in, n_out) with input_size"
        raise ValueError(_check.sentence("kernel", caller, allowed, f"an array of shape {k.shape}"))
    step = _check.integer(stride, "stride", caller, low=1)
    _check.choice(padding, "padding", caller, ("same", "circular", "valid"))
    if not isinstance(input_size, (tuple, list)) or len(input_size) != 2:
        raise ValueError(_check.sentence("input_size", caller, "a pair (height, width)", input_size))
    height, width = (_check.integer(n, "input_size", caller, low=1) for n in input_size)
    if padding == "circular" and (height % step or width % step):
        raise ValueError(
            _check.sentence("input_size", caller, f"a multiple of the stride {step}", input_size)
        )
    if padding == "valid" and (height < k.shape[0] or width < k.shape[1]):
        raise ValueError(_check.sentence("input_size", caller, f"at least {k.shape[:2]}", input_size))
    return height, width


def paddings(n: int, window: int, stride: int, padding: str) -> tuple[int, int]:
    """Zeros before and after, along one direction, as TensorFlow places them."""
    total = max((-(-n // stride) - 1) * stride + window - n, 0) if padding == "same" else 0
    return total // 2, total - total // 2


def _explicit_matrix(
    k: np.ndarray, size: Sequence[int], outputs: Sequence[int], stride: int, before: Sequence[int]
) -> np.ndarray:
    """Matrix (outputs, inputs) of a zero-padded convolution, from the reads of each direction."""
    reads = [
        np.arange(n)[None, None, :]
        == np.arange(m)[None, :, None] * stride - pad + np.arange(window)[:, None, None]
        for n, m, pad, window in zip(size, outputs, before, k.shape[:2], strict=True)
    ]
    matrix = np.einsum("aiy,bjx,abco->ijoyxc", *(r.astype(k.dtype) for r in reads), k, optimize=True)
    return matrix.reshape(outputs[0] * outputs[1] * k.shape[3], -1)


def _torus_bound(k: np.ndarray, torus: Sequence[int], stride: int) -> float:
    """Bound of the circular convolution on a torus, whose sizes the stride divides."""
    kh, kw, n_in, n_out = k.shape
    coarse = [n // stride for n in torus]
    window = k.reshape(kh * kw, n_in * n_out)
    # A frequency and its negative have conjugate blocks, so half of one direction is enough.
    rows = np.arange(coarse[0] // 2 + 1)
    columns = np.arange(torus[1]).reshape(stride, coarse[1]).T
    largest = 0.0
    for row in rows:
        aliases = row + coarse[0] * np.arange(stride)
        turns = (np.outer(aliases, np.arange(kh)) % torus[0] / torus[0])[:, None, None, :, None] + (
            columns[..., None] * np.arange(kw) % torus[1] / torus[1]
        )[None, :, :, None, :]  # (stride, coarse width, stride, kh, kw)
        symbol = np.exp(-2j * np.pi * turns).reshape(-1, kh * kw) @ window
        symbol = symbol.reshape(stride, coarse[1], stride, n_in, n_out).swapaxes(0, 1)
        blocks = symbol.reshape(coarse[1], stride * stride * n_in, n_out) / stride
        largest = max(largest, float(dense_norm_bound(blocks).max()))
    # Each phase is within 64 units of the exact one, then a product of kh * kw terms.
    error = (64 * _UNIT + 2 * _gamma(kh * kw, k)) * float(np.abs(k).sum())
    return (largest + error) * (1 + 8 * _UNIT)
