"""Pooling over windows that do not overlap, with the constant 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ocsdf import _check
from ocsdf._bound import relative_error
from ocsdf._layers import Fixed, Params


@dataclass(frozen=True)
class _Pool(Fixed):
    """Images (M, n, h, w, c) cut into windows; see the subclasses.

    Parameters
    ----------
    size : int or None
        Height and width of a window; None is the whole image, and the output is (M, n, c).
    padding : {"same", "valid"}
        Whether a smaller window at the end counts, as if zeros followed it, or is dropped.
    """

    size: int | None = 2
    padding: str = "same"

    def __post_init__(self) -> None:
        if self.size is not None:
            _check.integer(self.size, "size", type(self).__name__, low=1)
        _check.choice(self.padding, "padding", type(self).__name__, ("same", "valid"))

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """A sum over a window and two more operations; squares that underflow hide a root of the tiniest."""
        terms = math.prod(input_shape[:2]) if self.size is None else self.size**2
        tiny = math.sqrt(terms * math.prod(input_shape) * float(np.finfo(dtype).tiny))
        return relative_error(terms + 4, dtype), tiny

    def _windows(self, x: Any, xp: Any) -> Any:
        """Windows (M, n, h', size, w', size, c), a view where nothing is padded."""
        height, width, channels = (int(n) for n in x.shape[2:])
        (rows, row_pixels), (columns, column_pixels) = self._count(height), self._count(width)
        missing = [max(rows * row_pixels - height, 0), max(columns * column_pixels - width, 0)]
        if any(missing):
            x = xp.pad(x, [(0, 0), (0, 0), (0, missing[0]), (0, missing[1]), (0, 0)])
        x = x[:, :, : rows * row_pixels, : columns * column_pixels]
        shape = (rows, row_pixels, columns, column_pixels, channels)
        return xp.reshape(x, (x.shape[0], -1, *shape))

    def _unwindow(self, windows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The transpose of cutting, for the shape of the input."""
        members, n, rows, row_pixels, columns, column_pixels, channels = windows.shape
        image = windows.reshape(members, n, rows * row_pixels, columns * column_pixels, channels)
        image = image[:, :, : shape[2], : shape[3]]
        missing = [(0, size - got) for size, got in zip(shape[2:4], image.shape[2:4], strict=True)]
        return np.pad(image, [(0, 0), (0, 0), *missing, (0, 0)])

    def _count(self, n: int) -> tuple[int, int]:
        size = self.size or n
        return (-(-n // size) if self.padding == "same" else n // size), size

    def _squeezed(self, y: Any, xp: Any) -> Any:
        return y if self.size else xp.squeeze(y, axis=(2, 3))


class L2NormPool(_Pool):
    """Root of the sum of squares of each window and channel.

    It keeps the norm of the image and of gradients. The slope at a window of zeros is set to 0, one of the
    slopes it could have. Source: Boureau, Ponce, LeCun, "A theoretical analysis of feature pooling in visual
    recognition", ICML 2010.
    """

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Norms (M, n, h', w', c), and the windows divided by them."""
        windows = self._windows(x, np)
        y = np.sqrt(np.square(windows).sum(axis=(3, 5)))
        return self._squeezed(y, np), (windows, y, x.shape)

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """Along the window."""
        windows, y, shape = saved
        factor = np.divide(
            slope.reshape(len(slope), *y.shape[1:]),
            y,
            out=np.zeros_like(slope.reshape(len(slope), *y.shape[1:])),
            where=y > 0,
        )
        return self._unwindow(windows * factor[:, :, :, None, :, None], shape)

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        squares = tf.reduce_sum(tf.square(self._windows(x, tf)), axis=(3, 5))
        positive = squares > 0
        # The root has no finite slope at 0, and a product with the slope of `where` would be NaN.
        root = tf.sqrt(tf.where(positive, squares, tf.ones_like(squares)))
        return self._squeezed(tf.where(positive, root, tf.zeros_like(root)), tf)


class AveragePool(_Pool):
    """Mean of each window and channel times the root of the window's size, which makes the constant 1.

    All that is not constant on the window is lost, from inputs and from gradients.
    """

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Scaled means (M, n, h', w', c)."""
        windows = self._windows(x, np)
        factor = self._factor(windows)
        return self._squeezed(windows.sum(axis=(3, 5)) * factor, np), (windows.shape, factor, x.shape)

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """The same to each pixel of the window."""
        windows, factor, shape = saved
        members, n, rows, _, columns, _, channels = windows
        each = (slope * factor).reshape(len(slope), n, rows, 1, columns, 1, channels)
        return self._unwindow(np.broadcast_to(each, (len(slope), *windows[1:])), shape)

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        windows = self._windows(x, tf)
        return self._squeezed(tf.reduce_sum(windows, axis=(3, 5)) * self._factor(windows), tf)

    def _factor(self, windows: Any) -> float:
        return 1 / math.sqrt(windows.shape[3] * windows.shape[5])
