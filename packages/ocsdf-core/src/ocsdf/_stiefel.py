"""The manifold of orthonormal matrices: start, steps along it, and the exact polar step that ends a fit."""

from __future__ import annotations

import numpy as np


def orthonormal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Random matrices (..., n, m), float64, whose singular values are all 1; uniform on the manifold.

    Examples
    --------
    >>> import numpy as np
    >>> w = orthonormal(np.random.default_rng(0), (2, 5, 3))
    >>> bool(np.allclose(w.swapaxes(1, 2) @ w, np.eye(3)))
    True
    """
    tall = shape if shape[-2] >= shape[-1] else (*shape[:-2], shape[-1], shape[-2])
    q, r = np.linalg.qr(rng.standard_normal(tall))
    q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return q if shape[-2] >= shape[-1] else q.swapaxes(-1, -2)


def tangent(w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Part of ``gradient`` along the manifold: ``G - W sym(W' G)``.

    Without it the elementwise scaling of RMSprop is set by the part across the manifold, which the retraction
    undoes: what is left of the step is short and distorted.
    """
    transposed = w.swapaxes(-1, -2)
    tall = w.shape[-2] >= w.shape[-1]
    product = transposed @ gradient if tall else gradient @ transposed
    product += product.swapaxes(-1, -2).copy()
    product *= 0.5
    return gradient - (w @ product if tall else product @ w)


def retract(w: np.ndarray) -> np.ndarray:
    """``W (I - E / 2 + 3 E² / 8)`` with ``E = W' W - I``, the first terms of ``W (W' W)^(-1/2)``: a singular
    value 1 + e becomes 1 - 2.5 e^3 + O(e^4).

    It costs three products, two of them symmetric. A step of spectral norm 0.03 leaves e <= 0.03, of which
    1e-4 is left; one Newton-Schulz step, the terms up to E, leaves ten times as much.
    """
    tall = w.shape[-2] >= w.shape[-1]  # the smaller Gram matrix
    transposed = w.swapaxes(-1, -2)
    error = transposed @ w if tall else w @ transposed
    diagonal = np.arange(error.shape[-1])
    error[..., diagonal, diagonal] -= 1
    root = error.swapaxes(-1, -2) @ error  # of a matrix and its own transpose BLAS computes one half
    root *= 0.375
    error *= 0.5
    root -= error
    correction = w @ root if tall else root @ w
    correction += w
    return correction


def skew(a: np.ndarray) -> np.ndarray:
    """``(A - A') / 2``. Of A = W' G it is the gradient G in the frame of a square W, which moves with W:
    W skew(W' G) is the part along the manifold.
    """
    part = a - a.swapaxes(-1, -2)
    part *= 0.5
    return part


def rotate(w: np.ndarray, k: np.ndarray) -> np.ndarray:
    """``W (I - K + K² / 2)`` with K skew, the first terms of the rotation ``W exp(-K)``.

    A singular value 1 becomes ``sqrt(1 + s⁴ / 4)``, s one of K: 1 + 1e-7 for s = 0.03. Rounding and these
    remain, so that every now and then a :func:`retract` has to follow. Of the two products BLAS computes one
    by half, since K² = -K' K.
    """
    root = k.swapaxes(-1, -2) @ k
    root *= 0.5
    root += k
    turned = w @ root
    return np.subtract(w, turned, out=turned)


def polar(w: np.ndarray) -> np.ndarray:
    """Nearest orthonormal matrix, float64: U V' of the singular value decomposition."""
    u, _, vt = np.linalg.svd(w.astype(np.float64), full_matrices=False)
    return u @ vt


class SpectralCap:
    """Shrinks each step to a spectral norm of at most ``limit``.

    The norm is estimated by one power iteration a call, warm-started from the last step. Without a cap the
    elementwise scaling of RMSprop leaves the manifold by more than one retraction can repair.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._vector: np.ndarray | None = None

    def __call__(self, step: np.ndarray) -> np.ndarray:
        """Scale ``step`` (..., n, m) in place and return it."""
        if self._vector is None:
            self._vector = np.ones((*step.shape[:-2], step.shape[-1], 1), step.dtype)
        image = step @ self._vector
        back = step.swapaxes(-1, -2) @ image
        length = np.sqrt((image**2).sum(axis=(-1, -2), keepdims=True))
        back_length = np.sqrt((back**2).sum(axis=(-1, -2), keepdims=True))
        tiny = np.finfo(step.dtype).tiny
        self._vector = back / np.maximum(back_length, tiny)
        norm = back_length / np.maximum(length, tiny)
        step *= np.minimum(1.0, self._limit / np.maximum(norm, tiny)).astype(step.dtype)
        return step
