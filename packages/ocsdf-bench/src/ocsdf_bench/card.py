"""Data card: what is known of a set, and what its rows turn out to be."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from ocsdf_bench.dataset import Data, Dataset


def card(dataset: Dataset, data: Data | None = None) -> dict[str, Any]:
    """Facts of a data set, in the order to print them.

    Parameters
    ----------
    dataset : Dataset
    data : Data or None
        Its loaded rows; None gives what is known without loading.

    Returns
    -------
    dict
        Strings, integers and lists only, so that it is JSON. ``duplicates``: rows equal to an earlier row
        (of the training part); ``constant_columns``: features with one value.
    """
    known: dict[str, Any] = {
        "name": dataset.name,
        "kind": dataset.kind,
        "normals": dataset.n_normal,
        "anomalies": dataset.n_anomaly,
        "features": dataset.n_features,
        "classes": list(dataset.classes),
        "family": dataset.family,
        "source": dataset.source,
        "licence": dataset.licence,
        "needs_download": dataset.needs_download,
        "note": dataset.note,
    }
    return known if data is None else known | _measured(data)


def _measured(data: Data) -> dict[str, Any]:
    rows = np.ascontiguousarray(data.X.reshape(len(data.X), -1))
    parts = [data.X] if data.X_test is None else [data.X, data.X_test]
    return {
        "shape": list(data.X.shape),
        "shape_test": [] if data.X_test is None else list(data.X_test.shape),
        "labels": {
            int(label): int(count)
            for label, count in zip(*np.unique(data.y, return_counts=True), strict=True)
        },
        "dtype": str(data.X.dtype),
        "minimum": min(float(part.min()) for part in parts),
        "maximum": max(float(part.max()) for part in parts),
        "duplicates": len(rows) - len({blake2b(row, digest_size=16).digest() for row in rows}),
        "constant_columns": int((rows.min(axis=0) == rows.max(axis=0)).sum()),
        "domain": [] if data.domain is None else list(data.domain),
        "loaded": data.note,
        "checksum": data.checksum,
    }
