"""Loaders on small crafted files: good, truncated, wrong, hostile."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ocsdf_bench.dataset import DATASETS, DataCorruptError, DataUnavailableError
from ocsdf_bench.datasets import cats_vs_dogs, cifar10, mnist
from ocsdf_bench.datasets.odds import load_table, read_table
from ocsdf_bench.source import MirrorOrDownload, digest_is

RNG = np.random.default_rng(0)


@pytest.fixture
def mirror(tmp_path: Path) -> MirrorOrDownload:
    (tmp_path / "mirror").mkdir()
    return MirrorOrDownload(tmp_path / "mirror", offline=True, cache=tmp_path / "cache")


def _folder(source: MirrorOrDownload, name: str) -> Path:
    assert source.mirror is not None
    folder = source.mirror / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# --- tables


def _row(path: Path, **changes: str) -> dict[str, str]:
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    row = {"name": "small", "file": path.name, "n_normal": "3", "n_anomaly": "1", "n_features": "2"}
    return row | {"digest": f"sha256:{sha256}"} | changes


def _write_table(path: Path, X: np.ndarray, y: np.ndarray) -> Path:
    if path.suffix == ".mat":
        from scipy.io import savemat

        savemat(path, {"X": X, "y": y.reshape(-1, 1)})
    else:
        np.savez(path, X=X, y=y)
    return path


@pytest.mark.parametrize("name", ["small.npz", "small.mat"])
def test_a_good_table_loads_with_its_dtype(name: str, mirror: MirrorOrDownload) -> None:
    X, y = np.arange(8, dtype=np.int16).reshape(4, 2), np.array([0, 0, 1, 0], np.uint8)
    path = _write_table(_folder(mirror, "odds") / name, X, y)
    data = load_table(_row(path), mirror)
    assert data.X.dtype == np.int16
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, y)
    assert data.y.dtype == np.int64


def test_a_table_known_by_its_git_blob_is_checked_by_it(mirror: MirrorOrDownload) -> None:
    path = _write_table(_folder(mirror, "odds") / "small.npz", np.zeros((4, 2)), np.array([0, 0, 1, 0]))
    with pytest.raises(DataCorruptError, match="must have git 0000"):
        load_table(_row(path, digest="git:" + "0" * 40), mirror)


@pytest.mark.parametrize("change", ["n_normal", "n_anomaly", "n_features"])
def test_a_table_with_other_counts_is_corrupt(change: str, mirror: MirrorOrDownload) -> None:
    path = _write_table(_folder(mirror, "odds") / "small.npz", np.zeros((4, 2)), np.array([0, 0, 1, 0]))
    with pytest.raises(DataCorruptError, match=r"'small' must have .* got \(3, 1, 2\)"):
        load_table(_row(path, **{change: "5"}), mirror)


def test_a_table_with_nan_is_corrupt(mirror: MirrorOrDownload) -> None:
    path = _write_table(
        _folder(mirror, "odds") / "small.npz", np.full((4, 2), np.nan), np.array([0, 0, 1, 0])
    )
    with pytest.raises(DataCorruptError, match="all finite"):
        load_table(_row(path), mirror)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
@pytest.mark.parametrize("content", [b"", b"<html>not found</html>" * 20, b"PK\x03\x04 cut"])
def test_a_foreign_file_is_no_table(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"small{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataCorruptError, match="must be a .* with X and y"):
        read_table(path)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_a_truncated_table_is_refused(suffix: str, tmp_path: Path) -> None:
    path = _write_table(tmp_path / f"small{suffix}", np.zeros((4, 2)), np.zeros(4))
    path.write_bytes(path.read_bytes()[:-90])
    with pytest.raises(DataCorruptError, match="must be a .* with X and y"):
        read_table(path)


def test_a_table_of_objects_is_never_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    np.savez(path, X=np.array([[object()]], dtype=object), y=np.zeros(1))
    with pytest.raises(DataCorruptError, match="allow_pickle=False"):
        read_table(path)


def test_a_table_without_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.npz"
    np.savez(path, X=np.zeros((2, 2)))
    with pytest.raises(DataCorruptError, match="with X and y"):
        read_table(path)


@pytest.mark.parametrize(
    ("X", "y"),
    [(np.zeros(4), np.zeros(4)), (np.zeros((4, 2)), np.zeros(3)), (np.full((4, 2), "a"), np.zeros(4))],
)
def test_a_table_of_the_wrong_form_is_refused(X: np.ndarray, y: np.ndarray, tmp_path: Path) -> None:
    path = _write_table(tmp_path / "small.npz", X, y)
    with pytest.raises(DataCorruptError, match="must hold numeric X"):
        read_table(path)


# --- IDX


def _idx(values: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes()


def _small_mnist(source: MirrorOrDownload) -> tuple[list[np.ndarray], tuple[mnist.Part, ...]]:
    arrays = [
        RNG.integers(0, 256, (6, 28, 28), np.uint8),
        np.arange(6, dtype=np.uint8),
        RNG.integers(0, 256, (4, 28, 28), np.uint8),
        np.arange(4, dtype=np.uint8),
    ]
    parts = []
    for number, array in enumerate(arrays):
        content = _idx(array)
        (_folder(source, "small") / f"{number}.gz").write_bytes(gzip.compress(content))
        verify = mnist.decompressed_is(hashlib.sha256(content).hexdigest(), array.shape)
        parts.append(mnist.Part(f"{number}.gz", array.shape, verify))
    return arrays, tuple(parts)


def test_idx_files_become_images_in_the_unit_cube(mirror: MirrorOrDownload) -> None:
    arrays, parts = _small_mnist(mirror)
    data = mnist.load("small", "https://example.org/", parts, mirror)
    assert data.X.shape == (6, 28, 28, 1)
    assert data.X_test is not None
    assert data.X_test.shape == (4, 28, 28, 1)
    assert data.X.dtype == np.float32
    assert np.array_equal(np.round(data.X[..., 0] * 255), arrays[0])
    assert data.domain == (0.0, 1.0)
    assert data.note == "6 training and 4 test images"


def test_the_gzip_wrapper_does_not_matter_but_the_bytes_inside_do(mirror: MirrorOrDownload) -> None:
    arrays, parts = _small_mnist(mirror)
    path = _folder(mirror, "small") / "0.gz"
    path.write_bytes(gzip.compress(_idx(arrays[0]), compresslevel=1, mtime=1))
    mnist.load("small", "https://example.org/", parts, mirror)
    path.write_bytes(gzip.compress(_idx(255 - arrays[0])))
    with pytest.raises(DataCorruptError, match="must decompress to sha256"):
        mnist.load("small", "https://example.org/", parts, mirror)


def test_a_gzip_bomb_in_place_of_images_is_refused(mirror: MirrorOrDownload) -> None:
    _, parts = _small_mnist(mirror)
    (_folder(mirror, "small") / "0.gz").write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(DataCorruptError, match=r"must decompress to at most \d+ bytes"):
        mnist.load("small", "https://example.org/", parts, mirror)


@pytest.mark.parametrize(
    "content",
    [
        _idx(np.zeros((3, 2), np.uint8))[:-1],
        _idx(np.zeros((3, 2), np.uint8)) + b"\0",
        _idx(np.zeros((2, 3), np.uint8)),
        b"\0\0\x0d\x02" + _idx(np.zeros((3, 2), np.uint8))[4:],
        b"",
    ],
    ids=["truncated", "too long", "another shape", "floats", "empty"],
)
def test_bytes_that_are_not_the_expected_idx_are_refused(content: bytes) -> None:
    with pytest.raises(DataCorruptError, match=r"must be IDX bytes of shape \(3, 2\)"):
        mnist.idx(content, (3, 2), "file")


# --- CIFAR10


def _cifar_batch(n: int) -> bytes:
    rows = RNG.integers(0, 256, (n, 3073), np.uint8)
    rows[:, 0] = np.arange(n) % 10
    return rows.tobytes()


def test_a_cifar_row_is_red_then_green_then_blue() -> None:
    row = np.concatenate([[7], np.full(1024, 1), np.full(1024, 2), np.full(1024, 3)]).astype(np.uint8)
    row[1] = 9  # the first red pixel is the upper left one
    images, labels = cifar10.batch(row.tobytes(), "file")
    assert images.shape == (1, 32, 32, 3)
    assert images[0, 0, 0].tolist() == [9, 2, 3]
    assert images[0, 5, 5].tolist() == [1, 2, 3]
    assert labels.tolist() == [7]


@pytest.mark.parametrize("content", [b"", bytes(3072), bytes([10]) + bytes(3072)])
def test_bytes_that_are_no_cifar_batch_are_refused(content: bytes) -> None:
    with pytest.raises(DataCorruptError, match="must"):
        cifar10.batch(content, "file")


def _tar(path: Path, files: dict[str, bytes]) -> str:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _cifar_archive() -> dict[str, bytes]:
    names = [*cifar10.TRAIN_MD5, "test_batch.bin"]
    return {f"cifar-10-batches-bin/{name}": _cifar_batch(10) for name in names}


def test_a_cifar_archive_is_read_in_the_order_of_its_batches(
    mirror: MirrorOrDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _cifar_archive()
    shuffled = dict(reversed(files.items())) | {"cifar-10-batches-bin/readme.html": b"hello"}
    sha256 = _tar(_folder(mirror, "cifar10") / "cifar-10-binary.tar.gz", shuffled)
    monkeypatch.setattr(cifar10, "SHA256", sha256)
    data = cifar10.load(mirror)
    first, _ = cifar10.batch(files["cifar-10-batches-bin/data_batch_1.bin"], "file")
    assert data.X.shape == (50, 32, 32, 3)
    assert data.X.flags.c_contiguous
    assert data.X_test.flags.c_contiguous
    assert np.array_equal(np.round(data.X[:10] * 255), first)
    assert data.note == "50 of 50,000 training and 10 of 10,000 test images"


def test_held_out_batches_of_cifar_join_the_test_images_and_one_is_left_to_train_on(
    mirror: MirrorOrDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _cifar_archive()
    monkeypatch.setattr(cifar10, "SHA256", _tar(_folder(mirror, "cifar10") / "cifar-10-binary.tar.gz", files))
    data, fewest = cifar10.load(mirror, held_out=1), cifar10.load(mirror, held_out=9)
    last, labels = cifar10.batch(files["cifar-10-batches-bin/data_batch_5.bin"], "file")
    assert data.note == "40 of 40,000 training and 20 of 20,000 test images"
    assert np.array_equal(np.round(data.X_test[:10] * 255), last)
    assert np.array_equal(data.y_test[:10], labels)
    assert len(fewest.X) == 10


def test_a_cifar_archive_without_a_batch_is_corrupt(
    mirror: MirrorOrDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = dict(list(_cifar_archive().items())[1:])
    monkeypatch.setattr(cifar10, "SHA256", _tar(_folder(mirror, "cifar10") / "cifar-10-binary.tar.gz", files))
    with pytest.raises(DataCorruptError, match="must hold"):
        cifar10.load(mirror)


def test_a_cifar_archive_with_another_checksum_is_corrupt(mirror: MirrorOrDownload) -> None:
    _tar(_folder(mirror, "cifar10") / "cifar-10-binary.tar.gz", _cifar_archive())
    with pytest.raises(DataCorruptError, match="must have sha256"):
        cifar10.load(mirror)


def test_loose_cifar_batches_are_used_and_counted(
    mirror: MirrorOrDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _folder(mirror, "cifar10")
    train, test = _cifar_batch(20), _cifar_batch(10)
    (folder / "data_batch_2.bin").write_bytes(train)
    (folder / "test_batch_first1000.bin").write_bytes(test)
    monkeypatch.setitem(cifar10.TRAIN_MD5, "data_batch_2.bin", hashlib.md5(train).hexdigest())
    monkeypatch.setattr(cifar10, "TEST_PART_SHA256", hashlib.sha256(test).hexdigest())
    assert cifar10.load(mirror).note == "20 of 50,000 training and 10 of 10,000 test images"
    (folder / "data_batch_2.bin").write_bytes(train[:-1])
    with pytest.raises(DataCorruptError, match="must have md5"):
        cifar10.load(mirror)


# --- cats and dogs


def _jpeg(color: tuple[int, int, int], width: int = 80, height: int = 40, mode: str = "RGB") -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (width, height), color).convert(mode).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def _pets(n: int = 8) -> dict[str, bytes]:
    colors = {"Cat": (250, 0, 0), "Dog": (0, 0, 250)}
    return {
        f"PetImages/{name}/{number}.jpg": _jpeg(color)
        for name, color in colors.items()
        for number in range(n)
    }


def _unpack(source: MirrorOrDownload, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = _folder(source, "cats_vs_dogs") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _pack(source: MirrorOrDownload, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    path = _folder(source, "cats_vs_dogs") / "kagglecatsanddogs_5340.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    monkeypatch.setattr(cats_vs_dogs, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())


def test_the_folder_and_the_archive_of_cats_and_dogs_give_the_same_images(
    mirror: MirrorOrDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataUnavailableError, match="kagglecatsanddogs_5340.zip"):
        cats_vs_dogs.load(mirror)
    _pack(mirror, _pets() | {"readme[1].txt": b"hello"}, monkeypatch)
    from_archive = cats_vs_dogs.load(mirror, size=16)
    _unpack(mirror, _pets())
    from_folder = cats_vs_dogs.load(mirror, size=16)
    assert from_archive.checksum == from_folder.checksum
    assert from_archive.X.shape == (12, 16, 16, 3)
    assert from_archive.note == "12 training and 4 test images at 16x16, 0 undecodable ones skipped"
    assert from_archive.y.tolist() == [0] * 6 + [1] * 6


def test_images_are_ordered_by_number_so_that_the_held_out_part_is_fixed(mirror: MirrorOrDownload) -> None:
    files = _pets(12)
    files["PetImages/Cat/3.jpg"] = _jpeg((0, 250, 0))
    _unpack(mirror, files)
    data = cats_vs_dogs.load(mirror, size=8)
    assert data.X_test is not None
    assert data.X_test[0].mean(axis=(0, 1)).argmax() == 1  # cat 3 is the first one held out


def test_corrupt_images_are_counted_and_skipped(mirror: MirrorOrDownload) -> None:
    files = _pets()
    files["PetImages/Cat/1.jpg"] = b""
    files["PetImages/Cat/2.jpg"] = _jpeg((9, 9, 9), 400, 400)[:300]
    files["PetImages/Dog/5.jpg"] = b"GIF89a, not a JPEG"
    _unpack(mirror, files | {"PetImages/Dog/Thumbs.db": b"", "PetImages/Dog/note.jpg": b""})
    assert cats_vs_dogs.load(mirror, size=8).note.endswith("3 undecodable ones skipped")


def test_a_folder_without_dogs_is_corrupt(mirror: MirrorOrDownload) -> None:
    _unpack(mirror, {name: content for name, content in _pets().items() if "Cat" in name})
    with pytest.raises(DataCorruptError, match="JPEGs of cats and dogs; got 8 of one kind"):
        cats_vs_dogs.load(mirror)


def test_an_archive_that_climbs_out_is_refused(
    mirror: MirrorOrDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pack(mirror, _pets() | {"../PetImages/Cat/99.jpg": _jpeg((1, 1, 1))}, monkeypatch)
    with pytest.raises(DataCorruptError, match="outside itself"):
        cats_vs_dogs.load(mirror)


def test_images_are_cropped_not_distorted() -> None:
    from PIL import Image

    wide = Image.new("RGB", (120, 40), (250, 0, 0))
    wide.paste((0, 0, 250), (40, 0, 80, 40))  # the central square is blue
    buffer = io.BytesIO()
    wide.save(buffer, "JPEG", quality=95, subsampling=0)
    image = cats_vs_dogs.decode(buffer.getvalue(), 10)
    assert image is not None
    assert image.shape == (10, 10, 3)
    assert (image[:, 1:-1, 2] > 200).all()


def test_a_grey_image_has_three_channels() -> None:
    image = cats_vs_dogs.decode(_jpeg((120, 120, 120), mode="L"), 8)
    assert image is not None
    assert image.shape == (8, 8, 3)


def test_an_image_of_too_many_pixels_is_not_decoded() -> None:
    content = bytearray(_jpeg((1, 1, 1), 64, 64))
    frame = content.index(b"\xff\xc0")
    content[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"  # claims 65,535 x 65,535
    assert cats_vs_dogs.decode(bytes(content), 8) is None


def test_the_size_is_a_parameter_of_the_set() -> None:
    assert cats_vs_dogs.dataset(32, "cats-vs-dogs-32").n_features == 32 * 32 * 3
    assert DATASETS["cats-vs-dogs"].n_features == 64 * 64 * 3


def test_fashion_mnist_is_known_by_its_official_md5(tmp_path: Path) -> None:
    path = tmp_path / "small.gz"
    path.write_bytes(b"abc")
    digest_is("md5", "900150983cd24fb0d6963f7d28e17f72")(path)
    with pytest.raises(DataCorruptError, match="must have md5"):
        digest_is("md5", "8d4fb7e6c68d591d4c3dfef9ec88bf0d")(path)
