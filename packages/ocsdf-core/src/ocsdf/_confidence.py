"""Bounds for a population from a sample of any size, of any law, all from one inequality (NumPy only).

For a mean of n independent terms in [0, 1], ``P(mean of the sample >= x) <= exp(-n KL(x, true mean))`` for x
above the true mean, with KL the divergence of two coins. Source: W. Hoeffding, "Probability inequalities for
sums of bounded random variables", JASA 58 (1963), Theorem 1; the terms need not have one law. A ``budget`` is
the number that ``n KL`` may reach: log(1 / probability of being wrong).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ocsdf import _check


def budget(confidence: float, caller: str, n_groups: int = 1) -> float:
    """Budget of each of ``n_groups`` independent samples, whose bounds hold together with ``confidence``."""
    level = _check.number(confidence, "confidence", caller, low=0.0, high=1.0, open_low=True, open_high=True)
    return float(-np.log(-np.expm1(np.log(level) / n_groups)))


def mean_lower(mean: ArrayLike, n: int, budget: float) -> np.ndarray:
    """Smallest mean q at which a sample mean as large as ``mean`` is not too unlikely, by bisection."""
    value = np.asarray(mean, float)
    low, high = np.zeros_like(value), np.array(value)
    for _ in range(60):
        middle = (low + high) / 2
        unlikely = _divergence(value, middle) > budget / n
        low, high = np.where(unlikely, middle, low), np.where(unlikely, high, middle)
    return low


def mean_upper(mean: ArrayLike, n: int, budget: float) -> np.ndarray:
    """Largest mean at which a sample mean as small as ``mean`` is not too unlikely."""
    return 1 - mean_lower(1 - np.asarray(mean, float), n, budget)


def rank_above(share: float, n: int, budget: float) -> int | None:
    """Rank, from 1, of the smallest of n ordered values that is not below the population's quantile.

    Fewer than k of n values lie below the quantile, but for the probability that the budget stands for. None
    where n is too small for any rank.
    """
    ranks = np.arange(int(np.floor(share * n)) + 1, n + 1)
    enough = _divergence(ranks / n, np.asarray(share)) * n >= budget
    return int(ranks[np.argmax(enough)]) if enough.any() else None


def average_precision_lower(normal: np.ndarray, moved: np.ndarray, budget: float) -> np.ndarray:
    """Lower bound (...,) of the population's average precision at the sample's shares of the two groups.

    Average precision is the integral over u in [0, 1] of u / (u + c F(u)), with c = n_normal / n_anomaly and
    F(u) the share of the normals not above the u-quantile of the anomalies, moved by the attack. At
    sqrt(n_anomaly) ranks of the anomalies both u (from below) and F (from above) are bounded: each costs
    confidence. F grows, so between two of them it is at most the bound of the next, after the last 1.

    Parameters
    ----------
    normal : array (n_normal,)
        Sorted scores.
    moved : array (..., n_anomaly)
        Sorted scores, raised by what an attack can gain.
    budget : float
        Of each group.
    """
    n_normal, n_anomaly = len(normal), moved.shape[-1]
    levels = int(np.ceil(np.sqrt(n_anomaly)))
    ranks = -(-np.arange(1, levels + 1) * n_anomaly // levels)
    each = budget + np.log(levels)
    share = np.append(mean_lower(ranks / n_anomaly, n_anomaly, each), 1.0)
    alarms = np.searchsorted(normal, moved[..., ranks - 1], side="right") / n_normal
    alarms = mean_upper(alarms, n_normal, each)
    alarms = np.concatenate([alarms, np.ones((*alarms.shape[:-1], 1))], axis=-1)
    before = np.append(0.0, share[:-1])
    c = alarms * n_normal / n_anomaly
    return (share - before - c * np.log((share + c) / (before + c))).sum(axis=-1)


def _divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0, p * np.log(p / q), 0.0)
        second = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return first + second
