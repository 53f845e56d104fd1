"""A sum of an input and what layers make of it that cannot be steeper than they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ocsdf import _check
from ocsdf._bound import relative_error
from ocsdf._layers import Layer, Params, carry_rounding


@dataclass(frozen=True)
class Residual:
    """``(1 - a) x + a g(x)`` with g the layers and a learnable share a in [0, 1].

    Its constant is at most ``1 - a + a L`` for the constant L of g, so at most 1 where L is. a starts at one
    half. Where x and g(x) point apart, the sum is shorter than either, and so are its gradients.

    Parameters
    ----------
    layers : tuple of Layer
        Their output has the shape of their input.
    """

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))

    def init(self, rng: np.random.Generator, members: int, x: np.ndarray) -> Params:
        """Weights of the layers, their names after the layer's number and a colon, and the share (M, 1)."""
        weights, y = {"share": np.full((members, 1), 0.5)}, x
        for i, layer in enumerate(self.layers):
            params = layer.init(rng, members, y)
            weights |= {f"{i}:{name}": array for name, array in params.items()}
            y, _ = layer.forward(params, y)
        if y.shape[2:] != x.shape[2:]:
            got = f"a change from {x.shape[2:]} to {y.shape[2:]}"
            raise ValueError(_check.sentence("layers", "Residual", "of outputs shaped as the inputs", got))
        return weights

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """The sum, and what the gradients need."""
        y, saved = x, []
        for layer, own in self._pairs(params):
            y, kept = layer.forward(own, y)
            saved.append(kept)
        change = y - x
        return x + _column(params["share"], change) * change, (saved, change)

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """The share of the slope that went through the layers, and the rest."""
        through = _column(params["share"], slope) * slope
        rest = slope - through
        for (layer, own), kept in zip(self._pairs(params)[::-1], saved[0][::-1], strict=True):
            through = layer.backward(own, kept, through)
        return rest + through

    def gradient(self, params: Params, saved: Any, slope: np.ndarray) -> Params:
        """Gradients of the layers' weights and of the share."""
        kept, change = saved
        share = (slope * change).reshape(len(slope), -1).sum(axis=1, keepdims=True)
        through = _column(params["share"], slope) * slope
        gradients = {"share": share}
        for i, (layer, own) in reversed(list(enumerate(self._pairs(params)))):
            own_gradient = layer.gradient(own, kept[i], through)
            gradients |= {f"{i}:{name}": array for name, array in own_gradient.items()}
            through = layer.backward(own, kept[i], through)
        return gradients

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        y = x
        for layer, own in self._pairs(params):
            y = layer.tensor(own, y)
        share = params["share"]
        return x + tf.reshape(share, (share.shape[0], *(1,) * (len(x.shape) - 1))) * (y - x)

    def along(self, params: Params, gradient: Params) -> Params:
        """Along the constraints of the layers."""
        pairs = zip(self._pairs(params), self._pairs(gradient), strict=True)
        return self._merged(gradient, [layer.along(own, slopes) for (layer, own), (_, slopes) in pairs])

    def move(self, params: Params, steps: Params, exact: bool) -> Params:
        """Layers along their constraints, the share in [0, 1]."""
        pairs = zip(self._pairs(params), self._pairs(steps), strict=True)
        moved = [layer.move(own, step, exact) for (layer, own), (_, step) in pairs]
        return {**self._merged(params, moved), "share": np.clip(params["share"] - steps["share"], 0, 1)}

    def finish(self, params: Params) -> Params:
        """The same in float64."""
        merged = self._merged(params, [layer.finish(own) for layer, own in self._pairs(params)])
        return {**merged, "share": np.clip(params["share"].astype(np.float64), 0, 1)}

    def lipschitz(self, params: Params, input_shape: tuple[int, ...]) -> np.ndarray:
        """``1 - a + a L``, rounded up."""
        inner, sample = np.ones(1), np.zeros((1, 1, *input_shape))
        for layer, own in self._pairs(params):
            inner = np.nextafter(inner * layer.lipschitz(own, sample.shape[2:]), np.inf)
            sample, _ = layer.forward(own, sample)
        share = params["share"].astype(np.float64)[:, 0]
        return ((1 - share) + share * inner) * (1 + 2.0**-50)

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """Of the layers, as a network adds them up, and of the sum: three operations on 2 |x| + |g(x)|."""
        size, error, sample = np.array([1.0, 0.0]), np.zeros(2), np.zeros((1, 1, *input_shape))
        for layer, own in self._pairs(params):
            constant = float(layer.lipschitz(own, sample.shape[2:]).max())
            size, error, sample = carry_rounding(layer, own, constant, size, error, sample, dtype)
        error = error + relative_error(4, dtype) * (np.array([2.0, 0.0]) + size + error)
        return float(error[0]), float(error[1])

    def _pairs(self, params: dict[str, Any]) -> list[tuple[Layer, dict[str, Any]]]:
        """Each layer and its own weights."""
        own: list[dict[str, Any]] = [{} for _ in self.layers]
        for name, array in params.items():
            if name != "share":
                index, weight = name.split(":", 1)
                own[int(index)][weight] = array
        return list(zip(self.layers, own, strict=True))

    def _merged(self, params: Params, own: list[Params]) -> Params:
        named = {f"{i}:{name}": array for i, weights in enumerate(own) for name, array in weights.items()}
        return {"share": params["share"], **named}


def _column(share: np.ndarray, like: np.ndarray) -> np.ndarray:
    return share.reshape(len(share), *(1,) * (like.ndim - 1))
