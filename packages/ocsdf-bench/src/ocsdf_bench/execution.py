"""What one run does, inside its own process: load, split, build, fit, score, attack, measure."""

from __future__ import annotations

import contextlib
import re
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ocsdf_bench.attack import ATTACKS, attack_scores
from ocsdf_bench.dataset import DATASETS, Data, DataUnavailableError, Source
from ocsdf_bench.detector import DETECTORS, Detector, DetectorInfo
from ocsdf_bench.measure import attacked_name, bound_name, measure
from ocsdf_bench.metric import Measurement, require_scores
from ocsdf_bench.plugin import load_plugins
from ocsdf_bench.probe import probe
from ocsdf_bench.protocol import Split, UndefinedError, make_split, n_copies
from ocsdf_bench.standardised import Standardised
from ocsdf_bench.suite import AttackPlan, RunSpec

N_TRAIN_SCORED = 1_000  # training rows whose scores are kept, of images


class CertificateError(RuntimeError):
    """An attack moved a score further than the stated constant allows: the certificate is false."""


@dataclass
class Execution:
    """What a run found, as plain data for the process that writes it down."""

    status: str = "ok"
    reason: str = ""
    metrics: tuple[Measurement, ...] = ()
    arrays: dict[str, np.ndarray] | None = None
    fields: dict[str, Any] = field(default_factory=dict)  # further fields of the Run


def execute(spec: RunSpec, data_checksum: str, source: Source, plugins: tuple[str, ...]) -> Execution:
    """Run ``spec``; a failure inside is an Execution with status and reason, never an exception."""
    found, start_mb = Execution(), _peak_mb()
    step = ["load"]
    try:
        _execute(spec, data_checksum, source, plugins, found, step)
    except (DataUnavailableError, UndefinedError) as error:
        found.status, found.reason = "skipped", public_reason(str(error))
    except MemoryError as error:
        found.status, found.reason = "oom", public_reason(f"{step[0]}: MemoryError: {error}")
    except Exception as error:  # whatever a detector raises is a row, not the end of the suite
        found.status = "oom" if type(error).__name__ == "ResourceExhaustedError" else "failed"
        found.reason = public_reason(f"{step[0]}: {type(error).__name__}: {error}")
    found.fields["peak_mb"] = round(_peak_mb() - start_mb, 1)
    if found.status != "ok":
        found.metrics, found.arrays = (), None
    return found


def _execute(
    spec: RunSpec,
    data_checksum: str,
    source: Source,
    plugins: tuple[str, ...],
    found: Execution,
    step: list[str],
) -> None:
    load_plugins(plugins)
    card, info = DATASETS[spec.dataset], DETECTORS[spec.built]
    if card.kind not in info.kinds:
        raise UndefinedError(f"{info.name} takes {' and '.join(info.kinds)} data, not {card.kind} data.")
    data = card.load(source)
    if data.checksum != data_checksum:
        raise RuntimeError("the data changed while the suite was running.")
    normal_class = card.classes.index(spec.normal_class) if spec.normal_class else None
    split = make_split(data, spec.protocol, spec.seed, normal_class)
    rows, blocks, budget = _budget(spec, split)
    found.fields |= {
        "split_checksum": split.checksum,
        "n_train": len(split.X_train),
        "n_test": len(split.X_test),
        "n_features": int(np.prod(split.X_train.shape[1:])),
        "n_anomaly": int((split.y_test == 1).sum()),
        "n_copies": None if spec.protocol == "unsupervised" else n_copies(split),
        "budget": budget,
    }
    step[0] = "build"
    detector = _seeing(data, info.build(seed=spec.seed, **spec.build_params))
    step[0] = "fit"
    with _timed(found.fields, "fit_seconds"):
        detector.fit(split.X_train[rows])
    budget.update(getattr(detector, "budget", None) or {})
    step[0] = "score"
    with _timed(found.fields, "score_seconds"):
        score = _score(detector, split.X_test, blocks)
    lipschitz = getattr(detector, "lipschitz", None)
    found.arrays = {"score": score, "y": split.y_test}
    if card.kind == "image" and not info.transductive:
        found.arrays["score_train"] = _score_of_training(detector, split.X_train[rows], spec.seed)
    step[0] = "certify"
    found.arrays |= _proven(detector, split, spec)
    step[0] = "attack"
    for attack in spec.attacks:
        surrogate = _surrogate(attack, data, split.X_train[rows], spec.seed)
        found.arrays |= _attacked(
            attack, info, detector, surrogate, split, found.arrays, lipschitz, spec.seed, budget
        )
    step[0] = "probe"
    flags = probe(detector, info, split, score, spec.seed)
    step[0] = "measure"
    found.metrics = tuple(measure(spec, found.arrays, lipschitz))
    _require_order(found.metrics)
    found.fields |= {
        "lipschitz": None if lipschitz is None else float(lipschitz),
        "distinct_scores": len(np.unique(score)),
        "flags": flags,
    }


def _seeing(data: Data, detector: Detector) -> Detector:
    """The detector as it is given pixels: it sees centred and reduced channels where the data set says so."""
    if data.channels is None:
        return detector
    return Standardised(detector, *(np.array(values) for values in data.channels))


def _budget(spec: RunSpec, split: Split) -> tuple[np.ndarray, list[np.ndarray], dict[str, Any]]:
    """Rows to fit on, blocks of rows to score, and what of it is less than everything."""
    rng, budget = np.random.default_rng([spec.seed, 3]), dict[str, Any]()
    n_train, n_test = len(split.X_train), len(split.X_test)
    rows, blocks = np.arange(n_train), [np.arange(n_test)]
    if spec.row_cap is not None and n_train > spec.row_cap:
        rows = np.sort(rng.choice(n_train, spec.row_cap, replace=False))
        budget["fit_rows"] = spec.row_cap
    if spec.score_block is not None and n_test > spec.score_block:
        order = rng.permutation(n_test)
        blocks = np.array_split(order, -(-n_test // spec.score_block))
        budget["score_block"] = spec.score_block
    return rows, blocks, budget


def _score(detector: Detector, X: np.ndarray, blocks: list[np.ndarray]) -> np.ndarray:
    if len(blocks) == 1:
        return require_scores(detector.anomaly_score(X.copy()), len(X))
    score = np.empty(len(X))
    for block in blocks:
        score[block] = require_scores(detector.anomaly_score(X[block]), len(block))
    return score


def _score_of_training(detector: Detector, X: np.ndarray, seed: int) -> np.ndarray:
    """Scores of at most ``N_TRAIN_SCORED`` rows that were fitted, to compare with those of new normals."""
    rng = np.random.default_rng([seed, 6])
    rows = np.sort(rng.choice(len(X), min(N_TRAIN_SCORED, len(X)), replace=False))
    return require_scores(detector.anomaly_score(X[rows]), len(rows))


def _proven(detector: Detector, split: Split, spec: RunSpec) -> dict[str, np.ndarray]:
    """The worst scores that the detector's own proof leaves possible, at each radius; none without one."""
    prove = getattr(detector, "score_bounds", None)
    radii = sorted({*spec.radii, *(radius for attack in spec.attacks for radius in attack.radii)})
    if prove is None or not radii:
        return {}
    low, high = prove(split.X_test, np.array(radii))
    worst = np.where(split.y_test == 1, low, high)
    return {bound_name(radius): row for radius, row in zip(radii, worst, strict=True)}


def _surrogate(plan: AttackPlan, data: Data, X: np.ndarray, seed: int) -> Detector | None:
    """What a transfer attack looks at, fitted on the rows that the attacked detector was fitted on."""
    name = ATTACKS[plan.name].surrogate
    if not name:
        return None
    surrogate = _seeing(data, DETECTORS[name].build(seed=seed))
    surrogate.fit(X)
    return surrogate


def _attacked(
    plan: AttackPlan,
    info: DetectorInfo,
    detector: Detector,
    surrogate: Detector | None,
    split: Split,
    clean: dict[str, np.ndarray],
    lipschitz: float | None,
    seed: int,
    budget: dict[str, Any],
) -> dict[str, np.ndarray]:
    """Arrays of one attack (see ``measure``); none, and a note, where it can not be made."""
    attack, score = ATTACKS[plan.name], clean["score"]
    obstacle = ""
    if attack.needs and getattr(surrogate or detector, attack.needs, None) is None:
        obstacle = f"needs `{attack.needs}`, which {info.name} has not"
    elif info.transductive:
        obstacle = f"a score of {info.name} depends on the other rows it is computed with"
    if obstacle and plan.required:
        raise TypeError(f"attack {plan.name!r}: {obstacle}; leave it out of the attack's `detectors`.")
    if obstacle:
        budget[f"attack {plan.name}"] = obstacle
        return {}
    rows = attacked_rows(split.y_test, plan.n_rows, seed)
    direction = np.where(split.y_test[rows] == 1, -1, 1)
    arrays, reached = {f"rows:{plan.name}": rows}, score[rows]
    for radius in sorted(plan.radii):
        worst = attack_scores(
            attack,
            detector,
            split.X_test[rows],
            direction,
            radius,
            domain=split.domain,
            seed=seed,
            surrogate=surrogate,
        )
        # What a smaller ball allowed, or none, a larger one allows too: steps may be too long for it.
        worst = reached = np.where(direction * (worst - reached) > 0, worst, reached)
        if lipschitz is not None:
            _require_certified(plan.name, score[rows], worst, radius, lipschitz)
        if bound_name(radius) in clean:
            _require_inside(plan.name, direction, clean[bound_name(radius)][rows], worst, radius)
        arrays[attacked_name(plan.name, radius)] = worst
    return arrays


def attacked_rows(y: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Sorted random test rows: at most half of them anomalies, normals for the rest."""
    rng = np.random.default_rng([seed, 4])
    anomalies, normals = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_anomalies = min(len(anomalies), max(1, n_rows // 2))
    picked = rng.choice(anomalies, n_anomalies, replace=False)
    others = rng.choice(normals, min(len(normals), max(1, n_rows - n_anomalies)), replace=False)
    return np.sort(np.concatenate([picked, others]))


def _require_certified(
    attack: str, clean: np.ndarray, worst: np.ndarray, radius: float, lipschitz: float
) -> None:
    # Networks score in float32: 1e-5 of a score's size is rounding, more is a false certificate.
    slack = 1e-5 * (1.0 + np.abs(clean))
    moved = np.abs(worst - clean)
    broken = np.flatnonzero(moved > lipschitz * radius + slack)
    if len(broken):
        row = broken[0]
        raise CertificateError(
            f"attack {attack!r} moved the score of {len(broken)} rows further than lipschitz * radius = "
            f"{lipschitz * radius:.6g}: row {row} by {moved[row]:.6g}. The stated constant is no bound."
        )


def _require_inside(
    attack: str, direction: np.ndarray, bound: np.ndarray, worst: np.ndarray, radius: float
) -> None:
    broken = np.flatnonzero(direction * (worst - bound) > 1e-5 * (1.0 + np.abs(bound)))
    if len(broken):
        raise CertificateError(
            f"attack {attack!r} at radius {radius:g} moved {len(broken)} scores outside of the bounds that "
            f"the detector states: row {broken[0]} to {worst[broken[0]]:.6g}, past {bound[broken[0]]:.6g}."
        )


def _require_order(metrics: tuple[Measurement, ...]) -> None:
    """certified <= attacked <= clean, of the same rows at the same radius under the same threat."""
    value = {(m.metric, m.radius, m.threat, m.n_test): m.value for m in metrics}
    for m in metrics:
        if not m.metric.startswith("attacked_auroc:"):
            continue
        clean = value["auroc", m.radius, m.threat, m.n_test]
        bound = value.get(("certified_auroc", m.radius, m.threat, m.n_test), 0.0)
        if not bound - 1e-9 <= m.value <= clean + 1e-9:
            raise CertificateError(
                f"{m.metric} at radius {m.radius:g} must lie between the bound {bound:.6f} and the clean "
                f"value {clean:.6f}; got {m.value:.6f}. The stated constant is no bound."
            )


def public_reason(text: str) -> str:
    """One line of at most 400 characters in which no path of this machine is left (reasons are published)."""
    text = re.sub(r"(?<![\w.:/])(?:/[\w.@+-]+){2,}", lambda m: Path(m.group()).name, text)
    return " ".join(text.split())[:400]


@contextlib.contextmanager
def _timed(fields: dict[str, Any], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    fields[name] = round(time.perf_counter() - start, 4)


def _peak_mb() -> float:
    """Peak resident memory so far. A run reports its growth: what the fork server holds is not its own."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
