"""Weighted sums of Gaussian kernels in blocks of rows, so that memory does not grow with the table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_BLOCK = 2**24  # entries of a kernel block: 128 MB


def _blocks(X: np.ndarray, centres: np.ndarray) -> Iterator[slice]:
    rows = max(1, _BLOCK // len(centres))
    for start in range(0, len(X), rows):
        yield slice(start, start + rows)


def gaussian_sum(X: np.ndarray, centres: np.ndarray, weights: np.ndarray, gamma: float) -> np.ndarray:
    """Sum (n,) over i of weights_i exp(-gamma |x - c_i|^2) at rows X (n, d), centres (m, d)."""
    from sklearn.metrics.pairwise import rbf_kernel

    return np.concatenate([rbf_kernel(X[b], centres, gamma) @ weights for b in _blocks(X, centres)])


def gaussian_sum_gradient(
    X: np.ndarray, centres: np.ndarray, weights: np.ndarray, gamma: float
) -> np.ndarray:
    """Gradient (n, d) of ``gaussian_sum`` at the rows of X."""
    from sklearn.metrics.pairwise import rbf_kernel

    parts = []
    for block in _blocks(X, centres):
        kernel = rbf_kernel(X[block], centres, gamma) * weights
        parts.append(2 * gamma * (kernel @ centres - kernel.sum(axis=1, keepdims=True) * X[block]))
    return np.concatenate(parts)
