"""Raw files: mirror, cache, download; nothing wrong is ever kept."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ocsdf_bench.dataset import DataCorruptError, DataUnavailableError
from ocsdf_bench.source import MirrorOrDownload, digest_is

CONTENT = b"rows and columns"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class _Quiet(SimpleHTTPRequestHandler):
    requests = 0

    def do_GET(self) -> None:
        type(self).requests += 1
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Address of a local server of one file, odds/a.npz."""
    (tmp_path / "www" / "odds").mkdir(parents=True)
    (tmp_path / "www" / "odds" / "a.npz").write_bytes(CONTENT)
    _Quiet.requests = 0
    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path / "www")))
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/odds/a.npz"
    served.shutdown()
    served.server_close()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MirrorOrDownload:
    monkeypatch.delenv("OCSDF_DATA", raising=False)
    return MirrorOrDownload(cache=tmp_path / "cache")


def _kept(source: MirrorOrDownload) -> list[Path]:
    return [path for path in source.cache_dir.rglob("*") if path.is_file()]


def _put(folder: Path, content: bytes = CONTENT) -> Path:
    path = folder / "odds" / "a.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_download_is_checked_kept_and_not_repeated(source: MirrorOrDownload, server: str) -> None:
    first = source.path("odds/a.npz", url=server, sha256=SHA256)
    second = source.path("odds/a.npz", url=server, sha256=SHA256)
    assert first == second == source.cache_dir / "odds" / "a.npz"
    assert first.read_bytes() == CONTENT
    assert _Quiet.requests == 1


def test_the_mirror_comes_first_and_nothing_is_copied(tmp_path: Path, server: str) -> None:
    expected = _put(tmp_path / "mirror")
    source = MirrorOrDownload(tmp_path / "mirror", cache=tmp_path / "cache")
    assert source.path("odds/a.npz", url=server, sha256=SHA256) == expected
    assert _Quiet.requests == 0
    assert _kept(source) == []


def test_mirror_and_cache_can_be_given_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCSDF_DATA", str(tmp_path / "mirror"))
    monkeypatch.setenv("OCSDF_CACHE", str(tmp_path / "cache"))
    expected = _put(tmp_path / "mirror")
    assert MirrorOrDownload().path("odds/a.npz", url=None, sha256=SHA256) == expected
    assert MirrorOrDownload().cache_dir == tmp_path / "cache"


def test_offline_uses_the_cache_but_never_the_network(source: MirrorOrDownload, server: str) -> None:
    offline = MirrorOrDownload(offline=True, cache=source.cache)
    with pytest.raises(DataUnavailableError, match=r"'odds/a.npz' .*downloads are off; get http.*--data DIR"):
        offline.path("odds/a.npz", url=server, sha256=SHA256)
    assert _Quiet.requests == 0
    source.path("odds/a.npz", url=server, sha256=SHA256)
    assert offline.path("odds/a.npz", url=server, sha256=SHA256).read_bytes() == CONTENT


def test_the_reason_of_an_unavailable_file_names_no_folder_of_this_machine(
    source: MirrorOrDownload, tmp_path: Path
) -> None:
    with pytest.raises(DataUnavailableError) as caught:
        source.path("odds/a.npz", url=None, sha256=SHA256)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_that_the_server_lacks_is_unavailable(source: MirrorOrDownload, server: str) -> None:
    with pytest.raises(DataUnavailableError, match="download failed .HTTP 404."):
        source.path("odds/b.npz", url=server.replace("a.npz", "b.npz"), sha256=SHA256)
    assert _kept(source) == []


def test_no_server_is_unavailable(source: MirrorOrDownload) -> None:
    with pytest.raises(DataUnavailableError, match="download failed .ConnectionError."):
        source.path("odds/a.npz", url="http://127.0.0.1:9/odds/a.npz", sha256=SHA256)
    assert _kept(source) == []


def test_a_download_with_a_wrong_checksum_is_not_kept(source: MirrorOrDownload, server: str) -> None:
    with pytest.raises(DataCorruptError, match=rf"must have sha256 {'0' * 64}; got {SHA256}"):
        source.path("odds/a.npz", url=server, sha256="0" * 64)
    assert _kept(source) == []


def test_a_download_that_its_verifier_refuses_is_not_kept(source: MirrorOrDownload, server: str) -> None:
    with pytest.raises(DataCorruptError, match="must have md5"):
        source.path("odds/a.npz", url=server, sha256=None, verify=digest_is("md5", "0" * 32))
    assert _kept(source) == []


def test_a_truncated_mirror_file_is_named_and_left_alone(tmp_path: Path) -> None:
    path = _put(tmp_path / "mirror", CONTENT[:5])
    source = MirrorOrDownload(tmp_path / "mirror", offline=True, cache=tmp_path / "cache")
    with pytest.raises(DataCorruptError, match=r"a\.npz' must have sha256 .* \(5 bytes\): it is truncated"):
        source.path("odds/a.npz", url=None, sha256=SHA256)
    assert path.exists()


def test_a_cached_file_that_rotted_is_removed(source: MirrorOrDownload, server: str) -> None:
    _put(source.cache_dir, b"rot")
    with pytest.raises(DataCorruptError, match="removed from the cache; run again"):
        source.path("odds/a.npz", url=server, sha256=SHA256)
    assert source.path("odds/a.npz", url=server, sha256=SHA256).read_bytes() == CONTENT


def test_a_folder_in_place_of_a_file_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "odds" / "a.npz").mkdir(parents=True)
    with pytest.raises(DataCorruptError, match="must be a file; got a folder"):
        MirrorOrDownload(tmp_path).path("odds/a.npz", url=None, sha256=SHA256)


def test_the_git_digest_is_the_id_git_gives(tmp_path: Path) -> None:
    path = tmp_path / "hello"
    path.write_bytes(b"hello\n")
    digest_is("git", "ce013625030ba8dba906f756967f9e9ca394464a")(path)  # `git hash-object hello`
    path.write_bytes(b"hello")
    with pytest.raises(DataCorruptError, match="must have git ce01"):
        digest_is("git", "ce013625030ba8dba906f756967f9e9ca394464a")(path)


def test_a_source_can_be_sent_to_a_worker() -> None:
    assert pickle.dumps(MirrorOrDownload(Path("mirror"), True, Path("cache")))
