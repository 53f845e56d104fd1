"""Archives are read, never unpacked: no path of theirs is used, and no size of theirs is believed."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, cast

from ocsdf_bench.dataset import DataCorruptError

# RuntimeError: what zipfile raises on an encrypted member; NotImplementedError: on an unknown compression.
_BROKEN = (
    OSError,
    EOFError,
    zlib.error,
    zipfile.BadZipFile,
    tarfile.TarError,
    RuntimeError,
    NotImplementedError,
)


def gunzip(path: Path, max_bytes: int) -> bytes:
    """Decompressed bytes of a gzip file; ``DataCorruptError`` if it is none or yields over ``max_bytes``."""
    try:
        with gzip.open(path) as stream:
            return _read(cast(IO[bytes], stream), max_bytes, str(path))
    except DataCorruptError:
        raise
    except _BROKEN as error:
        raise _corrupt(path, error) from error


def members(
    path: Path, wanted: Callable[[str], bool], *, max_bytes: int, max_members: int
) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of the files of a .zip or .tar.gz whose name is ``wanted``, in archive order.

    Raises ``DataCorruptError`` on a name that is absolute or climbs out with "..", on a wanted link, on a
    member over ``max_bytes`` by its header or once decompressed, on more than ``max_members`` files, and on
    a truncated or foreign file.
    """
    read = _zip_members if zipfile.is_zipfile(path) else _tar_members
    try:
        for count, member in enumerate(read(path)):
            _check(path, member, max_bytes)
            if count >= max_members:
                raise DataCorruptError(f"archive '{path}' must have at most {max_members} files; got more.")
            if wanted(member.name):
                if not member.regular:
                    raise DataCorruptError(
                        f"archive '{path}' must hold '{member.name}' as a file; got a link."
                    )
                with member.open() as stream:
                    yield member.name, _read(stream, max_bytes, f"{path}:{member.name}")
    except DataCorruptError:
        raise
    except _BROKEN as error:
        raise _corrupt(path, error) from error


class _Member(NamedTuple):
    name: str
    size: int
    regular: bool
    open: Callable[[], IO[bytes]]


def _zip_members(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield _Member(info.filename, info.file_size, True, partial(archive.open, info))


def _tar_members(path: Path) -> Iterator[_Member]:
    with tarfile.open(path, "r:*") as archive:
        for info in archive:
            if not info.isdir():
                opening = cast(Callable[[], IO[bytes]], partial(archive.extractfile, info))
                yield _Member(info.name, info.size, info.isreg(), opening)


def _check(path: Path, member: _Member, max_bytes: int) -> None:
    parts = member.name.replace("\\", "/").split("/")
    if parts[0] == "" or parts[0].endswith(":") or ".." in parts:
        raise DataCorruptError(f"archive '{path}' must not name paths outside itself; got '{member.name}'.")
    # Unwanted members too: skipping one in a compressed tar decompresses it.
    if member.size > max_bytes:
        raise DataCorruptError(
            f"'{path}:{member.name}' must have at most {max_bytes} bytes; got {member.size} by its header."
        )


def _read(stream: IO[bytes], max_bytes: int, name: str) -> bytes:
    content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DataCorruptError(f"'{name}' must decompress to at most {max_bytes} bytes; got more.")
    return content


def _corrupt(path: Path, error: BaseException) -> DataCorruptError:
    kind = type(error).__name__
    return DataCorruptError(f"archive '{path}' must be whole and of its kind; got {kind}: {error}.")
