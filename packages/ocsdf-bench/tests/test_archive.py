"""Archives: what is read, and what is refused."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ocsdf_bench.archive import gunzip, members
from ocsdf_bench.dataset import DataCorruptError


def _zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def _read(path: Path, max_bytes: int = 100, max_members: int = 10) -> dict[str, bytes]:
    wanted = lambda name: name.endswith(".bin")  # noqa: E731
    return dict(members(path, wanted, max_bytes=max_bytes, max_members=max_members))


both = pytest.mark.parametrize("pack", [_zip, _tar])
Pack = Callable[[Path, dict[str, bytes]], Path]


@both
def test_wanted_members_are_read_and_others_are_not(pack: Pack, tmp_path: Path) -> None:
    path = pack(tmp_path / "archive", {"a/1.bin": b"one", "a/readme.txt": b"no", "2.bin": b""})
    assert _read(path) == {"a/1.bin": b"one", "2.bin": b""}


@both
@pytest.mark.parametrize("name", ["../1.bin", "a/../../1.bin", "/1.bin", "a\\..\\..\\1.bin", "C:/1.bin"])
def test_a_name_outside_the_archive_is_refused(pack: Pack, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "deeper"
    folder.mkdir(parents=True)
    path = pack(folder / "archive", {name: b"one"})
    with pytest.raises(DataCorruptError, match="must not name paths outside itself"):
        _read(path)
    assert [found for found in tmp_path.rglob("*") if found.is_file()] == [path]


@both
@pytest.mark.parametrize("name", ["bomb.bin", "bomb.txt"])
def test_a_member_over_the_limit_is_refused_by_its_header(pack: Pack, name: str, tmp_path: Path) -> None:
    path = pack(tmp_path / "archive", {name: bytes(1_000_000)})
    with pytest.raises(DataCorruptError, match="at most 100 bytes; got 1000000 by its header"):
        _read(path)


def test_a_zip_bomb_with_a_lying_header_is_refused(tmp_path: Path) -> None:
    path = _zip(tmp_path / "archive", {"bomb.bin": bytes(1_000_000)})
    honest = (1_000_000).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(honest, (50).to_bytes(4, "little")))
    with pytest.raises(DataCorruptError):
        _read(path)


@both
def test_too_many_members_are_refused(pack: Pack, tmp_path: Path) -> None:
    path = pack(tmp_path / "archive", {f"{i}.txt": b"" for i in range(11)})
    with pytest.raises(DataCorruptError, match="at most 10 files; got more"):
        _read(path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("1.bin")
        info.type, info.linkname = tarfile.SYMTYPE, "elsewhere"
        archive.addfile(info)
    with pytest.raises(DataCorruptError, match="as a file; got a link"):
        _read(path)


@both
def test_a_truncated_archive_is_refused(pack: Pack, tmp_path: Path) -> None:
    path = pack(tmp_path / "archive", {"1.bin": bytes(range(100))})
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(DataCorruptError, match="must be whole and of its kind"):
        _read(path)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(DataCorruptError, match="must be whole and of its kind; got ReadError"):
        _read(path)


def test_gunzip_returns_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"abc"))
    assert gunzip(path, 3) == b"abc"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(bytes(1_000_000)), "at most 3 bytes; got more"),
        (gzip.compress(b"abc")[:-4], "got EOFError"),
        (b"abc", "got BadGzipFile"),
    ],
)
def test_gunzip_refuses_a_bomb_a_torn_and_a_foreign_file(
    content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    with pytest.raises(DataCorruptError, match=message):
        gunzip(path, 3)
