"""What a data set is: a card that costs nothing, and a load that reads or downloads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from ocsdf_bench.registry import Registry


class Source(Protocol):
    """Where raw files come from: a local mirror, the cache, or a checked download."""

    def path(
        self,
        relative: str,
        *,
        url: str | None,
        sha256: str | None,
        verify: Callable[[Path], object] | None = None,
        pin: bool = False,
    ) -> Path:
        """Local path of a raw file whose checksum was verified.

        ``relative`` is its place in the mirror. ``verify(path)`` is for files known by something else than
        their sha256 (the decompressed bytes, a git blob, the counts): it raises ``DataCorruptError``. ``pin``
        is for files whose publisher states no checksum. Where ``url`` names a git commit, the file must have
        the id that the commit gives it; where it names none, or the commit can not be asked (then with a
        warning), what passes ``verify`` at first sight has its sha256 kept, and every later file must have
        it. Raises ``DataUnavailableError`` (a run is then skipped with the reason) or ``DataCorruptError``
        (wrong checksum, truncated, foreign file).
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
    domain : (low, high) of every feature for images, else None. channels : mean and deviation of each
    channel, where the detector is to see images centred and reduced by them (see ``Standardised``).
    """

    X: np.ndarray
    y: np.ndarray
    checksum: str
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    domain: tuple[float, float] | None = None
    note: str = ""
    channels: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        X_test: np.ndarray | None = None,
        y_test: np.ndarray | None = None,
        *,
        domain: tuple[float, float] | None = None,
        note: str = "",
        channels: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    ) -> Data:
        """The rows with their checksum."""
        test = () if X_test is None or y_test is None else (X_test, y_test)
        seen = () if channels is None else (np.array(channels),)
        return cls(X, y, checksum(X, y, *test, *seen), X_test, y_test, domain, note, channels)


def checksum(*arrays: np.ndarray) -> str:
    """sha256 (hex) over dtype, shape and bytes of each array, independent of memory order.

    >>> checksum(np.zeros((2, 1))) == checksum(np.zeros((1, 2)))
    False
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Dataset:
    """Card of a data set. ``load(source)`` is the only thing that costs.

    n_normal, n_anomaly : counts of the complete set. Of a one-versus-rest set, whose anomalies depend on
    the class chosen as normal, n_normal counts every image (training and test) and n_anomaly is 0.
    """

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
