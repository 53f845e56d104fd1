"""The files of one git commit: its hash is a checksum of every one of them, and git verifies it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

GITHUB = "https://github.com"
TIMEOUT_SECONDS = 30.0
_RAW = re.compile(r"https://raw\.githubusercontent\.com/([^/]+/[^/]+)/([0-9a-f]{40})/([^?#]+)")
# As `git ls-tree -r` prints: a file, a symbolic link (both blobs) or a submodule (a commit).
_LINE = re.compile(r"[0-7]{6} (blob|commit) ([0-9a-f]{40})\t(.+)")
_OTHERS_GIT = re.compile(r"GIT_(?!SSL_|EXEC_PATH)")  # GIT_DIR and so on; certificates and its place stay


class NoListingError(RuntimeError):
    """The listing of a commit is not at hand; the text is the reason, without a full stop."""


@dataclass(frozen=True)
class Commit:
    """One commit of a repository.

    repository : its address, for ``git fetch``. hash : 40 hexadecimal digits.
    """

    repository: str
    hash: str

    def blobs(self, kept: Path, *, fetch: bool) -> dict[str, str]:
        """{path in the commit: git's id of the file}.

        The listing in the file ``kept``, as ``git ls-tree -r`` prints it, or else, where ``fetch`` allows it,
        git's, which is then kept there: names and ids, no contents of files. What is in ``kept`` and is no
        such listing counts as absent.

        Raises
        ------
        NoListingError
            Not kept, and not fetched: not allowed, git is not installed, or it failed.
        """
        try:
            return _read(kept)
        except (OSError, ValueError):
            if not fetch:
                raise NoListingError("its listing is not in the cache") from None
        if shutil.which("git") is None:
            raise NoListingError("git is not installed")
        try:
            return self._fetched(kept)
        except subprocess.TimeoutExpired:
            raise NoListingError(f"git took more than {TIMEOUT_SECONDS:g} s") from None
        except subprocess.CalledProcessError as error:
            raise NoListingError(f"git failed: {_complaint(error)}") from error
        except (OSError, ValueError) as error:
            raise NoListingError(f"git's listing could not be read or kept: {error}") from error

    def _fetched(self, kept: Path) -> dict[str, str]:
        # Next to its final place, so that the whole listing appears there in one step or not at all.
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, ignore_cleanup_errors=True) as folder:
            environment = _environment(Path(folder) / "git", self.repository)
            _git(environment, "init", "--quiet", "--bare", "--template=")
            # Trees and no blobs. Git names what arrives by its own hash of it: a wrong tree is never found.
            _git(environment, "fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none",
                 self.repository, self.hash)  # fmt: skip
            fresh = Path(folder) / kept.name
            fresh.write_bytes(_git(environment, "ls-tree", "-r", "--full-tree", self.hash))
            blobs = _read(fresh)
            fresh.replace(kept)
        return blobs


def commit_file(url: str | None) -> tuple[Commit, str] | None:
    """The commit that GitHub's address of a raw file names, and the file's path there; None for any other.

    >>> commit, path = commit_file(f"https://raw.githubusercontent.com/owner/name/{'0' * 40}/folder/file.npz")
    >>> commit.repository, path
    ('https://github.com/owner/name', 'folder/file.npz')
    >>> commit_file("https://raw.githubusercontent.com/owner/name/main/file.npz")  # a branch moves
    """
    found = _RAW.fullmatch(url or "")
    return found and (Commit(f"{GITHUB}/{found[1]}", found[2]), unquote(found[3]))


def _complaint(error: subprocess.CalledProcessError) -> str:
    """Git's first fatal line: advice comes after it."""
    said = re.search("^fatal: (.+)", error.stderr.decode(errors="replace"), re.MULTILINE)
    return said[1] if said else f"exit status {error.returncode}"


def _read(path: Path) -> dict[str, str]:
    text = path.read_text(encoding="utf-8")  # its UnicodeDecodeError is a ValueError
    lines = [_LINE.fullmatch(line) for line in text.split("\n")[:-1]]
    if not text.endswith("\n") or not all(lines):
        raise ValueError(f"'{path.name}' must hold lines of `git ls-tree -r`")
    return {line[3]: line[2] for line in lines if line and line[1] == "blob"}


def _environment(repository: Path, remote: str) -> dict[str, str]:
    """Git's environment: the user's without its git variables and settings; it never asks for anything."""
    return {
        **{name: value for name, value in os.environ.items() if not _OTHERS_GIT.match(name)},
        "GIT_DIR": str(repository),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",  # empty: no program that asks, SSH_ASKPASS neither
        "GIT_ALLOW_PROTOCOL": urlsplit(remote).scheme,  # no redirection to ssh or a command
        "LC_ALL": "C",
    }


def _git(environment: dict[str, str], *arguments: str) -> bytes:
    # Paths are printed as they are; nothing is left running in the background.
    command = ["git", "-c", "core.quotePath=false", "-c", "maintenance.auto=false", *arguments]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=TIMEOUT_SECONDS, check=True,
    )  # fmt: skip
    return done.stdout
