"""Where raw files come from: a local mirror first, then the cache, then a checked download."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ocsdf_bench.dataset import DataCorruptError, DataUnavailableError
from ocsdf_bench.git_listing import Commit, NoListingError, commit_file

Verify = Callable[[Path], object]  # raises DataCorruptError


@dataclass(frozen=True)
class MirrorOrDownload:
    """The ``Source`` of every run.

    Parameters
    ----------
    data_dir : Path or None
        Local mirror, read only. None: the environment variable ``OCSDF_DATA``, else no mirror.
    offline : bool
        Never download; what is in neither the mirror nor the cache is unavailable.
    cache : Path or None
        Where downloads are kept, laid out as a mirror is. None: the environment variable
        ``OCSDF_CACHE``, else the user's cache directory of this platform.

    Examples
    --------
    >>> source = MirrorOrDownload(offline=True, cache=Path("no-such-folder"))
    >>> source.path("odds/45_wine.npz", url="https://example.org/45_wine.npz", sha256="00")
    Traceback (most recent call last):
    ocsdf_bench.dataset.DataUnavailableError: ...
    """

    data_dir: Path | None = None
    offline: bool = False
    cache: Path | None = None

    @property
    def mirror(self) -> Path | None:
        folder = self.data_dir or os.environ.get("OCSDF_DATA")
        return Path(folder) if folder else None

    @property
    def cache_dir(self) -> Path:
        folder = self.cache or os.environ.get("OCSDF_CACHE")
        if folder:
            return Path(folder)
        import pooch

        return Path(pooch.os_cache("ocsdf"))

    def path(
        self,
        relative: str,
        *,
        url: str | None,
        sha256: str | None,
        verify: Verify | None = None,
        pin: bool = False,
    ) -> Path:
        """Checked local path of ``relative`` (see ``Source.path``); a folder is found, never downloaded."""
        if pin:
            verify = self._pinned(relative, url, verify)
        if self.mirror is not None and (self.mirror / relative).exists():
            return _checked(self.mirror / relative, sha256, verify)
        kept = self.cache_dir / relative
        if kept.exists():
            try:
                return _checked(kept, sha256, verify)
            except DataCorruptError as error:
                kept.unlink()
                raise DataCorruptError(f"{error} It was removed from the cache; run again.") from error
        if self.offline or url is None:
            raise self._unavailable(
                relative, url, "downloads are off" if self.offline else "it has no address"
            )
        return self._download(relative, url, sha256, verify)

    def _pinned(self, relative: str, url: str | None, verify: Verify | None) -> Verify:
        first_sight = _Pin(self.cache_dir / f"{relative}.sha256", verify)
        found = commit_file(url)
        return first_sight if found is None else _AtCommit(*found, first_sight, offline=self.offline)

    def _download(self, relative: str, url: str, sha256: str | None, verify: Verify | None) -> Path:
        import pooch

        kept = self.cache_dir / relative
        # Next to its final place, so that the checked file appears there in one step or not at all.
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            fresh = Path(folder) / kept.name
            try:
                pooch.HTTPDownloader()(url, str(fresh), None)
            except OSError as error:  # those of requests are OSErrors
                raise self._unavailable(relative, url, f"the download failed ({_short(error)})") from error
            _checked(fresh, sha256, verify)
            fresh.replace(kept)
        return kept

    @staticmethod
    def _unavailable(relative: str, url: str | None, why: str) -> DataUnavailableError:
        # No absolute path: the sentence becomes the reason of a skipped run, which is published.
        get = f"get {url} and put it" if url else "put it"
        return DataUnavailableError(
            f"data file '{relative}' is not on this machine and {why}; "
            f"{get} in your mirror (--data DIR) as DIR/{relative}."
        )


def _short(error: OSError) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"HTTP {status}" if status else type(error).__name__


def _checked(path: Path, sha256: str | None, verify: Verify | None) -> Path:
    if sha256 is not None:
        digest_is("sha256", sha256)(path)
    if verify is not None:
        verify(path)
    return path


@dataclass(frozen=True)
class _Pin:
    """Verifier of a file that has no published checksum: ``first`` judges it at first sight, and its sha256
    is kept in ``record`` (as sha256sum writes it) for every later one.
    """

    record: Path
    first: Verify | None

    def __call__(self, path: Path) -> None:
        if self.record.is_file():
            return self._held_to_the_record(path)
        if self.first is not None:
            self.first(path)
        self.record.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self.record.parent, delete=False) as partial:
            partial.write(f"{file_digest(path, 'sha256')}  {self.record.stem}\n")
        os.replace(partial.name, self.record)
        return None

    def _held_to_the_record(self, path: Path) -> None:
        try:
            digest_is("sha256", self.record.read_text().split()[0])(path)
        except (IndexError, DataCorruptError) as error:
            raise DataCorruptError(
                f"{error} No checksum is published: this is the one of the file that was seen first. If the "
                f"new file is the right one, delete '{self.record}'."
            ) from error


@dataclass(frozen=True)
class _AtCommit:
    """Verifier of a file that is downloaded at a git commit: it has the id that the commit gives ``name``.

    Where the commit's listing is not to be had, ``first_sight`` judges the file, and a warning says so.
    """

    commit: Commit
    name: str
    first_sight: _Pin
    offline: bool

    def __call__(self, path: Path) -> None:
        record = self.first_sight.record
        listing = record.with_name(f"{self.commit.hash}.ls-tree")
        # Asked for at first sight only: where git's network is a dead end, not every run is to wait for it.
        asks = not self.offline and not record.exists()
        try:
            blobs = self.commit.blobs(listing, fetch=asks)
        except NoListingError as error:
            self.first_sight(path)
            why = "downloads are off" if self.offline else error
            return warnings.warn(
                f"data file '{path.name}' is held to the sha256 it had at first sight, not to commit "
                f"{self.commit.hash} of {self.commit.repository} ({why}); for that, delete '{record}' and "
                "load it again with git and downloads.",
                stacklevel=2,
            )
        if self.name not in blobs:
            raise DataCorruptError(
                f"data file '{path}' must be '{self.name}' of commit {self.commit.hash} of "
                f"{self.commit.repository}; got a commit without such a file: correct the address, or delete "
                f"'{listing}'."
            )
        got = file_digest(path, "git")
        if got != blobs[self.name]:
            raise DataCorruptError(
                f"data file '{path}' must have git id {blobs[self.name]}, that of '{self.name}' at commit "
                f"{self.commit.hash}; got {got} ({path.stat().st_size} bytes): replace it by that of "
                f"{self.commit.repository}."
            )
        return None


def digest_is(algorithm: str, expected: str) -> Verify:
    """Verifier of a file's digest, for ``Source.path(verify=)``.

    Parameters
    ----------
    algorithm : str
        A name of ``hashlib``, or "git" for the id that git gives the file (SHA-1 of a header and the bytes).
    expected : str
        Hexadecimal digest.
    """

    def verify(path: Path) -> None:
        digest = file_digest(path, algorithm)
        if digest != expected:
            raise DataCorruptError(
                f"data file '{path}' must have {algorithm} {expected}; got {digest} "
                f"({path.stat().st_size} bytes): it is truncated, another version, or not this file."
            )

    return verify


def file_digest(path: Path, algorithm: str) -> str:
    """Hexadecimal digest of a file; "git" is the id that git gives it."""
    if not path.is_file():
        raise DataCorruptError(f"data file '{path}' must be a file; got a folder.")
    digest = hashlib.new("sha1" if algorithm == "git" else algorithm, usedforsecurity=False)
    if algorithm == "git":
        digest.update(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
