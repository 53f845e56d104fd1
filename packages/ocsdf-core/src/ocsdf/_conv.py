"""Convolutions on images (M, n, h, w, c)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ocsdf import _check
from ocsdf._bound import operator_norm_bound, paddings, relative_error
from ocsdf._kernels import KERNELS, Kernel
from ocsdf._layers import Params, down

BLOCK = 1 << 22  # numbers that the windows of some rows may take up at a time


@dataclass(frozen=True)
class Conv2D:
    """2D convolution, a cross-correlation as in TensorFlow, with a bias for each filter.

    Parameters
    ----------
    filters : int
        Channels of the output.
    size : int
        Height and width of the kernel.
    stride : int
    padding : {"same", "circular", "valid"}
        "same": zeros, placed as TensorFlow does; "circular": wraps around, and the stride divides the image;
        "valid": none.
    kernel : {"isometric", "orthogonal"}
        Constraint. "isometric" keeps the norm of inputs and of gradients, nearly; "orthogonal" is the paper's
        (the reshaped kernel is orthonormal) with a strict constant, which short kernels undershoot.
    """

    filters: int
    size: int = 3
    stride: int = 1
    padding: str = "same"
    kernel: str = "isometric"

    def __post_init__(self) -> None:
        for name in ("filters", "size", "stride"):
            _check.integer(getattr(self, name), name, "Conv2D", low=1)
        _check.choice(self.padding, "padding", "Conv2D", ("same", "circular", "valid"))
        _check.choice(self.kernel, "kernel", "Conv2D", tuple(KERNELS))

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """Kernel (M, size, size, c, filters) on its constraint, zero bias (M, 1, 1, 1, filters)."""
        self._check_image(x.shape[2:])
        first = [self._padding(n)[0] for n in x.shape[2:4]]
        shape = (members, self.size, self.size, x.shape[-1], self.filters)
        kernel = self._constraint.start(rng, shape, (first[0], first[1]))
        return {"kernel": kernel, "bias": np.zeros((members, 1, 1, 1, self.filters))}

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Output (M, n, h', w', filters), and what the gradients need: the padded input."""
        kernel = params["kernel"]
        padded = self._pad(x)
        matrix = kernel.reshape(len(kernel), -1, self.filters)
        height, width = (self._outputs(n) for n in x.shape[2:4])
        y = np.empty((max(len(x), len(kernel)), x.shape[1], height, width, self.filters), matrix.dtype)
        for rows, windows in self._windows(padded):
            y[:, rows] = (windows @ matrix).reshape(len(y), -1, *y.shape[2:])
        y += params["bias"]
        return y, (padded, x.shape)

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """Each tap sends the slope back to where it read."""
        padded, shape = saved
        kernel, stride = params["kernel"], self.stride
        members, n, height, width, filters = slope.shape
        flat = slope.reshape(members, -1, filters)
        x = np.zeros((members, *padded.shape[1:]), slope.dtype)
        for i in range(self.size):
            for j in range(self.size):
                back = (flat @ kernel[:, i, j].swapaxes(-1, -2)).reshape(members, n, height, width, -1)
                x[:, :, i : i + stride * height : stride, j : j + stride * width : stride] += back
        return self._unpad(x, shape)

    def gradient(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """Windows times slopes, and the sum of the slopes."""
        padded, _ = saved
        members = len(slope)
        total = np.zeros((members, math.prod(params["kernel"].shape[1:4]), self.filters), slope.dtype)
        for rows, windows in self._windows(padded):
            total += windows.swapaxes(-1, -2) @ slope[:, rows].reshape(members, -1, self.filters)
        return {
            "kernel": total.reshape(params["kernel"].shape),
            "bias": slope.sum(axis=(1, 2, 3), keepdims=True),
        }

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow, one member after the other."""
        import tensorflow as tf

        kernel, bias = params["kernel"], params["bias"]
        if self.padding == "circular":
            x = _wrap(x, [self._padding(int(n)) for n in x.shape[2:4]])
        zeros = "SAME" if self.padding == "same" else "VALID"
        members, shared = kernel.shape[0], x.shape[0] == 1
        images = [
            tf.nn.bias_add(
                tf.nn.conv2d(x[0 if shared else m], kernel[m], self.stride, zeros), bias[m, 0, 0, 0]
            )
            for m in range(members)
        ]
        return images[0][None] if members == 1 else tf.stack(images)

    def along(self, params: Params, gradient: Params) -> Params:
        """Along the constraint of the kernel."""
        return {**gradient, "kernel": self._constraint.along(params["kernel"], gradient["kernel"])}

    def move(self, params: Params, steps: Params, exact: bool) -> Params:
        """Straight down, and the kernel back on its constraint."""
        moved = down(params, steps)
        return {**moved, "kernel": self._constraint.constrain(moved["kernel"])}

    def finish(self, params: Params) -> Params:
        """Float64, the kernel as near to its constraint as float64 gets."""
        kernel = self._constraint.finish(params["kernel"])
        return {"kernel": kernel, "bias": params["bias"].astype(np.float64)}

    def lipschitz(self, params: Params, input_shape: tuple[int, ...]) -> np.ndarray:
        """Proven bound at this size of image."""
        size = (input_shape[0], input_shape[1])
        bounds = [operator_norm_bound(kernel, size, self.stride, self.padding) for kernel in params["kernel"]]
        return np.array(bounds)

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """As of a dense layer, with the norm of |W| at most the root of its largest row sum times column sum.

        The sums over a whole kernel are those of an output, or of a pixel, away from the border at stride 1.
        """
        kernel, bias = (np.asarray(params[name], np.float64) for name in ("kernel", "bias"))
        relative = relative_error(math.prod(kernel.shape[1:4]) + 2, dtype)
        size = np.abs(kernel).sum(axis=(1, 2))
        magnitude = np.sqrt(size.sum(axis=1).max(axis=-1) * size.sum(axis=2).max(axis=-1)).max()
        outputs = math.prod(self._outputs(n) for n in input_shape[:2])
        offset = math.sqrt(outputs) * np.linalg.norm(bias, axis=-1).max()
        return relative * float(magnitude), relative * float(offset)

    @property
    def _constraint(self) -> Kernel:
        return KERNELS[self.kernel](self.stride)

    def _padding(self, n: int) -> tuple[int, int]:
        return paddings(n, self.size, self.stride, "valid" if self.padding == "valid" else "same")

    def _outputs(self, n: int) -> int:
        return (n + sum(self._padding(n)) - self.size) // self.stride + 1

    def _check_image(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3:
            allowed, remedy = "of images (h, w, c)", "start the network with Channels()"
            raise ValueError(_check.sentence("x", "Conv2D", allowed, f"a row of shape {shape}", remedy))
        least = self.size if self.padding != "same" else 1
        if min(shape[:2]) < least:
            allowed = f"of images of at least {least} x {least}"
            raise ValueError(_check.sentence("x", "Conv2D", allowed, f"a row of shape {shape}"))

    def _pad(self, x: np.ndarray) -> np.ndarray:
        around = [self._padding(n) for n in x.shape[2:4]]
        mode: Any = "wrap" if self.padding == "circular" else "constant"
        return np.pad(x, [(0, 0), (0, 0), *around, (0, 0)], mode=mode)

    def _unpad(self, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The transpose of padding: what the margin got is dropped, or belongs to the other side."""
        for axis in (2, 3):
            n, (before, after) = shape[axis], self._padding(shape[axis])
            head, x, tail = np.split(x, [before, before + n], axis=axis)
            if self.padding == "circular":
                inner = np.moveaxis(x, axis, 0)
                inner[n - before :] += np.moveaxis(head, axis, 0)
                inner[:after] += np.moveaxis(tail, axis, 0)
        return x

    def _windows(self, padded: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows at a time, and their windows (M, rows h' w', size size c)."""
        size = (self.size, self.size)
        view = np.lib.stride_tricks.sliding_window_view(padded, size, axis=(2, 3))
        view = view[:, :, :: self.stride, :: self.stride].transpose(0, 1, 2, 3, 5, 6, 4)
        step = max(1, BLOCK // (len(view) * math.prod(view.shape[2:])))
        for start in range(0, view.shape[1], step):
            rows = slice(start, start + step)
            yield rows, view[:, rows].reshape(len(view), -1, math.prod(view.shape[4:]))


def _wrap(x: Any, around: list[tuple[int, int]]) -> Any:
    """Circular padding in TensorFlow."""
    import tensorflow as tf

    for axis, (before, after) in zip((2, 3), around, strict=True):
        n = int(x.shape[axis])
        head = tf.gather(x, range(n - before, n), axis=axis)
        tail = tf.gather(x, range(after), axis=axis)
        x = tf.concat([head, x, tail], axis=axis)
    return x
