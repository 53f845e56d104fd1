"""What a data set is: a card that costs nothing, and a load that reads or downloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from ocsdf_bench.registry import Registry


class Source(Protocol):
    """Where raw files come from: a local mirror, the cache, or a checked download."""

    def path(self, relative: str, *, url: str | None, sha256: str | None) -> Path:
        """Local path of a raw file whose checksum was verified.

        ``relative`` is its place in the mirror. Raises ``DataUnavailableError`` (a run is then
        skipped with the reason) or ``DataCorruptError`` (wrong checksum, truncated, foreign file).
        """
        ...


class DataUnavailableError(RuntimeError):
    """The file is not in the mirror or the cache and may or can not be downloaded."""


class DataCorruptError(RuntimeError):
    """The file is there and is not what it should be."""


@dataclass(frozen=True)
class Data:
    """Raw rows of a data set.

    X : (n, ...) array, any real dtype. y : (n,) int; 1 = anomaly, 0 = normal; for one-versus-rest sets
    the class index. X_test, y_test : the official test part where there is one. checksum : sha256 over
    the bytes of X and y (and the test part), so that a silent change of data changes the run's identity.
    domain : (low, high) of every feature for images, else None.
    """

    X: np.ndarray
    y: np.ndarray
    checksum: str
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    domain: tuple[float, float] | None = None
    note: str = ""


@dataclass(frozen=True)
class Dataset:
    """Card of a data set. ``load(source)`` is the only thing that costs."""

    name: str
    load: Callable[[Source], Data]
    kind: str  # "table", "toy", "image"
    n_normal: int
    n_anomaly: int
    n_features: int
    source: str  # where it comes from, one line with a citable reference
    licence: str
    needs_download: bool
    family: str = ""  # related sets share one: "breast-cancer-wisconsin"
    classes: tuple[str, ...] = field(default=())  # one-versus-rest: names by class index
    note: str = ""


DATASETS: Registry[Dataset] = Registry("dataset", "ocsdf_bench.datasets")
