"""Gradients in NumPy: no TensorFlow import, no compilation, several networks in one product."""

from __future__ import annotations

import numpy as np

from ocsdf._layers import Params
from ocsdf._loss import hkr_slopes
from ocsdf._network import LipschitzNet


class NumpyEngine:
    """Values and gradients of a network of layers that know their backward pass.

    Parameters
    ----------
    net : LipschitzNet
        float32 for speed; the gradients have its dtype.
    """

    def __init__(self, net: LipschitzNet) -> None:
        self.net = net

    def set_params(self, params: tuple[Params, ...]) -> None:
        """Take the weights after an update."""
        self.net = LipschitzNet(self.net.layers, params, self.net.input_shape)

    def value_and_gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (M, n) and input gradients (M, n, ...) of each network on its own rows (M, n, ...)."""
        value, saved = self.net.forward(x)
        return value, self.net.backward(saved, np.ones_like(value))

    def loss_and_gradient(
        self, normal: np.ndarray, negative: np.ndarray, margin: float, weight: float, n_trimmed: int
    ) -> tuple[np.ndarray, np.ndarray, list[Params]]:
        """HKR loss (M,), values (M, n) of the normals, and the weight gradients along the constraints."""
        n_normal = normal.shape[1]
        value, saved = self.net.forward(np.concatenate([normal, negative], axis=1))
        value_normal, value_negative = value[:, :n_normal], value[:, n_normal:]
        loss, slope, negative_slope = hkr_slopes(value_normal, value_negative, margin, weight, n_trimmed)
        gradients = self.net.gradient_along(saved, np.concatenate([slope, negative_slope], axis=1))
        return loss, value_normal, gradients
