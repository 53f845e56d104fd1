"""Plug-ins in single files: ``--plugin path.py``."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path


class PluginError(RuntimeError):
    """A plug-in file that can not be imported."""


def load_plugins(paths: Iterable[str | Path]) -> None:
    """Import each file once; it registers what it adds: ``DETECTORS.add(...)``.

    Raises PluginError with the file and what it raised.
    """
    for path in map(Path, paths):
        name = (
            f"ocsdf_bench_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
        )
        if name in sys.modules:
            continue
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise PluginError(f"`--plugin` must be a Python file, name.py; got '{path}'.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            raise PluginError(
                f"plug-in '{path}' can not be imported: {type(error).__name__}: {error}."
            ) from error
