"""What is to be loaded: files, patterns of files, standard input, objects elsewhere. What cannot be, is refused by name."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from pgdyno.loader import parquet, pipe, remote
from pgdyno.loader.pipe import Pipe
from pgdyno.loader.remote import S3, Remote

from ..base.errors import InputError

END_BYTES = 64 << 10
"""Bytes of the beginning and the end of a file, for its fingerprint: reading all of it would take as long as loading it."""
HEAD_BYTES = 1 << 20
"""Bytes of the beginning of a file, to detect its format."""
STREAM_HEAD_BYTES = 64 << 10
"""The same of what comes from a pipe: more would have to be kept."""
STANDARD_INPUT = "-"
_MAGIC = set("*?[")


@dataclass(frozen=True)
class FileState:
    """A file as the kernel described it before its first byte was read. The engine holds it to that before each commit."""

    bytes: int
    mtime_ns: int
    ctime_ns: int
    """When its content or its attributes were changed last. Unlike ``mtime_ns`` no program can set it."""
    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """From what ``stat`` says."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_dev, status.st_ino)

    def document(self, path: str) -> dict[str, Any]:
        """As the engine takes it; ``path`` is where the engine looks."""
        times = {name: divmod(ns, 10**9) for name, ns in (("mtime", self.mtime_ns), ("ctime", self.ctime_ns))}
        return {"path": path, "bytes": self.bytes, **times, "device": self.device, "inode": self.inode}


@dataclass(frozen=True)
class RowSource:
    """One file, or a stream that is read once."""

    name: str
    """As it was named: in messages, and in the plan."""
    head: bytes
    """Its first bytes, as they are stored."""
    bytes_stored: int | None = None
    """Its length; None of a stream."""
    mtime_ns: int | None = None
    sha256: str | None = None
    """SHA-256 of its first and last :data:`END_BYTES`."""
    stream: int | None = None
    """The descriptor of a stream, of which ``head`` has been read."""
    parquet: parquet.ParquetReader | None = None
    """The Parquet file, of whose text ``head`` is the beginning."""
    remote: Remote | None = None
    """An object elsewhere."""
    state: FileState | None = None
    """The file that it is, or that a stream comes from; None of a pipe and of an object."""

    @property
    def fingerprint(self) -> dict[str, Any] | None:
        """Identifies the file, to see that it is the same as before; None for a stream, which cannot be identified."""
        if self.remote is not None:
            return self.remote.fingerprint
        if self.sha256 is None:
            return None
        return {"size": self.bytes_stored, "mtime_ns": self.mtime_ns, "sha256": self.sha256}

    @property
    def file_name(self) -> str:
        """What a file of it is called, which may say its format and the table."""
        return self.name if self.remote is None else self.remote.file_name

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not self.head

    @property
    def whole(self) -> bool:
        """Whether ``head`` is all of it."""
        if self.parquet is not None:
            return self.parquet.whole
        if self.stream is not None:
            return len(self.head) < STREAM_HEAD_BYTES
        return self.bytes_stored == len(self.head)


def find(words: Sequence[str], where: S3 | None = None) -> list[RowSource]:
    """The sources that words of the command line name, patterns in the order of their names. :class:`InputError`.

    Empty ones are among them, unless all are: that is an error. ``where``: how S3 is reached. :class:`HostError` for a store that does not answer.
    """
    sources: list[RowSource] = []
    for word in words:
        sources += (
            [_stream(standard_input().fileno(), "standard input")] if word == STANDARD_INPUT else _named(word, where)
        )
    _refuse_twice(sources)
    if all(source.is_empty for source in sources):
        raise InputError(f"{sources[0].name} is empty", remedy="name a file with rows; nothing was changed")
    return sources


def standard_input() -> TextIO:
    """The stream; :class:`InputError` where there is none."""
    if sys.stdin is None:  # it was closed when this program began
        raise InputError(
            "standard input is closed", remedy="name a file, or let a program write into a pipe to this one"
        )
    return sys.stdin


def _refuse_twice(sources: Sequence[RowSource]) -> None:
    """By the names, and of files by where these lead: rows of ``a.csv`` and of ``./folder/../a.csv`` are the same."""
    first: dict[str, str] = {}
    for source in sources:
        place = source.name if source.sha256 is None else str(Path(source.name).resolve())
        if place in first:
            what = "is named twice" if first[place] == source.name else f"is the same file as {first[place]}"
            raise InputError(f"{source.name} {what}", remedy="name each file once")
        first[place] = source.name


def _named(word: str, where: S3 | None) -> list[RowSource]:
    if remote.is_address(word):
        return [_object(item) for item in remote.find(word, where or remote.S3(), HEAD_BYTES)]
    return _files(word)


def _object(remote: Remote) -> RowSource:
    columnar = None
    if remote.head.startswith(parquet.MAGIC):
        columnar = parquet.facts(remote.name, _opening(remote.name, remote), STREAM_HEAD_BYTES)
    head = remote.head if columnar is None else columnar.head
    return RowSource(remote.name, head, remote.bytes, parquet=columnar, remote=remote)


def matching(word: str) -> list[Path]:
    """The files of a pattern, in the order of their names; none for the path of a file. :class:`InputError` where none matches."""
    path = Path(word)
    if not set(word) & _MAGIC or _is_there(path):
        return []
    paths = sorted(file for file in Path(path.anchor).glob(str(path.relative_to(path.anchor))) if not file.is_dir())
    if not paths:
        raise InputError(f"no file matches {word}", remedy="check the pattern; a shell leaves it as it is in quotes")
    return paths


def _files(word: str) -> list[RowSource]:
    return [_file(path) for path in matching(word) or [Path(word)]]


def with_uuids(source: RowSource, columns: Iterable[str]) -> RowSource:
    """A Parquet file as text in which these columns of sixteen bytes are UUIDs."""
    assert source.parquet is not None
    made = parquet.facts(source.name, _opening(source.name, source.remote), STREAM_HEAD_BYTES, frozenset(columns))
    return replace(source, head=made.head, parquet=made)


def _opening(name: str, one: Remote | None) -> parquet.Open:
    """How each reader of a Parquet file opens it."""
    return lambda: Path(name) if one is None else remote.Seekable(one)


def _is_there(path: Path) -> bool:
    with contextlib.suppress(OSError):  # of what may not be looked at, or has too long a name
        return path.exists()
    return False


def _file(path: Path) -> RowSource:
    try:
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise InputError(f"{path} is a directory", remedy=f"name its files, for example '{path}/*.csv'")
        if not stat.S_ISREG(facts.st_mode):
            return _stream(os.open(path, os.O_RDONLY), str(path))
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            file.seek(max(0, facts.st_size - END_BYTES))
            end = file.read(END_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist", remedy="name a file that is there") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", remedy="name a file that you may read") from None
    digest = hashlib.sha256(head[:END_BYTES] + end).hexdigest()
    columnar = (
        parquet.facts(str(path), _opening(str(path), None), STREAM_HEAD_BYTES)
        if head.startswith(parquet.MAGIC)
        else None
    )
    if columnar is not None:
        head = columnar.head
    state = FileState.of(facts)
    return RowSource(str(path), head, facts.st_size, facts.st_mtime_ns, digest, parquet=columnar, state=state)


def _stream(descriptor: int, name: str) -> RowSource:
    """A pipe, or a terminal, which is refused. A file that was redirected is read as a stream too."""
    if os.isatty(descriptor):
        raise InputError(f"{name} is a terminal", remedy="pipe the rows into it, or name a file")
    status = os.fstat(descriptor)
    state = FileState.of(status) if stat.S_ISREG(status.st_mode) else None
    head = b""
    while len(head) < STREAM_HEAD_BYTES and (read := os.read(descriptor, STREAM_HEAD_BYTES - len(head))):
        head += read
    if not head:
        raise InputError(f"{name} is empty", remedy="nothing was changed; check the command before the pipe")
    if head.startswith(parquet.MAGIC):
        raise InputError(f"{name} is a Parquet file, which is read from its end", remedy="name the file itself")
    return RowSource(name, head, stream=descriptor, state=state)


@contextlib.contextmanager
def opened(
    sources: Sequence[RowSource], failed: list[BaseException] | None = None
) -> Iterator[tuple[list[dict[str, Any]], tuple[int, ...]]]:
    """Where the engine finds each source, in its words, and the descriptors that it must inherit for that.

    ``failed`` gets what breaks off a source that is made here (:func:`parquet.piped`) or given
    from here, whose end then does not come.
    """
    with contextlib.ExitStack() as stack:
        objects = [source.remote for source in sources if source.remote is not None and source.parquet is None]
        served = stack.enter_context(remote.LocalServer(objects, failed=failed)) if objects else None
        numbers = itertools.count()
        places: list[dict[str, Any]] = []
        descriptors: list[int] = []
        for source in sources:
            if source.stream is not None or source.parquet is not None:
                reading, result = stack.enter_context(_piped(source, [] if failed is None else failed))
                descriptors += [reading, result]
                place: dict[str, Any] = {"path": f"/dev/fd/{reading}", "end": f"/dev/fd/{result}"}
                if source.state is not None and source.stream is not None:
                    # Where a redirected file is does not matter, and it may have no name any more.
                    descriptors.append(source.stream)
                    place["file"] = source.state.document(f"/dev/fd/{source.stream}")
                elif source.state is not None:
                    place["file"] = source.state.document(str(Path(source.name).resolve()))
                places.append(place)
            elif source.remote is not None and served is not None:
                document = {"object": next(numbers), "bytes": source.remote.bytes}
                places.append({"path": str(served.path), "remote": document})
            else:
                path = str(Path(source.name).resolve())
                places.append({"path": path} | ({"file": source.state.document(path)} if source.state else {}))
        yield places, tuple(descriptors)


def changed(sources: Iterable[RowSource]) -> InputError | None:
    """The error for the first file that is not as it was; what the engine says of it, for files that are read here."""
    for source in sources:
        before = source.state
        if before is None or source.stream is not None:
            continue
        try:
            now: FileState | None = FileState.of(Path(source.name).stat())
        except OSError:
            now = None
        if now != before:
            old, new = asdict(before), None if now is None else asdict(now)
            return InputError(
                f"{source.name} was changed while it was loaded",
                remedy="load it again when no process writes to it",
                code="load.source.changed",
                data={
                    "source": source.name,
                    "changed": ["removed"]
                    if new is None
                    else [key.removesuffix("_ns") for key in old if old[key] != new[key]],
                    "before": old,
                    "now": new,
                },
            )
    return None


def _piped(source: RowSource, failed: list[BaseException]) -> contextlib.AbstractContextManager[tuple[int, int]]:
    if source.stream is not None:
        return _refilled(source.head, source.stream)
    assert source.parquet is not None
    return parquet.piped(source.name, _opening(source.name, source.remote), failed, source.parquet.uuids)


@contextlib.contextmanager
def _refilled(head: bytes, stream: int) -> Iterator[tuple[int, int]]:
    """A pipe that gives what was read already, and then the rest."""
    made = pipe.made()
    thread = threading.Thread(target=_pour, args=(head, stream, made), name="pgdyno-source", daemon=True)
    thread.start()
    try:
        yield made.read
    finally:
        made.leave()


def _pour(head: bytes, stream: int, to: Pipe) -> None:
    """Everything of ``stream`` after ``head`` into a pipe, until either end is closed."""
    with (
        contextlib.suppress(BrokenPipeError),
        os.fdopen(to.telling, "wb", buffering=0) as end,
        os.fdopen(to.writing, "wb", buffering=0) as out,
    ):
        rest = memoryview(head)
        while rest:
            while rest:
                rest = rest[out.write(rest) or 0 :]
            rest = memoryview(os.read(stream, 1 << 20))
        end.write(pipe.ALL)
