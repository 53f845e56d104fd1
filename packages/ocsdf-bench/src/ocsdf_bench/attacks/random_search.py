"""Black box: random search that sees scores only, after the l2 Square attack."""

from __future__ import annotations

import numpy as np

from ocsdf_bench.attack import ATTACKS, Attack, column, project, unit
from ocsdf_bench.detector import Detector

QUERIES = 200
_LARGEST, _SMALLEST = 0.5, 0.02  # share of the side (of images) or of the features that a proposal changes


def _random_search(
    detector: Detector,
    X: np.ndarray,
    direction: np.ndarray,
    radius: float,
    domain: tuple[float, float] | None,
    seed: int,
) -> np.ndarray:
    rng = np.random.default_rng([seed, 8])
    rows = project(X + radius * unit(rng.standard_normal(X.shape)), X, radius, domain)
    top = direction * detector.anomaly_score(rows)
    for query in range(QUERIES):
        share = _LARGEST * (_SMALLEST / _LARGEST) ** (query / QUERIES)
        change = unit(_patch(rng, X.shape, share)) * radius * rng.choice([0.25, 0.5, 1.0])
        # Back on the sphere: what the patch gains, the rest of the perturbation gives up.
        proposed = project(X + radius * unit(rows - X + change), X, radius, domain)
        height = direction * detector.anomaly_score(proposed)
        better = height > top
        rows, top = np.where(column(better, X), proposed, rows), np.where(better, height, top)
    return rows[None]


def _patch(rng: np.random.Generator, shape: tuple[int, ...], share: float) -> np.ndarray:
    """Noise (n, ...) on a random square of each image, or on some features of each row; zero elsewhere."""
    noise = rng.standard_normal(shape)
    if len(shape) < 3:
        kept = rng.random(shape) < share
        kept[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = True
        return noise * kept
    inside = np.ones((shape[0], 1, 1), dtype=bool)
    for axis in (1, 2):
        side = max(1, round(share * shape[axis]))
        start = rng.integers(shape[axis] - side + 1, size=(shape[0], 1))
        place = np.arange(shape[axis])
        line = (place >= start) & (place < start + side)
        inside = inside & np.expand_dims(line, 3 - axis)
    # One colour for the whole square, as in the article, since smooth changes move smooth scores.
    colour = rng.standard_normal((shape[0], 1, 1, *shape[3:]))
    return (colour + 0.5 * noise) * inside.reshape(inside.shape + (1,) * (len(shape) - 3))


ATTACKS.add(
    Attack(
        "random-search",
        _random_search,
        needs="",
        source=f"after Andriushchenko et al., Square attack, ECCV 2020: {QUERIES} scores a row, no gradient",
    )
)
