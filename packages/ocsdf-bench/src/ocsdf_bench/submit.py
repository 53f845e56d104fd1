"""Results of a third party join a store: numbers only, checked against the data and recomputed.

A submission is a folder with ``runs.csv`` (a line a metric, as ``ocsdf-bench report`` writes it) and
``scores/``, a .npz with ``score`` for each run, in the order of the test rows of `protocol.make_split`. No
code of theirs runs and nothing is unpickled. Every clean metric is recomputed from their scores and our
labels, and must be the stated one; bounds and attacks do not follow from scores and are not taken.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ocsdf_bench.archive import members
from ocsdf_bench.dataset import DATASETS, DataCorruptError, DataUnavailableError, Source
from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.execution import public_reason
from ocsdf_bench.measure import measure
from ocsdf_bench.metric import CLEAN, ScoreError, require_scores
from ocsdf_bench.protocol import PROTOCOLS, Split, UndefinedError, make_split, n_copies
from ocsdf_bench.store import STATUSES, Run, Store, read_runs
from ocsdf_bench.suite import RunSpec, canonical
from ocsdf_bench.verify import verify

REQUIRED = ("protocol", "dataset", "detector", "seed", "metric", "value", "scores")
MAX_BYTES = 64 * 2**20
TOLERANCE = 1e-6  # a stated value may have been printed with six digits

Line = dict[str, str]


class SubmissionError(ValueError):
    """A submission that can not join; the sentence says what and in which line of runs.csv."""


@dataclass(frozen=True)
class Submission:
    """What would join the store. ``not_taken`` : metrics that do not follow from scores."""

    runs: tuple[tuple[Run, dict[str, np.ndarray] | None], ...]
    not_taken: tuple[str, ...]


@dataclass(frozen=True)
class _Reported:
    """The lines of one run; ``number`` is where the first of them stands."""

    number: int
    spec: RunSpec
    lines: tuple[Line, ...]

    def refuse(self, sentence: str) -> SubmissionError:
        return SubmissionError(f"line {self.number} of runs.csv: {sentence}")


def read_submission(folder: Path, into: Path, source: Source, *, by: str) -> Submission:
    """Check every run in ``folder`` against the data and the store ``into``; nothing is written.

    Parameters
    ----------
    folder : Path
        With runs.csv and scores/.
    into : Path
        Store to join: its suite, protocols and data sets are the only ones that are taken.
    source : Source
        Where the data come from, for the labels of the test rows.
    by : str
        Who reports the results; stands in every table.

    Raises
    ------
    SubmissionError
        At the first thing that is not as it should be.
    """
    _require_text(by, "`by` of submit")
    known = read_runs(into)
    found, splits = [], dict[tuple[str, str, str, int], tuple[Split, str]]()
    for reported in _reported(_lines(folder / "runs.csv"), known):
        _require_own_name(reported, known, by)
        spec = reported.spec
        place = (spec.protocol, spec.dataset, spec.normal_class, spec.seed)
        if place not in splits:
            splits[place] = _split(reported, known, source)
        found.append(_checked(reported, folder, *splits[place], by))
    taken = {*CLEAN, "distinct_scores", ""}
    stated = {line["metric"] for line in _lines(folder / "runs.csv")}
    return Submission(tuple(found), tuple(sorted(stated - taken)))


def submit(folder: Path, into: Path, source: Source, *, by: str) -> Submission:
    """As `read_submission`, then write the runs and verify the store.

    Raises
    ------
    SubmissionError
        Also where the store itself does not pass ``verify``; nothing is written then.
    """
    before = verify(into)
    if before.problem:
        raise SubmissionError(f"`--into` must be a store that passes verify; got {before.problem}")
    submission = read_submission(folder, into, source, by=by)
    with Store(into) as store:
        for run, arrays in submission.runs:
            store.append(run, arrays)
    after = verify(into)
    if after.problem:
        raise SubmissionError(f"the store does not pass verify any more: {after.problem}")
    return submission


def _lines(path: Path) -> list[Line]:
    try:
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            raise SubmissionError(f"runs.csv must be a file of at most {MAX_BYTES} bytes, and no link.")
        reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline=""), restval="")
        lines = [{key: value for key, value in line.items() if key is not None} for line in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SubmissionError(
            f"a submission must hold runs.csv, UTF-8; got {type(error).__name__}."
        ) from error
    missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
    if missing or not lines:
        wanted = ", ".join(REQUIRED)
        raise SubmissionError(f"runs.csv must have lines and the columns {wanted}; missing: {missing}.")
    return lines


def _reported(lines: list[Line], known: Iterable[Run]) -> Iterator[_Reported]:
    """The runs of a submission: lines with one name, each with the suite of the store."""
    suites = {(r.spec.protocol, r.spec.dataset, r.spec.normal_class): r.spec.suite for r in known}
    groups: dict[tuple[Any, ...], list[tuple[int, Line]]] = {}
    specs: dict[tuple[Any, ...], RunSpec] = {}
    for number, line in enumerate(lines, 2):
        place = (line["protocol"], line["dataset"], line.get("normal_class", ""))
        if place not in suites:
            raise SubmissionError(
                f"line {number} of runs.csv: the store has no run of {place[1]!r} under {place[0]!r}; "
                "submit results of its protocols and data sets only."
            )
        spec = _spec(number, line, suites[place])
        specs[spec.key] = spec
        groups.setdefault(spec.key, []).append((number, line))
    for key, own in groups.items():
        yield _Reported(own[0][0], specs[key], tuple(line for _, line in own))


def _spec(number: int, line: Line, suite: str) -> RunSpec:
    _require_text(line["detector"], f"line {number} of runs.csv: `detector`")
    try:
        seed, params = int(line["seed"]), json.loads(line.get("params") or "{}")
        if seed < 0 or not isinstance(params, dict):
            raise ValueError("a negative seed" if seed < 0 else "params that are no object")
        canonical(params)
    except (ValueError, RecursionError) as error:
        raise SubmissionError(
            f"line {number} of runs.csv: `seed` must be an integer >= 0 and `params` a JSON object; "
            f"got {error}."
        ) from error
    return RunSpec(
        suite=suite,
        protocol=line["protocol"],
        dataset=line["dataset"],
        normal_class=line.get("normal_class", ""),
        detector=line["detector"],
        params=params,
        seed=seed,
        built=line["detector"],
        build_params=params,
    )


def _require_text(text: str, what: str) -> None:
    if not (0 < len(text) <= 100 and text.isprintable() and text == text.strip()):
        raise SubmissionError(f"{what} must be 1 to 100 printable characters; got {text[:100]!r}.")


def _require_own_name(reported: _Reported, known: Iterable[Run], by: str) -> None:
    name = reported.spec.detector
    if name in DETECTORS or any(r.spec.detector == name and r.reported_by != by for r in known):
        raise reported.refuse(
            f"`detector` must be a name that nobody else has; got {name!r}; add yours to it, '{name} ({by})'."
        )


def _split(reported: _Reported, known: Iterable[Run], source: Source) -> tuple[Split, str]:
    """Test rows of a run as the harness makes them, and the checksum of the data."""
    spec = reported.spec
    try:
        card = DATASETS[spec.dataset]
        data = card.load(source)
        normal_class = card.classes.index(spec.normal_class) if spec.normal_class else None
        split = make_split(
            data, spec.protocol, spec.seed if PROTOCOLS[spec.protocol].seeded else 0, normal_class
        )
    except (DataUnavailableError, DataCorruptError, UndefinedError, LookupError) as error:
        raise reported.refuse(f"the labels of the test rows can not be had: {error}") from error
    ours = {r.data_checksum for r in known if r.spec.dataset == spec.dataset and r.data_checksum}
    if ours and data.checksum not in ours:
        raise reported.refuse(f"{spec.dataset!r} here is not the data set that the store was run on.")
    return split, data.checksum


def _checked(
    reported: _Reported, folder: Path, split: Split, data_checksum: str, by: str
) -> tuple[Run, dict[str, np.ndarray] | None]:
    first = reported.lines[0]
    status = first.get("status") or "ok"
    if status not in STATUSES:
        raise reported.refuse(f"`status` must be one of {', '.join(STATUSES)}; got {status!r}.")
    fields: dict[str, Any] = {
        "fingerprint": reported.spec.fingerprint(data_checksum),
        "spec": reported.spec,
        "status": status,
        "reason": "" if status == "ok" else public_reason(first.get("reason", "")),
        "reported_by": by,
        "n_train": len(split.X_train),
        "n_test": len(split.y_test),
        "n_features": int(np.prod(split.X_train.shape[1:])),
        "n_copies": None if reported.spec.protocol == "unsupervised" else n_copies(split),
        "data_checksum": data_checksum,
        "split_checksum": split.checksum,
    }
    for name in ("fit_seconds", "score_seconds", "peak_mb"):
        fields[name] = _number(first.get(name, ""))
    if status != "ok":
        return Run(**fields), None
    arrays = {"score": _scores(reported, folder, split.y_test), "y": split.y_test}
    metrics = tuple(measure(reported.spec, arrays, None))
    _require_stated(reported, {m.metric: m.value for m in metrics})
    return Run(**fields, metrics=metrics, distinct_scores=len(np.unique(arrays["score"]))), arrays


def _scores(reported: _Reported, folder: Path, y: np.ndarray) -> np.ndarray:
    """The scores of a run, in float64; its labels, where it has any, must be ours."""
    name = next((line["scores"] for line in reported.lines if line["scores"]), "")
    path = folder / "scores" / name
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}\.npz", name) or path.is_symlink():
        raise reported.refuse(
            f"`scores` must name a .npz file in scores/, no path and no link; got {name[:100]!r}."
        )
    if not path.is_file():
        raise reported.refuse(f"`scores` must name a file that is there; got {name!r}.")
    arrays = {}
    try:
        wanted = ("score.npy", "y.npy")
        for member, content in members(
            path, lambda m: m in wanted, max_bytes=16 * len(y) + 4096, max_members=64
        ):
            arrays[member] = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        score = require_scores(_real(arrays["score.npy"]), len(y))
    except KeyError as error:
        raise reported.refuse(f"'{name}' must hold an array `score`.") from error
    except (ScoreError, DataCorruptError, ValueError, EOFError, MemoryError) as error:
        raise reported.refuse(f"'{name}' can not be taken: {public_reason(str(error))}") from error
    if "y.npy" in arrays and not np.array_equal(arrays["y.npy"], y):
        raise reported.refuse(f"`y` of '{name}' must be the labels of our test rows, in their order.")
    return score


def _real(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise ScoreError(f"scores must be real numbers; got dtype {array.dtype}.")
    return array


def _require_stated(reported: _Reported, recomputed: dict[str, float]) -> None:
    stated = {line["metric"]: line["value"] for line in reported.lines if not line.get("radius")}
    if "auroc" not in stated:
        raise reported.refuse("a run must state its metric auroc.")
    for metric in stated.keys() & recomputed.keys():
        value = _number(stated[metric])
        if value is None or abs(value - recomputed[metric]) > TOLERANCE:
            raise reported.refuse(
                f"`value` of {metric} must be what follows from the scores, {recomputed[metric]:.6f}; "
                f"got {stated[metric][:40]!r}."
            )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
