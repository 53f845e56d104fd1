"""Every metric of a run from its stored arrays, so that a new radius or metric needs no fit."""

from __future__ import annotations

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
    "attacked:NAME:RADIUS" (n_rows,), their worst scores.
    """
    y, score = arrays["y"], arrays["score"]
    measured = measure_clean(y, score)
    if "score_train" in arrays:
        measured += measure_training(y, score, arrays["score_train"])
    if lipschitz is not None:
        measured += measure_certified(y, score, lipschitz, spec.radii, spec.threats)
    for attack in spec.attacks:
        rows = arrays.get(f"rows:{attack.name}")
        if rows is None:
            continue
        for radius in attack.radii:
            attacked = arrays[attacked_name(attack.name, radius)]
            measured += measure_attacked(
                attack.name, y[rows], score[rows], attacked, radius, attack.threats, lipschitz
            )
    return list(dict.fromkeys(measured))  # two attacks share their clean and certified numbers


def attacked_name(attack: str, radius: float) -> str:
    """Name of the array of scores under an attack."""
    return f"attacked:{attack}:{radius!r}"
