"""Whether a store says what was run: the chain of its rows, its scores, and every metric recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ocsdf_bench.measure import measure
from ocsdf_bench.store import Run, StoreCorruptError, line_hash, parse_lines, read_lines, read_scores


@dataclass(frozen=True)
class Verification:
    """What ``verify`` found: ``problem`` names the first row that does not match, "" where all do."""

    n_rows: int
    n_recomputed: int
    n_without_scores: int
    head: str  # hash of the last row: publish it, and nobody can rewrite the store unseen
    problem: str = ""


def verify(directory: Path) -> Verification:
    """Check the chain of hashes, each fingerprint and each scores file, and recompute every metric."""
    lines, _ = read_lines(Path(directory) / "runs.jsonl")
    previous, recomputed, missing = "", 0, 0
    runs = list(parse_lines(lines))
    last = {run.spec.key: number for number, run in enumerate(runs)}
    for number, run in enumerate(runs):
        problem = _chain_problem(run, previous)
        if not problem and run.scores_sha256 and last[run.spec.key] == number:
            try:
                problem = _metric_problem(run, read_scores(Path(directory), run))
                recomputed += 1
            except FileNotFoundError:
                missing += 1
            except StoreCorruptError as error:
                problem = str(error)
        if problem:
            row = f"row {number + 1} ({run.spec.dataset}, {run.spec.detector}, seed {run.spec.seed})"
            return Verification(len(lines), recomputed, missing, "", f"{row}: {problem}")
        previous = line_hash(lines[number])
    return Verification(len(lines), recomputed, missing, previous)


def _chain_problem(run: Run, previous: str) -> str:
    if run.previous != previous:
        return "it does not follow the row before it: a row was changed, removed or inserted."
    if run.spec.fingerprint(run.data_checksum) != run.fingerprint:
        return "its fingerprint does not belong to its spec and data checksum."
    return ""


def _metric_problem(run: Run, scores: dict[str, np.ndarray]) -> str:
    expected = {
        (m.metric, m.radius, m.threat, m.n_test): m.value for m in measure(run.spec, scores, run.lipschitz)
    }
    stored = {(m.metric, m.radius, m.threat, m.n_test): m.value for m in run.metrics}
    for key in stored.keys() | expected.keys():
        if key not in stored or key not in expected:
            return f"metric {key[0]} is in the row or follows from its scores, but not both."
        # 1e-9: another version of NumPy or scikit-learn may sum in another order.
        if abs(stored[key] - expected[key]) > 1e-9:
            return f"metric {key[0]} is {stored[key]!r} in the row and {expected[key]!r} from its scores."
    return ""
