"""Preprocessing as a layer: each feature through a map of slope 1 at most, which a certificate passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ocsdf import _check
from ocsdf._layers import Fixed, Params

CURVES = ("asinh", "clip")


@dataclass(frozen=True)
class Squash(Fixed):
    """Draws in what lies far out, feature by feature: heavy tails, and values that no data have.

    Parameters
    ----------
    curve : {"asinh", "clip"}
        "asinh" is ``limit * asinh(x / limit)``, nearly linear inside and a logarithm outside; "clip" cuts.
    limit : float > 0
        Where it begins, unit of the scaled features.

    Examples
    --------
    >>> import numpy as np
    >>> value, _ = Squash("clip").forward({}, np.array([[[0.5, -3.0]]]))
    >>> value
    array([[[ 0.5, -2. ]]])
    """

    curve: str = "asinh"
    limit: float = 2.0

    def __post_init__(self) -> None:
        _check.choice(self.curve, "curve", "Squash", CURVES)
        _check.number(self.limit, "limit", "Squash", low=0.0, open_low=True)

    def forward(self, params: Params, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """Values of the shape of x."""
        limit = x.dtype.type(self.limit)
        value = limit * np.arcsinh(x / limit) if self.curve == "asinh" else np.clip(x, -limit, limit)
        return value, x

    def backward(self, params: Params, saved: Any, slope: np.ndarray) -> np.ndarray:
        """Slope times the derivative, between 0 and 1."""
        scaled = saved / saved.dtype.type(self.limit)
        return slope / np.sqrt(1 + scaled**2) if self.curve == "asinh" else slope * (np.abs(scaled) <= 1)

    def tensor(self, params: dict[str, Any], x: Any) -> Any:
        """``forward`` in TensorFlow."""
        import tensorflow as tf

        if self.curve == "clip":
            return tf.clip_by_value(x, -self.limit, self.limit)
        return self.limit * tf.asinh(x / self.limit)

    def rounding(
        self, params: Params, input_shape: tuple[int, ...], dtype: DTypeLike = np.float64
    ) -> tuple[float, float]:
        """A quotient, a function that is off by 4 units in the last place at most, and a product."""
        return (8 * float(np.finfo(dtype).eps) if self.curve == "asinh" else 0.0), 0.0
