"""Which detector is better, and whether the data sets at hand can tell.

``values`` is always (n_blocks, n_methods), higher = better, NaN = no result. A block is a data set (or one
normal class of it). **Missing cells**: a method without a result on a block takes the worst rank there,
shared with other missing ones, so that failing never improves a rank; blocks where nobody has a result are
left out. Pairwise tests and means use the blocks that have a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Friedman:
    """Friedman's test that all methods are equal. ``p_value`` is NaN where it is undefined."""

    statistic: float
    p_value: float
    n_blocks: int
    n_methods: int


@dataclass(frozen=True)
class Pair:
    """Wilcoxon signed-rank test of two methods over their common blocks; ``p_holm`` is adjusted by Holm."""

    first: int
    second: int
    mean_difference: float  # first minus second
    p_value: float
    p_holm: float
    n_blocks: int


@dataclass(frozen=True)
class Interval:
    """Mean over the blocks and its percentile bootstrap interval."""

    mean: float
    low: float
    high: float


def _checked(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            f"`values` of ranking must be (n_blocks, n_methods) with at least one method; got {values.shape}."
        )
    return values


def ranks(values: np.ndarray) -> np.ndarray:
    """Rank of each method in each block: 1 = best, ties averaged, missing = shared worst.

    Parameters
    ----------
    values : (n_blocks, n_methods) array
        Higher is better; NaN where a method has no result.

    Returns
    -------
    (n_blocks_with_a_result, n_methods) array

    Examples
    --------
    >>> ranks([[0.9, 0.8, 0.8], [0.5, float("nan"), 0.7]])
    array([[1. , 2.5, 2.5],
           [2. , 3. , 1. ]])
    """
    from scipy.stats import rankdata

    values = _checked(values)
    values = values[~np.isnan(values).all(axis=1)]
    filled = np.where(np.isnan(values), -np.inf, values)
    return rankdata(-filled, axis=1) if len(filled) else filled


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Mean of `ranks` over the blocks, (n_methods,); NaN without any block."""
    table = ranks(values)
    return table.mean(axis=0) if len(table) else np.full(table.shape[1], np.nan)


def friedman(values: np.ndarray) -> Friedman:
    """Friedman's chi-square test, corrected for ties (Friedman 1937; Demšar, JMLR 2006).

    Undefined (NaN) with fewer than 3 methods or 2 blocks, or when every block is one tie.
    """
    from scipy.stats import chi2, tiecorrect

    table = ranks(values)
    n_blocks, n_methods = table.shape
    if n_methods < 3 or n_blocks < 2:
        return Friedman(np.nan, np.nan, n_blocks, n_methods)
    untied = np.mean([tiecorrect(row) for row in table])
    if untied == 0:
        return Friedman(np.nan, np.nan, n_blocks, n_methods)
    spread = np.sum(table.sum(axis=0) ** 2)
    statistic = 12 * spread / (n_blocks * n_methods * (n_methods + 1)) - 3 * n_blocks * (n_methods + 1)
    statistic = float(statistic / untied)
    return Friedman(statistic, float(chi2.sf(statistic, n_methods - 1)), n_blocks, n_methods)


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Holm's step-down adjustment (Holm 1979) of p-values (n,), in their order. NaN stays, as no test.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]  # NaN sorts last
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return adjusted


def wilcoxon(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test over the blocks both have; 1.0 where all are equal."""
    from scipy import stats

    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    difference = difference[~np.isnan(difference)]
    if len(difference) == 0:
        return float("nan")
    if not difference.any():
        return 1.0
    # Rounding keeps ties that floating point would break: 0.9 - 0.8 and 0.2 - 0.1 differ in the last bit.
    return float(stats.wilcoxon(np.round(difference, 12), zero_method="wilcox").pvalue)


def wilcoxon_holm(values: np.ndarray, reference: int | None = None) -> tuple[Pair, ...]:
    """Every pair of methods (or each against ``reference``), Holm-adjusted over the pairs tested."""
    values = _checked(values)
    n = values.shape[1]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    if reference is not None:
        pairs = [(reference, j) for j in range(n) if j != reference]
    p_values = [wilcoxon(values[:, i], values[:, j]) for i, j in pairs]
    found = []
    for (i, j), p, adjusted in zip(pairs, p_values, holm(p_values), strict=True):
        difference = values[:, i] - values[:, j]
        difference = difference[~np.isnan(difference)]
        mean = float(difference.mean()) if len(difference) else float("nan")
        found.append(Pair(i, j, mean, p, float(adjusted), len(difference)))
    return tuple(found)


def critical_difference(n_methods: int, n_blocks: int, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of average ranks: q_alpha * sqrt(k (k + 1) / (6 N)) (Demšar, JMLR 2006).

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    from scipy.stats import studentized_range

    if n_methods < 2 or n_blocks < 1:
        return float("nan")
    q = studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))


def nemenyi(values: np.ndarray) -> np.ndarray:
    """Nemenyi's p-value of every pair, (n_methods, n_methods), diagonal 1."""
    from scipy.stats import studentized_range

    table = ranks(values)
    n_blocks, n_methods = table.shape
    if n_blocks == 0 or n_methods < 2:
        return np.ones((n_methods, n_methods))
    average = table.mean(axis=0)
    error = np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks))
    q = np.abs(average[:, None] - average[None, :]) / error * np.sqrt(2)
    p = studentized_range.sf(q, n_methods, np.inf)
    np.fill_diagonal(p, 1.0)
    return np.minimum(p, 1.0)


def cliques(average: Sequence[float] | np.ndarray, distance: float) -> tuple[tuple[int, ...], ...]:
    """Largest groups of methods whose average ranks span less than ``distance``: the bars of the diagram.

    Examples
    --------
    >>> cliques([1.0, 1.5, 3.0], distance=1.6)
    ((0, 1), (1, 2))
    """
    average = np.asarray(average, dtype=float)
    order = np.argsort(average, kind="stable")
    groups: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        end = start
        while end < len(order) and average[order[end]] - average[order[start]] < distance:
            end += 1
        if end > reached and end - start > 1:
            groups.append(tuple(int(i) for i in order[start:end]))
        reached = max(reached, end)
    return tuple(groups)


def mean_intervals(
    values: np.ndarray, *, level: float = 0.95, n_resamples: int = 10_000, seed: int = 0
) -> tuple[Interval, ...]:
    """Mean of each method over its blocks with a percentile bootstrap interval; blocks are resampled jointly.

    A method without any value gets NaN; one with a single block gets an interval of width 0.
    """
    values = _checked(values)
    rng = np.random.default_rng(seed)
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    weights = rng.multinomial(len(values), np.full(len(values), 1 / max(len(values), 1)), size=n_resamples)
    with np.errstate(invalid="ignore"):
        means = (weights @ filled) / (weights @ present)
        own = filled.sum(axis=0) / present.sum(axis=0)
    tail = 50 * (1 - level)
    found = []
    for column, mean in enumerate(own):
        drawn = means[:, column][~np.isnan(means[:, column])]
        low, high = np.percentile(drawn, [tail, 100 - tail]) if len(drawn) else (np.nan, np.nan)
        found.append(Interval(float(mean), float(low), float(high)))
    return tuple(found)


def merge_families(values: np.ndarray, families: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """One block per family: the mean over its members that have a value, so that three variants of one set
    (breastw, wbc, wdbc) do not vote three times.

    Parameters
    ----------
    values : (n_blocks, n_methods) array
    families : n_blocks names
        Equal names are merged; an empty name stands alone.

    Examples
    --------
    >>> merge_families([[0.5], [0.7], [0.9]], ["cancer", "cancer", ""])
    (array([[0.6],
           [0.9]]), ('cancer', ''))
    """
    values = _checked(values)
    if len(families) != len(values):
        raise ValueError(
            "`families` of merge_families must have one name per block; "
            f"got {len(families)} for {len(values)} blocks."
        )
    groups: dict[str | int, list[int]] = {}
    for row, family in enumerate(families):
        groups.setdefault(family or row, []).append(row)
    merged = np.full((len(groups), values.shape[1]), np.nan)
    for index, members in enumerate(groups.values()):
        present = ~np.isnan(values[members])
        total = np.where(present, values[members], 0.0).sum(axis=0)
        np.divide(total, present.sum(axis=0), out=merged[index], where=present.any(axis=0))
    return merged, tuple(families[members[0]] for members in groups.values())
