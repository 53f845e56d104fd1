"""A 1-Lipschitz network (or several, averaged) as a value: layers, weights, bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ocsdf._bound import dense_rounding_bound
from ocsdf._layers import Dense, GroupSort, Layer, Params
from ocsdf._references import References

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
        """The same network with weights of another dtype."""
        cast = tuple({k: v.astype(dtype) for k, v in params.items()} for params in self.params)
        return LipschitzNet(self.layers, cast, self.input_shape)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values (n,) of the mean network on rows ``x`` (n, ...)."""
        y = np.asarray(x, self.dtype)[None]
        for layer, params in zip(self.layers, self.params, strict=True):
            y, _ = layer.forward(params, y)
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
        saved = []
        for layer, params in zip(self.layers, self.params, strict=True):
            x, kept = layer.forward(params, x)
            saved.append(kept)
        return x[..., 0], saved

    def backward(self, saved: list, slope: np.ndarray) -> np.ndarray:
        """Input gradient (M, n, ...) for output slopes (M, n)."""
        slope = slope[..., None]
        for layer, params, kept in zip(self.layers[::-1], self.params[::-1], saved[::-1], strict=True):
            slope = layer.backward(params, kept, slope)
        return slope

    def gradient(self, saved: list, slope: np.ndarray) -> list[Params]:
        """Weight gradients of each layer for output slopes (M, n)."""
        slope = slope[..., None]
        gradients = []
        for i in range(len(self.layers) - 1, -1, -1):
            layer, params = self.layers[i], self.params[i]
            gradients.append(layer.gradient(params, saved[i], slope))
            if i:
                slope = layer.backward(params, saved[i], slope)
        return gradients[::-1]

    def finished(self) -> LipschitzNet:
        """Float64 weights, exactly on their constraint: the network that is scored and certified."""
        pairs = zip(self.layers, self.params, strict=True)
        params = tuple(layer.finish(params) for layer, params in pairs)
        return LipschitzNet(self.layers, params, self.input_shape)

    @cached_property
    def rounding(self) -> tuple[float, float]:
        """Slope and offset of the proven rounding error of a float64 score, as in ``dense_rounding_bound``.

        Zero for layers that have no such bound yet: their float64 rounding, a relative 1e-12, is not covered.
        """
        if isinstance(self.layers[0], References) and len(self.layers) == 1:
            return self.layers[0].rounding(self.params[0])
        if not is_dense(self):
            return 0.0, 0.0
        weights = [params for params in self.params if params]
        return dense_rounding_bound([w["kernel"] for w in weights], [w["bias"] for w in weights])

    def lipschitz(self) -> float:
        """Proven bound of the l2 constant of the mean: product over layers, mean over members."""
        bound = np.ones(self.members)
        shape = self.input_shape
        sample = np.zeros((1, 1, *shape))
        for layer, params in zip(self.layers, self.params, strict=True):
            bound = np.nextafter(bound * layer.lipschitz(params, shape), np.inf)
            sample, _ = layer.forward(params, sample)
            shape = sample.shape[2:]
        return float(np.nextafter(bound.mean(), np.inf) * (1 + 1e-15 * self.members))


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


def references(count: int = 256, rank: float = 0.04, trim: float = 0.15) -> tuple[Layer, ...]:
    """The distance to trimmed reference rows: the network of the detection recipe.

    Examples
    --------
    >>> references(trim=0.3)
    (References(count=256, rank=0.04, trim=0.3),)
    """
    return (References(count, rank, trim),)


def is_dense(net: LipschitzNet) -> bool:
    """True where the network is made of dense layers and sorts."""
    return all(isinstance(layer, Dense | GroupSort) for layer in net.layers)


def has_gradients(net: LipschitzNet) -> bool:
    """True where every layer knows its gradients in NumPy, which trains small networks fast."""
    return all(isinstance(layer, Dense | GroupSort | References) for layer in net.layers)


BUILDERS: dict[str, Builder] = {"dense": dense, "references": references}
