"""Invented runs with the shape of real ones, for the tests of what is made from a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from ocsdf_bench.metric import Measurement
from ocsdf_bench.store import Run
from ocsdf_bench.suite import RunSpec, digest

# Same examples on every machine, and no clock: a failure is a fact about the code.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

HOSTILE = "<script>alert(1)</script>|_&%$#{}~^\\`*[x](y)\n# end"
DATASETS = ("breastw", "cardio", "glass", "http", "wine", "wbc")
RADII = (0.1, 0.25, 0.5)
PAPER = {"margin": 0.05, "recipe": "paper"}


def make_run(
    detector: str = "OCSDF",
    dataset: str = "wine",
    seed: int = 0,
    auroc: float | None = 0.9,
    *,
    params: dict[str, Any] | None = None,
    slope: float | None = None,
    attacked: bool = False,
    **changes: Any,
) -> Run:
    """One run; ``slope`` is how fast its certified AUROC falls, ``auroc`` None makes it a failed one."""
    params = {} if params is None else params
    spec: dict[str, Any] = {
        "suite": "invented",
        "protocol": "unsupervised",
        "dataset": dataset,
        "normal_class": "",
        "detector": detector,
        "params": params,
        "seed": seed,
        "built": detector,
        "build_params": params,
        "radii": RADII,
    }
    spec |= {name: changes.pop(name) for name in tuple(changes) if name in RunSpec.__dataclass_fields__}
    fields: dict[str, Any] = {
        "fit_seconds": 0.5 + seed / 10,
        "score_seconds": 0.01,
        "peak_mb": 210.0,
        "n_train": 378,
        "n_test": 378,
        "n_features": 30,
        "budget": {"steps": 400} if detector.startswith("OCSDF") else {},
        "distinct_scores": 370,
        "lipschitz": None if slope is None else 1.0,
        "versions": {"numpy": "2.4.6", "ocsdf-bench": "0.1.0"},
        "hardware": {"cpu": "invented CPU", "cores": 2},
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "data_checksum": digest(dataset),
        "split_checksum": digest([dataset, spec["protocol"], spec["normal_class"]]),
        "scores_sha256": digest([detector, params, dataset, seed]),
        "status": "ok",
    }
    if auroc is None:
        fields |= {"status": "failed", "reason": "MemoryError: no room", "fit_seconds": None}
    fields["metrics"] = () if auroc is None else tuple(_metrics(auroc, slope, spec["radii"], attacked))
    run_spec = RunSpec(**spec)
    return Run(fingerprint=run_spec.fingerprint(digest(dataset)), spec=run_spec, **(fields | changes))


def _metrics(
    auroc: float, slope: float | None, radii: tuple[float, ...], attacked: bool
) -> Iterator[Measurement]:
    yield Measurement("auroc", auroc)
    yield Measurement("average_precision", auroc**2)
    yield Measurement("fpr_at_95_tpr", 1 - auroc)
    yield Measurement("distinct_scores", 370.0)
    for radius in radii if slope is not None else ():
        certified = max(auroc - slope * radius, 0.0)
        yield Measurement("certified_auroc", certified, radius, "both")
        yield Measurement("certified_average_precision", certified**2, radius, "both")
        yield Measurement("certified_fpr_at_95_tpr", 1 - certified, radius, "both")
    for radius in radii if attacked else ():
        bound = max(auroc - (slope or 2) * radius, 0.0)
        yield Measurement("attacked_auroc:l2-pgd", (auroc + bound) / 2 - 0.005, radius, "both", 100)
        yield Measurement("auroc", auroc - 0.01, radius, "both", 100)
        if slope is not None:
            yield Measurement("certified_auroc", max(bound - 0.01, 0.0), radius, "both", 100)


@pytest.fixture(scope="session")
def invented_runs() -> tuple[Run, ...]:
    """A suite with everything a leaderboard has to show: variants, a choice made with labels, a failure, a
    set nobody could load, a detector whose name attacks every format, an attack."""
    rng = np.random.default_rng(0)
    runs: list[Run] = []
    for dataset in DATASETS:
        for seed in range(3):
            level = 0.85 + 0.1 * rng.random()
            runs.append(make_run("OCSDF", dataset, seed, level, slope=0.2, attacked=dataset == "breastw"))
            runs.append(make_run("IForest", dataset, seed, 0.8 + 0.15 * rng.random()))
            chosen = {"params": {**PAPER, "margin": [0.05, 1.0]}, "built": "OCSDF", "build_params": PAPER}
            runs.append(
                make_run("OCSDF-best-margin", dataset, seed, 0.8 + 0.05 * rng.random(), slope=2.0, **chosen)
            )
        runs.append(make_run("OCSDF", dataset, 0, 0.75, params=PAPER, slope=2.0))
        runs.append(make_run("KNN", dataset, 0, 0.7 + 0.2 * rng.random(), slope=0.3))
        runs.append(make_run("ECOD", dataset, 0, 0.45 if dataset == "glass" else 0.8))
        runs.append(make_run(HOSTILE, dataset, 0, 0.5 + 0.1 * rng.random()))
        runs.append(make_run("COF", dataset, 0, None if dataset == "http" else 0.6, row_cap=2000))
    for detector in ("OCSDF", "IForest", "KNN", "ECOD", "COF"):
        absent = {"status": "skipped", "reason": "speech.npz is not in the mirror", "scores_sha256": ""}
        runs.append(make_run(detector, "speech", 0, None, **absent))
    return tuple(runs)


@pytest.fixture(scope="session")
def invented_run() -> Callable[..., Run]:
    """`make_run`, for tests that need a run or two."""
    return make_run


@pytest.fixture(scope="session")
def hostile_name() -> str:
    return HOSTILE
