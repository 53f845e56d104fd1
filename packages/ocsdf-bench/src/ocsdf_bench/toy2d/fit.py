"""The distance recipe in the plane, and where its negatives end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.toy2d.sets import RADIUS, disc_rows

if TYPE_CHECKING:
    from ocsdf import OCSDF
    from ocsdf_bench.toy2d.measure import ToySuite


def fit_ocsdf(rows: np.ndarray, suite: ToySuite, margin: float, **changes: Any) -> OCSDF:
    """The distance recipe in the ball of radius 5, with the suite's budget; ``changes`` go over it."""
    from ocsdf import OCSDF, Ball

    settings: dict[str, Any] = {
        "hidden": suite.hidden,
        "activation": suite.activation,
        "weight": suite.weight,
        "steps": suite.newton_steps,
        "epochs": None,
        "max_steps": suite.steps,
        "batch_size": suite.batch_size,
        "learning_rate": suite.learning_rate,
        "learning_rate_end": 0.0,
        "domain": Ball(RADIUS),
        "scale": "none",
        "random_state": suite.seed,
    }
    return OCSDF.paper(margin=margin, **{**settings, **changes}).fit(rows)


def draw_negatives(model: OCSDF, n: int, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform rows (n, 2) of B, and the same after ``steps`` Newton-Raphson steps on the fitted network."""
    from ocsdf import newton_raphson

    start = disc_rows(n, seed)
    moved = newton_raphson(
        lambda x: (model.score_samples(x), model.input_gradient(x)),
        start,
        steps=steps,
        domain=model.domain_,
        level=-model.margin_,
        random_state=seed,
    )
    return start, moved
