"""What is proven on a ball around a row: the range of the score, and a Lipschitz constant.

The constant is the gradient at the centre, and how far the gradient can turn inside the ball.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from ocsdf._layers import Dense, GroupSort, Params
from ocsdf._network import LipschitzNet
from ocsdf._references import References

SLACK = 1 + 1e-9  # covers the float64 rounding of norms, distances and slopes below

Enclosure = tuple[np.ndarray, np.ndarray]


def score_bounds(net: LipschitzNet, x: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest score (n_radii, n) that is possible on the balls around each row of ``x``.

    As exact as the value itself: ``net.rounding`` is to be added on both sides. References have their own
    proof (:meth:`References.bounds`), behind other layers too; any other network moves by its constant on the
    ball, or by the global one where its layers have no rule for the ball.

    Parameters
    ----------
    net : LipschitzNet
    x : array (n, ...)
        Rows as the network sees them.
    radii : array (n_radii,)
        l2, unit of the scaled features, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from ocsdf import build, references
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> net = build(references(), rows, rng=np.random.default_rng(0))
    >>> low, high = score_bounds(net, np.zeros((1, 2)), np.array([0.1]))
    >>> bool(high[0, 0] - low[0, 0] < 0.2)  # less than what the constant 1 says
    True
    """
    last = net.layers[-1]
    if isinstance(last, References):
        rows = np.broadcast_to(np.asarray(x, net.dtype), (net.members, *np.shape(x)))
        for layer, params, constant in zip(net.layers[:-1], net.params, net.constants, strict=False):
            rows, _ = layer.forward(params, rows)
            radii = radii * float(constant.max()) * (SLACK if constant.max() != 1 else 1.0)
        low, high = last.bounds(net.params[-1], rows, radii)
        return low.mean(axis=1), high.mean(axis=1)
    ruled = all(_enclose.dispatch(type(layer)) is not _enclose.dispatch(object) for layer in net.layers)
    value = net(x)
    constants = [local_lipschitz(net, x, radius) if ruled else net.lipschitz() for radius in radii]
    reach = np.stack(
        [constant * radius * SLACK + 0 * value for constant, radius in zip(constants, radii, strict=True)]
    )
    return value - reach, value + reach


def local_lipschitz(net: LipschitzNet, x: np.ndarray, radius: float) -> np.ndarray:
    """Upper bound (n,) of the l2 constant of ``net`` on the ball of ``radius`` around each row of ``x``.

    Parameters
    ----------
    net : LipschitzNet
    x : array (n, ...)
        Rows as the network sees them.
    radius : float >= 0
        l2, unit of the scaled features.

    Notes
    -----
    The slopes that occur inside the ball are enclosed, from the output back to the input, in a ball of
    vectors: a centre and an error. A dense layer maps the centre and multiplies the error by its constant. A
    sort permutes; a pair of values that the radius can bring to a tie may be permuted either way, which moves
    the centre to the pair's mean and adds the half-difference to the error. A reference that may become the
    k-th nearest adds its direction. Where the error alone reaches the layer's constant, and behind a layer
    without such a rule, all slopes of that length are possible; the result never exceeds ``net.lipschitz()``.
    At radius 0 it is the gradient norm wherever f is differentiable.

    Examples
    --------
    >>> import numpy as np
    >>> from ocsdf import build, dense
    >>> net = build(dense((8, 8)), np.zeros((1, 3)), rng=np.random.default_rng(0))
    >>> local = local_lipschitz(net, np.zeros((1, 3)) + 0.3, radius=0.01)
    >>> bool(0 < local[0] <= net.lipschitz())
    True
    """
    rows = np.broadcast_to(np.asarray(x, net.dtype), (net.members, *np.shape(x)))
    inputs, reaches, reach = [], [], np.full(rows.shape[:2], float(radius))
    for layer, params, constant in zip(net.layers, net.params, net.constants, strict=True):
        inputs.append(rows)
        reaches.append(reach)
        rows, _ = layer.forward(params, rows)
        reach = reach * np.reshape(constant, (-1, 1))
    slope, error = np.ones_like(rows), np.zeros(rows.shape[:2])
    for i in range(len(net.layers) - 1, -1, -1):
        layer, params, constant = net.layers[i], net.params[i], np.reshape(net.constants[i], (-1, 1))
        worst = constant * (_norm(slope) + error)
        slope, error = _enclose(layer, params, inputs[i], slope, error, reaches[i], constant)
        worse = error >= worst  # then the centre tells nothing
        slope = np.where(worse.reshape(*worse.shape, *(1,) * (slope.ndim - 2)), 0.0, slope)
        error = np.where(worse, worst, error)
    bound = (_norm(slope.mean(axis=0, keepdims=True))[0] + error.mean(axis=0)) * SLACK
    return np.minimum(bound, net.lipschitz())


@singledispatch
def _enclose(
    layer: Any,
    params: Params,
    x: np.ndarray,
    slope: np.ndarray,
    error: np.ndarray,
    reach: np.ndarray,
    constant: np.ndarray,
) -> Enclosure:
    """Slopes (M, n, ...) and errors (M, n) at the layer's input, from those at its output."""
    return np.zeros_like(x), constant * (_norm(slope) + error)


@_enclose.register
def _dense(
    layer: Dense, params: Params, x: Any, slope: Any, error: Any, reach: Any, constant: Any
) -> Enclosure:
    return layer.backward(params, x, slope), constant * error


@_enclose.register
def _sort(
    layer: GroupSort, params: Params, x: Any, slope: Any, error: Any, reach: Any, constant: Any
) -> Enclosure:
    if layer.size != 2 or x.shape[-1] % 2:
        return np.zeros_like(x), _norm(slope) + error
    _, saved = layer.forward(params, x)
    back = layer.backward(params, saved, slope)
    left, right = back[..., 0::2], back[..., 1::2]
    # Two values of a vector that moves by `reach` approach each other by sqrt(2) reach at most.
    near = np.sqrt(2) * reach * SLACK
    gap = np.abs(x[..., 0::2] - x[..., 1::2])
    open_pair = gap <= near.reshape(*near.shape, *(1,) * (x.ndim - 2))
    middle, half = (left + right) / 2, np.where(open_pair, (left - right) / np.sqrt(2), 0.0)
    centre = np.empty_like(back)
    centre[..., 0::2] = np.where(open_pair, middle, left)
    centre[..., 1::2] = np.where(open_pair, middle, right)
    return centre, error + _norm(half)


@_enclose.register
def _references(
    layer: References, params: Params, x: Any, slope: Any, error: Any, reach: Any, constant: Any
) -> Enclosure:
    """Directions from all references whose distance may become the k-th smallest, and how far they turn.

    With the height as one dimension more a direction is a unit vector there; its shadow here is shorter.
    """
    rows, points = x.reshape(*x.shape[:2], -1), params["points"]
    lengths = (points**2).sum(axis=-1) + params["height"] ** 2
    scale = np.sqrt((rows**2).sum(axis=-1)) + np.sqrt(lengths).max(axis=-1, keepdims=True)
    blur = 1e-6 * scale[..., None]  # a distance from the products below is off by 1e-7 of the scale at most
    squares = (rows**2).sum(axis=-1)[..., None] + lengths[:, None]
    distance = np.sqrt(np.maximum(squares - 2 * rows @ points.swapaxes(-1, -2), 0.0))
    rank = layer.rank_among(points.shape[1])
    kth = np.partition(distance, rank, axis=-1)[..., rank, None]
    moved = reach[..., None] * SLACK
    near = np.abs(distance - kth) <= 2 * moved + blur
    inverse = np.where(near & (distance > blur), 1 / np.maximum(distance, blur), 0.0)
    count = near.sum(axis=-1, keepdims=True)
    centre = (inverse.sum(axis=-1, keepdims=True) * rows - inverse @ points) / count
    along = (rows * centre).sum(axis=-1)[..., None] - centre @ points.swapaxes(-1, -2)
    shadow = 1 - (params["height"][:, None] * inverse) ** 2
    apart = shadow - 2 * along * inverse + (centre**2).sum(axis=-1)[..., None]
    # Half the sphere can be turned through by a step as long as the distance, 2 apart at most.
    turn = np.where(moved + blur < distance, np.sqrt(2) * (moved + blur) * inverse, 2.0)
    spread = np.where(near, np.sqrt(np.maximum(apart, 0.0)) + turn, 0.0).max(axis=-1)
    outer = slope[..., 0]
    return (-outer[..., None] * centre).reshape(x.shape), np.abs(outer) * (spread + 1e-6) + error


def _norm(slope: np.ndarray) -> np.ndarray:
    return np.sqrt((slope.reshape(*slope.shape[:2], -1) ** 2).sum(axis=-1))
