"""Layers that move numbers and change none: constant 1, no rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocsdf import _check
from ocsdf._layers import Fixed, Params


@dataclass(frozen=True)
class Channels(Fixed):
    """Gives grey images (M, n, h, w) one channel, and leaves (M, n, h, w, c) as they are."""

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Images (M, n, h, w, c)."""
        return self.tensor(params, x), x.shape

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """The shape of the input."""
        return slope.reshape(len(slope), *saved[1:])

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward``, in either library."""
        return x[..., None] if len(x.shape) == 4 else x


@dataclass(frozen=True)
class Flatten(Fixed):
    """Rows of any shape as vectors (M, n, d)."""

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Vectors (M, n, d)."""
        return x.reshape(*x.shape[:2], -1), x.shape

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """The shape of the input."""
        return slope.reshape(len(slope), *saved[1:])

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        return tf.reshape(x, (x.shape[0], -1, math.prod(x.shape[2:])))


@dataclass(frozen=True)
class DownSample(Fixed):
    """Invertible down-sampling: the pixels of each window become channels, none is lost.

    Source: Jacobsen, Smeulders, Oyallon, "i-RevNet: deep invertible networks", ICLR 2018.

    Parameters
    ----------
    size : int
        Height and width of a window; divides those of the image.
    """

    size: int = 2

    def __post_init__(self) -> None:
        _check.integer(self.size, "size", "DownSample", low=1)

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """No weights; the image must be made of whole windows."""
        if x.shape[2] % self.size or x.shape[3] % self.size:
            allowed = f"of images whose height and width {self.size} divides"
            raise ValueError(_check.sentence("x", "DownSample", allowed, f"a row of shape {x.shape[2:]}"))
        return {}

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Images (M, n, h / size, w / size, size size c)."""
        members, n, height, width, channels = x.shape
        rows, columns = height // self.size, width // self.size
        windows = x.reshape(members, n, rows, self.size, columns, self.size, channels)
        return windows.swapaxes(3, 4).reshape(members, n, rows, columns, -1), x.shape

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """The inverse."""
        members, n, rows, columns, _ = slope.shape
        windows = slope.reshape(members, n, rows, columns, self.size, self.size, -1)
        return windows.swapaxes(3, 4).reshape(members, *saved[1:])

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        members, _, height, width, channels = x.shape
        images = tf.nn.space_to_depth(tf.reshape(x, (-1, height, width, channels)), self.size)
        return tf.reshape(images, (members, -1, *images.shape[1:]))
