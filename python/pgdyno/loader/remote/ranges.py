"""Ranges of an object: tried again where they broke, and several at a time."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from pgdyno.loader.remote.store import Object, TransientError

from ...base.errors import HostError

T = TypeVar("T")

RANGE_BYTES = 8 << 20
"""Of one request: what Amazon's guidelines on the performance of S3 call typical is 8 or 16 MB."""
AHEAD = 4
"""Ranges of one object at a time: those guidelines assume 85 to 90 MB/s for each, so that four fill 2.5 Gbit/s."""
AHEAD_ALL = 16
"""The same of all objects that are read at a time, unless there are more of them: 128 MiB."""


@dataclass(frozen=True)
class Patience:
    """How long a request is repeated. A reply with data restarts this time."""

    tries: int = 9
    """In a row that brought nothing: with the pauses between them about half a minute."""
    pause_first_s: float = 0.2
    pause_most_s: float = 10.0

    def pause_s(self, tried: int, dropped: TransientError) -> float:
        """Before the next try: twice as long each time, and a little by chance, so that not all come back at once."""
        longest = min(self.pause_most_s, self.pause_first_s * 2.0 ** (tried - 1))
        return max(longest * random.uniform(0.5, 1.0), min(dropped.wait_s, self.pause_most_s))


PATIENCE = Patience()
PATIENCE_AT_FIRST = Patience(tries=4)
"""For an address that nothing has come from yet: it may be a wrong one."""


class DownloadStopped(Exception):
    """The bytes are no longer needed."""


class Stop:
    """The order to stop: of one stream, or of all below it."""

    def __init__(self, above: Stop | None = None) -> None:
        self._event = threading.Event()
        self._above = above

    def now(self) -> None:
        """Give it."""
        self._event.set()

    @property
    def given(self) -> bool:
        """Whether it was given."""
        return self._event.is_set() or (self._above is not None and self._above.given)

    def wait(self, seconds: float) -> None:
        """Wait, unless and until it is given here."""
        self._event.wait(seconds)


def fetch(source: Object, first: int, end: int, patience: Patience = PATIENCE, stop: Stop | None = None) -> bytearray:
    """The bytes from ``first`` to before ``end``; after an answer that broke off, from where it broke.

    :class:`HostError` when the store does not answer for long; what :meth:`Object.read` raises; :class:`DownloadStopped`.
    """
    stop = stop or Stop()
    result = bytearray()
    tried = 0
    while len(result) < end - first:
        before = len(result)
        try:
            for piece in source.read(first + before, end):
                result += piece
                if stop.given:
                    raise DownloadStopped
                if len(result) > end - first:
                    del result[before:]
                    raise TransientError("more came than was asked for")
            if len(result) < end - first:
                raise TransientError(f"the answer ended {end - first - len(result):,} bytes too early")
        except TransientError as dropped:
            tried = tried + 1 if len(result) == before else 1
            if tried >= patience.tries:
                raise _unreachable(source.name, dropped) from dropped
            stop.wait(patience.pause_s(tried, dropped))
            if stop.given:
                raise DownloadStopped from dropped
    return result


def again(name: str, work: Callable[[], T], patience: Patience = PATIENCE_AT_FIRST) -> T:
    """What one request brings, however often it takes. :class:`HostError` when the store does not answer."""
    tried = 0
    while True:
        try:
            return work()
        except TransientError as dropped:
            tried += 1
            if tried >= patience.tries:
                raise _unreachable(name, dropped) from dropped
            Stop().wait(patience.pause_s(tried, dropped))


def _unreachable(name: str, dropped: TransientError) -> HostError:
    return HostError(
        f"{name} cannot be read: {dropped}",
        remedy="see that the store can be reached and answers, and run the same command again",
    )


class Ahead:
    """Reads objects in order, and asks for what comes next before it is wanted. For several threads."""

    def __init__(self, patience: Patience = PATIENCE) -> None:
        self._patience = patience
        self._streams = 0
        self._lock = threading.Lock()
        self.stop = Stop()
        """The order to stop, for all."""

    def pieces(self, source: Object, head: bytes, first: int, end: int) -> Generator[bytes | bytearray]:
        """The bytes from ``first`` to before ``end``; ``head`` is the beginning of the object, which is there already."""
        if first < min(end, len(head)):
            yield head[first:end]
            first = len(head)
        stop = Stop(self.stop)
        under_way: deque[Future[bytearray]] = deque()
        with self._counted():
            try:
                while first < end or under_way:
                    while first < end and len(under_way) < self._ahead():
                        after = min(end, first + RANGE_BYTES)
                        under_way.append(self._begin(source, first, after, stop))
                        first = after
                    yield under_way.popleft().result()
            finally:
                stop.now()

    def _begin(self, source: Object, first: int, end: int, stop: Stop) -> Future[bytearray]:
        return _begun(lambda: fetch(source, first, end, self._patience, stop))

    def _ahead(self) -> int:
        return max(1, min(AHEAD, AHEAD_ALL // max(1, self._streams)))

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """One stream more, as long as the block."""
        with self._lock:
            self._streams += 1
        try:
            yield
        finally:
            with self._lock:
                self._streams -= 1


def _begun(work: Callable[[], bytearray]) -> Future[bytearray]:
    """Work on a separate thread, whose end need not be awaited: a store may be silent for a while."""
    future: Future[bytearray] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 (it is raised where the bytes are waited for)
            future.set_exception(error)

    threading.Thread(target=run, name="pgdyno-range", daemon=True).start()
    return future
