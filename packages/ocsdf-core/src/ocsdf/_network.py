"""A 1-Lipschitz network (or several, averaged) as a value: layers, weights, bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ocsdf import _check
from ocsdf._conv import Conv2D
from ocsdf._layers import Dense, GroupSort, Layer, Params, by_feature, carry_rounding
from ocsdf._patches import AffinePatches
from ocsdf._pool import L2NormPool
from ocsdf._references import References
from ocsdf._shape import Channels
from ocsdf._squash import Squash

Builder = Callable[..., tuple[Layer, ...]]


@dataclass(frozen=True, eq=False)
class LipschitzNet:
    """Mean of ``members`` networks of the same layers.

    The mean of 1-Lipschitz functions is 1-Lipschitz. Calling the net costs NumPy only; it computes in the
    dtype of its weights.

    Parameters
    ----------
    layers : tuple of Layer
    params : tuple of dict of arrays
        Weights of each layer, leading axis ``members``.
    input_shape : tuple of int
        Shape of one row.
    """

    layers: tuple[Layer, ...]
    params: tuple[Params, ...]
    input_shape: tuple[int, ...]

    @property
    def members(self) -> int:
        """Number of networks that are averaged."""
        return next((len(array) for params in self.params for array in params.values()), 1)

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the weights, in which the network computes."""
        return next((array.dtype for params in self.params for array in params.values()), np.dtype("f8"))

    @property
    def width(self) -> int:
        """Largest number of values that a row takes up between two layers."""
        widths, sample = [int(np.prod(self.input_shape))], np.zeros((1, 1, *self.input_shape))
        for layer, params in zip(self.layers, self.params, strict=True):
            sample, _ = layer.forward(params, sample)
            widths.append(int(np.prod(sample.shape[2:])))
        return max(widths)

    def astype(self, dtype: str | np.dtype) -> LipschitzNet:
        """The same network with weights of another dtype; itself where it has that."""
        if self.dtype == dtype:
            return self
        cast = tuple({k: v.astype(dtype) for k, v in params.items()} for params in self.params)
        return LipschitzNet(self.layers, cast, self.input_shape)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values (n,) of the mean network on rows ``x`` (n, ...)."""
        y, before = self._laid_out(np.asarray(x, self.dtype)[None]), None
        for layer, params in zip(self.layers, self.params, strict=True):
            if isinstance(layer, GroupSort):
                y = layer.value(y, overwrite=isinstance(before, Dense))
            else:
                y = layer.forward(params, y)[0]  # the rest is freed at once: it would not fit the cache
            before = layer
        return y[..., 0].mean(axis=0)

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (n,) and input gradients, of the shape of ``x``, of the mean network."""
        rows = np.broadcast_to(np.asarray(x, self.dtype), (self.members, *np.shape(x)))
        value, saved = self.forward(rows)
        gradient = self.backward(saved, np.ones_like(value))
        return value.mean(axis=0), gradient.mean(axis=0)

    def tensor(self, x: Any) -> Any:
        """``net(x)`` in TensorFlow, differentiable; ``x`` of the dtype of the weights."""
        import tensorflow as tf

        y = x[None]
        for layer, params in zip(self.layers, self.params, strict=True):
            y = layer.tensor(params, y)
        return tf.reduce_mean(y[..., 0], axis=0)

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, list]:
        """Values (M, n) of each network on its own rows (M, n, ...), and what the backward pass needs."""
        x, saved = self._laid_out(x), []
        for layer, params in zip(self.layers, self.params, strict=True):
            x, kept = layer.forward(params, x)
            saved.append(kept)
        return x[..., 0], saved

    def _laid_out(self, x: np.ndarray) -> np.ndarray:
        """``x`` (M, n, ...), feature by feature where its features are sorted in pairs."""
        pairs = isinstance(self.layers[0], Dense) and GroupSort(2) in self.layers
        return by_feature(x) if pairs else x

    def backward(self, saved: list, slope: np.ndarray) -> np.ndarray:
        """Input gradient (M, n, ...) for output slopes (M, n)."""
        slope = slope[..., None]
        for layer, params, kept in zip(self.layers[::-1], self.params[::-1], saved[::-1], strict=True):
            slope = layer.backward(params, kept, slope)
        return slope

    def gradient_along(self, saved: list, slope: np.ndarray) -> list[Params]:
        """Weight gradients of each layer, along its constraint, for output slopes (M, n)."""
        slope = slope[..., None]
        gradients = []
        for i in range(len(self.layers) - 1, -1, -1):
            layer, params = self.layers[i], self.params[i]
            if isinstance(layer, Dense):
                gradients.append(layer.gradient_along(params, saved[i], slope))
            else:
                gradients.append(layer.along(params, layer.gradient(params, saved[i], slope)))
            slope = layer.backward(params, saved[i], slope) if i else slope
        return gradients[::-1]

    def finished(self) -> LipschitzNet:
        """Float64 weights, exactly on their constraint: the network that is scored and certified."""
        pairs = zip(self.layers, self.params, strict=True)
        params = tuple(layer.finish(params) for layer, params in pairs)
        return LipschitzNet(self.layers, params, self.input_shape)

    def lipschitz(self) -> float:
        """Proven bound of the l2 constant of the mean: product over layers, mean over members."""
        bound = np.ones(self.members)
        for constant in self.constants:
            bound = np.nextafter(bound * constant, np.inf)
        return float(np.nextafter(bound.mean(), np.inf) * (1 + 1e-15 * self.members))

    @cached_property
    def rounding(self) -> tuple[float, float]:
        """Slope and offset of the proven rounding error of a score, in the dtype of the weights; see
        :meth:`rounding_error`.
        """
        return self.rounding_error(self.dtype)

    def rounding_error(self, dtype: DTypeLike = np.float64) -> tuple[float, float]:
        """How far a score that is computed in ``dtype`` can be from the exact one.

        Parameters
        ----------
        dtype : float32 or float64

        Returns
        -------
        slope, offset : float
            ``|computed(x) - f(x)| <= slope * ||x|| + offset`` for each row x without overflow. Two computed
            scores differ by at most ``(lipschitz + slope) * ||x' - x|| + 2 * (slope * ||x|| + offset)`` then.

        Notes
        -----
        Each layer turns bounds of the norm and of the error of its input into those of its output
        (``carry_rounding``). They start at ``||x||`` and ``4 u ||x||``, for the scaling of the features, u
        half the machine epsilon. At widths 64, 128 and 512, four layers each, the slope is 9e-5, 2e-4 and
        2e-3 in float32, and 3e-12 at most in float64. Source of the rounding of sums: Higham, *Accuracy and
        Stability of Numerical Algorithms*, 2nd ed., section 3.1.
        """
        unit = float(np.finfo(dtype).eps) / 2
        size, error = np.array([1.0, 0.0]), np.array([4 * unit, 0.0])  # (factor of ||x||, constant)
        zero = np.zeros((1, 1, *self.input_shape))
        for layer, params, constant in zip(self.layers, self.params, self.constants, strict=True):
            bounds = float(constant.max()), size, error
            size, error, zero = carry_rounding(layer, params, *bounds, zero, dtype)
        error = error + (self.members + 2) * unit * (size + error)  # of the mean
        slope, offset = error * (1 + 1e-9)  # covers the rounding of this recursion
        return float(slope), float(offset)

    @cached_property
    def constants(self) -> list[np.ndarray]:
        """Proven bound (M,) or (1,) of each layer, at the size of its input."""
        constants, sample = [], np.zeros((1, 1, *self.input_shape))
        for layer, params in zip(self.layers, self.params, strict=True):
            constants.append(layer.lipschitz(params, sample.shape[2:]))
            sample, _ = layer.forward(params, sample)
        return constants


def build(
    layers: Sequence[Layer], x: np.ndarray, *, members: int = 1, rng: np.random.Generator
) -> LipschitzNet:
    """A network with fresh weights; ``x`` (n, ...) is a sample of its inputs."""
    sample = np.asarray(x, np.float64)[None]
    weights = []
    for layer in layers:
        params = layer.init(rng, members, sample)
        sample, _ = layer.forward(params, sample)
        weights.append(params)
    return LipschitzNet(tuple(layers), tuple(weights), np.shape(x)[1:])


def dense(hidden: Sequence[int] = (64, 64, 64, 64), sort: int | None = 2) -> tuple[Layer, ...]:
    """Dense layers of the given widths, each followed by a sort, and one output.

    Examples
    --------
    >>> dense((8,), sort=None)
    (Dense(units=8), GroupSort(size=None), Dense(units=1))
    """
    layers: list[Layer] = []
    for width in hidden:
        layers += [Dense(width), GroupSort(sort)]
    return (*layers, Dense(1))


def references(
    count: int = 256,
    rank: float = 0.04,
    trim: float | tuple[float, ...] = 0.15,
    neighbours: float = 0.08,
) -> tuple[Layer, ...]:
    """The distance to trimmed references: the network of the detection recipe.

    Examples
    --------
    >>> references(trim=0.3)
    (References(count=256, rank=0.04, trim=0.3, neighbours=0.08),)
    """
    return (References(count, rank, trim, neighbours),)


def patches(count: int | None = None, directions: int | None = None) -> tuple[Layer, ...]:
    """The distance to learned affine patches: the network of the image recipe, ``OCSDF.images()``.

    Examples
    --------
    >>> patches(count=10, directions=4)
    (AffinePatches(count=10, directions=4),)
    """
    return (AffinePatches(count, directions),)


def vgg(
    width: float = 1.0, kernel: str = "isometric", padding: str = "same", sort: int | None = 2
) -> tuple[Layer, ...]:
    """The paper's network of images: 3 x 3 convolutions, 64 x 4, 128 x 4, 256 x 3, and one output.

    An l2-norm pooling 2 x 2 follows each of the three groups, a global one comes before the output, and each
    convolution is followed by a sort. Rows are images (h, w) or (h, w, c), of any size.

    Parameters
    ----------
    width : float
        Multiplies the number of channels, which stays even and at least 2; 0.25 trains in hours on a core.
    kernel, padding : str
        As of :class:`Conv2D`.
    sort : int or None
        Channels in a group of the sorts.

    Examples
    --------
    >>> len(vgg())
    28
    >>> vgg(width=0.25)[1]
    Conv2D(filters=16, size=3, stride=1, padding='same', kernel='isometric')
    """
    width = _check.number(width, "width", "vgg", low=0.0, open_low=True)
    layers: list[Layer] = [Channels()]
    for channels, depth in ((64, 4), (128, 4), (256, 3)):
        filters = max(2, 2 * round(width * channels / 2))
        for _ in range(depth):
            layers += [Conv2D(filters, padding=padding, kernel=kernel), GroupSort(sort)]
        layers.append(L2NormPool(2))
    return (*layers, L2NormPool(None), Dense(1))


def trains_in_numpy(net: LipschitzNet) -> bool:
    """True where NumPy trains faster than TensorFlow: its gradients of sorts are, of convolutions not."""
    return all(
        isinstance(layer, Dense | GroupSort | Squash | References | AffinePatches) for layer in net.layers
    )


BUILDERS: dict[str, Builder] = {"dense": dense, "references": references, "patches": patches, "vgg": vgg}
