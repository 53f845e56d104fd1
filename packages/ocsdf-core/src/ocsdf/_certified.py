"""Metrics of a detector under every l2 attack of a radius, and what a sample says on its population.

Scores are f, higher = more normal. ``lipschitz`` is a *proven* upper bound of the slope of f; a radius is an
l2 distance in the units that the constant was proven in. Every result is rounded to the safe side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ocsdf import _check
from ocsdf._certificate import proven_constant
from ocsdf._confidence import average_precision_lower, budget, mean_lower, mean_upper, rank_above
from ocsdf._rounding import add_up, multiply_up, subtract_down

_THREATS = ("both", "anomalies", "normals")


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
        value = mean_lower(value, min(len(normal), len(anomaly)), budget(confidence, "certified_auroc"))
    return _like_radius(value)


def certified_average_precision(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    *,
    lipschitz: float,
    threat: str = "both",
    confidence: float | None = None,
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

    ``confidence``: the population's value at the shares of the two groups among these rows. It is an integral
    over the share of anomalies found; at sqrt(n_anomaly) ranks of the anomalies that share is bounded from
    below and the share of normals before it from above, by Hoeffding's inequality as in
    :func:`certified_auroc`, so that all of them hold together. Between ranks the next one's bound holds.

    Examples
    --------
    >>> certified_average_precision([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.25], lipschitz=1.0).round(3)
    array([1.  , 0.75])
    """
    normal, anomaly = _groups(score_normal, score_anomaly, "certified_average_precision")
    moved = _moved(anomaly, radius, lipschitz, threat, "certified_average_precision")
    rank = np.arange(1, len(anomaly) + 1)
    if confidence is not None:
        each = budget(confidence, "certified_average_precision", n_groups=2)
        return _like_radius(average_precision_lower(normal, moved, each))
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
    confidence: float | None = None,
) -> float | np.ndarray:
    """Upper bound on the false-positive rate at a true-positive rate, whatever the attack of size ``radius``.

    The positive class is the anomaly; the threshold is the strictest that flags a share ``tpr`` in (0, 1] of
    the attacked anomalies. Ties, and gaps that equal the shift, count as false positives. Parameters, errors
    and cost are those of :func:`certified_auroc`.

    Returns
    -------
    float or array (n_radii,)
        The plain rate at radius 0; never falls with the radius.

    Notes
    -----
    ``confidence``: an upper bound of the population's rate at a true-positive rate of ``tpr`` in the
    population. The threshold moves up to the smallest ranked anomaly that is not under the population's
    quantile, and the share of normals below it to its upper bound, both by Hoeffding's inequality as in
    :func:`certified_auroc`, for two independent groups. Without enough anomalies for any rank it is 1.

    Examples
    --------
    >>> certified_fpr_at_tpr([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.25], lipschitz=1.0).round(3)
    array([0.   , 0.667])
    """
    normal, anomaly = _groups(score_normal, score_anomaly, "certified_fpr_at_tpr")
    share = _check.number(tpr, "tpr", "certified_fpr_at_tpr", low=0.0, high=1.0, open_low=True)
    reached = np.arange(1, len(anomaly) + 1) / len(anomaly) >= share
    rank: int | None = int(np.argmax(reached)) + 1
    if confidence is not None:
        each = budget(confidence, "certified_fpr_at_tpr", n_groups=2)
        rank = rank_above(share, len(anomaly), each)
    threshold = anomaly[-1] if rank is None else anomaly[rank - 1]
    moved = _moved(threshold, radius, lipschitz, threat, "certified_fpr_at_tpr")
    rate = np.searchsorted(normal, moved[..., 0], side="right") / len(normal)
    if confidence is not None:
        rate = np.ones_like(rate) if rank is None else mean_upper(rate, len(normal), each)
    return _like_radius(rate)


def certified_accuracy(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    *,
    lipschitz: float,
    threshold: float = 0.0,
    threat: str = "both",
    confidence: float | None = None,
) -> float | np.ndarray:
    """Share of rows whose right decision at ``threshold`` no attack of size ``radius`` can change.

    A row is called normal where f >= threshold. Other parameters, errors and the shape of the result are
    those of :func:`certified_auroc`.

    Notes
    -----
    ``confidence``: the population's value at the shares of the two groups among these rows, by Hoeffding's
    inequality for the mean of all rows; its terms need not have one law.

    Examples
    --------
    >>> certified_accuracy([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.25], lipschitz=1.0)
    array([0.8, 0.6])
    """
    kept, caught, n_normal, n_anomaly = _kept_decisions(
        score_normal, score_anomaly, radius, lipschitz, threshold, threat, "certified_accuracy"
    )
    value = (kept + caught) / (n_normal + n_anomaly)
    if confidence is not None:
        value = mean_lower(value, n_normal + n_anomaly, budget(confidence, "certified_accuracy"))
    return _like_radius(value)


def certified_f1(
    score_normal: ArrayLike,
    score_anomaly: ArrayLike,
    radius: ArrayLike,
    *,
    lipschitz: float,
    threshold: float = 0.0,
    threat: str = "both",
    confidence: float | None = None,
) -> float | np.ndarray:
    """Lower bound on the F1 score of the anomalies at ``threshold``, whatever the attack of size ``radius``.

    Parameters, errors and the shape of the result are those of :func:`certified_accuracy`.

    Notes
    -----
    ``confidence``: F1 grows with the share of right decisions in either group, so both are replaced by their
    lower bounds, by Hoeffding's inequality for two independent groups, at the shares of the groups here.

    Examples
    --------
    >>> certified_f1([0.9, 0.5, 0.2], [-0.4, 0.1], [0.0, 0.25], lipschitz=1.0).round(3)
    array([0.667, 0.5  ])
    """
    kept, caught, n_normal, n_anomaly = _kept_decisions(
        score_normal, score_anomaly, radius, lipschitz, threshold, threat, "certified_f1"
    )
    if confidence is not None:
        each = budget(confidence, "certified_f1", n_groups=2)
        kept = n_normal * mean_lower(kept / n_normal, n_normal, each)
        caught = n_anomaly * mean_lower(caught / n_anomaly, n_anomaly, each)
    return _like_radius(2 * caught / (caught + n_anomaly + n_normal - kept))


def _groups(score_normal: ArrayLike, score_anomaly: ArrayLike, caller: str) -> tuple[np.ndarray, np.ndarray]:
    normal = _check.array(score_normal, "score_normal", caller, ndim=1)
    anomaly = _check.array(score_anomaly, "score_anomaly", caller, ndim=1)
    return np.sort(normal), np.sort(anomaly)


def _shifts(radius: ArrayLike, lipschitz: float, threat: str, caller: str) -> tuple[np.ndarray, np.ndarray]:
    """How far normals fall and anomalies rise at most, each (..., 1)."""
    _check.choice(threat, "threat", caller, _THREATS)
    shift = multiply_up(proven_constant(lipschitz, caller), _check.radii(radius, caller))[..., None]
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


def _like_radius(value: np.ndarray) -> float | np.ndarray:
    return float(value) if np.ndim(value) == 0 else np.asarray(value)
