"""The set B that negatives are drawn from: a box or a ball. Works on NumPy arrays and TensorFlow tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ocsdf import _check


class Domain(Protocol):
    """A closed convex set with a projection, a uniform law and a signed distance to its boundary."""

    def project(self, z: Any) -> Any:
        """Nearest point of the set, shape and dtype of ``z`` (n, ...)."""
        ...

    def sample(self, n: int, shape: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """``n`` uniform points, float64, shape (n,) + shape."""
        ...

    def signed_distance(self, x: Any) -> Any:
        """Distance (n,) to the boundary, positive inside; 1-Lipschitz."""
        ...

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Gradient (n, ...) of ``signed_distance``: 0, a valid choice, where there is none."""
        ...

    def rounding(self, n_features: int) -> tuple[float, float]:
        """a, b: ``signed_distance`` of a float64 row x, scaled before, is off by at most a ||x|| + b."""
        ...


@dataclass(frozen=True, eq=False)
class Box:
    """Axis-parallel box low <= x <= high.

    Parameters
    ----------
    low, high : float or array
        Bounds, in the units of the scaled features: one for all features, or one for each (the shape of one
        row). ``Box(0.0, 1.0)`` is the pixel cube of images of any shape.
    deviation : None, float or array >= 0
        Standard deviations of a Gaussian around the middle, each feature on its own, that ``sample`` draws
        from in place of the uniform law. Its points may lie outside of the box, until a step projects them.

    Raises
    ------
    ValueError
        If a bound is not finite, the shapes do not broadcast, low > high or deviation < 0 somewhere.

    Examples
    --------
    >>> import numpy as np
    >>> box = Box(0.0, 1.0)
    >>> box.project(np.array([[2.0, 0.5]]))
    array([[1. , 0.5]])
    >>> box.signed_distance(np.array([[0.25, 0.5], [2.0, 0.5]]))
    array([ 0.25, -1.  ])
    """

    low: Any
    high: Any
    deviation: Any = None

    def __post_init__(self) -> None:
        low = _frozen(_check.array(self.low, "low", "Box"))
        high = _frozen(_check.array(self.high, "high", "Box"))
        try:
            apart = np.asarray(high - low)
        except ValueError:
            shapes = f"an array of shape {high.shape} for low of shape {low.shape}"
            raise ValueError(_check.sentence("high", "Box", "of the shape of low", shapes)) from None
        if (apart < 0).any():
            raise ValueError(_check.sentence("high", "Box", ">= low in every feature", self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.deviation is not None:
            deviation = _frozen(_check.array(self.deviation, "deviation", "Box"))
            if (deviation < 0).any() or deviation.shape not in ((), apart.shape):
                allowed = ">= 0, one number or one for each feature"
                raise ValueError(_check.sentence("deviation", "Box", allowed, self.deviation))
            object.__setattr__(self, "deviation", deviation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    def __hash__(self) -> int:
        return hash((tuple(self.low.flat), tuple(self.high.flat)))

    def __repr__(self) -> str:
        spread = "" if self.deviation is None else f", deviation={_text(self.deviation)}"
        return f"Box({_text(self.low)}, {_text(self.high)}{spread})"

    def project(self, z: Any) -> Any:
        """Nearest point of the box: each feature clipped. Shape and dtype of ``z`` (n, ...)."""
        xp, dtype = _array_module(z)
        return xp.minimum(xp.maximum(z, self.low.astype(dtype)), self.high.astype(dtype))

    def sample(self, n: int, shape: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """``n`` points, uniform or Gaussian, float64, shape (n,) + shape; ``shape`` is that of one row."""
        if self.deviation is not None:
            return rng.normal((self.low + self.high) / 2, self.deviation, _sample_shape(n, shape))
        return rng.uniform(self.low, self.high, _sample_shape(n, shape))

    def signed_distance(self, x: Any) -> Any:
        """Distance (n,) to the nearest wall, positive inside; minus the distance to the box outside."""
        xp, dtype = _array_module(x)
        inside = xp.minimum(x - self.low.astype(dtype), self.high.astype(dtype) - x)
        gap = xp.min(inside, axis=_row_axes(x))
        return xp.maximum(gap, xp.zeros_like(gap)) - _row_norm(xp.minimum(inside, xp.zeros_like(inside)))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Gradient (n, ...) of ``signed_distance``: away from the nearest wall, or back to the box."""
        low, high = x - self.low, self.high - x
        nearest = np.minimum(low, high).reshape(len(x), -1).argmin(axis=1)
        inward = np.zeros((len(x), low[0].size), x.dtype)
        rows = np.arange(len(x))
        inward[rows, nearest] = np.where((low < high).reshape(len(x), -1)[rows, nearest], 1.0, -1.0)
        back = self.project(x) - x
        distance = _as_column(_row_norm(back), x)
        outward = back / np.where(distance > 0, distance, 1)
        return np.where(distance > 0, outward, inward.reshape(x.shape))

    def rounding(self, n_features: int) -> tuple[float, float]:
        """a, b: ``signed_distance`` of a float64 row x, scaled before, is off by at most a ||x|| + b."""
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        return _norm_rounding(
            n_features, float(np.linalg.norm(np.broadcast_to(largest, _row(largest, n_features))))
        )

    def contains(self, x: Any) -> Any:
        """True (n,) where a row lies in the box, its boundary included."""
        return self.signed_distance(x) >= 0


@dataclass(frozen=True, eq=False)
class Ball:
    """Closed l2 ball.

    Parameters
    ----------
    radius : float
        Positive, in the units of the scaled features.
    center : float or array, default 0.0
        One number for all features, or one for each (the shape of one row).

    Raises
    ------
    ValueError
        If the radius is not positive or something is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> ball = Ball(5.0)
    >>> ball.signed_distance(np.array([[3.0, 4.0], [6.0, 8.0], [0.0, 0.0]]))
    array([ 0., -5.,  5.])
    """

    radius: float
    center: Any = 0.0

    def __post_init__(self) -> None:
        radius = _check.number(self.radius, "radius", "Ball", low=0.0, open_low=True)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "center", _frozen(_check.array(self.center, "center", "Ball")))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ball)
            and self.radius == other.radius
            and np.array_equal(self.center, other.center)
        )

    def __hash__(self) -> int:
        return hash((self.radius, tuple(self.center.flat)))

    def __repr__(self) -> str:
        return f"Ball({self.radius!r}, {_text(self.center)})"

    def project(self, z: Any) -> Any:
        """Nearest point of the ball, shape and dtype of ``z`` (n, ...)."""
        xp, dtype = _array_module(z)
        offset = z - self.center.astype(dtype)
        norm = _row_norm(offset)
        # A hair inside, so that the rounding of the product does not put the point outside.
        reach = np.asarray(self.radius * (1 - 16 * np.finfo(dtype).eps), dtype)
        factor = xp.where(norm > self.radius, reach / xp.maximum(norm, reach), xp.ones_like(norm))
        moved = self.center.astype(dtype) + offset * _as_column(factor, z)
        return xp.where(_as_column(norm > self.radius, z), moved, z)

    def sample(self, n: int, shape: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """``n`` uniform points, float64, shape (n,) + shape; ``shape`` is that of one row."""
        size = _sample_shape(n, shape)
        direction = rng.standard_normal(size)
        distance = self.radius * rng.uniform(size=n) ** (1 / max(1, int(np.prod(size[1:]))))
        return self.center + direction * _as_column(distance / _row_norm(direction), direction)

    def signed_distance(self, x: Any) -> Any:
        """Distance (n,) to the sphere, positive inside."""
        _, dtype = _array_module(x)
        return np.asarray(self.radius, dtype) - _row_norm(x - self.center.astype(dtype))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Gradient (n, ...) of ``signed_distance``: towards the center, 0 at it."""
        offset = self.center - x
        distance = _as_column(_row_norm(offset), x)
        return offset / np.where(distance > 0, distance, 1)

    def rounding(self, n_features: int) -> tuple[float, float]:
        """a, b: ``signed_distance`` of a float64 row x, scaled before, is off by at most a ||x|| + b."""
        center = np.linalg.norm(np.broadcast_to(self.center, _row(self.center, n_features)))
        return _norm_rounding(n_features, self.radius + float(center))

    def contains(self, x: Any) -> Any:
        """True (n,) where a row lies in the ball, its sphere included."""
        return self.signed_distance(x) >= 0


def _array_module(z: Any) -> tuple[Any, Any]:
    """NumPy, or TensorFlow's functions of the same names for a tensor, and the floating dtype of ``z``."""
    if isinstance(z, np.ndarray):
        return np, z.dtype if z.dtype.kind == "f" else np.dtype(np.float64)
    import tensorflow.experimental.numpy as tnp  # only someone who holds a tensor gets here

    return tnp, np.dtype(z.dtype.as_numpy_dtype)


def _row_axes(x: Any) -> tuple[int, ...]:
    return tuple(range(1, len(x.shape)))


def _row_norm(offset: Any) -> Any:
    """l2 norm (n,) of each row: no overflow at 1e30 in float32, and a gradient of 0 at a zero row."""
    xp, dtype = _array_module(offset)
    axes = _row_axes(offset)
    largest = xp.max(xp.abs(offset), axis=axes, keepdims=True)
    null = xp.asarray(largest == 0, dtype)
    squares = xp.sum((offset / (largest + null)) ** 2, axis=axes, keepdims=True)
    return xp.squeeze(largest * xp.sqrt(squares + null), axis=axes)


def _norm_rounding(n_features: int, reach: float) -> tuple[float, float]:
    """Of the norm of a difference: d squares summed in any order, and a dozen single operations."""
    relative = (n_features + 16) * 2.0**-53
    return relative, relative * reach


def _row(bound: np.ndarray, n_features: int) -> tuple[int, ...]:
    return bound.shape or (n_features,)


def _as_column(per_row: Any, like: Any) -> Any:
    xp, _ = _array_module(like)
    return xp.reshape(per_row, (-1,) + (1,) * len(_row_axes(like)))


def _sample_shape(n: int, shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return (n, shape) if isinstance(shape, int) else (n, *shape)


def _frozen(value: np.ndarray) -> np.ndarray:
    value.setflags(write=False)
    return value


def _text(value: np.ndarray) -> str:
    return repr(float(value)) if value.ndim == 0 else f"array of shape {value.shape}"
