"""A suite into a store: skip what is there, run the rest in isolation, write each outcome down."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ocsdf_bench.attack import ATTACKS
from ocsdf_bench.cluster import on_cluster
from ocsdf_bench.dataset import DATASETS, DataCorruptError, DataUnavailableError, Source
from ocsdf_bench.detector import DETECTORS
from ocsdf_bench.execution import Execution, execute, public_reason
from ocsdf_bench.isolation import Job, Outcome, isolate
from ocsdf_bench.measure import bounds_suffice, measure
from ocsdf_bench.plugin import load_plugins
from ocsdf_bench.provenance import git_state, hardware, versions
from ocsdf_bench.registry import Registry
from ocsdf_bench.store import Run, Store, StoreCorruptError, read_scores
from ocsdf_bench.suite import Choice, RunSpec, Suite

# What every run imports: in the fork server once, and not in each run.
PRELOAD = (
    "numpy",
    "sklearn.metrics",
    "sklearn.preprocessing",
    "ocsdf",
    "ocsdf_bench.execution",
    "ocsdf_bench.cli",
)

OnRun = Callable[[Run], None]


@dataclass
class Summary:
    """What ``run_suite`` did. ``interrupted``: it was asked to stop; the same call goes on."""

    done: int = 0
    skipped: int = 0  # already in the store
    statuses: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False


def default_workers() -> int:
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def run_suite(
    suite: Suite,
    directory: Path,
    source: Source,
    *,
    workers: int | None = None,
    retry: Iterable[str] = (),
    plugins: Iterable[str | Path] = (),
    dask: str = "",
    on_run: OnRun = lambda run: None,
) -> Summary:
    """Run what the store in ``directory`` lacks, each run in a process of its own.

    Parameters
    ----------
    suite : Suite
        From ``read_suite``.
    directory : Path
        Holds runs.jsonl and scores/; made if absent.
    source : Source
        Where raw data come from.
    workers : int, optional
        Runs at once, default one a core; the cores are shared evenly, as threads of each run.
    retry : iterable of str
        Statuses to run again: "failed", "timeout", "oom", "skipped".
    plugins : iterable of paths
        Python files each process imports first.
    dask : str
        Address of a Dask scheduler, or "slurm": run there and not on this machine.
    on_run : callable
        Called with each new row.

    Raises
    ------
    StoreError
        Where another process writes the store, or its disk is full.
    """
    workers = workers or default_workers()
    with Store(directory) as store, _stop_on_sigterm():
        session = _Session(
            store=store,
            source=source,
            retry=frozenset(retry),
            plugins=tuple(str(Path(p).resolve()) for p in plugins),
            workers=workers,
            threads=max(1, default_workers() // workers),
            dask=dask,
            on_run=on_run,
        )
        load_plugins(session.plugins)
        try:
            session.read_data(suite.datasets())
            session.run(suite.runs)
            finals = [final for choice in suite.choices for final in session.choose(choice)]
            session.run(finals)
        except KeyboardInterrupt:
            session.summary.interrupted = True
    return session.summary


@dataclass
class _Session:
    """One call of ``run_suite``."""

    store: Store
    source: Source
    retry: frozenset[str]
    plugins: tuple[str, ...]
    workers: int
    threads: int
    dask: str
    on_run: OnRun
    summary: Summary = field(default_factory=Summary)
    checksums: dict[str, str] = field(default_factory=dict)
    unread: dict[str, tuple[str, str]] = field(default_factory=dict)  # data set -> (status, reason)

    def __post_init__(self) -> None:
        self.fits = {run.fit_identity: run for run in self.store.runs.values() if run.status == "ok"}
        commit, dirty = git_state(self.store.directory.resolve())
        self.provenance: dict[str, Any] = {
            "versions": versions(),
            "hardware": hardware(self.threads),
            "commit": commit,
            "dirty": dirty,
        }

    def read_data(self, names: Iterable[str]) -> None:
        """Each data set once, before the first fit: for its checksum, and to download what is absent."""
        for name in names:
            try:
                self.checksums[name] = DATASETS[name].load(self.source).checksum
            except DataUnavailableError as error:
                self.unread[name] = ("skipped", public_reason(str(error)))
            except DataCorruptError as error:
                self.unread[name] = ("failed", public_reason(str(error)))
            except Exception as error:  # a loader of a third party: its runs fail, the suite goes on
                self.unread[name] = ("failed", public_reason(f"load: {type(error).__name__}: {error}"))

    def run(self, specs: Iterable[RunSpec]) -> None:
        waiting = [spec for spec in specs if not self._is_done(spec)]
        jobs, twins = [], list[RunSpec]()
        fits = set[str]()
        for spec in waiting:
            if spec.dataset in self.unread:
                self._append_unread(spec)
                continue
            identity = spec.fit_identity(self.checksums[spec.dataset])
            if identity in fits or self._append_known(spec):
                twins += [spec] if identity in fits else []
                continue
            fits.add(identity)
            arguments = (spec, self.checksums[spec.dataset], self.source, self.plugins)
            fresh = DETECTORS[spec.built].fresh
            jobs.append(Job(spec, arguments, spec.wall_seconds, spec.memory_mb, spec.resources, fresh))
        with closing(self._isolate(jobs)) as outcomes:  # an interrupt ends the processes at once
            for job, outcome in outcomes:
                self._append_outcome(job.key, outcome)
        if twins:
            self.run([spec for spec in twins if not self._append_known(spec)])

    def choose(self, choice: Choice) -> tuple[RunSpec, ...]:
        """The runs of the candidate with the best AUROC (the first of equals); none where none is ok."""
        scored = []
        for spec in choice.candidates:
            run = self.store.runs.get(spec.key)
            if run is not None and run.status == "ok":
                scored.append((_auroc(run), spec))
        if scored:
            return choice.finals(max(scored, key=lambda pair: pair[0])[1])
        for spec in choice.finals(choice.candidates[0]):
            if not self._is_done(spec):
                first = self.store.runs.get(choice.candidates[0].key)
                status = first.status if first else "failed"
                reason = first.reason if first else "it did not run"
                self._append(spec, status=status, reason=f"no candidate gave a result: {reason}")
        return ()

    def _isolate(self, jobs: list[Job]) -> Generator[tuple[Job, Outcome], None, None]:
        preload = [*PRELOAD, *_plugin_modules(), *_heavy_modules(job.key for job in jobs if not job.fresh)]
        if not self.dask or not jobs:
            return isolate(jobs, execute, workers=self.workers, threads=self.threads, preload=preload)
        names = tuple(dict.fromkeys(job.key.dataset for job in jobs))
        fetch = partial(fetch_data, names, self.source, self.plugins)
        return on_cluster(
            jobs, execute, address=self.dask, threads=self.threads, prepare=fetch, preload=preload
        )

    def _is_done(self, spec: RunSpec) -> bool:
        run = self.store.runs.get(spec.key)
        if run is None or run.status in self.retry:
            return False
        if spec.dataset in self.unread and run.status == "ok":  # it was run where the data are
            done = spec.fingerprint(run.data_checksum) == run.fingerprint
        else:
            done = spec.fingerprint(self.checksums.get(spec.dataset, "")) == run.fingerprint
        self.summary.skipped += done
        return done

    def _append_known(self, spec: RunSpec) -> bool:
        """Write ``spec`` from the stored scores of a run with the same fit, where there is one."""
        run = self.fits.get(spec.fit_identity(self.checksums[spec.dataset]))
        if run is None:
            return False
        try:
            arrays = read_scores(self.store.directory, run)
        except (FileNotFoundError, StoreCorruptError):
            return False
        if not bounds_suffice(spec, arrays):
            return False
        fresh = replace(
            run,
            spec=spec,
            fingerprint=spec.fingerprint(run.data_checksum),
            metrics=tuple(measure(spec, arrays, run.lipschitz)),
            budget=_with_choice(spec, run.budget),
        )
        self._count(self.store.append(fresh, arrays))
        return True

    def _append_outcome(self, spec: RunSpec, outcome: Outcome) -> None:
        where = {} if outcome.hardware is None else {"hardware": outcome.hardware}
        if outcome.status != "ok":
            self._append(spec, status=outcome.status, reason=public_reason(outcome.reason), **where)
            return
        found: Execution = outcome.value
        fields = {**found.fields, **where, "budget": _with_choice(spec, found.fields.get("budget", {}))}
        self._append(
            spec, found.arrays, status=found.status, reason=found.reason, metrics=found.metrics, **fields
        )

    def _append_unread(self, spec: RunSpec) -> None:
        status, reason = self.unread[spec.dataset]
        run = self.store.runs.get(spec.key)
        if run is None or run.status != "ok":
            self._append(spec, status=status, reason=reason)

    def _append(self, spec: RunSpec, arrays: Any = None, **fields: Any) -> None:
        checksum = self.checksums.get(spec.dataset, "")
        run = Run(
            fingerprint=spec.fingerprint(checksum), spec=spec, data_checksum=checksum,
            **{**self.provenance, **fields},
        )  # fmt: skip
        self._count(self.store.append(run, arrays))

    def _count(self, run: Run) -> None:
        if run.status == "ok":
            self.fits[run.fit_identity] = run
        self.summary.done += 1
        self.summary.statuses[run.status] = self.summary.statuses.get(run.status, 0) + 1
        self.on_run(run)


def fetch_data(names: Iterable[str], source: Source, plugins: tuple[str, ...]) -> None:
    """On a host of a cluster: have the data there before several runs ask for them at once."""
    load_plugins(plugins)
    for name in names:
        with suppress(DataUnavailableError, DataCorruptError):  # each run will say so itself
            DATASETS[name].load(source)


def _with_choice(spec: RunSpec, budget: dict[str, Any]) -> dict[str, Any]:
    """Say in the budget which value was chosen with labels."""
    chosen = {k: v for k, v in spec.build_params.items() if spec.params.get(k) != v}
    rest = {k: v for k, v in budget.items() if k != "chosen"}
    return {**rest, "chosen": chosen} if chosen else rest


def _auroc(run: Run) -> float:
    return next(m.value for m in run.metrics if m.metric == "auroc" and m.n_test is None)


def _heavy_modules(specs: Iterable[RunSpec]) -> list[str]:
    """What the detectors and attacks still to run ask the fork server to import."""
    names: dict[str, None] = {}
    for spec in specs:
        names |= dict.fromkeys(DETECTORS[spec.built].preload)
        for attack in spec.attacks:
            names |= dict.fromkeys(ATTACKS[attack.name].preload)
    return list(names)


def _plugin_modules() -> list[str]:
    registries: tuple[Registry[Any], ...] = (DATASETS, DETECTORS, ATTACKS)
    return [name for registry in registries for name in registry.modules()]


@contextmanager
def _stop_on_sigterm() -> Iterator[None]:
    """A cancelled CI job sends SIGTERM: stop as for Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
