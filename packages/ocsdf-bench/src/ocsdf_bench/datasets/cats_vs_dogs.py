"""Cats-vs-Dogs: JPEGs of any size, cut to a square and resized, from the archive or an unpacked folder.

Every fourth image of each class, in the order of its number, is held out for testing.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path, PurePosixPath

import numpy as np

from ocsdf_bench.archive import members
from ocsdf_bench.dataset import DATASETS, Data, DataCorruptError, Dataset, DataUnavailableError, Source

CLASSES = ("cat", "dog")
_FOLDER = "cats_vs_dogs/PetImages"
_ARCHIVE = "cats_vs_dogs/kagglecatsanddogs_5340.zip"
_URL = (
    "https://download.microsoft.com/download/3/E/1/3E1C3F21-ECDB-4869-8368-6DEBA77B919F/"
    "kagglecatsanddogs_5340.zip"
)
SHA256 = "b7974bd00a84a99921f36ee4403f089853777b5ae8d151c76a86e64900334af9"
_MAX_BYTES = 1 << 22  # the largest JPEG of the set has under 1 MB
_MAX_PIXELS = 1 << 24
_NAME = re.compile(r"(?:.*/)?(Cat|Dog)/(\d+)\.jpg", re.IGNORECASE)


def decode(content: bytes, size: int) -> np.ndarray | None:
    """Image (size, size, 3) uint8: the largest centred square, resized; None where it cannot be decoded."""
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # truncated EXIF blocks are many, and harmless
            with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
                if image.width * image.height > _MAX_PIXELS:
                    return None
                image.draft("RGB", (size, size))  # decode at the nearest larger power of two
                square = ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BICUBIC)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return np.asarray(square)


def load(source: Source, size: int = 64) -> Data:
    """Images float32 in [0, 1], (n, size, size, 3); undecodable ones are skipped and counted in the note."""
    decoded = {(label, number): decode(jpeg, size) for label, number, jpeg in _jpegs(source)}
    kept = {key: image for key, image in sorted(decoded.items(), key=itemgetter(0)) if image is not None}
    y = np.array([label for label, _ in kept], np.int64)
    if set(y.tolist()) != {0, 1}:
        raise DataCorruptError(
            f"'{_FOLDER}' must hold JPEGs of cats and dogs; got {len(y)} of one kind or none."
        )
    X = np.stack(list(kept.values())).astype(np.float32) / np.float32(255)
    rank = np.concatenate([np.arange(n) for n in np.bincount(y)])
    test = rank % 4 == 3
    note = (
        f"{(~test).sum():,} training and {test.sum():,} test images at {size}x{size}, "
        f"{len(decoded) - len(kept):,} undecodable ones skipped"
    )
    return Data.of(X[~test], y[~test], X[test], y[test], domain=(0.0, 1.0), note=note)


def _jpegs(source: Source) -> Iterator[tuple[int, int, bytes]]:
    """(class, number, bytes) of each JPEG, in no order."""
    try:
        folder = source.path(_FOLDER, url=None, sha256=None)
    except DataUnavailableError:
        archive = source.path(_ARCHIVE, url=_URL, sha256=SHA256)
        files = members(archive, _is_jpeg, max_bytes=_MAX_BYTES, max_members=30_000)
    else:
        files = _files(folder)
    for name, content in files:
        label, number = _NAME.fullmatch(name).groups()  # type: ignore[union-attr]
        yield CLASSES.index(label.lower()), int(number), content


def _is_jpeg(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in folder.glob("*/*.jpg"):
        name = str(PurePosixPath(path.parent.name, path.name))
        if _is_jpeg(name):
            with path.open("rb") as stream:
                yield name, stream.read(_MAX_BYTES)


def dataset(size: int, name: str) -> Dataset:
    """The set with images of ``size`` pixels a side, to register under ``name``."""
    return Dataset(
        name=name,
        load=partial(load, size=size),
        kind="image",
        n_normal=25000,
        n_anomaly=0,
        n_features=size * size * 3,
        source="Elson et al., Asirra (CCS 2007); Kaggle and Microsoft",
        licence="not stated",
        needs_download=True,
        classes=CLASSES,
        note="every fourth image is held out; undecodable JPEGs are skipped; a run says how many images",
    )


DATASETS.add(dataset(64, "cats-vs-dogs"))
