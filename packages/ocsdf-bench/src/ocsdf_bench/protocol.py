"""How rows become a training and a test part. A split has no training labels: a detector cannot see any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from ocsdf_bench.dataset import Data, checksum

ADBENCH_MIN_ROWS = 1_000
ADBENCH_MAX_ROWS = 10_000


class UndefinedError(ValueError):
    """The protocol has no answer on this data set; the run is skipped with the reason."""


@dataclass(frozen=True)
class Split:
    """Rows as the detector sees them: scaled on the training part (standardised; min-max for adbench; images
    as their data set prepared them).

    X_train (n_train, ...), X_test (n_test, ...), float64; y_test (n_test,), 1 = anomaly; checksum: sha256
    over all three, the identity two stores must share to be compared.
    """

    X_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    checksum: str
    scaling: str  # "standard", "min-max", "none"
    domain: tuple[float, float] | None = None


@dataclass(frozen=True)
class Protocol:
    """Card of a protocol. ``seeded``: the rows depend on the seed, so that a deterministic detector
    must run every seed too. ``by_class``: labels are class indices and one class is the normal one.
    """

    name: str
    rows: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
    scaling: str
    seeded: bool
    by_class: bool = False


def make_split(data: Data, protocol: str, seed: int, normal_class: int | None = None) -> Split:
    """Training and test rows of ``protocol``, scaled on the training rows.

    Parameters
    ----------
    data : Data
        Rows as loaded. Where ``data.domain`` is set (images) the features are left as they are.
    protocol : str
        A key of ``PROTOCOLS``: "unsupervised" (fit on all rows, score the same rows), "one-class" (fit on
        half of the normals, score the rest), "one-versus-rest" (fit on one class of the training part,
        score the test part), "adbench" and "adbench-clean" (70 % / 30 %, with and without ADBench's copies).
    seed : int
        Seed of the split.
    normal_class : int, optional
        Class index that counts as normal; for "one-versus-rest" only.

    Raises
    ------
    UndefinedError
        Where the training part is empty or the test part lacks one of the two classes.

    Examples
    --------
    >>> import numpy as np
    >>> data = Data(X=np.array([[0.0], [2.0], [9.0]]), y=np.array([0, 0, 1]), checksum="")
    >>> split = make_split(data, "unsupervised", seed=0)
    >>> split.X_train.shape, split.y_test.tolist(), split.scaling
    ((3, 1), [0, 0, 1], 'standard')
    """
    card = PROTOCOLS[protocol]
    if card.by_class:
        X_train, X_test, y_test = card.rows(data, seed, normal_class)
    else:
        if not np.isin(data.y, (0, 1)).all():
            raise UndefinedError(f"protocol {protocol!r} needs labels 0 and 1; this data set has classes.")
        X_train, X_test, y_test = card.rows(data, seed)
    _require_defined(X_train, y_test)
    scaling = "none" if data.domain is not None else card.scaling
    X_train, X_test = _scaled(X_train, X_test, scaling)
    y_test = y_test.astype(np.int8)
    return Split(X_train, X_test, y_test, checksum(X_train, X_test, y_test), scaling, data.domain)


def n_copies(split: Split) -> int:
    """How many test rows also occur in the training part, bit for bit as the detector sees them.

    Examples
    --------
    >>> import numpy as np
    >>> data = Data(X=np.arange(40.0).reshape(20, 2), y=np.arange(20) // 10, checksum="")
    >>> n_copies(make_split(data, "adbench-clean", seed=0)), n_copies(make_split(data, "adbench", seed=0))
    (0, 300)
    """
    known = {_row_id(row) for row in split.X_train}
    return sum(_row_id(row) in known for row in split.X_test)


def _row_id(row: np.ndarray) -> bytes:
    return blake2b((row + 0.0).tobytes(), digest_size=16).digest()  # + 0.0: minus zero is zero


def _unsupervised(data: Data, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return data.X, data.X, data.y


def _one_class(data: Data, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    normals = np.random.default_rng(seed).permutation(np.flatnonzero(data.y == 0))
    train = np.sort(normals[: len(normals) // 2])
    test = np.setdiff1d(np.arange(len(data.y)), train)
    return data.X[train], data.X[test], data.y[test]


def _one_versus_rest(
    data: Data, seed: int, normal_class: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if normal_class is None:
        raise ValueError("`normal_class` of make_split must be a class index for one-versus-rest; got None.")
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    if X_test is None or y_test is None:
        train, test = _stratified(y, 0.5, seed)
        X, y, X_test, y_test = data.X[train], y[train], data.X[test], y[test]
    return X[y == normal_class], X_test, (y_test != normal_class).astype(np.int8)


def _adbench(data: Data, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ADBench's own order: small sets are bootstrapped to 1,000 rows *before* the split, so that most test
    rows are copies of training rows (Han et al., NeurIPS 2022, and their data generator).
    """
    rows, n = np.random.RandomState(seed), len(data.y)  # noqa: NPY002 (their generator, to match their rows)
    picked = rows.choice(n, ADBENCH_MIN_ROWS, replace=True) if n < ADBENCH_MIN_ROWS else np.arange(n)
    if n > ADBENCH_MAX_ROWS:
        picked = rows.choice(n, ADBENCH_MAX_ROWS, replace=False)
    return _seventy_thirty(data.X[picked], data.y[picked], seed)


def _adbench_clean(data: Data, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if len(data.y) > ADBENCH_MAX_ROWS:
        return _adbench(data, seed)
    return _seventy_thirty(data.X, data.y, seed)


def _seventy_thirty(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    train, test = _stratified(y, 0.3, seed)
    return X[train], X[test], y[test]


def _stratified(y: np.ndarray, test_size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import train_test_split

    if np.unique(y, return_counts=True)[1].min() < 2:
        raise UndefinedError("a class has a single row, which can not be in both parts of a split.")
    train, test = train_test_split(np.arange(len(y)), test_size=test_size, stratify=y, random_state=seed)
    return train, test


def _require_defined(X_train: np.ndarray, y_test: np.ndarray) -> None:
    if len(X_train) < 2:
        raise UndefinedError(f"the training part has {len(X_train)} rows; at least 2 are needed.")
    for label, name in ((0, "normal"), (1, "anomaly")):
        if not (y_test == label).any():
            raise UndefinedError(f"the test part has no {name}, so that no ranking metric is defined.")


def _scaled(X_train: np.ndarray, X_test: np.ndarray, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """Both parts as float64; a constant column becomes zeros on the training part, never a division by 0."""
    train, test = X_train.astype(np.float64), X_test.astype(np.float64)
    if not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise ValueError("the data set holds NaN or infinite values; its loader must resolve them.")
    if scaling == "none":
        return train, test
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    scaler = StandardScaler() if scaling == "standard" else MinMaxScaler()
    shape = (-1, int(np.prod(train.shape[1:])))
    flat = train.reshape(shape)
    scaler.fit(flat)
    if isinstance(scaler, StandardScaler):  # the mean of n times 1e30 is 1e30 + 1e14: take the value itself
        constant = flat.min(axis=0) == flat.max(axis=0)
        scaler.mean_[constant] = flat[0, constant]
    return scaler.transform(flat).reshape(train.shape), scaler.transform(test.reshape(shape)).reshape(
        test.shape
    )


PROTOCOLS: dict[str, Protocol] = {
    card.name: card
    for card in (
        Protocol("unsupervised", _unsupervised, "standard", seeded=False),
        Protocol("one-class", _one_class, "standard", seeded=True),
        Protocol("one-versus-rest", _one_versus_rest, "standard", seeded=False, by_class=True),
        Protocol("adbench", _adbench, "min-max", seeded=True),
        Protocol("adbench-clean", _adbench_clean, "min-max", seeded=True),
    )
}
