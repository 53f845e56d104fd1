"""What a Lipschitz constant proves on scores, decisions and metrics under every l2 attack of a radius.

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

_THREATS = ("both", "anomalies", "normals")


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
        object.__setattr__(self, "lipschitz", _constant(self.lipschitz, "Certificate"))
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


def certified_auroc(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    *,
    lipschitz: float,
    threat: str = "both",
    confidence: float | None = None,
) -> float | np.ndarray:
    """Lower bound on the AUROC that every attack of size ``radius`` must leave.

    The share of pairs (normal, anomaly) that stay in order: those whose gap exceeds ``lipschitz * radius``
    for each group that moves. A gap that equals it counts one half, as a tie does in the AUROC.

    Parameters
    ----------
    score_normal : array (n_normal,)
        Scores f of the normals, higher = more normal.
    score_anomaly : array (n_anomaly,)
        Scores f of the anomalies.
    radius : float or array (n_radii,)
        l2 radius of the attack, >= 0, in the units of ``lipschitz``.
    lipschitz : float
        Proven upper bound of the slope of f, > 0.
    threat : {"both", "anomalies", "normals"}
        Whose rows the attacker moves, after the detector was fitted. The paper: both.
    confidence : float, optional
        If given (say 0.95), a bound for the certified AUROC of the *population* instead of that of these
        rows, which holds with this probability over the draw of independent rows that the detector was not
        fitted on, for any two laws and any sample size, one radius at a time.

    Returns
    -------
    float or array (n_radii,)
        The AUROC itself at radius 0; never grows with the radius; may fall under 0.5, down to 0.

    Raises
    ------
    ValueError, TypeError
        On an empty group, NaN or inf, a negative radius, a constant that is not positive, an unknown threat.

    Notes
    -----
    The paper (Béthune et al., ICML 2023, arXiv:2303.01978) prints this as an integral with the shift on the
    wrong side, which would raise the normals; the count of pairs is what its proof gives. Cost:
    O((n_normal + n_anomaly) log n_normal) for each radius.

    ``confidence``: with N = min(n_normal, n_anomaly) the statistic is an average of averages of N independent
    terms in [0, 1], so P(value >= x) <= exp(-N KL(x, mean)) (W. Hoeffding, "Probability inequalities for
    sums of bounded random variables", JASA 58 (1963), Theorem 1 and section 5a). The bound returned is the
    smallest mean at which that is not under 1 - confidence. DeLong's interval is tighter and asymptotic only:
    at an AUROC of 1 its width is 0.

    Examples
    --------
    >>> certified_auroc([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.1, 0.25], lipschitz=1.0).round(3)
    array([1.   , 0.833, 0.667])
    """
    normal, anomaly = _groups(score_normal, score_anomaly, "certified_auroc")
    moved = _moved(anomaly, radius, lipschitz, threat, "certified_auroc")
    below = np.searchsorted(normal, moved, side="left")
    not_above = np.searchsorted(normal, moved, side="right")
    lost = (below + not_above).sum(axis=-1) / 2
    value = 1 - lost / (len(normal) * len(anomaly))
    if confidence is not None:
        level = _check.number(
            confidence, "confidence", "certified_auroc", low=0.0, high=1.0, open_low=True, open_high=True
        )
        value = _hoeffding_lower(value, min(len(normal), len(anomaly)), level)
    return _like_radius(value)


def certified_average_precision(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    *,
    lipschitz: float,
    threat: str = "both",
) -> float | np.ndarray:
    """Lower bound on the average precision that every attack of size ``radius`` must leave.

    The positive class is the anomaly. Parameters, errors and cost are those of :func:`certified_auroc`.

    Returns
    -------
    float or array (n_radii,)
        scikit-learn's average precision at radius 0 where no normal ties with an anomaly; never grows.

    Notes
    -----
    Ties, and gaps that equal the shift, are ordered against the detector (the normal first): the value of
    scikit-learn is not monotone where scores tie. The mean over anomalies, from the most anomalous on, of
    k / (k + number of normals whose score is not above that of the k-th).

    Examples
    --------
    >>> certified_average_precision([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.25], lipschitz=1.0).round(3)
    array([1.  , 0.75])
    """
    normal, anomaly = _groups(score_normal, score_anomaly, "certified_average_precision")
    moved = _moved(anomaly, radius, lipschitz, threat, "certified_average_precision")
    rank = np.arange(1, len(anomaly) + 1)
    false_alarms = np.searchsorted(normal, moved, side="right")
    return _like_radius((rank / (rank + false_alarms)).mean(axis=-1))


def certified_fpr_at_tpr(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    *,
    lipschitz: float,
    threat: str = "both",
    tpr: float = 0.95,
) -> float | np.ndarray:
    """Upper bound on the false-positive rate at a true-positive rate, whatever the attack of size ``radius``.

    The positive class is the anomaly; the threshold is the strictest that flags a share ``tpr`` in (0, 1] of
    the attacked anomalies. Ties, and gaps that equal the shift, count as false positives. Parameters, errors
    and cost are those of :func:`certified_auroc`.

    Returns
    -------
    float or array (n_radii,)
        The plain rate at radius 0; never falls with the radius.

    Examples
    --------
    >>> certified_fpr_at_tpr([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.25], lipschitz=1.0).round(3)
    array([0.   , 0.667])
    """
    normal, anomaly = _groups(score_normal, score_anomaly, "certified_fpr_at_tpr")
    share = _check.number(tpr, "tpr", "certified_fpr_at_tpr", low=0.0, high=1.0, open_low=True)
    reached = np.arange(1, len(anomaly) + 1) / len(anomaly) >= share
    threshold_row = anomaly[[int(np.argmax(reached))]]
    moved = _moved(threshold_row, radius, lipschitz, threat, "certified_fpr_at_tpr")
    return _like_radius(np.searchsorted(normal, moved, side="right")[..., 0] / len(normal))


def certified_accuracy(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    *,
    lipschitz: float,
    threshold: float = 0.0,
    threat: str = "both",
) -> float | np.ndarray:
    """Share of rows whose right decision at ``threshold`` no attack of size ``radius`` can change.

    A row is called normal where f >= threshold. Other parameters, errors and the shape of the result are
    those of :func:`certified_auroc`.

    Examples
    --------
    >>> certified_accuracy([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.25], lipschitz=1.0)
    array([0.8, 0.6])
    """
    kept, caught, n_normal, n_anomaly = _kept_decisions(
        score_normal, score_anomaly, radius, lipschitz, threshold, threat, "certified_accuracy"
    )
    return _like_radius((kept + caught) / (n_normal + n_anomaly))


def certified_f1(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    *,
    lipschitz: float,
    threshold: float = 0.0,
    threat: str = "both",
) -> float | np.ndarray:
    """Lower bound on the F1 score of the anomalies at ``threshold``, whatever the attack of size ``radius``.

    Parameters, errors and the shape of the result are those of :func:`certified_accuracy`.

    Examples
    --------
    >>> certified_f1([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.25], lipschitz=1.0).round(3)
    array([0.667, 0.5  ])
    """
    kept, caught, n_normal, n_anomaly = _kept_decisions(
        score_normal, score_anomaly, radius, lipschitz, threshold, threat, "certified_f1"
    )
    return _like_radius(2 * caught / (caught + n_anomaly + n_normal - kept))


def _constant(lipschitz: Any, caller: str) -> float:
    remedy = "only a proven constant gives a certificate"
    return _check.number(lipschitz, "lipschitz", caller, low=0.0, open_low=True, remedy=remedy)


def _groups(score_normal: ArrayLike, score_anomaly: ArrayLike, caller: str) -> tuple[np.ndarray, np.ndarray]:
    normal = _check.array(score_normal, "score_normal", caller, ndim=1)
    anomaly = _check.array(score_anomaly, "score_anomaly", caller, ndim=1)
    return np.sort(normal), np.sort(anomaly)


def _shifts(radius: ArrayLike, lipschitz: float, threat: str, caller: str) -> tuple[np.ndarray, np.ndarray]:
    """How far normals fall and anomalies rise at most, each (..., 1)."""
    _check.choice(threat, "threat", caller, _THREATS)
    shift = multiply_up(_constant(lipschitz, caller), _check.radii(radius, caller))[..., None]
    return shift * (threat != "anomalies"), shift * (threat != "normals")


def _moved(scores: np.ndarray, radius: ArrayLike, lipschitz: float, threat: str, caller: str) -> np.ndarray:
    """Anomaly scores raised by what both groups lose, (..., n): ranks depend on the gap alone."""
    return add_up(scores, add_up(*_shifts(radius, lipschitz, threat, caller)))


def _kept_decisions(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    lipschitz: float,
    threshold: float,
    threat: str,
    caller: str,
) -> tuple[np.ndarray, np.ndarray, int, int]:
    normal, anomaly = _groups(score_normal, score_anomaly, caller)
    limit = _check.number(threshold, "threshold", caller)
    fall, rise = _shifts(radius, lipschitz, threat, caller)
    kept = (subtract_down(normal, fall) >= limit).sum(axis=-1)
    caught = (add_up(anomaly, rise) < limit).sum(axis=-1)
    return kept, caught, len(normal), len(anomaly)


def _hoeffding_lower(value: np.ndarray, n: int, confidence: float) -> np.ndarray:
    """Smallest mean q with n KL(value, q) <= log(1 / (1 - confidence)), by bisection from below."""
    budget = -np.log1p(-confidence) / n
    low, high = np.zeros_like(value), np.array(value)
    for _ in range(60):
        middle = (low + high) / 2
        unlikely = _bernoulli_divergence(value, middle) > budget
        low, high = np.where(unlikely, middle, low), np.where(unlikely, high, middle)
    return low


def _bernoulli_divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0, p * np.log(p / q), 0.0)
        second = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return first + second


def _like_radius(value: np.ndarray) -> float | np.ndarray:
    return float(value) if np.ndim(value) == 0 else np.asarray(value)
