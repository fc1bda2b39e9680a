"""Objects elsewhere: ranges that break, stores that lie, checksums, names. No server of PostgreSQL."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import socket
import stat
import threading
import zlib
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import HostError, InputError, ObjectChanged, PgdynoError
from pgdyno.loader import remote
from pgdyno.loader.remote import ranges, s3, serve, web
from pgdyno.loader.remote.checksum import ALGORITHMS, RollingChecksum
from pgdyno.loader.remote.find import Remote
from pgdyno.loader.remote.ranges import AHEAD, Ahead, Patience
from pgdyno.loader.remote.store import PIECE_BYTES, Checksum
from pgdyno.machine.waiting import wait_until

from .stores import Held, Store, content, store

if TYPE_CHECKING:
    from pathlib import Path

SOON = Patience(tries=3, pause_first_s=0.001, pause_most_s=0.002)
WAIT_S = 30.0
HEAD = 1000
"""Of a file's beginning, here."""


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with store() as started:
        yield started


def found(address: str, head: int = HEAD) -> Remote:
    (result,) = remote.find(address, remote.S3(), head)
    return result


def everything(remote: Remote) -> bytes:
    return b"".join(Ahead(SOON).pieces(remote.object, remote.head, 0, remote.bytes))


DATA = content(5 * PIECE_BYTES)


@pytest.mark.parametrize(
    "faults", [["drop"], ["short", "drop"], ["500", "503"], ["whole", "429"], ["drop", "500", "drop", "drop"]]
)
def test_a_file_behind_an_address_is_whole_whatever_breaks(server: Store, faults: list[str]) -> None:
    server.held["/a.csv"] = Held(DATA, faults=list(faults))
    remote = found(f"{server.url}/a.csv?X-Amz-Signature=secret")
    assert (remote.name, remote.file_name) == (f"{server.url}/a.csv", "/a.csv")
    assert everything(remote) == DATA
    assert server.held["/a.csv"].faults == []


def test_after_a_drop_it_goes_on_where_it_broke(server: Store) -> None:
    server.held["/b.csv"] = Held(DATA, faults=["drop"])
    assert everything(found(f"{server.url}/b.csv")) == DATA
    beginning, rest, after = server.gets("/b.csv")
    assert (beginning, rest) == (0, HEAD)
    assert after is not None
    assert (len(DATA) - HEAD) // 2 - PIECE_BYTES < after - HEAD <= (len(DATA) - HEAD) // 2


def test_several_ranges_are_asked_for_at_a_time(server: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "RANGE_BYTES", 10_000)
    size = HEAD + 2 * AHEAD * 10_000
    # None of them is answered before all have come.
    server.held["/c.csv"] = Held(content(size), meet=threading.Barrier(AHEAD))
    assert everything(found(f"{server.url}/c.csv")) == content(size)


@pytest.mark.parametrize("conditions", [True, False])
@pytest.mark.parametrize("etags", [('"1"', '"2"'), ('W/"1"', 'W/"2"'), (None, None)])
def test_a_file_that_changes_is_refused(server: Store, etags: tuple[str, str], conditions: bool) -> None:
    server.held["/d.csv"] = Held(DATA, etags[0])
    remote = found(f"{server.url}/d.csv")
    changed = Held(DATA[::-1], etags[1], "Sun, 22 Nov 2026 11:00:00 GMT", conditions=conditions)
    server.held["/d.csv"] = changed
    with pytest.raises(ObjectChanged, match="was changed while it was read"):
        everything(remote)
    server.held["/d.csv"] = Held(DATA[:HEAD], etags[0])
    with pytest.raises(ObjectChanged):
        everything(remote)
    assert found(f"{server.url}/d.csv").fingerprint != remote.fingerprint


@pytest.mark.parametrize("etag", ['W/"1"', None])
def test_a_file_that_changes_while_its_last_part_comes_is_not_taken_for_whole(server: Store, etag: str | None) -> None:
    """The condition of a weak ETag, or of a time, is looked at when an answer begins, and the content comes after that."""
    server.held["/z.csv"] = Held(DATA, etag)
    remote = found(f"{server.url}/z.csv")
    served = serve.LocalServer([remote], SOON)
    pieces = served._content({"object": 0, "first": 0, "whole": True})
    came = 0
    with pytest.raises(ObjectChanged) as caught:
        for piece in pieces:
            came += len(piece)
            if came == len(DATA):
                server.held["/z.csv"] = Held(DATA[::-1], etag and 'W/"2"', "Sun, 22 Nov 2026 11:00:00 GMT")
    assert came == len(DATA)
    assert (caught.value.code, caught.value.data) == ("load.source.changed", {"source": remote.name})
    assert remote.failure is caught.value


def test_a_file_without_ranges_is_read_if_its_beginning_is_all(server: Store) -> None:
    server.held["/small.csv"] = Held(b"id\n1\n", ranges=False)
    assert everything(found(f"{server.url}/small.csv")) == b"id\n1\n"
    server.held["/large.csv"] = Held(DATA, ranges=False)
    with pytest.raises(InputError, match="does not give parts of a file") as error:
        found(f"{server.url}/large.csv")
    assert "curl" in error.value.remedy


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://example.org/a.csv", "does not come by https"),
        ("https://user:hunter2@example.org/a.csv", "seen by all who list processes"),
        ("ftp://example.org/a.csv", "begin with s3:// or https://"),
        ("gs://bucket/a.csv", "begin with s3:// or https://"),
        ("{}/absent.csv", "does not exist"),
        ("{}/round.csv", "from place to place"),
        ("{}/away.csv", "does not come by https"),
        ("{}/a.csv#sha256=12", "is not a checksum"),
        ("https://example.org:port/a.csv", "is not a valid address"),
        ("s3://bucket", "is a bucket"),
        ("s3://bucket/folder/", "is a folder"),
    ],
)
def test_an_address_that_cannot_be_read_is_one_sentence(server: Store, address: str, said: str) -> None:
    server.held |= {
        "/a.csv": Held(DATA),
        "/round.csv": Held(b"", redirect="/round.csv"),
        "/away.csv": Held(b"", redirect="http://example.org/a.csv"),
    }
    with pytest.raises(InputError, match=said) as error:
        found(address.format(server.url))
    assert error.value.remedy
    assert "hunter2" not in f"{error.value} {error.value.remedy}"


def test_a_redirect_is_followed_anew_by_each_request(server: Store) -> None:
    server.held["/here.csv"] = Held(b"", redirect="/there.csv?X-Goog-Signature=1")
    server.held["/there.csv"] = Held(DATA)
    assert everything(found(f"{server.url}/here.csv")) == DATA
    assert len(server.gets("/here.csv")) == len(server.gets("/there.csv")) == 2


@given(st.text(st.characters(codec="ascii", categories=("Lu", "Ll", "Nd")), min_size=8))
def test_nothing_secret_is_in_a_name(secret: str) -> None:
    base = "https://h.example/d/a.csv"
    signed = (f"X-Amz-Credential={secret}&X-Amz-Signature={secret}", f"sv=1&sig={secret}", f"X-Goog-Signature={secret}")
    assert {web.shown(f"{base}?{query}") for query in signed} == {base}
    assert web.shown(f"https://u:{secret}@h.example/d/a.csv") == base
    other = web.shown(f"{base}?part=1&key={secret}")
    assert other.startswith(f"{base}?")
    assert len(other) == len(base) + 9
    assert other == web.shown(f"{base}?part=1&key={secret}&X-Amz-Signature=2")
    assert other != web.shown(f"{base}?part=2&key={secret}")


CHECKED = {"CRC32": "cbf43926", "CRC32C": "e3069283", "CRC64NVME": "ae8b14860a799888"}
"""Of the nine bytes "123456789", as catalogues of cyclic redundancy checks have them."""


@pytest.mark.parametrize("name", CHECKED)
def test_cyclic_redundancy_checks_have_the_published_values(name: str) -> None:
    digest = ALGORITHMS[name]()
    digest.update(b"1234")
    digest.update(b"56789")
    assert digest.digest().hex() == CHECKED[name]


@given(
    st.sampled_from(sorted(ALGORITHMS)), st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=5), st.data()
)
def test_a_fold_knows_what_was_stored_from_everything_else(name: str, parts: list[bytes], data: st.DataObject) -> None:
    """Of the whole and of parts, whatever pieces it comes in."""
    whole = b"".join(parts)

    def value(content: bytes) -> bytes:
        digest = ALGORITHMS[name]()
        digest.update(content)
        return digest.digest()

    of_parts = Checksum(name, value(b"".join(value(part) for part in parts)), tuple(len(part) for part in parts))
    cuts = sorted({0, len(whole), *data.draw(st.lists(st.integers(0, len(whole)), max_size=5))})
    place = data.draw(st.integers(0, len(whole) - 1))
    other = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    for checksum in (Checksum(name, value(whole)), of_parts):
        for came, right in ((whole, True), (other, False), (whole[:-1], False)):
            fold = RollingChecksum(checksum)
            for begin, end in pairwise([*cuts, len(came)]):
                fold.add(came[begin:end])
            assert (fold.wrong() is None) == right


def test_checksums_are_taken_from_where_they_stand(server: Store) -> None:
    digest = hashlib.sha256(DATA)
    decode = base64.b64encode(digest.digest()).decode()
    server.held["/e.csv"] = Held(DATA, headers={"Repr-Digest": f"md5=:AAAA:, sha-256=:{decode}:"})
    assert found(f"{server.url}/e.csv").object.facts.checksum == Checksum("SHA256", digest.digest())
    stated = found(f"{server.url}/e.csv#sha256={'0' * 64}")
    assert stated.object.facts.checksum == Checksum("SHA256", bytes(32))
    assert stated.name == f"{server.url}/e.csv"


@pytest.mark.parametrize("text", ["AAAAA", "AAAA", "AAAA="])
def test_what_is_no_checksum_is_left_unsaid(server: Store, text: str) -> None:
    """Too short to be one, or no base64 at all: the content is not held to it, and one that stands behind it counts."""
    good = hashlib.sha512(DATA).digest()
    behind = f"sha-512=:{base64.b64encode(good).decode()}:"
    server.held |= {
        "/i.csv": Held(DATA, headers={"Repr-Digest": f"sha-256=:{text}:"}),
        "/j.csv": Held(DATA, headers={"Repr-Digest": f"sha-256=:{text}:, {behind}"}),
    }
    assert found(f"{server.url}/i.csv").object.facts.checksum is None
    assert found(f"{server.url}/j.csv").object.facts.checksum == Checksum("SHA512", good)


def of_s3(server: Store, key: str) -> Remote:
    (result,) = remote.find(f"s3://bucket/{key}", remote.S3(server.url, anonymous=True), HEAD)
    return result


def test_s3_says_what_its_checksums_are_of(server: Store) -> None:
    """Of the whole; of parts whose lengths it says; of parts that it says nothing of."""
    sizes = (3 * PIECE_BYTES, 2 * PIECE_BYTES)
    ends = list(accumulate(sizes, initial=0))
    crcs = b"".join(zlib.crc32(DATA[begin:end]).to_bytes(4, "big") for begin, end in pairwise(ends))
    of_parts = zlib.crc32(crcs).to_bytes(4, "big")
    text = base64.b64encode(of_parts).decode()
    sha = hashlib.sha256(DATA).digest()
    whole = {"x-amz-checksum-sha256": base64.b64encode(sha).decode(), "x-amz-checksum-type": "FULL_OBJECT"}
    parts = {"x-amz-checksum-crc32": f"{text}-2", "x-amz-checksum-type": "COMPOSITE"}
    server.held |= {
        "/bucket/whole": Held(DATA, headers=whole),
        "/bucket/parts": Held(DATA, headers=parts, parts=sizes),
        "/bucket/silent": Held(DATA, headers=parts),
        "/bucket/none": Held(DATA),
    }
    known = {key: of_s3(server, key).object.facts.checksum for key in ("whole", "parts", "silent", "none")}
    assert known["whole"] == Checksum("SHA256", sha)
    assert known["parts"] == Checksum("CRC32", of_parts, sizes)
    assert (known["silent"], known["none"]) == (None, None)
    assert known["parts"] is not None
    fold = RollingChecksum(known["parts"])
    fold.add(everything(of_s3(server, "parts")))
    assert fold.wrong() is None


@pytest.mark.parametrize("faults", [["drop"], ["500", "short"], ["whole", "503", "drop"]])
def test_an_object_of_s3_is_whole_whatever_breaks(server: Store, faults: list[str]) -> None:
    server.held["/bucket/a b/ü.csv"] = Held(DATA, faults=list(faults))
    remote = of_s3(server, "a b/ü.csv")
    assert remote.name == "s3://bucket/a b/ü.csv"
    assert everything(remote) == DATA
    for conditions in (True, False):
        server.held["/bucket/a b/ü.csv"] = Held(DATA[::-1], '"second"', conditions=conditions)
        with pytest.raises(ObjectChanged):
            everything(remote)


@pytest.mark.parametrize("address", ["{}/bucket/stalled.csv", "s3://bucket/stalled.csv"])
def test_a_connection_on_which_nothing_comes_is_given_up(
    server: Store, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    for module in (web, s3):
        monkeypatch.setattr(module, "READ_S", 0.3)
    web._pool.cache_clear()
    server.held["/bucket/stalled.csv"] = Held(DATA, faults=["stall", "stall"])
    (result,) = remote.find(address.format(server.url), remote.S3(server.url, anonymous=True), HEAD)
    assert everything(result) == DATA
    web._pool.cache_clear()
    assert server.gets("/bucket/stalled.csv")[-3:] == [HEAD] * 3


def test_an_archived_object_is_not_taken_for_one_that_is_forbidden() -> None:
    """S3 says 403 of both; no credentials help with Glacier."""
    document = {"Code": "InvalidObjectState", "Message": "The operation is not valid for the object's storage class"}
    error = s3._refused("s3://bucket/a.csv", {"ResponseMetadata": {"HTTPStatusCode": 403}, "Error": document})
    assert isinstance(error, InputError)
    assert "is archived" in error.message
    assert "restore-object" in error.remedy


def test_a_store_that_is_not_there_is_said() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{closed.getsockname()[1]}"
    for address, where in ((f"http://{place}/a.csv", None), ("s3://bucket/a.csv", f"http://{place}")):
        with pytest.raises(HostError, match="cannot be read") as error:
            remote.find(address, remote.S3(where, anonymous=True), HEAD)
        assert "can be reached" in error.value.remedy


@pytest.mark.parametrize(
    ("key", "pattern", "fits"),
    [
        ("in/a.csv", "in/*.csv", True),
        ("in/deep/a.csv", "in/*.csv", False),
        ("in/deep/a.csv", "*/*/?.csv", True),
        ("in/a1.csv", "in/a[0-3].csv", True),
        ("in/A.csv", "in/a.csv*", False),
        ("out/in/a.csv", "in/*.csv", False),
    ],
)
def test_a_pattern_fits_whole_keys_folder_by_folder(key: str, pattern: str, fits: bool) -> None:
    assert s3._fits(key, pattern) == fits


def asked_of(path: Path, **request: Any) -> list[tuple[bytes, bytes]]:
    """The frames of an answer."""
    frames = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(WAIT_S)
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answer:
            while frame := answer.read(5):
                frames.append((frame[:1], answer.read(int.from_bytes(frame[1:], "big"))))
    return frames


def test_the_engine_is_given_what_it_asks_for_where_nobody_else_may_ask(server: Store) -> None:
    wrong = {"Repr-Digest": f"sha-256=:{base64.b64encode(bytes(32)).decode()}:"}
    server.held |= {"/f.csv": Held(DATA), "/g.csv": Held(DATA, headers=wrong)}
    objects = [found(f"{server.url}/f.csv"), found(f"{server.url}/g.csv")]
    with serve.LocalServer(objects, SOON) as served:
        assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(served.path.parent.stat().st_mode) == 0o700
        frames = asked_of(served.path, object=0, first=7, whole=True)
        assert b"".join(content for kind, content in frames if kind == b"D") == DATA[7:]
        assert frames[-1] == (b"Z", b"")
        *content_frames, last = asked_of(served.path, object=1, first=HEAD + 5, whole=True)
        assert b"".join(content for _, content in content_frames) == DATA[HEAD + 5 :]
        assert last[0] == b"E"
        assert "other content than was stored: its SHA256 is" in json.loads(last[1])["message"]
        assert asked_of(served.path, object=1, first=0, whole=False)[-1] == (b"Z", b"")
        folder = served.path.parent
    assert not folder.exists()
    assert [str(remote.failure or "")[:4] for remote in objects] == ["", server.url[:4]]


@pytest.mark.parametrize("times", [2, 1 << 30])
def test_a_connection_that_cannot_be_taken_is_tried_again_and_then_said(
    server: Store, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Where there is no descriptor left. Whoever asks must not wait for an answer that never comes."""
    accept, left = socket.socket.accept, [times]

    def full(listening: socket.socket) -> tuple[socket.socket, Any]:
        if listening.family == socket.AF_UNIX and left[0]:
            left[0] -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", full)
    if times > 2:
        monkeypatch.setattr(serve, "ACCEPT_S", 0.0)
    server.held["/k.csv"] = Held(DATA)
    failed: list[BaseException] = []
    with serve.LocalServer([found(f"{server.url}/k.csv")], SOON, failed) as served:
        if times == 2:
            assert asked_of(served.path, object=0, first=0, whole=True)[-1] == (b"Z", b"")
            assert failed == []
            return
        assert wait_until(lambda: bool(failed), WAIT_S)
    (error,) = failed
    assert isinstance(error, HostError)
    assert "Too many open files" in error.message
    assert "ulimit" in error.remedy


def test_a_file_can_be_read_at_any_place(server: Store) -> None:
    server.held["/h.bin"] = Held(DATA)
    with remote.Seekable(found(f"{server.url}/h.bin")) as file:
        assert (file.seek(-9, 2), file.read(20), file.tell()) == (len(DATA) - 9, DATA[-9:], len(DATA))
        assert (file.seek(HEAD - 2), file.read(5), file.seek(1, 1)) == (HEAD - 2, DATA[HEAD - 2 : HEAD + 3], HEAD + 4)
    server.held["/h.bin"].faults += ["403"]
    with remote.Seekable(found(f"{server.url}/h.bin")) as file, pytest.raises(PgdynoError, match="does not let you"):
        file.seek(HEAD)
        file.read(10)
