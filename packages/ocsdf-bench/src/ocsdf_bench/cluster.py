"""The same runs on a Dask cluster. Each is still a process of its own, on the machine of its worker."""

from __future__ import annotations

import contextlib
import multiprocessing
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ocsdf_bench.isolation import Job, Outcome, isolate
from ocsdf_bench.provenance import hardware, versions

WAITING_PER_THREAD = 4  # runs sent ahead; the scheduler never holds a suite of a million

CONNECT_SECONDS = 20
WORKER_SECONDS = 300  # for the first worker: a job may have to wait in its queue


class ClusterError(RuntimeError):
    """A cluster that can not be reached or that would give other results."""


def on_cluster(
    jobs: Iterable[Job],
    function: Callable[..., Any],
    *,
    address: str,
    threads: int,
    prepare: Callable[[], Any] | None = None,
    preload: Iterable[str] = (),
) -> Generator[tuple[Job, Outcome], None, None]:
    """As ``isolate``, on the workers of ``address`` ("tcp://host:port", or "slurm").

    ``prepare`` is called once on each host before the first run (data are fetched there once). A job's
    ``resources`` ({"GPU": 1}) name the workers that may run it. The runs of a lost worker go to another one.
    """
    waiting = iter(list(jobs))
    with _client(address) as client:
        _require_same_versions(client)
        if prepare is not None:
            client.run(prepare, workers=_one_per_host(client))
        capacity = WAITING_PER_THREAD * max(1, sum(client.nthreads().values()))
        yield from _in_turn(client, waiting, function, threads, tuple(preload), capacity)


def _in_turn(
    client: Any,
    waiting: Iterator[Job],
    function: Callable[..., Any],
    threads: int,
    preload: tuple[str, ...],
    capacity: int,
) -> Generator[tuple[Job, Outcome], None, None]:
    from distributed import as_completed

    sent: dict[Any, Job] = {}

    def send(n: int) -> list[Any]:
        futures = []
        for _, job in zip(range(n), waiting, strict=False):
            future = client.submit(
                _one, job, function, threads, preload, pure=False, resources=job.resources or None
            )
            sent[future] = job
            futures.append(future)
        return futures

    done = as_completed(send(capacity))
    for future in done:
        job = sent.pop(future)
        try:
            outcome = future.result()
        except Exception as error:  # KilledWorker: it was lost as often as the cluster allows
            outcome = Outcome("failed", None, f"the cluster gave it up: {type(error).__name__}: {error}")
        for fresh in send(1):
            done.add(fresh)
        yield job, outcome


def _one(job: Job, function: Callable[..., Any], threads: int, preload: tuple[str, ...]) -> Outcome:
    """On a worker: the run in a process of its own, and the machine it ran on."""
    # Dask marks its workers as daemons, which may have no children, so that none outlives them; ours end
    # with their parent by themselves.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    with contextlib.closing(
        isolate([job], function, workers=1, threads=threads, preload=preload)
    ) as outcomes:
        _, outcome = next(outcomes)
    return replace(outcome, hardware=hardware(threads))


@contextlib.contextmanager
def _client(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError("`--dask` needs the extra: python -m pip install 'ocsdf-bench[dask]'.") from error
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(_slurm()) if address == "slurm" else address
        try:
            client = stack.enter_context(Client(target, timeout=CONNECT_SECONDS))
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"`--dask` must be slurm or the address of a running scheduler, tcp://host:port; got "
                f"{address!r} ({type(error).__name__})."
            ) from error
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError as error:
            raise ClusterError(
                f"`--dask` {address} must have a worker within {WORKER_SECONDS} s; got none: start one, or "
                f"ask its queue why the job waits."
            ) from error
        yield client


def _slurm() -> Any:
    """A cluster of Slurm jobs as dask-jobqueue's own configuration file describes them."""
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise ClusterError(
            "`--dask slurm` needs the extra: python -m pip install 'ocsdf-bench[slurm]'."
        ) from error
    if shutil.which("sbatch") is None:
        raise ClusterError(
            "`--dask slurm` must be given where jobs are submitted; this machine has no `sbatch`: log in to "
            "the cluster's head node."
        )
    try:
        cluster = SLURMCluster()
    except ValueError as error:
        raise ClusterError(
            f"`--dask slurm` needs `cores` and `memory` of a job under `jobqueue: slurm:` in "
            f"~/.config/dask/jobqueue.yaml; dask-jobqueue says: {str(error).splitlines()[0]}"
        ) from error
    cluster.adapt(minimum_jobs=1, maximum_jobs=64)
    return cluster


def _one_per_host(client: Any) -> list[str]:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return list({worker["host"]: address for address, worker in workers.items()}.values())


def _require_same_versions(client: Any) -> None:
    own = versions()
    for worker, other in client.run(versions).items():
        differ = {name for name in own.keys() | other.keys() if own.get(name) != other.get(name)}
        if differ:
            name = min(differ)
            raise ClusterError(
                f"the workers must have this machine's packages, or results differ; {worker} has {name} "
                f"{other.get(name)} and not {own.get(name)}."
            )
