"""What a Lipschitz constant proves on the score and the decision of a row under every l2 attack of a radius.

Scores are f, higher = more normal. ``lipschitz`` is a *proven* upper bound of the slope of f; a radius is an
l2 distance in the units that the constant was proven in. Every result is rounded to the safe side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocsdf import _check
from ocsdf._rounding import add_up, divide_down, multiply_up, subtract_down


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is proven about rows whose score was computed at the clean point.

    Parameters
    ----------
    distance : array (n,)
        Scores f of the rows; higher = more normal.
    lipschitz : float
        Proven upper bound of the l2 slope of f, > 0.
    threshold : float, default 0.0
        A row is normal where f >= threshold.
    rounding : float or array (n,), default 0.0
        What the computed scores of a row and of the attacked row may differ by beside the slope, >= 0. It is
        taken off at every radius above 0.

    Examples
    --------
    >>> certificate = Certificate([1.5, 0.25, -2.0], lipschitz=1.0)
    >>> certificate.radius
    array([1.5 , 0.25, 2.  ])
    >>> certificate.lower(0.5)
    array([ 1.  , -0.25, -2.5 ])
    >>> certificate.decision(0.5)
    array([ 1,  0, -1])
    """

    distance: Any
    lipschitz: float
    threshold: float = 0.0
    rounding: Any = 0.0

    def __post_init__(self) -> None:
        distance = _check.array(self.distance, "distance", "Certificate", ndim=1, min_size=0)
        rounding = _check.array(self.rounding, "rounding", "Certificate", low=0.0, min_size=0)
        for name, value in (("distance", distance), ("rounding", rounding)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "lipschitz", proven_constant(self.lipschitz, "Certificate"))
        object.__setattr__(self, "threshold", _check.number(self.threshold, "threshold", "Certificate"))

    @property
    def radius(self) -> np.ndarray:
        """No attack smaller than this l2 radius (n,) changes the decision of the row."""
        above = self.distance >= self.threshold
        gap = np.where(
            above,
            subtract_down(self.distance, self.threshold),
            subtract_down(self.threshold, self.distance),
        )
        return divide_down(np.maximum(subtract_down(gap, self.rounding), 0.0), self.lipschitz)

    def lower(self, radius: ArrayLike) -> np.ndarray:
        """Score that no attack of ``radius`` gets a row under: (n,), or (n_radii, n) for (n_radii,)."""
        return subtract_down(self.distance, self._shift(radius))

    def upper(self, radius: ArrayLike) -> np.ndarray:
        """Score that no attack of ``radius`` gets a row over: (n,), or (n_radii, n) for (n_radii,)."""
        return add_up(self.distance, self._shift(radius))

    def decision(self, radius: ArrayLike, threshold: float | None = None) -> np.ndarray:
        """What holds under every attack of ``radius``: 1 normal, -1 anomaly, 0 neither is proven (abstain).

        Shape (n,), or (n_radii, n). ``threshold`` defaults to that of the certificate.
        """
        t = self.threshold if threshold is None else _check.number(threshold, "threshold", "decision")
        return np.where(self.lower(radius) >= t, 1, np.where(self.upper(radius) < t, -1, 0))

    def _shift(self, radius: ArrayLike) -> np.ndarray:
        r = _check.radii(radius, "Certificate")[..., None]
        return np.where(r > 0, add_up(multiply_up(self.lipschitz, r), self.rounding), 0.0)


def proven_constant(lipschitz: Any, caller: str) -> float:
    """``lipschitz`` as a float, if it is > 0. Raises TypeError or ValueError."""
    remedy = "only a proven constant gives a certificate"
    return _check.number(lipschitz, "lipschitz", caller, low=0.0, open_low=True, remedy=remedy)
