"""Gradients in mixed precision: the products of square layers in bfloat16, everything else in float32."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from ocsdf import _check
from ocsdf._layers import Dense, GroupSort, Params
from ocsdf._loss import hkr_slopes
from ocsdf._network import LipschitzNet
from ocsdf._stiefel import skew

Saved = list[tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]]  # input, product and swaps of each dense layer


class MixedEngine:
    """Values and gradients of dense layers with sorts of pairs between them.

    Weights, their updates and their constraint stay in float32, and so do the first layer and the output,
    which round neither rows nor values. Larger groups are refused: bfloat16 cannot tell their near ties
    apart, and their gradients point elsewhere (docs/performance.md).

    Parameters
    ----------
    net : LipschitzNet
        float32.
    low : str
        Dtype of those products.

    Raises
    ------
    ValueError
        On any other network.
    """

    def __init__(self, net: LipschitzNet, low: str = "bfloat16") -> None:
        dense, sorts = net.layers[::2], net.layers[1::2]
        even = all(isinstance(layer, Dense) and layer.units % 2 == 0 for layer in dense[:-1])
        if not (isinstance(dense[-1], Dense) and even and all(sort == GroupSort(2) for sort in sorts)):
            allowed = "'auto', 'numpy' or 'tensorflow' for a network that is not dense with sorts of pairs"
            raise ValueError(_check.sentence("engine", "OCSDF", allowed, "'mixed'"))
        self.net = net
        inner = range(1, len(dense) - 1)
        self._weights = [
            (
                tf.Variable(tf.cast(params["kernel"], low if i in inner else "float32")),
                tf.Variable(params["bias"]),
            )
            for i, params in enumerate(net.params[::2])
        ]
        self._value = tf.function(self._value_and_gradient)
        self._forwards = tf.function(self._forward)
        self._gradients = tf.function(self._weight_gradients)
        self._assign = tf.function(self._assign_weights)

    def set_params(self, params: tuple[Params, ...]) -> None:
        """Take the weights after an update."""
        self.net = LipschitzNet(self.net.layers, params, self.net.input_shape)
        self._assign([(tf.constant(p["kernel"]), tf.constant(p["bias"])) for p in params[::2]])

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (M, n) and input gradients (M, n, ...) of each network on its own rows (M, n, ...)."""
        value, gradient = self._value(tf.convert_to_tensor(x))
        return value.numpy(), gradient.numpy()

    def loss_and_gradient(
        self, normal: np.ndarray, negative: np.ndarray, margin: float, weight: float, n_trimmed: int
    ) -> tuple[np.ndarray, np.ndarray, list[Params]]:
        """HKR loss (M,), values (M, n) of the normals, and the weight gradients along the constraints."""
        n_normal = normal.shape[1]
        value, saved = self._forwards(tf.convert_to_tensor(np.concatenate([normal, negative], axis=1)))
        inside, outside = value.numpy()[:, :n_normal], value.numpy()[:, n_normal:]
        loss, *slopes = hkr_slopes(inside, outside, margin, weight, n_trimmed)
        found = self._gradients(saved, tf.convert_to_tensor(np.concatenate(slopes, axis=1)))
        gradients: list[Params] = [{} for _ in self.net.layers]
        for i, (kernel, bias) in enumerate(found):
            layer, params = self.net.layers[2 * i], self.net.params[2 * i]
            gradient = {"kernel": kernel.numpy(), "bias": bias.numpy()}
            inner = self._is_inner_square(i)
            gradients[2 * i] = (
                {**gradient, "kernel": skew(gradient["kernel"])} if inner else layer.along(params, gradient)
            )
        return loss, inside, gradients

    def _is_inner_square(self, i: int) -> bool:
        kernel, _ = self._weights[i]
        return i > 0 and kernel.shape[-1] == kernel.shape[-2]

    def _assign_weights(self, arrays: list[tuple[tf.Tensor, tf.Tensor]]) -> None:
        for (kernel, bias), (new_kernel, new_bias) in zip(self._weights, arrays, strict=True):
            kernel.assign(tf.cast(new_kernel, kernel.dtype))
            bias.assign(new_bias)

    def _forward(self, x: tf.Tensor) -> tuple[tf.Tensor, Saved]:
        saved: Saved = []
        for (kernel, bias), (after, _) in pairwise(self._weights):
            product = _matmul(x, kernel)
            following, swapped = _sorted(product, bias, after.dtype)
            saved.append((x, product, swapped))
            x = following
        kernel, bias = self._weights[-1]
        product = _matmul(x, kernel)
        saved.append((x, product, None))
        return (product + bias)[..., 0], saved

    def _value_and_gradient(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        value, saved = self._forward(x)
        _, gradient = self._slopes(saved, tf.ones_like(value))[-1]
        return value, gradient

    def _slopes(self, saved: Saved, slope: tf.Tensor) -> list[tuple[tf.Tensor, tf.Tensor]]:
        """Slopes of each layer's output and input, from the last layer to the first."""
        slope, found = slope[..., None], []
        for i in range(len(saved) - 1, -1, -1):
            kernel, _ = self._weights[i]
            slope = tf.cast(slope, kernel.dtype)
            back = _matmul(slope, kernel, transpose_b=True)
            found.append((slope, back))
            slope = _unsorted(back, saved[i - 1][2]) if i else back
        return found

    def _weight_gradients(self, saved: Saved, slope: tf.Tensor) -> list[tuple[tf.Tensor, tf.Tensor]]:
        found = []
        for i, (behind, _) in enumerate(self._slopes(saved, slope)[::-1]):
            x, product, _ = saved[i]
            total = tf.reduce_sum(tf.cast(behind, tf.float32), axis=-2, keepdims=True)
            if self._is_inner_square(i):  # the loop takes the skew part, as Dense.gradient_along
                x = tf.cast(product, behind.dtype)
            found.append((tf.cast(_matmul(x, behind, transpose_a=True), tf.float32), total))
        return found


@tf.function(jit_compile=True)  # one pass over memory instead of eight
def _sorted(product: Any, bias: Any, dtype: Any) -> tuple[Any, Any]:
    """Pairs of ``product + bias``, smaller first, in ``dtype``, and which were swapped."""
    pairs = _pairs(tf.cast(product, tf.float32) + bias)
    left, right = pairs[..., 0], pairs[..., 1]
    both = tf.stack([tf.minimum(left, right), tf.maximum(left, right)], axis=-1)
    return tf.cast(tf.reshape(both, product.shape), dtype), left > right


@tf.function(jit_compile=True)
def _unsorted(slope: Any, swapped: Any) -> Any:
    pairs = _pairs(slope)
    left, right = pairs[..., 0], pairs[..., 1]
    both = tf.stack([tf.where(swapped, right, left), tf.where(swapped, left, right)], axis=-1)
    return tf.reshape(both, slope.shape)


def _pairs(x: Any) -> Any:
    return tf.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))


def _matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """``tf.matmul`` of stacks; of a stack of one by TensorFlow's product of matrices, which is faster."""
    if a.shape[0] == 1:
        product = tf.matmul(tf.squeeze(a, 0), tf.squeeze(b, 0), transpose_a, transpose_b)
        return tf.expand_dims(product, 0)
    return tf.matmul(a, b, transpose_a, transpose_b)
