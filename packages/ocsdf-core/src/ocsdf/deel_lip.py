"""To and from deel-lip models, and proven constants for them. Needs the extra ``ocsdf-core[deel-lip]``.

deel-lip 1.5 runs on Keras 2 only: set ``TF_USE_LEGACY_KERAS=1`` before TensorFlow is first imported. Its
layers are recognised by the names of their classes, so this module imports neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ocsdf import _check
from ocsdf._bound import operator_norm_bound
from ocsdf._layers import Dense, GroupSort, Layer, Params
from ocsdf._network import LipschitzNet

_SORTS = ("GroupSort", "GroupSort2", "FullSort")
_DENSE = ("SpectralDense", "FrobeniusDense", "Dense")
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
    for layer in _flat_layers(model):
        bound = float(np.nextafter(bound * _layer_bound(layer), np.inf))
    return bound


def from_deel_lip(model: Any) -> LipschitzNet:
    """The network that a deel-lip Sequential of dense layers and sorts computes at inference.

    Outputs agree up to float32 rounding; ``lipschitz()`` of the result is proven.

    Raises
    ------
    TypeError
        On a layer that has no counterpart here.
    """
    layers: list[Layer] = []
    params: list[Params] = []
    for layer in _flat_layers(model):
        name = type(layer).__name__
        if name in _DENSE:
            kernel = _kernel(layer).astype(np.float64)
            bias = layer.bias.numpy().astype(np.float64) if layer.use_bias else np.zeros(kernel.shape[1])
            layers.append(Dense(kernel.shape[1]))
            params.append({"kernel": kernel[None], "bias": bias[None, None]})
        elif name in _SORTS and params:
            # A sort times c > 0 is the sort of c times its input.
            factor, weights = _coefficient(layer), next(w for w in reversed(params) if w)
            weights.update({key: factor * value for key, value in weights.items()})
            layers.append(GroupSort(int(layer.n) if layer.n < weights["bias"].shape[-1] else None))
            params.append({})
        elif name not in ("InputLayer", "Flatten"):
            allowed = "of dense layers, each perhaps with a sort"
            raise TypeError(_check.sentence("model", "from_deel_lip", allowed, f"a {name}"))
    return LipschitzNet(tuple(layers), tuple(params), (math.prod(model.input_shape[1:]),))


def to_deel_lip(net: LipschitzNet) -> Any:
    """A ``deel.lip.Sequential`` with the same outputs as a single dense network, up to float32 rounding.

    Raises
    ------
    ValueError
        If ``net`` averages several networks, or a sort leaves a smaller last group.
    TypeError
        On a layer without a counterpart in deel-lip.
    RuntimeError
        If TensorFlow's Keras is not Keras 2.
    """
    if net.members != 1:
        got = f"a mean of {net.members}"
        raise ValueError(_check.sentence("net", "to_deel_lip", "one network", got, "use n_networks=1"))
    lip = _import_deel_lip()
    model = lip.model.Sequential([_counterpart(layer, lip) for layer in net.layers])
    model.build((None, *net.input_shape))
    for source, weights in zip(model.layers, net.params, strict=True):
        if weights:
            kernel = weights["kernel"][0]
            source.kernel.assign(kernel)
            source.wbar.assign(kernel)
            source.bias.assign(weights["bias"][0, 0])
    return model


def _counterpart(layer: Layer, lip: Any) -> Any:
    if isinstance(layer, Dense):
        return lip.layers.SpectralDense(layer.units)
    if isinstance(layer, GroupSort):
        return lip.activations.GroupSort(layer.size)
    allowed = "of dense layers and sorts"
    raise TypeError(_check.sentence("net", "to_deel_lip", allowed, f"a {type(layer).__name__}"))


def _import_deel_lip() -> Any:
    try:
        import tensorflow as tf
        from deel import lip
    except ImportError as error:
        raise ImportError("ocsdf.deel_lip needs deel-lip: pip install 'ocsdf-core[deel-lip]'.") from error
    home = tf.keras.layers.Dense.__module__
    if not home.startswith("tf_keras"):
        remedy = "set TF_USE_LEGACY_KERAS=1 before TensorFlow is first imported"
        raise RuntimeError(f"deel-lip needs Keras 2 (tf_keras); got {home}; {remedy}.")
    return lip


def _flat_layers(model: Any) -> Iterator[Any]:
    """Layers in order, an activation that is itself a layer after its host."""
    for layer in model.layers:
        yield from _flat_layers(layer) if hasattr(layer, "layers") else [layer]
        activation = getattr(layer, "activation", None)
        if hasattr(activation, "get_config"):
            yield activation


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


def _kernel(layer: Any) -> np.ndarray:
    """What inference multiplies by: deel-lip keeps the constrained kernel beside the free one."""
    return (layer.wbar if hasattr(layer, "wbar") else layer.kernel).numpy()


def _coefficient(layer: Any) -> float:
    """The factor of the output, as the layer's dtype holds it."""
    return float(np.dtype(layer.dtype).type(layer._get_coef()))


def _dense_bound(layer: Any) -> float:
    return operator_norm_bound(_kernel(layer))


def _convolution_bound(layer: Any) -> float:
    if layer.data_format != "channels_last" or layer.strides[0] != layer.strides[1]:
        allowed = "channels last with one stride for both directions"
        raise TypeError(_check.sentence("model", "lipschitz_bound", allowed, f"a {type(layer).__name__}"))
    if tuple(layer.dilation_rate) != (1, 1) or layer.groups != 1:
        allowed = "without dilation and groups"
        raise TypeError(_check.sentence("model", "lipschitz_bound", allowed, f"a {type(layer).__name__}"))
    return operator_norm_bound(_kernel(layer), layer.input_shape[1:3], layer.strides[0], layer.padding)


def _pool_bound(layer: Any) -> float:
    """Disjoint windows: their mean, or root mean square, has the slope 1 / sqrt(size)."""
    return _coefficient(layer) / math.sqrt(math.prod(layer.pool_size)) * (1 + 4 * np.finfo(float).eps)


def _global_average_bound(layer: Any) -> float:
    pixels = math.prod(layer.input_shape[1:3])
    return _coefficient(layer) / math.sqrt(pixels) * (1 + 4 * np.finfo(float).eps)


def _one(layer: Any) -> float:
    return 1.0


def _relu_bound(layer: Any) -> float:
    return max(1.0, abs(float(layer.negative_slope)))


_BOUNDS: dict[str, Callable[[Any], float]] = {
    **dict.fromkeys(_DENSE, _dense_bound),
    **dict.fromkeys(("SpectralConv2D", "FrobeniusConv2D", "Conv2D"), _convolution_bound),
    **dict.fromkeys((*_SORTS, "MaxMin", "ScaledGlobalL2NormPooling2D"), _coefficient),
    **dict.fromkeys(("ScaledAveragePooling2D", "ScaledL2NormPooling2D"), _pool_bound),
    "ScaledGlobalAveragePooling2D": _global_average_bound,
    "ReLU": _relu_bound,
    **dict.fromkeys(("Householder", "InvertibleDownSampling", "InvertibleUpSampling"), _one),
    **dict.fromkeys(("InputLayer", "Flatten", "Reshape", "Activation"), _one),
}
