"""Rays to a level set by steps that provably cannot cross it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocsdf_bench.shapes.shape import Field


@dataclass(frozen=True)
class Trace:
    """Where rays end.

    distance : (n,) length travelled. hit : (n,) whether the ray came within the tolerance of the level set;
    a ray that is not ``hit`` left the domain or ran out of steps. steps : (n,) evaluations used.
    """

    distance: np.ndarray
    hit: np.ndarray
    steps: np.ndarray


def sphere_trace(
    field: Field,
    origins: np.ndarray,
    directions: np.ndarray,
    *,
    lipschitz: float,
    tolerance: float = 1e-3,
    far: float = 4.0,
    max_steps: int = 256,
) -> Trace:
    """Travel along rays until the field is within ``tolerance`` of zero.

    A field with constant L has no zero nearer to x than |field(x)|/L: a step of that length ends at the
    latest on the level set. The constant must be proven; a measured one can make a ray jump through a wall.

    Parameters
    ----------
    field : callable
        (n, 3) -> (n,), negative outside.
    origins, directions : (n, 3) array
        Directions of unit length; origins outside the shape (an origin inside is a hit at distance 0).
    lipschitz : float
        Proven Lipschitz constant of ``field`` for the l2 norm.
    tolerance : float
        Distance, unit of the points, under which a ray counts as arrived.
    far : float
        Length after which a ray is given up.

    Returns
    -------
    Trace

    Source: Hart, "Sphere tracing", The Visual Computer 1996.

    Examples
    --------
    >>> ball = lambda x: 1 - np.linalg.norm(x, axis=1)
    >>> trace = sphere_trace(ball, np.array([[0.0, 0, 3]]), np.array([[0.0, 0, -1]]), lipschitz=1.0)
    >>> trace.hit.tolist(), trace.distance.round(3).tolist()
    ([True], [2.0])
    """
    if not (np.isfinite(lipschitz) and lipschitz > 0):
        raise ValueError(f"`lipschitz` of sphere_trace must be a proven constant > 0; got {lipschitz}.")
    distance = np.zeros(len(origins))
    hit = np.zeros(len(origins), dtype=bool)
    steps = np.zeros(len(origins), dtype=int)
    active = np.arange(len(origins))
    for _ in range(max_steps):
        if not active.size:
            break
        gap = -field(origins[active] + distance[active, None] * directions[active]) / lipschitz
        steps[active] += 1
        arrived = gap <= tolerance
        hit[active[arrived]] = True
        moving = active[~arrived]
        distance[moving] += gap[~arrived]
        active = moving[distance[moving] < far]
    return Trace(distance, hit, steps)
