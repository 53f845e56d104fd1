"""The 20 ODDS sets of the OCSDF paper, and ADBench's versions where a file of one name differs.

Names are the paper's in lower case. Files are ADBench's packaging (.npz) where it equals the ODDS set, and
the ODDS original (.mat) where it does not: glass, ionosphere and wbc have other features or rows there.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np

from ocsdf_bench.dataset import DATASETS, Data, DataCorruptError, Dataset, Source
from ocsdf_bench.source import Verify, digest_is

_ADBENCH = (
    "https://raw.githubusercontent.com/Minqi824/ADBench/3dac8221081e190f157d78e93bfa8867f90d0965"
    "/adbench/datasets/Classical/"
)
_PYOD = (
    "https://raw.githubusercontent.com/yzhao062/pyod/34f7996effac700a5166d882d5e94c6e6078fae3/notebooks/data/"
)
_ODDS = "ODDS (Rayana, 2016, odds.cs.stonybrook.edu)"
_ODDS_BY_ADBENCH = "ODDS (Rayana, 2016) as packaged by ADBench (Han et al., NeurIPS 2022)"
_LICENCE_UCI = "not stated by ODDS; derived from UCI data, for which UCI states CC BY 4.0"
_LICENCE_UNKNOWN = "not stated by ODDS"


def read_table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d) as stored and y (n,) int64 of an ADBench .npz or an ODDS .mat (version 5).

    Raises
    ------
    DataCorruptError
        Not such a file, or without numeric arrays ``X`` and ``y`` of one length.
    """
    try:
        X, y = _read_mat(path) if path.suffix == ".mat" else _read_npz(path)
    except Exception as error:  # the two readers raise a dozen kinds on foreign bytes
        kind = "a MATLAB 5 file" if path.suffix == ".mat" else "a .npz file"
        raise DataCorruptError(f"data file '{path}' must be {kind} with X and y; got {error!r}.") from error
    if X.ndim != 2 or y.size != len(X) or X.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        raise DataCorruptError(
            f"data file '{path}' must hold numeric X (n, d) and y (n,); "
            f"got X {X.shape} {X.dtype} and y {y.shape} {y.dtype}."
        )
    return X, y.reshape(-1).astype(np.int64)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"]


def _read_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import loadmat

    arrays = loadmat(path, variable_names=["X", "y"])
    return arrays["X"], arrays["y"]


def load_table(row: Mapping[str, str], source: Source) -> Data:
    """Rows of one set (a line of odds.csv), checked against the counts that the paper prints.

    An empty ``digest``: none is published; the commit in the file's address knows it, else a file with the
    right counts is pinned at first sight (see ``Source.path``).
    """
    algorithm, _, digest = row["digest"].partition(":")
    checks: dict[str, Verify | None] = {
        "sha256": None,
        "git": digest_is(algorithm, digest),
        "": partial(_counted, row),
    }
    path = source.path(
        f"odds/{row['file']}",
        url=(_PYOD if row["file"].endswith(".mat") else _ADBENCH) + row["file"],
        sha256=digest if algorithm == "sha256" else None,
        verify=checks[algorithm],
        pin=not digest,
    )
    return Data.of(*_counted(row, path))


def _counted(row: Mapping[str, str], path: Path) -> tuple[np.ndarray, np.ndarray]:
    X, y = read_table(path)
    expected = tuple(int(row[key]) for key in ("n_normal", "n_anomaly", "n_features"))
    got = (int((y == 0).sum()), int((y == 1).sum()), X.shape[1])
    if got != expected or len(y) != got[0] + got[1] or not np.isfinite(X).all():
        raise DataCorruptError(
            f"data set '{row['name']}' must have {expected} normals, anomalies and features, all finite; "
            f"got {got} in '{path}'."
        )
    return X, y


def _dataset(row: Mapping[str, str]) -> Dataset:
    odds = row["file"].endswith(".mat")
    return Dataset(
        name=row["name"],
        load=partial(load_table, row),
        kind="table",
        n_normal=int(row["n_normal"]),
        n_anomaly=int(row["n_anomaly"]),
        n_features=int(row["n_features"]),
        source=f"{row['origin']}; {_ODDS if odds else _ODDS_BY_ADBENCH}; {row['file']}",
        licence=_LICENCE_UCI if row["origin"].startswith("UCI") else _LICENCE_UNKNOWN,
        needs_download=True,
        family=row["family"],
        note=row["note"],
    )


with (resources.files("ocsdf_bench.datasets") / "odds.csv").open(encoding="utf-8") as _table:
    for _row in csv.DictReader(_table):
        DATASETS.add(_dataset(_row))
