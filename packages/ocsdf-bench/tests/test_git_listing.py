"""Files held to a git commit: what git lists is kept, used offline, and refuses a changed byte."""

from __future__ import annotations

import doctest
import io
import os
import re
import shutil
import subprocess
import threading
import warnings
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from ocsdf_bench import git_listing
from ocsdf_bench.dataset import DataCorruptError
from ocsdf_bench.datasets import odds
from ocsdf_bench.git_listing import Commit, NoListingError, commit_file
from ocsdf_bench.source import MirrorOrDownload, file_digest

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs the git program")

ROW = {
    "name": "x",
    "file": "1_x.npz",
    "digest": "",
    "n_normal": "8",
    "n_anomaly": "2",
    "n_features": "3",
}
NAME = "adbench/datasets/Classical/1_x.npz"


def _table(fill: float = 1.0) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, X=np.full((10, 3), fill), y=np.repeat([0, 1], [8, 2]))
    return stream.getvalue()


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgSign=false")
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commit:
    """One commit of a local Minqi824/ADBench, which stands for GitHub's: 1_x.npz, a text, a submodule."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "hub" / "Minqi824" / "ADBench"
    (folder / NAME).parent.mkdir(parents=True)
    (folder / NAME).write_bytes(_table())
    (folder / "é t.txt").write_text("other\n")
    _git(folder, "init", "--quiet")
    for setting in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        _git(folder, "config", setting, "true")
    _git(folder, "add", ".")
    _git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},submodule")
    _git(folder, "commit", "--quiet", "--message", "first")
    found = Commit(folder.as_uri(), _git(folder, "rev-parse", "HEAD"))
    # Not the branch's tip: it is the commit that is asked for.
    (folder / NAME).write_bytes(_table(fill=2.0))
    _git(folder, "commit", "--quiet", "--all", "--message", "second")
    monkeypatch.setattr(git_listing, "GITHUB", (tmp_path / "hub").as_uri())
    raw = f"https://raw.githubusercontent.com/Minqi824/ADBench/{found.hash}/adbench/datasets/Classical/"
    monkeypatch.setattr(odds, "_ADBENCH", raw)
    return found


@pytest.fixture
def source(tmp_path: Path) -> MirrorOrDownload:
    (tmp_path / "mirror" / "odds").mkdir(parents=True)
    (tmp_path / "mirror" / "odds" / "1_x.npz").write_bytes(_table())
    return MirrorOrDownload(data_dir=tmp_path / "mirror", cache=tmp_path / "cache")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that the module runs, as they come."""
    ran, run = list[str](), git_listing._git

    def record(environment: dict[str, str], *arguments: str) -> bytes:
        ran.append(arguments[0])
        return run(environment, *arguments)

    monkeypatch.setattr(git_listing, "_git", record)
    return ran


def _load(source: MirrorOrDownload) -> None:
    """Load 1_x without a word: every warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        odds.load_table(ROW, source)


def _change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[10] ^= 1  # a time stamp of the archive: X, y and the counts stay
    path.write_bytes(content)


def _kept(source: MirrorOrDownload) -> list[str]:
    return sorted(str(path.relative_to(source.cache_dir)) for path in source.cache_dir.rglob("*"))


def test_doctests_of_the_module_hold() -> None:
    assert doctest.testmod(git_listing).failed == 0


# --- the listing


def test_the_listing_has_gits_ids_of_the_files_of_that_commit(commit: Commit, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(_table())
    (tmp_path / "other").write_text("other\n")
    assert commit.blobs(tmp_path / "cache" / "listing", fetch=True) == {
        NAME: file_digest(tmp_path / "x", "git"),
        "é t.txt": file_digest(tmp_path / "other", "git"),
    }
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["listing"]


def test_the_listing_is_fetched_without_contents_of_files(
    commit: Commit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, objects = git_listing._git, list[str]()

    def count(environment: dict[str, str], *arguments: str) -> bytes:
        printed = run(environment, *arguments)
        if arguments[0] == "fetch":
            options = ("--batch-all-objects", "--batch-check=%(objecttype)")
            objects.extend(run(environment, "cat-file", *options).decode().split())
        return printed

    monkeypatch.setattr(git_listing, "_git", count)
    commit.blobs(tmp_path / "listing", fetch=True)
    assert sorted(objects) == ["commit", "tree", "tree", "tree", "tree"]


def test_the_listing_is_fetched_once_and_used_offline(
    commit: Commit, tmp_path: Path, commands: list[str]
) -> None:
    first = commit.blobs(tmp_path / "listing", fetch=True)
    assert commands == ["init", "fetch", "ls-tree"]
    shutil.rmtree(tmp_path / "hub")
    assert commit.blobs(tmp_path / "listing", fetch=True) == first
    assert commit.blobs(tmp_path / "listing", fetch=False) == first
    assert commands == ["init", "fetch", "ls-tree"]


@pytest.mark.parametrize("damage", [b"", b"100644 blob 00\tname\n", b"\xff\n", None], ids=repr)
def test_a_malformed_listing_is_fetched_again(damage: bytes | None, commit: Commit, tmp_path: Path) -> None:
    kept = tmp_path / "listing"
    right = commit.blobs(kept, fetch=True)
    content = kept.read_bytes()
    kept.write_bytes(content[:-3] if damage is None else damage)  # None: torn in the last name
    with pytest.raises(NoListingError, match="not in the cache"):
        commit.blobs(kept, fetch=False)
    assert commit.blobs(kept, fetch=True) == right
    assert kept.read_bytes() == content


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
def test_an_interrupted_fetch_leaves_nothing(
    step: str, commit: Commit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, _: object) -> None:
        with path.open("wb") as stream:
            stream.write(b"100644 b")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        commit.blobs(tmp_path / "cache" / "listing", fetch=True)
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_users_git_variables_and_settings_play_no_part(
    commit: Commit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text(f'[url "file:///nowhere/"]\n\tinsteadOf = "{commit.repository}"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "nowhere"))
    assert NAME in commit.blobs(tmp_path / "listing", fetch=True)
    assert not (tmp_path / "nowhere").exists()


def test_git_speaks_the_protocol_of_the_address_only(tmp_path: Path) -> None:
    assert git_listing._environment(tmp_path, "https://example.org/a")["GIT_ALLOW_PROTOCOL"] == "https"


@pytest.mark.parametrize("url", [None, "https://example.org/a", f"https://github.com/a/b/raw/{'0' * 40}/c"])
def test_an_address_that_names_no_commit_has_none(url: str | None) -> None:
    assert commit_file(url) is None


def test_the_path_of_an_address_is_decoded() -> None:
    found = commit_file("https://raw.githubusercontent.com/a/b/" + "0" * 40 + "/c%20d.npz")
    assert found == (Commit("https://github.com/a/b", "0" * 40), "c d.npz")


# --- why there is none


def test_a_commit_that_the_repository_lacks_has_no_listing(commit: Commit, tmp_path: Path) -> None:
    with pytest.raises(NoListingError, match="git failed: .*" + "0" * 40):
        replace(commit, hash="0" * 40).blobs(tmp_path / "cache" / "listing", fetch=True)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_hash_that_is_no_commit_of_files_has_no_listing(commit: Commit, tmp_path: Path) -> None:
    blob = commit.blobs(tmp_path / "listing", fetch=True)[NAME]
    with pytest.raises(NoListingError, match="git failed: .*not a tree object"):
        replace(commit, hash=blob).blobs(tmp_path / "another", fetch=True)


class _AsksForAName(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=here")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_nobody_is_asked_for_a_name_or_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ask").write_text(f"#!/bin/sh\ntouch '{tmp_path}/asked'\n")
    (tmp_path / "ask").chmod(0o755)
    monkeypatch.setenv("SSH_ASKPASS", str(tmp_path / "ask"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), _AsksForAName) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        commit = Commit(f"http://127.0.0.1:{server.server_port}/a/b", "0" * 40)
        with pytest.raises(NoListingError, match="terminal prompts disabled"):
            commit.blobs(tmp_path / "listing", fetch=True)
        server.shutdown()
    assert not (tmp_path / "asked").exists()


def test_a_git_that_hangs_is_given_up(
    commit: Commit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(git_listing, "TIMEOUT_SECONDS", 0.2)
    with pytest.raises(NoListingError, match=r"more than 0\.2 s"):
        commit.blobs(tmp_path / "listing", fetch=True)


# --- a file held to it


def test_the_right_file_passes_without_a_warning_and_without_a_pin(
    commit: Commit, source: MirrorOrDownload
) -> None:
    _load(source)
    assert _kept(source) == ["odds", f"odds/{commit.hash}.ls-tree"]
    _load(replace(source, offline=True))


def test_a_changed_byte_is_refused(commit: Commit, source: MirrorOrDownload, tmp_path: Path) -> None:
    path = tmp_path / "mirror" / "odds" / "1_x.npz"
    right = file_digest(path, "git")
    _change_a_byte(path)
    changed = file_digest(path, "git")
    with pytest.raises(
        DataCorruptError, match=f"1_x.npz' must have git id {right}.*{commit.hash}; got {changed}.*replace it"
    ):
        _load(source)
    assert _kept(source) == ["odds", f"odds/{commit.hash}.ls-tree"]


def test_a_changed_byte_in_the_cache_is_removed(commit: Commit, source: MirrorOrDownload) -> None:
    alone = replace(source, data_dir=source.cache_dir / "no-mirror")
    path = source.cache_dir / "odds" / "1_x.npz"
    path.parent.mkdir(parents=True)
    path.write_bytes(_table())
    _load(alone)
    _change_a_byte(path)
    with pytest.raises(DataCorruptError, match="must have git id .*removed from the cache"):
        _load(alone)
    assert not path.exists()


def test_a_file_that_the_commit_lacks_is_refused(commit: Commit, source: MirrorOrDownload) -> None:
    assert source.mirror is not None
    (source.mirror / "odds" / "2_y.npz").write_bytes(_table())
    with pytest.raises(DataCorruptError, match="2_y.npz' of commit .* without such a file: correct"):
        odds.load_table({**ROW, "file": "2_y.npz"}, source)


def test_the_commit_overrules_what_was_seen_first(
    commit: Commit, source: MirrorOrDownload, tmp_path: Path
) -> None:
    path = tmp_path / "mirror" / "odds" / "1_x.npz"
    _change_a_byte(path)
    with pytest.warns(UserWarning, match="first sight"):
        odds.load_table(ROW, replace(source, offline=True))
    commit.blobs(source.cache_dir / "odds" / f"{commit.hash}.ls-tree", fetch=True)
    with pytest.raises(DataCorruptError, match="must have git id"):
        _load(source)
    path.write_bytes(_table())
    _load(source)


def _expect_first_sight(source: MirrorOrDownload, commit: Commit, why: str) -> None:
    """The file is pinned, and one warning names it, the commit, the reason and the remedy."""
    record = source.cache_dir / "odds" / "1_x.npz.sha256"
    with pytest.warns(UserWarning, match="first sight") as caught:
        odds.load_table(ROW, source)
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("data file '1_x.npz' is held to the sha256 it had at first sight")
    assert re.search(rf"{commit.hash} of {re.escape(git_listing.GITHUB)}/Minqi824/ADBench \(.*{why}", text)
    assert f"delete '{record}'" in text
    assert _kept(source) == ["odds", "odds/1_x.npz.sha256"]


def test_offline_the_file_is_pinned_with_a_warning_whose_remedy_works(
    commit: Commit, source: MirrorOrDownload, commands: list[str]
) -> None:
    _expect_first_sight(replace(source, offline=True), commit, "downloads are off")
    assert commands == []
    (source.cache_dir / "odds" / "1_x.npz.sha256").unlink()
    _load(source)
    assert commands == ["init", "fetch", "ls-tree"]


def test_without_git_the_file_is_pinned_with_a_warning(
    commit: Commit, source: MirrorOrDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    _expect_first_sight(source, commit, "git is not installed")


def test_without_the_repository_the_file_is_pinned_with_a_warning_and_git_is_not_asked_again(
    commit: Commit, source: MirrorOrDownload, tmp_path: Path, commands: list[str]
) -> None:
    shutil.rmtree(tmp_path / "hub")
    _expect_first_sight(source, commit, "git failed: .*ADBench")
    assert commands == ["init", "fetch"]
    _expect_first_sight(source, commit, "not in the cache")
    assert commands == ["init", "fetch"]


def test_of_a_wrong_commit_the_file_is_pinned_with_a_warning(
    commit: Commit, source: MirrorOrDownload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odds, "_ADBENCH", odds._ADBENCH.replace(commit.hash, "0" * 40))
    _expect_first_sight(source, replace(commit, hash="0" * 40), "git failed: .*" + "0" * 40)


def test_what_is_pinned_still_refuses_another_file(
    commit: Commit, source: MirrorOrDownload, tmp_path: Path
) -> None:
    offline = replace(source, offline=True)
    _expect_first_sight(offline, commit, "downloads are off")
    _change_a_byte(tmp_path / "mirror" / "odds" / "1_x.npz")
    with pytest.raises(DataCorruptError, match="must have sha256 .* seen first"):
        odds.load_table(ROW, offline)
