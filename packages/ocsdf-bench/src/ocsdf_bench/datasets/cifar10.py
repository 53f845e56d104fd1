"""CIFAR10 in its official binary format: the archive, or the loose batches that a mirror holds."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath

import numpy as np

from ocsdf_bench.archive import members
from ocsdf_bench.dataset import DATASETS, Data, DataCorruptError, Dataset, DataUnavailableError, Source
from ocsdf_bench.source import Verify, digest_is

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_ROW = 1 + 3072  # label, then 1,024 red, 1,024 green, 1,024 blue pixels
_BATCH = 10_000 * _ROW
_ARCHIVE = "cifar10/cifar-10-binary.tar.gz"
_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
TRAIN_MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
}
Channels = tuple[tuple[float, ...], tuple[float, ...]]
# Mean and standard deviation of red, green and blue over the 50,000 training images.
CHANNELS: Channels = ((0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616))
# The first 1,000 of the test images: a partial copy is used where the archive is not at hand.
_TEST_PART = "test_batch_first1000.bin"
TEST_PART_SHA256 = "8314c96d7cd65618193bab23acdd5d4c4af15bf6dd00a1781d55beedf3be1ef5"


def batch(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 32, 32, 3) uint8 and labels (n,) of a batch's bytes; ``DataCorruptError`` if it is none."""
    if not content or len(content) % _ROW:
        raise DataCorruptError(f"'{name}' must be rows of {_ROW} bytes; got {len(content)} bytes.")
    rows = np.frombuffer(content, np.uint8).reshape(-1, _ROW)
    if rows[:, 0].max() >= len(CLASSES):
        raise DataCorruptError(f"'{name}' must hold labels 0 to 9; got {rows[:, 0].max()}.")
    return rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), rows[:, 0].astype(np.int64)


def load(source: Source, held_out: int = 0, channels: Channels | None = None) -> Data:
    """Images float32 in [0, 1]: loose batches where the source holds some, else the whole archive.

    The last ``held_out`` of the training batches join the test images, as long as one is left to train on.
    ``channels`` : mean and deviation that a detector sees them centred and reduced by.
    """
    batches = _loose(source) or _archived(source)
    names = [name for name in batches if name in TRAIN_MD5]
    names = names[: max(1, len(names) - held_out)]
    train = [batch(batches[name], name) for name in names]
    test = [batch(content, name) for name, content in batches.items() if name not in names]
    X, y = (np.concatenate(parts) for parts in zip(*train, strict=True))
    X_test, y_test = (np.concatenate(parts) for parts in zip(*test, strict=True))
    total = 10_000 + held_out * 10_000
    note = f"{len(X):,} of {60_000 - total:,} training and {len(X_test):,} of {total:,} test images"
    return Data.of(_pixels(X), y, _pixels(X_test), y_test, domain=(0.0, 1.0), note=note, channels=channels)


def _loose(source: Source) -> dict[str, bytes]:
    """Batches by name; empty unless there is training data and the test part."""

    def found(name: str, sha256: str | None, verify: Verify | None) -> dict[str, bytes]:
        try:
            path = source.path(f"cifar10/{name}", url=None, sha256=sha256, verify=verify)
        except DataUnavailableError:
            return {}
        return {name: path.read_bytes()}

    test = found(_TEST_PART, TEST_PART_SHA256, None)
    if not test:
        return {}
    train: dict[str, bytes] = {}
    for name, md5 in TRAIN_MD5.items():
        train |= found(name, None, digest_is("md5", md5))
    return train | test if train else {}


def _archived(source: Source) -> dict[str, bytes]:
    path = source.path(_ARCHIVE, url=_URL, sha256=SHA256)
    names = [*TRAIN_MD5, "test_batch.bin"]

    def wanted(name: str) -> bool:
        return PurePosixPath(name).name in names

    packed = members(path, wanted, max_bytes=_BATCH, max_members=20)
    found = {PurePosixPath(name).name: content for name, content in packed}
    if len(found) != len(names):
        raise DataCorruptError(f"'{path}' must hold {names}; got {sorted(found)}.")
    return {name: found[name] for name in names}  # the archive's own order is another


def _pixels(images: np.ndarray) -> np.ndarray:
    # The transpose of `batch` is no copy: rows must be contiguous to be compared by their bytes.
    return np.ascontiguousarray(images, np.float32) / np.float32(255)


_card = partial(
    Dataset,
    kind="image",
    n_normal=60000,
    n_anomaly=0,
    n_features=3072,
    source="Krizhevsky, Learning multiple layers of features from tiny images (2009)",
    licence="not stated; distributed for research by its author",
    needs_download=True,
    family="cifar10",
    classes=CLASSES,
)
_NOTE = "a mirror's loose batches are used where they are found; a run says how many images"

DATASETS.add(_card(name="cifar10", load=load, note=_NOTE))
DATASETS.add(
    _card(
        name="cifar10-held-out",
        load=partial(load, held_out=1),
        note=f"the last training batch is scored with the test images; {_NOTE}",
    )
)
DATASETS.add(
    _card(
        name="cifar10-standardised",
        load=partial(load, channels=CHANNELS),
        note=f"detectors see channels centred and reduced; radii stay in pixels; {_NOTE}",
    )
)
