"""Sets that need no network: scikit-learn's bundled data, made in the manner of ODDS.

Wine: the first cultivar is the anomaly, down to 10 rows (as ODDS's wine). Breast cancer: malignant is the
anomaly, down to 21 rows (as ODDS's wbc, which keeps the first 21; here they are drawn). The draw is
``numpy.random.default_rng(0).choice`` without replacement, kept in the original order. Digits: all ten
classes, pixels / 16 in [0, 1] (exact in float32); the first 1,000 rows of the file train, the last 797 test.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ocsdf_bench.dataset import DATASETS, Data, Dataset, Source

_N_TRAIN_DIGITS = 1000


def downsampled(X: np.ndarray, anomalous: np.ndarray, n_anomaly: int) -> Data:
    """All normals and ``n_anomaly`` rows drawn with seed 0 among those where ``anomalous`` (n,) is true."""
    rows = np.random.default_rng(0).choice(np.flatnonzero(anomalous), n_anomaly, replace=False)
    kept = np.sort(np.concatenate([np.flatnonzero(~anomalous), rows]))
    return Data.of(X[kept], anomalous[kept].astype(np.int64))


def _wine(_: Source) -> Data:
    from sklearn.datasets import load_wine

    X, y = map(np.asarray, load_wine(return_X_y=True))
    return downsampled(X, y == 0, 10)


def _breast_cancer(_: Source) -> Data:
    from sklearn.datasets import load_breast_cancer

    X, y = map(np.asarray, load_breast_cancer(return_X_y=True))
    return downsampled(X, y == 0, 21)  # scikit-learn: 0 = malignant


def _digits(_: Source) -> Data:
    from sklearn.datasets import load_digits

    pixels, classes = map(np.asarray, load_digits(return_X_y=True))
    X, y, n = (pixels / 16.0).astype(np.float32), classes.astype(np.int64), _N_TRAIN_DIGITS
    note = f"{n:,} training and {len(X) - n:,} test images"
    return Data.of(X[:n], y[:n], X[n:], y[n:], domain=(0.0, 1.0), note=note)


_LICENCE = "CC BY 4.0 (UCI); bundled with scikit-learn"
_table = partial(Dataset, kind="table", licence=_LICENCE, needs_download=False)

DATASETS.add(
    _table(
        name="sk-wine",
        load=_wine,
        n_normal=119,
        n_anomaly=10,
        n_features=13,
        source="UCI Wine (Forina et al., 1988) from scikit-learn; cultivar 1 down to 10 rows",
        family="wine",
    )
)
DATASETS.add(
    _table(
        name="sk-breast-cancer",
        load=_breast_cancer,
        n_normal=357,
        n_anomaly=21,
        n_features=30,
        source="UCI Breast Cancer Wisconsin (Diagnostic) (Street et al., 1993) from scikit-learn; "
        "malignant down to 21 rows",
        family="breast-cancer-wisconsin",
    )
)
DATASETS.add(
    Dataset(
        name="sk-digits",
        load=_digits,
        kind="image",
        n_normal=1797,
        n_anomaly=0,
        n_features=64,
        source="UCI Optical Recognition of Handwritten Digits, test part (Alpaydin & Kaynak, 1998) "
        "from scikit-learn; 8x8 pixels as rows of 64",
        licence=_LICENCE,
        needs_download=False,
        family="optdigits",
        classes=tuple("0123456789"),
        note="first 1,000 rows train, last 797 test",
    )
)
