"""Constraints on the kernel of a convolution: where it starts, the direction it moves in, the way back.

A kernel is (M, kh, kw, n_in, n_out). Each constraint has a method for each of the moments of a training; what
the finished kernel's norm is at most is computed by ``_bound``, whatever the constraint promises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ocsdf._stiefel import orthonormal, polar, retract, tangent

POLISH = 20  # Newton-Schulz steps that end a fit: the norm of a trained kernel is then about a percent off 1


class Kernel(Protocol):
    """A constraint on kernels of convolutions with one stride."""

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], first: tuple[int, int]) -> np.ndarray:
        """Random kernel of a shape on the constraint; ``first`` is the tap of an output's own pixel."""
        ...

    def along(self, kernel: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Part of a gradient along the constraint."""
        ...

    def constrain(self, kernel: np.ndarray) -> np.ndarray:
        """Kernel after an update, back on the constraint up to second order."""
        ...

    def finish(self, kernel: np.ndarray) -> np.ndarray:
        """The same in float64, as near as float64 gets."""
        ...


class Isometric:
    """The convolution itself keeps norms: its circular form W has W'W = 1, or WW' = 1 where that is larger.

    Kernels of a given size are not closed under products, so the manifold has no exact retraction. Newton and
    Schulz's step ``1.5 W - 0.5 W W' W``, cut to the size of the kernel, is a step down the gradient of
    ``|W'W - 1|^2`` among such kernels, and stays near the manifold when the start is on it. The start is an
    orthonormal matrix at as many taps as the stride leaves disjoint. Sources: Xiao et al., "Dynamical
    isometry and a mean field theory of CNNs", ICML 2018 (the start); Wang et al., "Orthogonal convolutional
    neural networks", CVPR 2020 (the penalty).
    """

    def __init__(self, stride: int) -> None:
        self._stride = stride

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], first: tuple[int, int]) -> np.ndarray:
        """Orthonormal at the taps of a stride, zero at the others."""
        members, kh, kw, n_in, n_out = shape
        kernel = np.zeros(shape)
        rows = slice(first[0], first[0] + min(self._stride, kh))
        columns = slice(first[1], first[1] + min(self._stride, kw))
        taps = kernel[:, rows, columns]
        taps[...] = orthonormal(rng, (members, math.prod(taps.shape[1:4]), n_out)).reshape(taps.shape)
        return kernel

    def along(self, kernel: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Tangent ``G - W sym(W'G)``, or its transpose, cut to the size of the kernel."""
        mixed = self._overlap(kernel, gradient)
        if kernel.shape[-2] * self._stride**2 <= kernel.shape[-1]:
            across = _apply(mixed + mixed.swapaxes(-1, -2), kernel)
        else:
            across = _apply(self._overlap(kernel, kernel), gradient) + _apply(mixed, kernel)
        return gradient - 0.5 * across

    def constrain(self, kernel: np.ndarray) -> np.ndarray:
        """One Newton-Schulz step."""
        return 1.5 * kernel - 0.5 * _apply(self._overlap(kernel, kernel), kernel)

    def finish(self, kernel: np.ndarray) -> np.ndarray:
        """Newton-Schulz steps in float64."""
        kernel = kernel.astype(np.float64)
        for _ in range(POLISH):
            kernel = self.constrain(kernel)
        return kernel

    def _overlap(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Blocks (M, kh kw n_in, kh kw n_in) of A'B between the pixels of one window.

        The window's own output gives the product of the two reshaped kernels. Every other output that sees
        both pixels sees them at shifted taps, and adds the block that stands there.
        """
        members, kh, kw, n_in, n_out = a.shape
        own = a.reshape(members, -1, n_out) @ b.reshape(members, -1, n_out).swapaxes(-1, -2)
        own = own.reshape(members, kh, kw, n_in, kh, kw, n_in)
        total = np.zeros_like(own)
        for rows, source_rows in _shifts(kh, self._stride):
            for columns, source_columns in _shifts(kw, self._stride):
                block = own[:, source_rows, source_columns, :, source_rows, source_columns]
                total[:, rows, columns, :, rows, columns] += block
        return total.reshape(members, kh * kw * n_in, -1)


class Orthogonal:
    """The kernel reshaped to (kh kw n_in, n_out) has singular values c: the constraint of the paper.

    Each pixel is read by at most ceil(kh / stride) ceil(kw / stride) windows, so c, one over the root of that
    number, makes the convolution 1-Lipschitz at every size and padding. Most kernels stay well below 1: the
    windows of a pixel would have to agree.
    """

    def __init__(self, stride: int) -> None:
        self._stride = stride

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], first: tuple[int, int]) -> np.ndarray:
        """Uniform on the manifold."""
        members, kh, kw, n_in, n_out = shape
        matrix = orthonormal(rng, (members, kh * kw * n_in, n_out))
        return self._factor(shape) * matrix.reshape(shape)

    def along(self, kernel: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Tangent to the manifold of orthonormal matrices."""
        matrix = _matrix(kernel) / self._factor(kernel.shape)
        return tangent(matrix, _matrix(gradient)).reshape(kernel.shape)

    def constrain(self, kernel: np.ndarray) -> np.ndarray:
        """One Newton-Schulz step."""
        factor = self._factor(kernel.shape)
        return factor * retract(_matrix(kernel) / factor).reshape(kernel.shape)

    def finish(self, kernel: np.ndarray) -> np.ndarray:
        """The polar factor."""
        return self._factor(kernel.shape) * polar(_matrix(kernel)).reshape(kernel.shape)

    def _factor(self, shape: tuple[int, ...]) -> float:
        _, kh, kw, _, _ = shape
        return 1 / math.sqrt(-(-kh // self._stride) * -(-kw // self._stride))


KERNELS: dict[str, type[Isometric] | type[Orthogonal]] = {"isometric": Isometric, "orthogonal": Orthogonal}


def _matrix(kernel: np.ndarray) -> np.ndarray:
    return kernel.reshape(len(kernel), -1, kernel.shape[-1])


def _apply(blocks: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    return (blocks @ _matrix(kernel)).reshape(kernel.shape)


def _shifts(window: int, stride: int) -> Iterator[tuple[slice, slice]]:
    """Taps and where they are shifted from, by each multiple of the stride that leaves any."""
    reach = (window - 1) // stride * stride
    for shift in range(-reach, reach + 1, stride):
        kept = window - abs(shift)
        yield slice(max(shift, 0), max(shift, 0) + kept), slice(max(-shift, 0), max(-shift, 0) + kept)
