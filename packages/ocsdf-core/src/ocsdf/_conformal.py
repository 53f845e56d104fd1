"""Conformal p-values whose false-alarm guarantee survives every l2 attack of a radius (NumPy only)."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ocsdf import _check
from ocsdf._certificate import Certificate


class CertifiedConformal:
    """Split-conformal p-values of normality, valid for normals that an attacker moved within a radius.

    Fit it on the scores of normals that the detector was not fitted on. A row x, perhaps moved, gets
    ``p_r(x) = (1 + #{i : s_i - L r <= s(x)}) / (n + 1)``. A normal x0 within r of x has
    s(x0) <= s(x) + L r, so ``p_r(x) >= p_0(x0)``, and p_0 of a normal exchangeable with the calibration rows
    satisfies ``P(p_0 <= alpha) <= alpha``. Hence at most a share alpha of attacked normals raises an alarm,
    on average over calibration sets (marginally, not for each one). It promises nothing about missed
    anomalies: a larger radius makes them harder to flag.

    Parameters
    ----------
    lipschitz : float
        Proven upper bound of the l2 slope of the score, > 0; its units are those of every radius.

    Attributes
    ----------
    scores_ : array (n,)
        Sorted calibration scores, after ``fit``.

    References
    ----------
    V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World*, 2005 (conformal p-values);
    R. Laxhammar, G. Falkman, "Inductive conformal anomaly detection", 2015 (the split form).

    Examples
    --------
    >>> conformal = CertifiedConformal(lipschitz=1.0).fit([0.5, 1.0, 1.5, 2.0])
    >>> conformal.p_value([0.0, 1.2])
    array([0.2, 0.6])
    >>> conformal.p_value([0.0, 1.2], radius=0.5)
    array([0.4, 0.8])
    >>> conformal.predict([0.0, 1.2], alpha=0.2)
    array([-1,  1])
    """

    def __init__(self, lipschitz: float) -> None:
        remedy = "only a proven constant gives a certificate"
        self.lipschitz = _check.number(
            lipschitz, "lipschitz", "CertifiedConformal", low=0.0, open_low=True, remedy=remedy
        )

    def fit(self, scores: ArrayLike) -> Self:
        """Calibrate on the scores (n,) of held-out normals, higher = more normal."""
        self.scores_ = np.sort(_check.array(scores, "scores", "CertifiedConformal.fit", ndim=1))
        return self

    def p_value(self, scores: ArrayLike, radius: ArrayLike = 0.0) -> np.ndarray:
        """p-value of each row, (n,), or (n_radii, n) for radii (n_radii,).

        Parameters
        ----------
        scores : array (n,)
            Scores of the rows as they are observed, after an attack if there was one.
        radius : float or array (n_radii,), default 0.0
            l2 radius within which the row may have been moved, >= 0.

        Raises
        ------
        RuntimeError
            Before ``fit``.
        """
        if not hasattr(self, "scores_"):
            raise RuntimeError("CertifiedConformal is not fitted; call fit with scores of held-out normals.")
        highest_origin = Certificate(scores, self.lipschitz).upper(radius)
        not_above = np.searchsorted(self.scores_, highest_origin, side="right")
        return (1 + not_above) / (len(self.scores_) + 1)

    def predict(self, scores: ArrayLike, alpha: float, radius: ArrayLike = 0.0) -> np.ndarray:
        """-1 (anomaly) where the p-value is at most ``alpha``, else 1; shape of ``p_value``.

        Raises
        ------
        ValueError
            If alpha is under 1 / (n + 1), where no row could ever be flagged.
        """
        n = len(getattr(self, "scores_", ()))
        level = _check.number(
            alpha, "alpha", "CertifiedConformal.predict", low=0.0, high=1.0, open_low=True, open_high=True
        )
        p = self.p_value(scores, radius)
        if level * (n + 1) < 1:
            need = math.ceil(1 / level) - 1
            allowed = f">= 1 / (n + 1) with n = {n} calibration scores"
            raise ValueError(
                _check.sentence(
                    "alpha", "CertifiedConformal.predict", allowed, alpha, f"calibrate on {need} rows"
                )
            )
        return np.where(p <= level, -1, 1)
