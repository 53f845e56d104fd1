"""Gradients by TensorFlow: the engine of networks whose layers know no NumPy gradient, and of a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
import tensorflow as tf

from ocsdf._layers import GroupSort, Layer, Params
from ocsdf._network import LipschitzNet
from ocsdf._pool import AveragePool, L2NormPool
from ocsdf._shape import Channels


class TensorflowEngine:
    """Values and gradients of a network, compiled once for each batch shape.

    Parameters
    ----------
    net : LipschitzNet
        float32 for speed; the gradients have its dtype.
    """

    def __init__(self, net: LipschitzNet) -> None:
        self.net = net
        self._weights = [{k: tf.Variable(v) for k, v in params.items()} for params in net.params]
        pairs = zip(net.layers, self._weights, strict=True)
        self._stages = []
        compiled: dict[tuple[Layer, ...], Callable[[tf.Tensor], tf.Tensor]] = {}
        for light, run in groupby(pairs, lambda pair: _is_light(pair[0])):
            layers, weights = zip(*run, strict=True)
            stage: Callable[[tf.Tensor], tf.Tensor] = partial(_through, layers, weights)
            if light:  # without weights: equal stages are compiled once
                stage = compiled.setdefault(layers, tf.function(stage, jit_compile=True))
            self._stages.append(stage)
        self._value = tf.function(self._value_and_gradient, reduce_retracing=True)
        self._loss = tf.function(self._loss_and_gradient, reduce_retracing=True)

    def set_params(self, params: tuple[Params, ...]) -> None:
        """Take the weights after an update."""
        self.net = LipschitzNet(self.net.layers, params, self.net.input_shape)
        for variables, arrays in zip(self._weights, params, strict=True):
            for name, array in arrays.items():
                variables[name].assign(array)

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (M, n) and input gradients (M, n, ...) of each network on its own rows (M, n, ...)."""
        value, gradient = self._value(tf.convert_to_tensor(x))
        return value.numpy(), gradient.numpy()

    def loss_and_gradient(
        self, normal: np.ndarray, negative: np.ndarray, margin: float, weight: float, n_trimmed: int
    ) -> tuple[np.ndarray, np.ndarray, list[Params]]:
        """HKR loss (M,), values (M, n) of the normals, and the weight gradients along the constraints."""
        hinge = [tf.constant(number, self.net.dtype) for number in (margin, weight)]
        arrays = (tf.convert_to_tensor(normal), tf.convert_to_tensor(negative))
        loss, value, gradients = self._loss(*arrays, *hinge, tf.constant(n_trimmed))
        slopes = [{k: g.numpy() for k, g in layer.items()} for layer in gradients]
        along = zip(self.net.layers, self.net.params, slopes, strict=True)
        return loss.numpy(), value.numpy(), [layer.along(*weights) for layer, *weights in along]

    def _forward(self, x: tf.Tensor) -> tf.Tensor:
        for stage in self._stages:
            x = stage(x)
        return x[..., 0]

    def _value_and_gradient(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            value = self._forward(x)
        return value, tape.gradient(value, x)

    def _loss_and_gradient(
        self,
        normal: tf.Tensor,
        negative: tf.Tensor,
        margin: tf.Tensor,
        weight: tf.Tensor,
        n_trimmed: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, list[dict[str, tf.Tensor]]]:
        n_normal = tf.shape(normal)[1]
        with tf.GradientTape() as tape:
            value = self._forward(tf.concat([normal, negative], axis=1))
            inside, outside = value[:, :n_normal], value[:, n_normal:]
            rank = tf.argsort(tf.argsort(tf.stop_gradient(inside), axis=-1), axis=-1)
            kept = tf.cast(rank >= n_trimmed, value.dtype)
            hinge = (weight * tf.nn.relu(margin - inside) - inside) * kept
            loss = tf.reduce_sum(hinge, axis=-1) / tf.cast(n_normal - n_trimmed, value.dtype)
            loss += tf.reduce_mean(weight * tf.nn.relu(margin + outside) + outside, axis=-1)
        return loss, inside, tape.gradient(loss, self._weights)


def _through(layers: tuple[Layer, ...], weights: tuple[dict[str, Any], ...], x: tf.Tensor) -> tf.Tensor:
    for layer, variables in zip(layers, weights, strict=True):
        x = layer.tensor(variables, x)
    return x


def _is_light(layer: Layer) -> bool:
    """True for what XLA computes in one pass over memory, five times as fast; its long sorts are slower."""
    return isinstance(layer, L2NormPool | AveragePool | Channels) or layer == GroupSort(2)


class TensorflowNet(LipschitzNet):
    """A network whose mean value and gradient TensorFlow computes, on a GPU where it sees one.

    Both are compiled once for each shape of a row.
    """

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values (n,) on rows ``x`` (n, ...)."""
        return self._value(tf.convert_to_tensor(x, self.dtype)).numpy()

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (n,) and input gradients, of the shape of ``x``."""
        value, gradient = self._value_and_gradient(tf.convert_to_tensor(x, self.dtype))
        return value.numpy(), gradient.numpy()

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Copies compile anew: what is compiled cannot be copied."""
        return type(self), (self.layers, self.params, self.input_shape)

    @cached_property
    def _value(self) -> Any:
        return tf.function(self.tensor, reduce_retracing=True)

    @cached_property
    def _value_and_gradient(self) -> Any:
        def both(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = self.tensor(x)
            return value, tape.gradient(value, x)

        return tf.function(both, reduce_retracing=True)
