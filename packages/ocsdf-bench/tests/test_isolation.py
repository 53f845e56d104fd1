import os
import signal
import sys
import time

import psutil
import pytest

from ocsdf_bench import isolation
from ocsdf_bench.isolation import Job, isolate


def _outcomes(*calls, wall=30.0, memory=4000.0, workers=2, fresh=False):
    """Outcome of each (function, arguments), in the order given."""
    found = {}
    for function in dict.fromkeys(call[0] for call in calls):
        made = enumerate(calls)
        jobs = [Job(i, call[1:], wall, memory, fresh=fresh) for i, call in made if call[0] is function]
        found |= {job.key: outcome for job, outcome in isolate(jobs, function, workers=workers, threads=1)}
    return [found[i] for i in range(len(calls))]


def test_values_come_back_from_processes_of_their_own():
    first, second = _outcomes((os.getpid,), (os.getpid,))
    assert first.status == second.status == "ok"
    assert len({first.value, second.value, os.getpid()}) == 3


@pytest.mark.parametrize("fresh", [True, False])
def test_a_fresh_process_is_our_own_child_and_no_fork_of_the_server(fresh):
    (outcome,) = _outcomes((os.getppid,), fresh=fresh)
    assert (outcome.value == os.getpid()) == fresh


def test_an_exception_is_a_failure_with_its_name_and_message():
    (outcome,) = _outcomes((int, "x"))
    assert outcome.status == "failed"
    assert outcome.reason.startswith("ValueError: invalid literal")


@pytest.mark.parametrize(
    ("function", "argument", "words"),
    [
        (signal.raise_signal, signal.SIGSEGV, "SIGSEGV"),
        (signal.raise_signal, signal.SIGKILL, "SIGKILL"),
        (os._exit, 7, "exit code 7"),
        (sys.exit, 3, "exit code 3"),
    ],
)
def test_a_crash_is_a_failure_that_names_its_signal_or_code(function, argument, words):
    (outcome,) = _outcomes((function, argument))
    assert outcome.status == "failed"
    assert words in outcome.reason


def test_a_hang_is_a_timeout_and_the_others_go_on():
    start = time.monotonic()
    slow, quick = _outcomes((time.sleep, 60), (time.sleep, 0), wall=1.0)
    assert slow.status == "timeout"
    assert "1 s" in slow.reason
    assert quick.status == "ok"
    assert time.monotonic() - start < 30


def test_memory_over_the_limit_is_an_oom(monkeypatch):
    monkeypatch.setattr(isolation, "GRACE_SECONDS", 0.3)
    (outcome,) = _outcomes(
        (exec, "import time\nblock = bytearray(b'1') * 400_000_000\ntime.sleep(60)"), memory=300
    )
    assert outcome.status == "oom"
    assert "300 MB" in outcome.reason


def test_a_process_that_ignores_the_question_is_killed(monkeypatch):
    monkeypatch.setattr(isolation, "GRACE_SECONDS", 0.3)
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)"
    (outcome,) = _outcomes((exec, code), wall=0.5)
    assert outcome.status == "timeout"
    assert outcome.seconds < 20


def test_what_a_call_starts_ends_with_it(tmp_path):
    path = tmp_path / "pid"
    code = (
        "import os, pathlib, time\n"
        "pid = os.fork()\n"
        "if pid == 0:\n time.sleep(600)\n"
        f"pathlib.Path({str(path)!r}).write_text(str(pid))\n"
        "os._exit(1)"
    )
    (outcome,) = _outcomes((exec, code))
    assert outcome.status == "failed"
    for _ in range(100):  # the kernel takes its time to carry out a kill
        if not psutil.pid_exists(int(path.read_text())):
            break
        time.sleep(0.1)
    else:
        pytest.fail("the grandchild outlived its run")


def test_closing_the_generator_ends_what_still_runs():
    jobs = [Job(0, (0,), 60, 4000), Job(1, (60,), 60, 4000)]
    outcomes = isolate(jobs, time.sleep, workers=2, threads=1)
    next(outcomes)
    start = time.monotonic()
    outcomes.close()
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("fresh", [True, False])
def test_each_call_has_the_threads_it_was_given(fresh):
    code = "import os; assert os.environ['OMP_NUM_THREADS'] == '1', os.environ['OMP_NUM_THREADS']"
    (outcome,) = _outcomes((exec, code), fresh=fresh)
    assert outcome.reason == ""


def test_the_environment_of_the_caller_is_left_as_it_was():
    before = dict(os.environ)
    _outcomes((os.getpid,))
    assert dict(os.environ) == before
