"""Proven constants of deel-lip models, whatever their own factors claim. Needs nothing but the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ocsdf import _check
from ocsdf._bound import operator_norm_bound

SORTS = ("GroupSort", "GroupSort2", "FullSort")
DENSE = ("SpectralDense", "FrobeniusDense", "Dense")
CONVOLUTIONS = ("SpectralConv2D", "FrobeniusConv2D", "Conv2D")
_SLOPES = {"linear": 1.0, "relu": 1.0, "tanh": 1.0, "sigmoid": 0.25, "softmax": 1.0}


def lipschitz_bound(model: Any) -> float:
    """Proven upper bound of the l2 constant of a deel-lip Sequential at inference.

    deel-lip scales its convolutions by a factor that is no bound (a constant 3 x 3 filter keeps a norm of
    1.020 on 14 x 14 pixels), so each layer is bounded from the weights that inference uses.

    Parameters
    ----------
    model : deel.lip.Sequential or keras.Sequential
        Built, channels last, of dense layers and 2D convolutions (spectral, Frobenius or plain), GroupSort,
        MaxMin, Householder, ReLU-like activations, scaled average and l2-norm pooling, global or not,
        invertible sampling, Flatten and Reshape.

    Raises
    ------
    TypeError
        On a layer that it cannot bound.
    """
    bound = 1.0
    for layer in flat_layers(model):
        bound = float(np.nextafter(bound * _layer_bound(layer), np.inf))
    return bound


def flat_layers(model: Any) -> Iterator[Any]:
    """Layers in order, an activation that is itself a layer after its host.

    A functional model lists its layers too, but not how often each is passed.
    """
    if not any(kind.__name__ == "Sequential" for kind in type(model).__mro__):
        got = f"a {type(model).__name__}"
        raise TypeError(_check.sentence("model", "ocsdf.deel_lip", "a Sequential", got))
    for layer in model.layers:
        yield from flat_layers(layer) if hasattr(layer, "layers") else [layer]
        activation = getattr(layer, "activation", None)
        if hasattr(activation, "get_config"):
            yield activation


def kernel_of(layer: Any) -> np.ndarray:
    """What inference multiplies by: deel-lip keeps the constrained kernel beside the free one."""
    return (layer.wbar if hasattr(layer, "wbar") else layer.kernel).numpy()


def coefficient(layer: Any) -> float:
    """The factor of the output, as the layer's dtype holds it."""
    return float(np.dtype(layer.dtype).type(layer._get_coef()))


def _layer_bound(layer: Any) -> float:
    name = type(layer).__name__
    if name not in _BOUNDS:
        allowed = f"of layers with a known bound ({', '.join(_BOUNDS)})"
        raise TypeError(_check.sentence("model", "lipschitz_bound", allowed, f"a {name}"))
    return _BOUNDS[name](layer) * _activation_bound(layer)


def _activation_bound(layer: Any) -> float:
    activation = getattr(layer, "activation", None)
    if activation is None or hasattr(activation, "get_config"):
        return 1.0
    if activation.__name__ not in _SLOPES:
        allowed = f"one of {', '.join(_SLOPES)}"
        raise TypeError(_check.sentence("activation", "lipschitz_bound", allowed, activation.__name__))
    return _SLOPES[activation.__name__]


def _dense_bound(layer: Any) -> float:
    return operator_norm_bound(kernel_of(layer))


def _convolution_bound(layer: Any) -> float:
    if layer.data_format != "channels_last" or layer.strides[0] != layer.strides[1]:
        allowed = "channels last with one stride for both directions"
        raise TypeError(_check.sentence("model", "lipschitz_bound", allowed, f"a {type(layer).__name__}"))
    if tuple(layer.dilation_rate) != (1, 1) or layer.groups != 1:
        allowed = "without dilation and groups"
        raise TypeError(_check.sentence("model", "lipschitz_bound", allowed, f"a {type(layer).__name__}"))
    return operator_norm_bound(kernel_of(layer), layer.input_shape[1:3], layer.strides[0], layer.padding)


def _pool_bound(layer: Any) -> float:
    """Disjoint windows: their mean, or root mean square, has the slope 1 / sqrt(size)."""
    return coefficient(layer) / math.sqrt(math.prod(layer.pool_size)) * (1 + 4 * np.finfo(float).eps)


def _global_average_bound(layer: Any) -> float:
    pixels = math.prod(layer.input_shape[1:3])
    return coefficient(layer) / math.sqrt(pixels) * (1 + 4 * np.finfo(float).eps)


def _one(layer: Any) -> float:
    return 1.0


def _relu_bound(layer: Any) -> float:
    if float(layer.threshold) != 0:
        got = f"a ReLU of threshold {float(layer.threshold):g}"
        raise TypeError(_check.sentence("model", "lipschitz_bound", "without jumps", got))
    return max(1.0, abs(float(layer.negative_slope)))


_BOUNDS: dict[str, Callable[[Any], float]] = {
    **dict.fromkeys(DENSE, _dense_bound),
    **dict.fromkeys(CONVOLUTIONS, _convolution_bound),
    **dict.fromkeys((*SORTS, "MaxMin", "ScaledGlobalL2NormPooling2D"), coefficient),
    **dict.fromkeys(("ScaledAveragePooling2D", "ScaledL2NormPooling2D"), _pool_bound),
    "ScaledGlobalAveragePooling2D": _global_average_bound,
    "ReLU": _relu_bound,
    **dict.fromkeys(("Householder", "InvertibleDownSampling", "InvertibleUpSampling"), _one),
    **dict.fromkeys(("InputLayer", "Flatten", "Reshape", "Activation"), _one),
}
