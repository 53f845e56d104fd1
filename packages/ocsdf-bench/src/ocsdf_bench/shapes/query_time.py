"""Query time against the number of rows: a network's is constant, a k-d tree's is not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.spatial import KDTree

from ocsdf_bench.shapes.shape import Field
from ocsdf_bench.shapes.suite import ShapeSuite
from ocsdf_bench.study import Measurement, StudyLog

TREE = "k-d tree"
N_QUERIES = 1000


def network_label(hidden: tuple[int, ...]) -> str:
    """Name of a network in rows and figures.

    >>> network_label((64, 64))
    'network 64-64'
    """
    return f"network {'-'.join(map(str, hidden))}"


def measure_query_times(suite: ShapeSuite, log: StudyLog, say: Callable[[str], None]) -> None:
    """CPU seconds for 1,000 queries of each network and of a k-d tree, on Gaussian rows.

    The networks are hardly trained: a query costs the same whatever the weights.
    """
    for dimension in suite.query_dimensions:
        for n in suite.query_n_points:
            rng = np.random.default_rng(suite.seed)
            rows, queries = rng.standard_normal((n, dimension)), rng.standard_normal((N_QUERIES, dimension))
            for label, build in _builders(suite, rows).items():
                planned = Measurement(
                    f"gaussian-{dimension}d", label, suite.seed, n, n_test=N_QUERIES, n_features=dimension
                )
                if not log.has(planned):
                    say(f"query time, {dimension} dimensions, n={n}: {label}")
                    query = build()
                    best = min(_seconds(query, queries) for _ in range(3))
                    log.add(replace(planned, metrics={"query_seconds": best}, score_seconds=best))


def _builders(suite: ShapeSuite, rows: np.ndarray) -> dict[str, Callable[[], Field]]:
    def network(hidden: tuple[int, ...]) -> Field:
        from ocsdf import OCSDF

        return (
            OCSDF.paper(hidden=hidden, epochs=None, max_steps=2, random_state=suite.seed)
            .fit(rows)
            .score_samples
        )

    def tree() -> Field:
        built = KDTree(rows)
        return lambda x: built.query(x)[0]

    networks = {network_label(h): lambda h=h: network(h) for h in suite.query_networks}
    return {**networks, TREE: tree}


def _seconds(call: Field, queries: np.ndarray) -> float:
    start = time.process_time()
    call(queries)
    return time.process_time() - start
