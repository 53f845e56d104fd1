"""Ranking metrics of anomaly scores, and what of them survives an attack. Rates are fractions.

Scores are anomaly scores (higher = more anomalous), labels 1 = anomaly. No metric uses a threshold grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MOVES = {"anomalies": (1,), "normals": (0,), "both": (0, 1)}  # labels of the rows that a threat moves
THREATS = tuple(MOVES)


class ScoreError(ValueError):
    """Scores that no metric may be computed from: NaN, infinite, or of the wrong shape."""


@dataclass(frozen=True)
class Measurement:
    """One number: ``radius`` and ``threat`` are set on certified and attacked ones; ``n_test`` where the
    number is of a sample of the test rows (attacks), else None.
    """

    metric: str
    value: float
    radius: float | None = None
    threat: str = ""
    n_test: int | None = None

    def to_json(self) -> dict[str, Any]:
        entry = {"metric": self.metric, "radius": self.radius, "threat": self.threat, "value": self.value}
        return entry if self.n_test is None else {**entry, "n_test": self.n_test}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Measurement:
        return cls(entry["metric"], entry["value"], entry["radius"], entry["threat"], entry.get("n_test"))


def auroc(y: np.ndarray, score: np.ndarray) -> float:
    """Area under the ROC curve: the share of (anomaly, normal) pairs in the right order, ties one half.

    >>> auroc(np.array([0, 0, 1]), np.array([0.1, 0.5, 0.5]))
    0.75
    """
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, score))


def average_precision(y: np.ndarray, score: np.ndarray) -> float:
    """Average precision with the anomaly as the positive class.

    >>> average_precision(np.array([0, 1, 1]), np.array([0.1, 0.9, 0.8]))
    1.0
    """
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(y, score))


def fpr_at_95_tpr(y: np.ndarray, score: np.ndarray) -> float:
    """Smallest share of normals flagged by a threshold that flags at least 95 % of the anomalies.

    >>> fpr_at_95_tpr(np.array([0, 0, 1, 1]), np.array([0.1, 0.6, 0.5, 0.9]))
    0.5
    """
    from sklearn.metrics import roc_curve

    fpr, tpr, _ = roc_curve(y, score, drop_intermediate=False)
    return float(fpr[np.argmax(tpr >= 0.95)])


CLEAN: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "auroc": auroc,
    "average_precision": average_precision,
    "fpr_at_95_tpr": fpr_at_95_tpr,
}


def measure_clean(y: np.ndarray, score: np.ndarray) -> list[Measurement]:
    """The clean metrics and the number of distinct scores (few of them mean many ties)."""
    measured = [Measurement(name, metric(y, score)) for name, metric in CLEAN.items()]
    return [*measured, Measurement("distinct_scores", float(len(np.unique(score))))]


def measure_training(y: np.ndarray, score: np.ndarray, score_train: np.ndarray) -> list[Measurement]:
    """AUROC of training rows against the test anomalies. What it exceeds the AUROC by, new normals lose.

    >>> measure_training(np.array([0, 1]), np.array([0.6, 0.5]), np.array([0.1]))[0].value
    1.0
    """
    anomalies = score[y == 1]
    labels = np.repeat([0, 1], [len(score_train), len(anomalies)])
    return [Measurement("train_auroc", auroc(labels, np.concatenate([score_train, anomalies])))]


def measure_certified(
    y: np.ndarray,
    score: np.ndarray,
    lipschitz: float,
    radii: Iterable[float],
    threats: Iterable[str],
    bounds: Mapping[float, np.ndarray] | None = None,
) -> list[Measurement]:
    """Certified metrics at each radius under each threat, for a proven ``lipschitz`` of the score.

    ``bounds`` holds by radius the worst scores (n_test,) that a proof of the detector's own leaves possible.
    Where there is one, it is what the metrics are of; beside the AUROC stands then what the constant alone
    proves, as ``certified_auroc:constant``.
    """
    from ocsdf import certified_auroc, certified_average_precision, certified_fpr_at_tpr

    metrics = {
        "certified_auroc": certified_auroc,
        "certified_average_precision": certified_average_precision,
        "certified_fpr_at_95_tpr": certified_fpr_at_tpr,
    }
    measured, radii = [], [float(radius) for radius in radii]
    for threat in threats if radii else ():
        moved = np.isin(y, MOVES[threat])
        for name, certified in metrics.items():
            # The certificate's score is higher = more normal.
            normal, anomaly = -score[y == 0], -score[y == 1]
            constants = certified(normal, anomaly, np.array(radii), lipschitz=lipschitz, threat=threat)
            for radius, constant in zip(radii, np.atleast_1d(constants), strict=True):
                bound = (bounds or {}).get(radius)
                if bound is None:
                    measured.append(Measurement(name, float(constant), radius, threat))
                    continue
                worst = -np.where(moved, bound, score)
                value = certified(worst[y == 0], worst[y == 1], 0.0, lipschitz=1.0)
                measured.append(Measurement(name, float(value), radius, threat))
                if name == "certified_auroc":
                    measured.append(Measurement(f"{name}:constant", float(constant), radius, threat))
    return measured


def measure_attacked(
    attack: str,
    y: np.ndarray,
    clean: np.ndarray,
    attacked: np.ndarray,
    radius: float,
    threats: Iterable[str],
    lipschitz: float | None,
    bounds: Mapping[float, np.ndarray] | None = None,
) -> list[Measurement]:
    """Attacked AUROC beside the clean and the certified one of the same rows, threat and radius."""
    n_test, measured = len(y), []
    for threat in threats:
        moved = np.isin(y, MOVES[threat])
        under_attack = auroc(y, np.where(moved, attacked, clean))
        measured += [
            Measurement(f"attacked_auroc:{attack}", under_attack, radius, threat, n_test),
            Measurement("auroc", auroc(y, clean), radius, threat, n_test),
        ]
        if lipschitz is not None:
            bound = measure_certified(y, clean, lipschitz, [radius], [threat], bounds)[0]
            measured.append(Measurement("certified_auroc", bound.value, radius, threat, n_test))
    return measured


def require_scores(score: Any, n: int) -> np.ndarray:
    """``score`` as float64 (n,); raises ScoreError where it is NaN, infinite or of another shape."""
    array = np.asarray(score, dtype=np.float64)
    if array.shape != (n,):
        raise ScoreError(f"anomaly_score must return one score a row, shape ({n},); got {array.shape}.")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ScoreError(
            f"anomaly_score must be finite; got {array[bad[0]]} in {len(bad)} of {n} rows, first at {bad[0]}."
        )
    return array
