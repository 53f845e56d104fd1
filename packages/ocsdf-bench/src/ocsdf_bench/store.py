"""What was run, one JSON line each: append-only, fsynced, chained by hash, written by one process."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ocsdf_bench.metric import Measurement
from ocsdf_bench.suite import RunSpec, canonical

STATUSES = ("ok", "failed", "timeout", "oom", "skipped")


class StoreError(RuntimeError):
    """The store can not be written: another process holds it, or the disk is full."""


class StoreCorruptError(RuntimeError):
    """A row or a scores file is not what was written."""


@dataclass(frozen=True)
class Run:
    """One finished run.

    lipschitz : the proven constant its certified metrics use, None where none is stated. n_anomaly : of the
    n_test rows. n_copies : test rows that also occur in the training part, None where the protocol scores the
    training rows themselves. flags : signs that its scores may not mean what they seem to. reported_by : who
    sent it, "" where it was run here. previous : sha256 of the line before, which makes the rows a chain.
    """

    fingerprint: str
    spec: RunSpec
    status: str
    reason: str = ""
    metrics: tuple[Measurement, ...] = ()
    fit_seconds: float | None = None
    score_seconds: float | None = None
    peak_mb: float | None = None
    n_train: int | None = None
    n_test: int | None = None
    n_features: int | None = None
    n_anomaly: int | None = None
    n_copies: int | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    distinct_scores: int | None = None
    lipschitz: float | None = None
    flags: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    hardware: dict[str, Any] = field(default_factory=dict)
    commit: str = ""
    dirty: bool | None = None
    data_checksum: str = ""
    split_checksum: str = ""
    scores_sha256: str = ""
    reported_by: str = ""
    previous: str = ""

    def to_json(self) -> dict[str, Any]:
        entry = {**asdict(self), "spec": self.spec.to_json()}
        return {**entry, "metrics": [m.to_json() for m in self.metrics]}

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Run:
        metrics = tuple(Measurement.from_json(m) for m in entry["metrics"])
        typed = {"spec": RunSpec.from_json(entry["spec"]), "metrics": metrics}
        return cls(**{**entry, **typed, "flags": tuple(entry.get("flags", ()))})

    @property
    def fit_identity(self) -> str:
        return self.spec.fit_identity(self.data_checksum)


def read_runs(directory: Path) -> list[Run]:
    """The rows that count: of rows with one key the last one, sorted by key (not by when they finished).

    A torn last line (a crash while it was written) is left out.
    """
    lines, _ = read_lines(Path(directory) / "runs.jsonl")
    current = {run.spec.key: run for run in parse_lines(lines)}
    return [current[key] for key in sorted(current)]


def read_scores(directory: Path, run: Run) -> dict[str, np.ndarray]:
    """The arrays stored with ``run``: "score", "y", and per attack its rows and attacked scores.

    Raises FileNotFoundError where the file is not on this machine (scores are not committed), and
    StoreCorruptError where its sha256 is not the one in the row.
    """
    content = _scores_path(Path(directory), run.fingerprint).read_bytes()
    if hashlib.sha256(content).hexdigest() != run.scores_sha256:
        raise StoreCorruptError(f"scores of run {run.fingerprint[:12]} differ from the sha256 in its row.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise StoreCorruptError(f"scores of run {run.fingerprint[:12]} can not be read: {error}.") from error


class Store:
    """The store of one directory, open for writing. Use as a context manager; one process at a time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory, Store(directory) as store:
    ...     len(store.runs)
    0
    """

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.runs: dict[tuple[Any, ...], Run] = {}
        self._previous = ""

    def __enter__(self) -> Store:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.directory / "runs.lock", "w")  # noqa: SIM115 (held until __exit__)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise StoreError(
                f"the store {self.directory} must have one writer; another process is running a suite on it. "
                "Wait until it has finished, or give `--out` another directory."
            ) from error
        path = self.directory / "runs.jsonl"
        lines, whole = read_lines(path)
        if path.exists() and path.stat().st_size > whole:
            warnings.warn(
                f"the last line of {path} was torn by a crash; its run will be repeated.", stacklevel=2
            )
            os.truncate(path, whole)
        self.runs = {run.spec.key: run for run in parse_lines(lines)}
        self._previous = line_hash(lines[-1]) if lines else ""
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()
        self._lock.close()  # which releases the lock

    def append(self, run: Run, scores: dict[str, np.ndarray] | None = None) -> Run:
        """Write ``scores``, then the row; both are on the disk when this returns.

        Where there is no space for the scores the row is written as failed, with the reason.
        """
        if scores is not None:
            try:
                run = replace(run, scores_sha256=_write_scores(self.directory, run.fingerprint, scores))
            except OSError as error:
                reason = f"its scores could not be stored: {os.strerror(error.errno or 0)}"
                run = replace(run, status="failed", reason=reason, metrics=(), scores_sha256="")
        run = replace(run, previous=self._previous)
        line = canonical(run.to_json()).encode()
        start = self._file.tell()
        try:
            written = self._file.write(line + b"\n")
            if written != len(line) + 1:
                raise OSError(28, os.strerror(28))
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), start)
            raise StoreError(
                f"the store {self.directory} can not be written: {os.strerror(error.errno or 0)}. "
                "Make room and give the same command: it goes on where it stopped."
            ) from error
        self._previous = line_hash(line)
        self.runs[run.spec.key] = run
        return run


def read_lines(path: Path) -> tuple[list[bytes], int]:
    """Whole lines of ``path``, and the number of bytes they take."""
    content = path.read_bytes() if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    return content[:whole].split(b"\n")[:-1], whole


def parse_lines(lines: list[bytes]) -> Iterator[Run]:
    """The runs of whole lines; raises StoreCorruptError at the first that is none."""
    for number, line in enumerate(lines):
        try:
            yield Run.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreCorruptError(
                f"row {number + 1} of runs.jsonl is not a run ({type(error).__name__}: {error}); "
                "restore the file from version control."
            ) from error


def line_hash(line: bytes) -> str:
    """Link of the chain: sha256 of a line without its newline."""
    return hashlib.sha256(line).hexdigest()


def _scores_path(directory: Path, fingerprint: str) -> Path:
    return directory / "scores" / f"{fingerprint}.npz"


def _write_scores(directory: Path, fingerprint: str, scores: dict[str, np.ndarray]) -> str:
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {**scores}  # NumPy's types expect a bool among such keywords
    np.savez_compressed(buffer, **arrays)
    path = _scores_path(directory, fingerprint)
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    try:
        with open(partial, "wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)  # in one step: a reader sees the whole file or none
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    return hashlib.sha256(buffer.getbuffer()).hexdigest()
