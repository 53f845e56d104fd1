"""MNIST and Fashion-MNIST in the IDX format, known by their decompressed bytes or their official MD5."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ocsdf_bench.archive import gunzip
from ocsdf_bench.dataset import DATASETS, Data, DataCorruptError, Dataset, Source
from ocsdf_bench.source import Verify, digest_is


class Part(NamedTuple):
    file: str
    shape: tuple[int, ...]
    verify: Verify


def idx(content: bytes, shape: tuple[int, ...], name: str) -> np.ndarray:
    """uint8 array of an IDX file's decompressed bytes.

    Parameters
    ----------
    content : bytes
        Two zero bytes, the type 8 (unsigned byte), the number of dimensions, each size as a big-endian
        32-bit integer, then the values.
    shape : tuple of int
        What the header must say.
    name : str
        File name for the message.

    Raises
    ------
    DataCorruptError
        Another magic number or shape, or not as many values as the header promises.
    """
    header = bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape)
    if content[: len(header)] != header or len(content) != len(header) + int(np.prod(shape)):
        raise DataCorruptError(
            f"'{name}' must be IDX bytes of shape {shape}; "
            f"got {len(content)} bytes beginning {content[: len(header)].hex()}."
        )
    return np.frombuffer(content, np.uint8, offset=len(header)).reshape(shape)


def decompressed_is(sha256: str, shape: tuple[int, ...]) -> Verify:
    # gzip wrappers of MNIST differ from server to server; the bytes inside are the official ones.
    def verify(path: Path) -> None:
        got = hashlib.sha256(gunzip(path, _n_bytes(shape))).hexdigest()
        if got != sha256:
            raise DataCorruptError(f"data file '{path}' must decompress to sha256 {sha256}; got {got}.")

    return verify


def _n_bytes(shape: tuple[int, ...]) -> int:
    return 4 + 4 * len(shape) + int(np.prod(shape))


def load(folder: str, url: str, parts: tuple[Part, ...], source: Source) -> Data:
    """Images (n, 28, 28, 1) float32 in [0, 1]; ``parts``: training images, labels, test images, labels."""

    def read(part: Part) -> np.ndarray:
        path = source.path(f"{folder}/{part.file}", url=url + part.file, sha256=None, verify=part.verify)
        return idx(gunzip(path, _n_bytes(part.shape)), part.shape, part.file)

    X, y, X_test, y_test = (read(part) for part in parts)
    note = f"{len(X):,} training and {len(X_test):,} test images"
    return Data.of(
        _pixels(X), y.astype(int), _pixels(X_test), y_test.astype(int), domain=(0.0, 1.0), note=note
    )


def _pixels(images: np.ndarray) -> np.ndarray:
    return images[..., None].astype(np.float32) / np.float32(255)


_FILES = {
    "train-images-idx3-ubyte.gz": (60000, 28, 28),
    "train-labels-idx1-ubyte.gz": (60000,),
    "t10k-images-idx3-ubyte.gz": (10000, 28, 28),
    "t10k-labels-idx1-ubyte.gz": (10000,),
}
_MNIST = (
    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
)
_FASHION_MD5 = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
)
_mnist_parts = tuple(
    Part(file, shape, decompressed_is(sha, shape))
    for (file, shape), sha in zip(_FILES.items(), _MNIST, strict=True)
)
_fashion_parts = tuple(
    Part(file, shape, digest_is("md5", md5))
    for (file, shape), md5 in zip(_FILES.items(), _FASHION_MD5, strict=True)
)
_images = partial(Dataset, kind="image", n_normal=70000, n_anomaly=0, n_features=784, needs_download=True)

DATASETS.add(
    _images(
        name="mnist",
        load=partial(load, "mnist", "https://storage.googleapis.com/cvdf-datasets/mnist/", _mnist_parts),
        source="LeCun, Cortes & Burges, The MNIST database of handwritten digits (1998)",
        licence="CC BY-SA 3.0, as commonly cited; not stated with the files",
        classes=tuple("0123456789"),
    )
)
DATASETS.add(
    _images(
        name="fashion-mnist",
        load=partial(
            load,
            "fashion-mnist",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            _fashion_parts,
        ),
        source="Xiao, Rasul & Vollgraf, Fashion-MNIST (arXiv:1708.07747)",
        licence="MIT",
        classes=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
    )
)
