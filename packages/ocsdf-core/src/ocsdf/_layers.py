"""Layers of 1-Lipschitz networks: forward, backward and proven constant of each.

A layer is a frozen value without weights. Its weights are a dict of arrays whose leading axis counts the
networks that are trained side by side (``M``), so ``x`` is (M, n, ...), and (1, n, ...) is read by all of
them; an image is (M, n, h, w, c). A kernel is moved along its constraint by ``move``, never pulled
back to it inside the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from ocsdf._bound import dense_norm_bound, relative_error
from ocsdf._stiefel import orthonormal, polar, retract, rotate, skew, tangent

Params = dict[str, np.ndarray]


class Layer(Protocol):
    """What a network, both engines and the certificate ask of a layer."""

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """Weights of ``members`` networks, float64; ``x`` (1 or M, n, ...) samples the layer's inputs."""
        ...

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Output (M, n, ...) and what ``backward`` and ``gradient`` need."""
        ...

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """Gradient with respect to the input, given the one with respect to the output."""
        ...

    def gradient(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """Gradient with respect to the weights."""
        ...

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow, differentiable."""
        ...

    def along(self, params: Params, gradient: Params) -> Params:
        """The part of a weight gradient along the constraint, in the coordinates that ``move`` takes."""
        ...

    def move(self, params: Params, steps: Params, exact: bool) -> Params:
        """Weights after ``steps`` down, on the constraint; ``exact`` where drift is to be undone as well."""
        ...

    def finish(self, params: Params) -> Params:
        """Float64 weights on the constraint up to float64 rounding."""
        ...

    def lipschitz(self, params: Params, input_shape: tuple[int, ...]) -> np.ndarray:
        """Proven upper bound (M,) of the l2 constant."""
        ...

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """a, b: on the same row, ``forward`` in ``dtype`` is within ``a ||x|| + b`` of the exact output."""
        ...


def carry_rounding(
    layer: Layer,
    params: Params,
    constant: float,
    size: np.ndarray,
    error: np.ndarray,
    zero: np.ndarray,
    dtype: DTypeLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds of the norm and of the error behind a layer, each (factor of ||x||, number), and zero inputs.

    Let h bound the norm of the layer's exact input and e the distance to the computed one. The exact layer
    carries e to ``L e``, L its constant; its own rounding, on an input of norm at most h + e, adds
    ``a (h + e) + b`` (:meth:`Layer.rounding`); h becomes ``L h + ||layer(0)||``.
    """
    slope, offset = layer.rounding(params, zero.shape[2:], dtype)
    shift, _ = layer.forward(params, zero)
    origin = float(np.sqrt((shift**2).sum(axis=tuple(range(1, shift.ndim))).max())) + offset
    error = constant * error + slope * (size + error) + np.array([0.0, offset])
    size = constant * size + np.array([0.0, origin])
    return size, error, np.zeros((1, *shift.shape[1:]))


def down(params: Params, steps: Params) -> Params:
    """``params - steps``."""
    return {name: params[name] - steps[name] for name in params}


class Fixed:
    """A layer without weights and of constant 1."""

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """No weights."""
        return {}

    def gradient(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """No weights."""
        return {}

    def along(self, params: Params, gradient: Params) -> Params:
        """No constraint."""
        return gradient

    def move(self, params: Params, steps: Params, exact: bool) -> Params:
        """Straight down."""
        return down(params, steps)

    def finish(self, params: Params) -> Params:
        """No constraint."""
        return params

    def lipschitz(self, params: Params, input_shape: tuple[int, ...]) -> np.ndarray:
        """One, exactly."""
        return np.ones(1)

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """None: the layer moves numbers and computes nothing."""
        return 0.0, 0.0


@dataclass(frozen=True)
class Dense:
    """``x W + b`` with orthonormal W: singular values 1, so the gradient norm is preserved.

    Parameters
    ----------
    units : int
        Number of outputs.
    """

    units: int

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """Orthonormal kernel (M, n_in, units), zero bias (M, 1, units)."""
        kernel = orthonormal(rng, (members, x.shape[-1], self.units))
        return {"kernel": kernel, "bias": np.zeros((members, 1, self.units))}

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Output (M, n, units), laid out as ``x``; input and output are what the gradients need."""
        y = _product(x, params["kernel"], like=x)
        y += params["bias"]
        return y, (x, y)

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """``slope W'``, laid out as the input."""
        return _product(slope, params["kernel"].swapaxes(-1, -2), like=saved[0])

    def gradient(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """``x' slope`` and the sum of ``slope``."""
        return {"kernel": saved[0].swapaxes(-1, -2) @ slope, "bias": slope.sum(axis=-2, keepdims=True)}

    def gradient_along(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """``along(gradient)``; of a square kernel by one thin product: W' G = W' x' slope = (x W)' slope."""
        if not _is_square(params["kernel"]):
            return self.along(params, self.gradient(params, saved, slope))
        product = (saved[1] - params["bias"]).swapaxes(-1, -2) @ slope
        return {"kernel": skew(product), "bias": slope.sum(axis=-2, keepdims=True)}

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        return tf.matmul(x, params["kernel"]) + params["bias"]

    def along(self, params: Params, gradient: Params) -> Params:
        """Along the manifold of orthonormal kernels; of a square one in the frame of the kernel."""
        kernel, slope = params["kernel"], gradient["kernel"]
        part = skew(kernel.swapaxes(-1, -2) @ slope) if _is_square(kernel) else tangent(kernel, slope)
        return {**gradient, "kernel": part}

    def move(self, params: Params, steps: Params, exact: bool) -> Params:
        """Orthonormal up to 1e-4: a square kernel turns, another one steps and is pulled back."""
        kernel, step = params["kernel"], steps["kernel"]
        moved = rotate(kernel, step) if _is_square(kernel) else kernel - step
        if exact or not _is_square(kernel):
            moved = retract(moved)
        return {"kernel": moved, "bias": params["bias"] - steps["bias"]}

    def finish(self, params: Params) -> Params:
        """The polar factor."""
        return {"kernel": polar(params["kernel"]), "bias": params["bias"].astype(np.float64)}

    def lipschitz(self, params: Params, input_shape: tuple[int, ...]) -> np.ndarray:
        """Proven bound of the largest singular value."""
        return dense_norm_bound(params["kernel"])

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """Each sum of n + 1 products is off by ``gamma_(n + 2)`` of the sum of their sizes."""
        relative = relative_error(params["kernel"].shape[-2] + 2, dtype)
        magnitude = float(dense_norm_bound(np.abs(params["kernel"])).max())
        bias = np.linalg.norm(params["bias"].astype(np.float64), axis=-1)
        return relative * magnitude, relative * float(bias.max())


def by_feature(x: np.ndarray) -> np.ndarray:
    """``x`` (..., n, d) laid out feature by feature in memory, where sorts of pairs run along whole rows.

    Each layer of a dense network keeps the layout of its input.
    """
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def _is_square(kernel: np.ndarray) -> bool:
    return kernel.shape[-2] == kernel.shape[-1]


def _product(x: np.ndarray, kernel: np.ndarray, like: np.ndarray) -> np.ndarray:
    if like.strides[-2] < like.strides[-1]:
        return (kernel.swapaxes(-1, -2) @ x.swapaxes(-1, -2)).swapaxes(-1, -2)
    return x @ kernel


@dataclass(frozen=True)
class GroupSort(Fixed):
    """Sorts groups of ``size`` neighbours, smallest first: a permutation at each point, so constant 1.

    A last group may be smaller. ``GroupSort(2)`` is MaxMin; ``GroupSort(None)`` is FullSort.
    Source: Anil, Lucas, Grosse, "Sorting out Lipschitz function approximation", ICML 2019.

    Parameters
    ----------
    size : int or None
        Features in a group; None sorts all of them.
    """

    size: int | None = 2

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Sorted values, and the permutation."""
        if self.size == 2 and x.shape[-1] % 2 == 0:
            return _sort_pairs(x)
        width = x.shape[-1]
        size = min(self.size or width, width)
        whole = width - width % size
        if whole == width:
            return _sort_groups(x, size)
        head, order = _sort_groups(x[..., :whole], size)
        tail, tail_order = _sort_groups(x[..., whole:], width - whole)
        return np.concatenate([head, tail], axis=-1), (order, tail_order)

    def value(self, x: np.ndarray, overwrite: bool = False) -> np.ndarray:
        """Sorted values alone: scoring needs no permutation, and may ``overwrite`` what it owns."""
        width = x.shape[-1]
        size = min(self.size or width, width)
        whole = width - width % size
        if size == 2:
            y = np.empty_like(x)
            np.minimum(x[..., 0:whole:2], x[..., 1:whole:2], out=y[..., 0:whole:2])
            np.maximum(x[..., 0:whole:2], x[..., 1:whole:2], out=y[..., 1:whole:2])
            y[..., whole:] = x[..., whole:]
            return y
        y = x if overwrite else x.copy()
        y[..., :whole].reshape(*x.shape[:-1], -1, size).sort(axis=-1)  # the groups are a view
        y[..., whole:].sort(axis=-1)
        return y

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """The inverse permutation."""
        if not isinstance(saved, tuple):
            return _unsort_pairs(saved, slope) if saved.dtype == bool else _unsort_groups(saved, slope)
        whole = saved[0].shape[-1] * saved[0].shape[-2]
        parts = [_unsort_groups(saved[0], slope[..., :whole]), _unsort_groups(saved[1], slope[..., whole:])]
        return np.concatenate(parts, axis=-1)

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        width = int(x.shape[-1])
        size = min(self.size or width, width)
        whole = width - width % size
        head = tf.reshape(x[..., :whole], tf.concat([tf.shape(x)[:-1], [whole // size, size]], 0))
        head = _sorted_pairs(head) if size == 2 else tf.sort(head, axis=-1)
        head = tf.reshape(head, tf.concat([tf.shape(x)[:-1], [whole]], 0))
        return head if whole == width else tf.concat([head, tf.sort(x[..., whole:], axis=-1)], axis=-1)


def _sorted_pairs(pairs: Any) -> Any:
    """Sorted last axis of size 2 in TensorFlow.

    A choice and not ``minimum``, whose slopes at ties would both go to one side: pixels of a flat background
    tie, and the slope would exceed 1.
    """
    import tensorflow as tf

    left, right = tf.unstack(pairs, axis=-1)
    swapped = left > right
    return tf.stack([tf.where(swapped, right, left), tf.where(swapped, left, right)], axis=-1)


def _sort_pairs(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    left, right = x[..., 0::2], x[..., 1::2]
    y = np.empty_like(x)
    np.minimum(left, right, out=y[..., 0::2])
    np.maximum(left, right, out=y[..., 1::2])
    return y, left > right


def _unsort_pairs(swapped: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Pairs swapped where they were: of bits by exclusive or, three times as fast as a choice."""
    x = np.empty_like(slope)
    bits, out = (array.view(f"i{slope.itemsize}") for array in (slope, x))
    low, high = bits[..., 0::2], bits[..., 1::2]
    change = low ^ high
    change *= swapped
    np.bitwise_xor(low, change, out=out[..., 0::2])
    np.bitwise_xor(high, change, out=out[..., 1::2])
    return x


_INDEX = (1 << 29) - 1  # a float32 widened to float64 leaves its low 29 bits zero


def _sort_groups(x: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorted groups, and the flat index (..., n_groups, size) that each value came from.

    float32 values are sorted as float64 with their index in the spare low bits: three times as fast as
    argsort, exact, and the values need no gather.
    """
    groups = np.ascontiguousarray(x).reshape(*x.shape[:-1], -1, size)
    if x.dtype != np.float32 or x.size > _INDEX:
        order = np.argsort(groups, axis=-1, kind="stable")
        start = np.arange(0, x.size, size).reshape(*groups.shape[:-1], 1)
        return np.take_along_axis(groups, order, axis=-1).reshape(x.shape), order + start
    keys = groups.astype(np.float64)
    index = keys.view(np.int64)
    index |= _positions(x.size).reshape(index.shape)
    keys.sort(axis=-1)
    y = keys.astype(np.float32).reshape(x.shape)
    index &= _INDEX
    return y, index


@lru_cache(maxsize=8)
def _positions(size: int) -> np.ndarray:
    positions = np.arange(size)
    positions.setflags(write=False)
    return positions


def _unsort_groups(order: np.ndarray, slope: np.ndarray) -> np.ndarray:
    x = np.empty(order.size, slope.dtype)
    x[order.reshape(-1)] = np.ascontiguousarray(slope).reshape(-1)
    return x.reshape(slope.shape)
