"""Regression gate: is a store worse than another one, beyond a margin? Accuracy is gated, times are shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import Any

import numpy as np

from ocsdf_bench.markup import escape
from ocsdf_bench.metric import Measurement
from ocsdf_bench.store import Run
from ocsdf_bench.suite import canonical

GATED = ("auroc", "certified_auroc")
MIN_PAIRS = 6  # with fewer no paired test can reject at 0.05, so that the mean alone decides
_ROUNDING = 1e-9  # a loss of exactly the margin is within it


@dataclass(frozen=True)
class Change:
    """One detector under one metric, over the pairs both stores have. ``difference`` is new minus base, a
    fraction; ``low`` and ``high`` its 90 % interval (paired t), so that both lying within the margin is the
    usual equivalence test (TOST) at 0.05. verdict: "equivalent", "better", "worse", "undecided" or
    "regression"; ``worst_set`` is the set that lost most."""

    detector: str
    metric: str
    n_pairs: int
    base: float
    new: float
    difference: float
    low: float
    high: float
    worst_set: str
    worst_difference: float
    verdict: str


@dataclass(frozen=True)
class Timing:
    """Median fit seconds of one detector over the pairs; shown, never gated."""

    detector: str
    base: float
    new: float


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. ``incomparable`` and ``lost`` are sentences, one a run."""

    margin: float
    set_margin: float
    changes: tuple[Change, ...]
    timings: tuple[Timing, ...]
    incomparable: tuple[str, ...]
    lost: tuple[str, ...]
    n_pairs: int
    n_added: int

    @property
    def regressions(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.verdict == "regression")

    @property
    def exit_code(self) -> int:
        """2: the stores cannot be compared; 1: a regression; 0: neither."""
        if self.incomparable:
            return 2
        return 1 if self.regressions or self.lost else 0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "exit_code": self.exit_code}


def compare(
    base: Iterable[Run], new: Iterable[Run], *, margin: float = 0.01, set_margin: float = 0.05
) -> Comparison:
    """Pair the runs of two stores by everything that names a run, and judge each detector.

    Parameters
    ----------
    base, new : iterable of Run
        Of two runs of one key the later one counts.
    margin : float
        Loss of a detector's mean (a fraction: 0.01 is one point of AUROC) that is still equivalent.
    set_margin : float
        Loss on a single set, mean over seeds, that is a regression whatever the mean of all sets.

    Raises
    ------
    ValueError
        Where a margin is negative.

    Notes
    -----
    Incomparable (exit code 2): no pair, a run of the base that was not made again, or a pair with another
    data or split checksum. Lost (exit code 1): a run that had a result and has none now.
    """
    for name, value in (("margin", margin), ("set_margin", set_margin)):
        if not value >= 0:
            raise ValueError(f"`{name}` of compare must be >= 0 (a fraction of AUROC); got {value!r}.")
    old, now = ({run.spec.key: run for run in runs} for runs in (base, new))
    pairs = [(old[key], now[key]) for key in sorted(old.keys() & now.keys(), key=str)]
    problems = [
        f"{_name(old[k])}: not run in the new store" for k in sorted(old.keys() - now.keys(), key=str)
    ]
    problems += [f"{_name(a)}: {problem}" for a, b in pairs if (problem := _difference(a, b))]
    if not pairs:
        problems.append("the stores share no run; compare two runs of one suite")
    both = [(a, b) for a, b in pairs if a.status == b.status == "ok"]
    lost = tuple(f"{_name(b)}: {b.status}, {b.reason}" for a, b in pairs if a.status == "ok" != b.status)
    changes = tuple(_changes(both, margin, set_margin))
    return Comparison(
        margin,
        set_margin,
        changes,
        _timings(both),
        tuple(problems),
        lost,
        len(pairs),
        len(now.keys() - old.keys()),
    )


def _name(run: Run) -> str:
    spec = run.spec
    place = f"{spec.dataset} / {spec.normal_class}" if spec.normal_class else spec.dataset
    return f"{_label(run)} on {place}, {spec.protocol}, seed {spec.seed}"


def _label(run: Run) -> str:
    params = canonical(run.spec.params)
    return run.spec.detector + ("" if params == "{}" else f" {params}")


def _difference(base: Run, new: Run) -> str:
    """Why two runs of one name are not of one experiment."""
    for name, what in (("data_checksum", "data"), ("split_checksum", "split")):
        one, two = getattr(base, name), getattr(new, name)
        if one and two and one != two:
            return f"other {what} (checksum {one[:12]} before, {two[:12]} now)"
    return ""


def _metric_name(m: Measurement) -> str:
    return m.metric if m.radius is None else f"{m.metric} at radius {m.radius:g}, {m.threat}"


def _changes(pairs: Sequence[tuple[Run, Run]], margin: float, set_margin: float) -> Iterable[Change]:
    found: dict[tuple[str, str], list[tuple[str, float, float]]] = defaultdict(list)
    for base, new in pairs:
        place = f"{new.spec.protocol}: {new.spec.dataset} {new.spec.normal_class}".strip()
        before, now = _gated(base), _gated(new)
        for metric in before.keys() & now.keys():
            found[_label(new), metric].append((place, before[metric], now[metric]))
    for (detector, metric), values in sorted(found.items()):
        yield _change(detector, metric, values, margin, set_margin)


def _gated(run: Run) -> dict[str, float]:
    gated = [m for m in run.metrics if m.metric in GATED and m.n_test is None]
    return {_metric_name(m): m.value for m in gated}


def _change(
    detector: str, metric: str, values: list[tuple[str, float, float]], margin: float, set_margin: float
) -> Change:
    differences = np.array([now - before for _, before, now in values])
    by_set: dict[str, list[float]] = defaultdict(list)
    for (place, _, _), difference in zip(values, differences, strict=True):
        by_set[place].append(float(difference))
    worst = min(by_set, key=lambda place: mean(by_set[place]))
    center, low, high = _interval(differences)
    verdict = _verdict(center, low, high, len(values), margin)
    if mean(by_set[worst]) < -set_margin - _ROUNDING:
        verdict = "regression"
    return Change(
        detector=detector,
        metric=metric,
        n_pairs=len(values),
        base=mean(before for _, before, _ in values),
        new=mean(now for _, _, now in values),
        difference=center,
        low=low,
        high=high,
        worst_set=worst,
        worst_difference=mean(by_set[worst]),
        verdict=verdict,
    )


def _interval(differences: np.ndarray) -> tuple[float, float, float]:
    """Mean and its 90 % interval by Student's t; of width 0 where every difference is the same."""
    from scipy.stats import t

    center, n = float(differences.mean()), len(differences)
    if n < 2 or np.ptp(differences) == 0:
        return center, center, center
    half = float(t.ppf(0.95, n - 1) * differences.std(ddof=1) / np.sqrt(n))
    return center, center - half, center + half


def _verdict(center: float, low: float, high: float, n_pairs: int, margin: float) -> str:
    margin += _ROUNDING
    if center < -margin and (high < 0 or n_pairs < MIN_PAIRS):
        return "regression"
    if low >= -margin and high <= margin:
        return "equivalent"
    if low > 0:
        return "better"
    return "worse" if high < 0 else "undecided"


def _timings(pairs: Sequence[tuple[Run, Run]]) -> tuple[Timing, ...]:
    seconds: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for base, new in pairs:
        if base.fit_seconds is not None and new.fit_seconds is not None:
            seconds[_label(new)].append((base.fit_seconds, new.fit_seconds))
    return tuple(
        Timing(detector, median(a for a, _ in values), median(b for _, b in values))
        for detector, values in sorted(seconds.items())
    )


def to_markdown(comparison: Comparison) -> str:
    """Summary for a pull request: the verdict first, then what it rests on."""
    lines = [f"## {_headline(comparison)}", ""]
    for title, sentences in (("Not comparable", comparison.incomparable), ("Results lost", comparison.lost)):
        if sentences:
            lines += [f"**{title}** ({len(sentences)})", "", *(f"- {escape(s)}" for s in sentences[:20])]
            lines += [f"- and {len(sentences) - 20} more"] if len(sentences) > 20 else []
            lines.append("")
    if comparison.changes:
        lines += [
            "| detector | metric | pairs | base | new | difference | 90 % interval | worst set | verdict |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |",
            *(_row(change) for change in sorted(comparison.changes, key=lambda c: c.verdict != "regression")),
            "",
        ]
    if comparison.timings:
        lines += ["| detector | fit seconds, base | new |", "| --- | ---: | ---: |"]
        lines += [f"| {escape(t.detector)} | {t.base:.3g} | {t.new:.3g} |" for t in comparison.timings]
        lines.append("")
    lines.append(
        f"{comparison.n_pairs} pairs, {comparison.n_added} new runs. AUROC in points; a mean loss over "
        f"{100 * comparison.margin:g} points, or over {100 * comparison.set_margin:g} on one set, is a "
        "regression. Median times are shown, never compared."
    )
    return "\n".join(lines) + "\n"


def _headline(comparison: Comparison) -> str:
    if comparison.incomparable:
        return "These stores cannot be compared"
    n = len(comparison.regressions) + len(comparison.lost)
    return f"{n} regression{'s' if n > 1 else ''}" if n else "No regression"


def _row(change: Change) -> str:
    verdict = f"**{change.verdict}**" if change.verdict == "regression" else change.verdict
    cells = (
        escape(change.detector),
        change.metric,
        str(change.n_pairs),
        f"{100 * change.base:.2f}",
        f"{100 * change.new:.2f}",
        f"{100 * change.difference:+.2f}",
        f"{100 * change.low:+.2f} to {100 * change.high:+.2f}",
        f"{escape(change.worst_set)} ({100 * change.worst_difference:+.2f})",
        verdict,
    )
    return f"| {' | '.join(cells)} |"
