"""Ranges of an object whose answers break off. No server of PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import HostError, InputError
from pgdyno.loader.remote import ranges, s3, web
from pgdyno.loader.remote.ranges import AHEAD, Ahead, Patience, fetch
from pgdyno.loader.remote.store import LENGTH_BYTES_MAX, ObjectFacts, TransientError, length, wait_s

from .test_remote import SOON

if TYPE_CHECKING:
    pass


@dataclass
class Flaky:
    """An object in memory, whose answers break off where they are told to."""

    data: bytes
    breaks: list[int] = field(default_factory=list)
    """After so many bytes of each answer."""
    asked: list[tuple[int, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    name: str = "flaky"

    @property
    def facts(self) -> ObjectFacts:
        return ObjectFacts(len(self.data), '"e"')

    def read(self, first: int, end: int) -> Iterator[bytes]:
        with self.lock:
            self.asked.append((first, end))
            most = self.breaks.pop(0) if self.breaks else end - first
        for at in range(first, min(end, first + most), 3):
            yield self.data[at : min(at + 3, end, first + most)]
        if most < end - first:
            raise TransientError("broken off")


@given(
    st.binary(min_size=1, max_size=60),
    st.lists(st.integers(1, 20), max_size=10),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_a_range_is_whole_however_often_its_answers_break(data: bytes, breaks: list[int], first: int, end: int) -> None:
    first, end = sorted((min(first, len(data)), min(end, len(data))))
    flaky = Flaky(data, list(breaks))
    assert fetch(flaky, first, end, SOON) == data[first:end]
    # Nothing that came is asked for again.
    assert all(before[0] < after[0] and after[1] == end for before, after in pairwise(flaky.asked))


@given(st.binary(max_size=200), st.integers(0, 80), st.integers(0, 200), st.integers(0, 200), st.integers(1, 30))
def test_pieces_are_in_order_whatever_their_bounds(data: bytes, head: int, first: int, end: int, size: int) -> None:
    first, end = sorted((min(first, len(data)), min(end, len(data))))
    flaky = Flaky(data, [1, 5, 2])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ranges, "RANGE_BYTES", size)
        assert b"".join(Ahead(SOON).pieces(flaky, data[:head], first, end)) == data[first:end]
    assert all(begin >= head for begin, _ in flaky.asked), "what is there already is not asked for"


def test_a_store_that_gives_nothing_is_given_up_and_one_that_gives_a_little_is_not() -> None:
    with pytest.raises(HostError, match="flaky cannot be read: broken off") as error:
        fetch(Flaky(b"abc" * 10, [0] * SOON.tries), 0, 30, SOON)
    assert error.value.remedy
    assert fetch(Flaky(b"abc" * 10, [1, 0] * 20), 0, 30, SOON) == b"abc" * 10


def test_pauses_grow_and_respect_what_the_store_asks_for() -> None:
    patience = Patience(pause_first_s=0.1, pause_most_s=2.0)
    assert all(0.05 * 2**n <= patience.pause_s(n + 1, TransientError("")) <= 0.1 * 2**n for n in range(4))
    assert patience.pause_s(9, TransientError("")) <= 2.0
    assert patience.pause_s(1, TransientError("", 1.5)) == 1.5
    assert patience.pause_s(1, TransientError("", 3600.0)) == 2.0


def test_who_stops_reading_stops_the_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "RANGE_BYTES", 10)
    flaky = Flaky(bytes(1000))
    pieces = Ahead(SOON).pieces(flaky, b"", 0, 1000)
    assert next(pieces) == bytes(10)
    pieces.close()
    assert len(flaky.asked) <= AHEAD


LIES = ["", "-1", "²", "1e9", " 7", "９", str(LENGTH_BYTES_MAX + 1), "9" * 5000]
"""What a store may say for a length: of some, Python makes a number or an exception."""


@pytest.mark.parametrize("said", LIES, ids=range(len(LIES)))
def test_a_length_that_cannot_be_one_is_none(said: str) -> None:
    assert length(said) is None
    assert wait_s(said) == 0.0
    for status, headers in (
        (200, {"Content-Length": said}),
        (206, {"Content-Range": f"bytes 0-9/{said}"}),
    ):
        answer = urllib3.HTTPResponse(b"", headers=headers, status=status, preload_content=False)
        assert web._facts(answer, None) is None
    client = Client({"ContentLength": said, "ETag": '"e"'})
    store = s3.S3()
    store.__dict__["client"] = client
    with pytest.raises(InputError) as caught:
        store.find("bucket", "key")
    assert caught.value.code == "load.object.length"
    assert len(caught.value.message) < 200


@given(st.text(max_size=25))
def test_any_text_is_a_length_or_none(said: str) -> None:
    number = length(said)
    assert number is None or (str(number) == said.lstrip("0") or number == 0)


@dataclass
class Client:
    """A store that says the same of every object, and never that it has said all of its parts."""

    head: dict[str, object]
    asked: int = 0

    def head_object(self, **_: object) -> dict[str, object]:
        return self.head

    def get_object_attributes(self, **_: object) -> dict[str, object]:
        self.asked += 1
        part = {"Size": 1}
        more = {"IsTruncated": True, "NextPartNumberMarker": self.asked // 3}
        return {"ObjectParts": {"Parts": [part] * 1000, **more}}


def test_a_store_that_always_has_more_parts_is_not_asked_for_ever() -> None:
    client = Client({})
    assert s3._parts(client, {"Bucket": "b", "Key": "k"}) == ()
    assert client.asked < 50
