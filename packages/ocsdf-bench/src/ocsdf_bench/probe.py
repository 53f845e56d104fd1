"""Signs, seen while a detector is at hand, that its scores may not mean what they seem to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ocsdf_bench.detector import Detector, DetectorInfo
from ocsdf_bench.protocol import Split

N_ROWS = 16
HUGE = 1e6  # times the spread of a standardised feature


def probe(
    detector: Detector, info: DetectorInfo, split: Split, score: np.ndarray, seed: int
) -> tuple[str, ...]:
    """One sentence for each sign found; a probe that raises is a sign too, never a failed run."""
    rng = np.random.default_rng([seed, 5])
    rows = np.sort(rng.choice(len(score), min(N_ROWS, len(score)), replace=False))
    X = split.X_test[rows]
    checks: list[Callable[[], str]] = []
    if not info.transductive:
        checks.append(lambda: _batch(detector, X, score[rows], float(np.ptp(score))))
    if split.domain is None:
        checks.append(lambda: _huge(detector, X))
    if getattr(detector, "gradient", None) is not None:
        checks.append(lambda: _gradient(detector, X))
    return tuple(sign for check in checks if (sign := _tried(check)))


def _tried(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:
        return f"{check.__code__.co_names[0].strip('_')} probe: {type(error).__name__}"


def _batch(detector: Detector, X: np.ndarray, score: np.ndarray, spread: float) -> str:
    again = np.asarray(detector.anomaly_score(X.copy()), dtype=np.float64)
    # float32 rounding differs between batch sizes: a thousandth of the spread of the scores does not count.
    same = np.abs(again - score) <= 1e-3 * spread + 1e-9 + 1e-5 * np.abs(score)
    return "" if same.all() else "the score of a row depends on the rows it is scored with"


def _huge(detector: Detector, X: np.ndarray) -> str:
    far = np.asarray(detector.anomaly_score(HUGE * (X + 1.0)), dtype=np.float64)
    if not np.isfinite(far).all():
        return "scores are not finite far from the data"
    return "far from the data every row has the same score" if len(far) > 1 and np.ptp(far) == 0 else ""


def _gradient(detector: Detector, X: np.ndarray) -> str:
    gradient = np.asarray(detector.gradient(X.copy())).reshape(len(X), -1)  # type: ignore[attr-defined]
    zero = float(np.mean(~gradient.any(axis=1)))
    return f"the gradient is zero on {100 * zero:.0f} % of the rows" if zero > 0.5 else ""
