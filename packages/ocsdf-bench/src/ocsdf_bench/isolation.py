"""Each call in a process of its own, under a wall-time and a memory limit, several at once.

A fork server imports the heavy modules once (TensorFlow is imported there and never initialised, so a
fork of it is safe); each call is a fork of it that starts in milliseconds. A fresh call is a new Python,
which inherits none of these imports.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import connection, forkserver
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.2
GRACE_SECONDS = 5.0  # between asking (SIGTERM) and killing (SIGKILL)
_STARTING = threading.Lock()
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


@dataclass(frozen=True)
class Job:
    """A call to make; ``key`` comes back with the outcome. ``resources`` matter to a cluster only;
    ``fresh`` : in a new Python, before which nothing was imported."""

    key: Any
    arguments: tuple[Any, ...]
    wall_seconds: float
    memory_mb: float
    resources: dict[str, float] = field(default_factory=dict)
    fresh: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a call ended: status "ok" with its value, else "failed", "timeout" or "oom" with a reason."""

    status: str
    value: Any = None
    reason: str = ""
    seconds: float = 0.0
    hardware: dict[str, Any] | None = None  # where it ran, if not on this machine


def isolate(
    jobs: Iterable[Job],
    function: Callable[..., Any],
    *,
    workers: int,
    threads: int,
    preload: Iterable[str] = (),
) -> Generator[tuple[Job, Outcome], None, None]:
    """Call ``function(*job.arguments)`` for each job, ``workers`` at once; outcomes as they come.

    ``function`` and the arguments travel to the process, so the function must be importable. Closing the
    generator (or Ctrl-C) ends every process that is still running.
    """
    pending, active = deque(jobs), list[_Process]()
    if not pending:
        return
    with tempfile.TemporaryDirectory() as logs:
        _start_fork_server(preload, threads, Path(logs))
        try:
            while pending or active:
                while pending and len(active) < workers:
                    active.append(_Process(pending.popleft(), function, threads, Path(logs)))
                connection.wait([p.results for p in active], timeout=POLL_SECONDS)
                for process in list(active):
                    outcome = process.poll()
                    if outcome is not None:
                        active.remove(process)
                        yield process.job, outcome
        finally:
            for process in active:
                process.end()


def _start_fork_server(preload: Iterable[str], threads: int, logs: Path) -> None:
    """Start the server, with one thread setting for all numerical libraries it imports.

    What those print while they are imported (TensorFlow is loud) goes to a file: it is no news.
    """
    names = [name for name in dict.fromkeys(preload) if _installed(name)]
    with _environment(threads):
        saved = os.dup(2)
        try:
            with (logs / "server").open("wb") as log:
                os.dup2(log.fileno(), 2)
            multiprocessing.get_context("forkserver").set_forkserver_preload(names)
            forkserver.ensure_running()
        finally:
            os.dup2(saved, 2)
            os.close(saved)


@contextlib.contextmanager
def _environment(threads: int) -> Iterator[None]:
    """What a process that starts inherits; threads of a cluster's worker share it, so one at a time."""
    settings = {**dict.fromkeys(THREAD_VARIABLES, str(threads)), "TF_CPP_MIN_LOG_LEVEL": "3"}
    with _STARTING:
        before = dict(os.environ)
        os.environ.update(settings)
        try:
            yield
        finally:
            for name in settings:
                os.environ.pop(name, None)
                if name in before:
                    os.environ[name] = before[name]


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name.partition(".")[0]) is not None  # the parent only: no import


@dataclass
class _Process:
    """One running call."""

    job: Job
    function: Callable[..., Any]
    threads: int
    logs: Path
    asked: str = ""  # the status it will have because a limit was passed
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        context: SpawnContext | ForkServerContext = (
            multiprocessing.get_context("spawn")
            if self.job.fresh
            else multiprocessing.get_context("forkserver")
        )
        self.results, sender = context.Pipe(duplex=False)
        descriptor, name = tempfile.mkstemp(dir=self.logs)
        os.close(descriptor)
        self.log = Path(name)
        self.process = context.Process(
            target=_main, args=(self.function, self.job.arguments, sender, name, self.threads)
        )
        with _environment(self.threads):
            self.process.start()
        sender.close()  # so that the end of the process is the end of the pipe
        self.start = time.monotonic()
        self.deadline = self.start + self.job.wall_seconds

    def poll(self) -> Outcome | None:
        """The outcome, or None while it runs inside its limits."""
        ended = not self.process.is_alive()  # asked first: it may send its result and end in between
        if self.results.poll() or ended:
            return self._finished()
        now = time.monotonic()
        if not self.asked:
            if now > self.deadline:
                self._ask("timeout", now)
            elif _tree_mb(self.process.pid) > self.job.memory_mb:
                self._ask("oom", now)
        elif now > self.deadline:
            self._signal(signal.SIGKILL)
        return None

    def end(self) -> None:
        self._signal(signal.SIGKILL)
        self.process.join()
        self.results.close()

    def _ask(self, status: str, now: float) -> None:
        self.asked, self.deadline = status, now + GRACE_SECONDS
        self._signal(signal.SIGTERM)

    def _finished(self) -> Outcome:
        status, value, reason = "failed", None, ""
        with contextlib.suppress(EOFError, OSError):
            if self.results.poll():
                status, value, reason = self.results.recv()
        if status == "failed" and not reason:
            self.process.join(1.0)  # its own exit code, before the kill below gives it another
        self.end()
        seconds = time.monotonic() - self.start
        if self.asked == "timeout":
            return Outcome("timeout", None, f"over the limit of {self.job.wall_seconds:g} s", seconds)
        if self.asked == "oom":
            return Outcome("oom", None, f"over the limit of {self.job.memory_mb:g} MB", seconds)
        if status == "failed" and not reason:
            reason = self._crash()
        return Outcome(status, value, reason, seconds)

    def _crash(self) -> str:
        code = self.process.exitcode or 0
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"the process was ended by {signal.Signals(-code).name}{self._last_words()}"
        return f"the process ended with exit code {code} before it gave a result{self._last_words()}"

    def _last_words(self) -> str:
        """The last line of Python that faulthandler wrote, or the last line of output."""
        lines = [x.strip() for x in self.log.read_text(errors="replace").splitlines() if x.strip()]
        at = next((x for x in lines if x.startswith("File ")), lines[-1] if lines else "")
        return f": {at}" if at else ""

    def _signal(self, number: int) -> None:
        """To the process and all it started: it leads a group of its own."""
        pid = self.process.pid
        if pid is None:
            return
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):  # it has not made its group yet, or has ended
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _tree_mb(pid: int | None) -> float:
    """Resident memory of a process and its descendants."""
    import psutil

    total = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += member.memory_info().rss
    return total / 2**20


def _main(
    function: Callable[..., Any], arguments: tuple[Any, ...], sender: Any, log: str, threads: int
) -> None:
    """What the process does: call, send one result, end without waiting for anybody's threads."""
    _prepare(log, threads)
    try:
        result = ("ok", function(*arguments), "")
    except MemoryError as error:
        result = ("oom", None, f"MemoryError: {error}")
    except Exception as error:  # whatever a detector raises is a row, not the end of the suite
        result = ("failed", None, f"{type(error).__name__}: {error}")
    sender.send(result)
    sender.close()
    os._exit(0)


def _prepare(log: str, threads: int) -> None:
    os.setpgid(0, 0)  # Ctrl-C in the terminal reaches the suite only, which then ends this group
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.enable(file=2, all_threads=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(OSError):  # where the kernel must kill, let it be this process
        Path("/proc/self/oom_score_adj").write_text("1000")
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)
