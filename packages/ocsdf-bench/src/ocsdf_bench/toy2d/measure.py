"""Fits of a toy suite: numbers go to runs.csv, what pictures need to arrays beside it."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ocsdf_bench.study import Measurement, StudyLog
from ocsdf_bench.toy2d.conventional import ConventionalNetwork
from ocsdf_bench.toy2d.fit import draw_negatives, fit_ocsdf
from ocsdf_bench.toy2d.sets import KNOWN_SETS, RADIUS, TOY_SETS, disc_rows, grid_rows

if TYPE_CHECKING:
    from ocsdf import OCSDF

HALF_WIDTH = 3.0
"""Of the pictures, in standard deviations."""

KNOWN_HALF_WIDTH = 2.5
"""Of the grid on which f - m is compared with a known signed distance."""


@dataclass(frozen=True)
class ToySuite:
    """Checked content of a toy suite.

    n_points : rows of each of the paper's sets. hidden, steps, batch_size : of OCSDF and of the conventional
    network. activation, newton_steps, weight, learning_rate : OCSDF's; the rate falls linearly to zero.
    resolution : grid points along a picture's edge. strip_set, strip_steps : the set and the lengths of
    training after which negatives are shown. known_sets, known_n_points, known_margins, known_weights : the
    largest n and the first margin and weight, each against all values of the other two.
    """

    name: str
    sets: tuple[str, ...]
    n_points: int
    seed: int
    hidden: tuple[int, ...]
    activation: str
    weight: float
    steps: int
    batch_size: int
    newton_steps: int
    learning_rate: float
    resolution: int
    strip_set: str
    strip_steps: tuple[int, ...]
    known_sets: tuple[str, ...]
    known_n_points: tuple[int, ...]
    known_margins: tuple[float, ...]
    known_weights: tuple[float, ...]

    @property
    def budget(self) -> dict[str, Any]:
        """What every table and caption states."""
        return {
            "hidden": list(self.hidden),
            "activation": self.activation,
            "steps": self.steps,
            "batch": self.batch_size,
        }


def read_suite(path: Path) -> ToySuite:
    """The suite of a TOML file; ValueError on a key or set that does not exist."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    fields = ToySuite.__dataclass_fields__
    unknown = sorted(set(content) - set(fields))
    missing = sorted(set(fields) - set(content))
    if unknown or missing:
        raise ValueError(
            f"{path} must have the keys {', '.join(fields)}; unknown {unknown}, missing {missing}."
        )
    for key, known in (("sets", TOY_SETS), ("known_sets", KNOWN_SETS)):
        wrong = sorted(set(content[key]) - set(known))
        if wrong:
            raise ValueError(f"`{key}` of {path} must be any of {', '.join(known)}; got {wrong}.")
    settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    return ToySuite(**settings)


def measure(suite: ToySuite, out: Path, say: Callable[[str], None] = print) -> None:
    """Fit everything that ``out`` does not hold yet.

    What pictures need is too large to be committed with runs.csv: where it is gone it is made again, and the
    rows stay as they are.
    """
    log = StudyLog(out / "runs.csv", suite.name, "toy2d")
    (out / "arrays").mkdir(exist_ok=True)
    for name in suite.sets:
        if not (out / "arrays" / f"{name}.npz").exists():
            say(f"{name}: four detectors")
            _measure_set(suite, name, log, out / "arrays" / f"{name}.npz")
    strip = out / "arrays" / "negatives.npz"
    if not strip.exists():
        say(f"{suite.strip_set}: negatives at steps {', '.join(map(str, suite.strip_steps))}")
        arrays_of_strip: dict[str, Any] = dict(_negatives(suite))
        np.savez_compressed(strip, **arrays_of_strip)
    for name in suite.known_sets:
        drawn = out / "arrays" / f"known-{name}.npz"
        for case in _known_cases(suite):
            n, margin, weight = case
            params = {"margin": margin, "weight": weight}
            planned = Measurement(name, "OCSDF", suite.seed, n, params=params, n_features=2)
            lost = case == _known_cases(suite)[0] and not drawn.exists()
            if lost or not log.has(planned):
                say(f"{name}: n={n}, margin {margin}, weight {weight}")
                log.add_new(_measure_known(suite, planned, margin, weight, out / "arrays"))


def _measure_set(suite: ToySuite, name: str, log: StudyLog, path: Path) -> None:
    from sklearn.ensemble import IsolationForest
    from sklearn.svm import OneClassSVM

    rows = TOY_SETS[name].rows(suite.n_points, suite.seed)
    model, seconds = _timed(lambda: fit_ocsdf(rows, suite, TOY_SETS[name].margin))
    _, negatives = draw_negatives(model, 20 * suite.n_points, suite.newton_steps, suite.seed)
    conventional = ConventionalNetwork(suite.hidden, suite.steps, suite.batch_size, suite.seed)
    _, conventional_seconds = _timed(lambda: conventional.fit(rows, negatives))
    svm = OneClassSVM(nu=0.05, gamma=0.5).fit(rows)
    forest = IsolationForest(contamination=0.05, random_state=suite.seed).fit(rows)

    probes = np.concatenate([rows, disc_rows(10_000, suite.seed + 1)])
    slope = {
        "OCSDF": _slope(model.input_gradient, probes),
        "conventional": _slope(conventional.gradient, probes),
    }
    log.add_new(
        Measurement(
            name, "OCSDF", suite.seed, len(rows),
            {
                "slope": slope["OCSDF"],
                "lipschitz": float(model.lipschitz_),
                "share_inside": _inside(model, rows),
            },
            {"margin": TOY_SETS[name].margin}, suite.budget, seconds, None, len(probes), 2,
        ),
    )  # fmt: skip
    log.add_new(
        Measurement(
            name, "conventional network", suite.seed, len(rows),
            {"slope": slope["conventional"], "share_inside": float((conventional.score(rows) > 0).mean())},
            {}, suite.budget, conventional_seconds, None, len(probes), 2,
        ),
    )  # fmt: skip
    grid, uniform = grid_rows(HALF_WIDTH, suite.resolution), disc_rows(suite.n_points, suite.seed + 2)
    scores = {
        "OCSDF": model.score_samples,
        "conventional network": conventional.score,
        "OCSVM": svm.decision_function,
        "IForest": forest.decision_function,
    }
    arrays = {f"{k}/grid": f(grid).astype(np.float32) for k, f in scores.items()}
    arrays |= {f"{k}/data": f(rows).astype(np.float32) for k, f in scores.items()}
    arrays |= {f"{k}/uniform": f(uniform).astype(np.float32) for k, f in scores.items()}
    marked = _spread_points(rows, suite.seed)
    arrays |= {"rows": rows, "marked": marked, "radius": model.certified_radius(marked)}
    np.savez_compressed(path, **arrays)


def _measure_known(
    suite: ToySuite, planned: Measurement, margin: float, weight: float, folder: Path
) -> Measurement:
    region, n = KNOWN_SETS[planned.dataset], planned.n_train
    model, seconds = _timed(lambda: fit_ocsdf(region.rows(n, suite.seed), suite, margin, weight=weight))
    grid = grid_rows(KNOWN_HALF_WIDTH, 100)
    distance, truth = model.signed_distance(grid), region.signed_distance(grid)
    error = distance - truth
    norm = np.linalg.norm(model.input_gradient(grid), axis=1)
    metrics: dict[str, float | str] = {
        "sdf_error": float(np.abs(error).mean()),
        "sdf_error_inside": float(np.abs(error[truth > 0]).mean()),
        "sdf_error_outside": float(np.abs(error[truth <= 0]).mean()),
        "sdf_shift": float(error.mean()),
        "gradient_norm_within_5_percent": float((np.abs(norm - 1) <= 0.05).mean()),
        "slope": float(norm.max()),
        "lipschitz": float(model.lipschitz_),
    }
    if (n, margin, weight) == _known_cases(suite)[0]:
        np.savez_compressed(folder / f"known-{planned.dataset}.npz", distance=distance.astype(np.float32))
    return replace(planned, metrics=metrics, budget=suite.budget, fit_seconds=seconds, n_test=len(grid))


def _known_cases(suite: ToySuite) -> list[tuple[int, float, float]]:
    """(n, margin, weight): the case of reference, then those that differ from it in one thing."""
    n, (margin, *margins), (weight, *weights) = (
        max(suite.known_n_points),
        suite.known_margins,
        suite.known_weights,
    )
    fewer = [(k, margin, weight) for k in suite.known_n_points if k != n]
    return [
        (n, margin, weight),
        *fewer,
        *((n, m, weight) for m in margins),
        *((n, margin, w) for w in weights),
    ]


def _negatives(suite: ToySuite) -> dict[str, np.ndarray]:
    """Negatives of networks from the same start, trained for a growing number of steps."""
    toy = TOY_SETS[suite.strip_set]
    rows = toy.rows(suite.n_points, suite.seed)
    arrays = {"rows": rows}
    for steps in suite.strip_steps:
        model = fit_ocsdf(rows, suite, toy.margin, max_steps=steps)
        start, moved = draw_negatives(model, 300, suite.newton_steps, suite.seed + 3)
        grid = model.score_samples(grid_rows(RADIUS, 150)).astype(np.float32)
        arrays |= {f"{steps}/start": start, f"{steps}/moved": moved, f"{steps}/grid": grid}
    return arrays


def _spread_points(rows: np.ndarray, seed: int) -> np.ndarray:
    """Two rows and four places around the data (6, 2), far from each other, to be drawn with their radius."""
    corners = 2.0 * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    first = rows[np.random.default_rng(seed).integers(len(rows))]
    second = rows[np.linalg.norm(rows - first, axis=1).argmax()]
    return np.stack([first, second, *corners])


def _slope(gradient: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> float:
    return float(np.linalg.norm(gradient(x), axis=1).max())


def _inside(model: OCSDF, rows: np.ndarray) -> float:
    return float((model.predict(rows) > 0).mean())


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return call(), time.perf_counter() - start
