"""Proven upper bounds of l2 operator norms, in float64, every rounding accounted for."""

from __future__ import annotations

import numpy as np

_UNIT = 2.0**-53  # largest relative rounding error of one float64 operation


def dense_norm_bound(kernel: np.ndarray) -> np.ndarray:
    """Upper bound of the largest singular value of a matrix, or of each matrix of a stack.

    Parameters
    ----------
    kernel : array (..., n_in, n_out)
        Real or complex, finite. float32 kernels are taken as the exact numbers they hold.

    Returns
    -------
    array (...)
        Never below the exact norm; above it by a relative 1e-11 or so at 512 x 512.

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
