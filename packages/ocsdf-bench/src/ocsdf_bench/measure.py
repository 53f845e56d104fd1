"""Every metric of a run from its stored arrays, so that a new radius or metric needs no fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocsdf_bench.metric import (
    Measurement,
    measure_attacked,
    measure_certified,
    measure_clean,
    measure_training,
)
from ocsdf_bench.suite import RunSpec


def measure(spec: RunSpec, arrays: dict[str, np.ndarray], lipschitz: float | None) -> list[Measurement]:
    """Clean, certified and attacked metrics.

    ``arrays`` holds "score" (n_test,) and "y" (n_test,); of images "score_train" (n_rows,), the scores of
    fitted rows; and for each attack made "rows:NAME" (n_rows,), the test rows attacked, and
    "attacked:NAME:RADIUS" (n_rows,), their worst scores; and "bound:RADIUS" (n_test,), the worst scores that
    a detector with a proof of its own leaves possible, of anomalies the lowest and of normals the highest.
    """
    y, score = arrays["y"], arrays["score"]
    measured = measure_clean(y, score)
    if "score_train" in arrays:
        measured += measure_training(y, score, arrays["score_train"])
    if lipschitz is not None:
        measured += measure_certified(y, score, lipschitz, spec.radii, spec.threats, _bounds(arrays))
    for attack in spec.attacks:
        rows = arrays.get(f"rows:{attack.name}")
        if rows is None:
            continue
        for radius in attack.radii:
            attacked = arrays[attacked_name(attack.name, radius)]
            measured += measure_attacked(
                attack.name,
                y[rows],
                score[rows],
                attacked,
                radius,
                attack.threats,
                lipschitz,
                _bounds(arrays, rows),
            )
    return list(dict.fromkeys(measured))  # two attacks share their clean and certified numbers


def bound_name(radius: float) -> str:
    """Name of the array of worst scores that are possible."""
    return f"bound:{radius!r}"


def attacked_name(attack: str, radius: float) -> str:
    """Name of the array of scores under an attack."""
    return f"attacked:{attack}:{radius!r}"


def bounds_suffice(spec: RunSpec, arrays: dict[str, np.ndarray]) -> bool:
    """Whether ``arrays`` prove what ``spec`` asks for: a detector's own proof holds at its radii alone."""
    proven = _bounds(arrays)
    return not proven or proven.keys() >= {*spec.radii, *(r for attack in spec.attacks for r in attack.radii)}


def _bounds(arrays: dict[str, np.ndarray], rows: Any = slice(None)) -> dict[float, np.ndarray]:
    """The worst scores of ``rows`` that are possible, by radius."""
    found = ((name.partition(":"), array) for name, array in arrays.items())
    return {float(radius): array[rows] for (kind, _, radius), array in found if kind == "bound"}
