"""To and from deel-lip models, and proven constants for them. Needs the extra ``ocsdf-core[deel-lip]``.

deel-lip 1.5 runs on Keras 2 only: set ``TF_USE_LEGACY_KERAS=1`` before TensorFlow is first imported. Its
layers are recognised by the names of their classes, so this module imports neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ocsdf import _check
from ocsdf._conv import Conv2D
from ocsdf._deel_lip_bound import (
    CONVOLUTIONS,
    DENSE,
    SORTS,
    coefficient,
    flat_layers,
    kernel_of,
    lipschitz_bound,
)
from ocsdf._layers import Dense, GroupSort, Layer, Params
from ocsdf._network import LipschitzNet
from ocsdf._pool import AveragePool, L2NormPool
from ocsdf._shape import Channels, DownSample, Flatten

__all__ = ["from_deel_lip", "lipschitz_bound", "to_deel_lip"]


def from_deel_lip(model: Any) -> LipschitzNet:
    """The network that a deel-lip Sequential computes at inference.

    Outputs agree up to float32 rounding; ``lipschitz()`` of the result is proven.

    Parameters
    ----------
    model : deel.lip.Sequential or keras.Sequential
        Built, channels last, of dense layers and 2D convolutions with square kernels (spectral, Frobenius or
        plain), GroupSort, scaled average and l2-norm pooling, global or not, invertible down-sampling,
        Flatten, and a Reshape that adds the channel of grey images.

    Raises
    ------
    TypeError
        On a layer that has no counterpart here.
    """
    layers: list[Layer] = []
    params: list[Params] = []
    for source in flat_layers(model):
        name = type(source).__name__
        if name == "InputLayer":
            continue
        layer, weights, factor = _converted(source)
        # These layers times c > 0 are the same of c times their input, so c goes to the weights before them.
        before = next((earlier for earlier in reversed(params) if earlier), {})
        if factor != 1 and not before:
            allowed = "of factor 1 before the first kernel"
            raise TypeError(
                _check.sentence("model", "from_deel_lip", allowed, f"a {name} of factor {factor:g}")
            )
        before.update({key: factor * value for key, value in before.items()})
        layers.append(layer)
        params.append(weights)
    return LipschitzNet(tuple(layers), tuple(params), tuple(model.input_shape[1:]))


def to_deel_lip(net: LipschitzNet) -> Any:
    """A ``deel.lip.Sequential`` with the same outputs as a single network, up to float32 rounding.

    Raises
    ------
    ValueError
        If ``net`` averages several networks.
    TypeError
        On a layer without a counterpart in deel-lip: circular padding, residual sums, pooling with a smaller
        window at the end, distances to rows or patches.
    RuntimeError
        If TensorFlow's Keras is not Keras 2.
    """
    if net.members != 1:
        got = f"a mean of {net.members}"
        raise ValueError(_check.sentence("net", "to_deel_lip", "one network", got, "use n_networks=1"))
    lip, tf = _import_deel_lip()
    shapes, sample = [], np.zeros((1, 1, *net.input_shape))
    for layer, weights in zip(net.layers, net.params, strict=True):
        shapes.append(sample.shape[2:])
        sample, _ = layer.forward(weights, sample)
    pairs = zip(net.layers, shapes, strict=True)
    # Behind an InputLayer each layer is built for its own input; `build` hands all of them the model's.
    start = tf.keras.layers.InputLayer(net.input_shape)
    model = lip.model.Sequential([start, *(_counterpart(layer, shape, lip) for layer, shape in pairs)])
    for target, weights in zip(model.layers, net.params, strict=True):
        if weights:
            kernel = weights["kernel"][0]
            target.kernel.assign(kernel)
            target.wbar.assign(kernel)
            target.bias.assign(weights["bias"].reshape(-1))
    return model


def _converted(source: Any) -> tuple[Layer, Params, float]:
    """The layer, its weights, and the positive factor that its output is to be multiplied with."""
    name = type(source).__name__
    activation = getattr(source, "activation", None)
    if not (activation is None or hasattr(activation, "get_config") or activation.__name__ == "linear"):
        name = f"{name} with {activation.__name__}"
    if getattr(source, "data_format", "channels_last") != "channels_last":
        name = f"{name} with channels first"
    if name in DENSE:
        return Dense(source.units), _weights(source), 1.0
    if name in CONVOLUTIONS and _is_plain_convolution(source):
        size, stride = source.kernel_size[0], source.strides[0]
        return Conv2D(source.filters, size, stride, source.padding), _weights(source), 1.0
    if name in SORTS:
        return GroupSort(int(source.n) if source.n else None), {}, _near_one(coefficient(source))
    if name in _POOLS and len(set(getattr(source, "pool_size", (1,)))) == 1:
        pool, exact = _POOLS[name](source)
        return pool, {}, _near_one(coefficient(source) / exact)
    if name == "InvertibleDownSampling" and len(set(source.pool_size)) == 1:
        return DownSample(int(source.pool_size[0])), {}, 1.0
    if name == "Flatten":
        return Flatten(), {}, 1.0
    if name == "Reshape" and _adds_channel(source):
        return Channels(), {}, 1.0
    allowed = "of dense layers, square convolutions, GroupSort, pooling, invertible down-sampling and Flatten"
    raise TypeError(_check.sentence("model", "from_deel_lip", allowed, f"a {name}"))


def _weights(source: Any) -> Params:
    kernel = kernel_of(source).astype(np.float64)[None]
    bias = source.bias.numpy().astype(np.float64) if source.use_bias else np.zeros(kernel.shape[-1])
    return {"kernel": kernel, "bias": bias.reshape(1, *(1,) * (kernel.ndim - 2), -1)}


def _near_one(factor: float) -> float:
    """Without the float32 rounding of the factors, which are roots of window sizes."""
    return 1.0 if abs(factor - 1) < 1e-6 else factor


def _counterpart(layer: Layer, shape: tuple[int, ...], lip: Any) -> Any:
    """What computes the same from inputs of a shape."""
    import tensorflow as tf

    name = type(layer).__name__
    if isinstance(layer, Dense):
        return lip.layers.SpectralDense(layer.units)
    if isinstance(layer, Conv2D) and layer.padding != "circular":
        size, stride = (layer.size, layer.size), (layer.stride, layer.stride)
        return lip.layers.SpectralConv2D(layer.filters, size, stride, layer.padding)
    if isinstance(layer, GroupSort):
        return lip.activations.GroupSort(layer.size)
    if isinstance(layer, L2NormPool | AveragePool):
        kind = "L2Norm" if isinstance(layer, L2NormPool) else "Average"
        if layer.size is None:
            return getattr(lip.layers, f"ScaledGlobal{kind}Pooling2D")()
        if layer.padding == "valid" or not any(n % layer.size for n in shape[:2]):
            return getattr(lip.layers, f"Scaled{kind}Pooling2D")((layer.size, layer.size))
        name = f"{name} of {shape[0]} x {shape[1]} pixels in windows of {layer.size}"
    if isinstance(layer, DownSample):
        return lip.layers.InvertibleDownSampling((layer.size, layer.size))
    if isinstance(layer, Flatten):
        return tf.keras.layers.Flatten()
    if isinstance(layer, Channels):
        return tf.keras.layers.Reshape((*shape, 1) if len(shape) == 2 else shape)
    allowed = "of dense layers, convolutions without circular padding, sorts, pooling and reshaping"
    raise TypeError(_check.sentence("net", "to_deel_lip", allowed, f"a {name}"))


def _import_deel_lip() -> tuple[Any, Any]:
    """deel-lip and TensorFlow, whose Keras is Keras 2."""
    try:
        import tensorflow as tf
        from deel import lip
    except ImportError as error:
        raise ImportError("ocsdf.deel_lip needs deel-lip: pip install 'ocsdf-core[deel-lip]'.") from error
    home = tf.keras.layers.Dense.__module__
    if not home.startswith("tf_keras"):
        remedy = "set TF_USE_LEGACY_KERAS=1 before TensorFlow is first imported"
        raise RuntimeError(f"deel-lip needs Keras 2 (tf_keras); got {home}; {remedy}.")
    return lip, tf


def _is_plain_convolution(layer: Any) -> bool:
    plain = tuple(layer.dilation_rate) == (1, 1) and layer.groups == 1
    return plain and len({*layer.kernel_size}) == len({*layer.strides}) == 1


def _adds_channel(layer: Any) -> bool:
    before, after = tuple(layer.input_shape[1:]), tuple(layer.target_shape)
    return len(after) == 3 and after in (before, (*before, 1))


def _side(layer: Any) -> int:
    return int(layer.pool_size[0])


_POOLS: dict[str, Callable[[Any], tuple[Layer, float]]] = {
    "ScaledL2NormPooling2D": lambda layer: (L2NormPool(_side(layer), "valid"), _side(layer)),
    "ScaledAveragePooling2D": lambda layer: (AveragePool(_side(layer), "valid"), _side(layer)),
    "ScaledGlobalL2NormPooling2D": lambda layer: (L2NormPool(None), 1.0),
    "ScaledGlobalAveragePooling2D": lambda layer: (
        AveragePool(None),
        math.sqrt(math.prod(layer.input_shape[1:3])),
    ),
}
