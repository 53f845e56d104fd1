"""Where a number comes from: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "ocsdf-core", "ocsdf-bench", "numpy", "scipy", "scikit-learn", "tensorflow", "pyod", "foolbox", "torch",
)  # fmt: skip


@cache
def versions() -> dict[str, str]:
    """Python's version and that of each installed package a result can depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def hardware(threads: int) -> dict[str, Any]:
    """Machine, cores, memory in GB and the threads a run may use."""
    import psutil

    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads,
    }


@cache
def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def git_state(exclude: Path) -> tuple[str, bool | None]:
    """(commit, dirty) of the working directory; ("", None) outside a repository. Changes under
    ``exclude`` (the store, which grows while a suite runs) do not count.
    """
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return "", None
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){exclude}")
    if changed is None:  # `exclude` lies outside the repository
        changed = _git("status", "--porcelain", "--untracked-files=no")
    return commit, bool(changed)


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
