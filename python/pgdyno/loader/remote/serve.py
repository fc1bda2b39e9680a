"""Gives the engine what it reads of objects: over a socket of this user's own, in order, from any place on.

A request is a line of JSON: ``{"object": 0, "first": 0, "whole": true}``, the bytes from ``first`` to the end; ``whole`` says
that they are to be loaded, and so held to the object's checksum. The answer is frames: a letter, four bytes of length
(big-endian), as many bytes. ``D`` is content, ``E`` what went wrong (``{"message", "remedy", "code", "data"}``), ``Z`` that it was all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Self

from pgdyno.loader.remote.checksum import Bytes, RollingChecksum
from pgdyno.loader.remote.find import Remote
from pgdyno.loader.remote.ranges import PATIENCE, Ahead, DownloadStopped, Patience, fetch

from ...base.errors import HostError, ObjectChanged, ObjectDamaged, PgdynoError

REQUEST_BYTES_MAX = 4096
PATH_BYTES_MAX = 100
"""Longest name of a socket; the kernel takes 107."""
WAITING_MAX = 64
"""Connections that have not been accepted yet."""
ACCEPT_S = 10.0
"""For so long a connection is tried to be taken where this process has no descriptor left for it: those of others end."""
_ACCEPT_AGAIN_S = 0.1
_FRAME = struct.Struct(">cI")
CONTENT, FAILED, ALL = b"D", b"E", b"Z"


class LocalServer:
    """Answers from the beginning of a ``with`` block to its end."""

    def __init__(
        self, objects: Sequence[Remote], patience: Patience = PATIENCE, failed: list[BaseException] | None = None
    ) -> None:
        """``failed`` gets the reason if requests can no longer be answered."""
        self._objects = objects
        self._failed = [] if failed is None else failed
        self._ahead, self._patience = Ahead(patience), patience
        self._folder: Path | None = None
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    @property
    def path(self) -> Path:
        """Where it listens."""
        assert self._folder is not None, "inside the block"
        return self._folder / "objects"

    def __enter__(self) -> Self:
        """Begin to listen, where only this user may look."""
        self._folder = _private_folder()
        try:
            self._listening.bind(os.fspath(self.path))
            self.path.chmod(0o600)
            self._listening.listen(WAITING_MAX)
        except OSError as error:
            self._listening.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise HostError(
                f"no socket can be made: {error.strerror}", remedy="let TMPDIR name another folder"
            ) from error
        threading.Thread(target=self._listen, name="pgdyno-objects", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End; who still reads gets no more."""
        self._ahead.stop.now()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for a connection
        self._listening.close()
        shutil.rmtree(self.path.parent, ignore_errors=True)

    def _listen(self) -> None:
        full: float | None = None
        while not self._ahead.stop.given:
            try:
                connection, _ = self._listening.accept()
            except OSError as error:
                if self._ahead.stop.given:
                    return
                full = full or time.monotonic()
                if time.monotonic() - full > ACCEPT_S:
                    self._failed.append(_full(error))
                    return
                self._ahead.stop.wait(_ACCEPT_AGAIN_S)
                continue
            full = None
            threading.Thread(target=self._answer, args=(connection,), name="pgdyno-object", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """One request. It also ends when its reader is gone."""
        with connection, contextlib.suppress(OSError, DownloadStopped):
            with connection.makefile("rb") as lines:
                request = json.loads(lines.readline(REQUEST_BYTES_MAX) or "null")
            if request is None:
                return
            try:
                with contextlib.closing(self._content(request)) as pieces:
                    for piece in pieces:
                        _say(connection, CONTENT, piece)
            except PgdynoError as error:
                document = {"message": error.message, "remedy": error.remedy, "code": error.code, "data": error.data}
                _say(connection, FAILED, json.dumps(document).encode())
            else:
                _say(connection, ALL, b"")

    def _content(self, request: dict[str, Any]) -> Generator[Bytes]:
        """What is asked for. A whole object's bytes are held to its checksum, also those before ``first``."""
        remote, first = self._objects[request["object"]], int(request["first"])
        checksum = remote.object.facts.checksum if request["whole"] else None
        try:
            if checksum is None:
                yield from self._pieces(remote, first, remote.bytes)
                if request["whole"]:
                    self._require_unchanged(remote)
                return
            fold = RollingChecksum(checksum)
            for piece in self._pieces(remote, 0, first):
                fold.add(piece)
            for piece in self._pieces(remote, first, remote.bytes):
                fold.add(piece)
                yield piece
            if wrong := fold.wrong():
                raise ObjectDamaged(
                    f"{remote.name} came with other content than was stored: {wrong}",
                    remedy="see that the object is whole, and load it again with --abandon and --truncate",
                )
        except (ObjectChanged, ObjectDamaged) as error:
            remote.failure = error
            raise

    def _require_unchanged(self, remote: Remote) -> None:
        """That the object is still the one that was found. A strong ETag is a condition of each range, and proves it already."""
        etag = remote.object.facts.etag
        came_at_once = remote.bytes <= len(remote.head)
        if not came_at_once and (etag is None or etag.startswith("W/")):
            fetch(remote.object, remote.bytes - 1, remote.bytes, self._patience, self._ahead.stop)

    def _pieces(self, remote: Remote, first: int, end: int) -> Generator[Bytes]:
        with contextlib.closing(self._ahead.pieces(remote.object, remote.head, first, end)) as pieces:
            yield from pieces


def _full(error: OSError) -> HostError:
    return HostError(
        f"the engine cannot be given what it asks for: {error.strerror}",
        remedy="allow more open files (`ulimit -n`), and run the same command again to resume",
    )


def _say(connection: socket.socket, kind: bytes, content: Bytes) -> None:
    connection.sendall(_FRAME.pack(kind, len(content)))
    connection.sendall(content)


def _private_folder() -> Path:
    """A folder that only this user may enter, with a name that is short enough for a socket in it."""
    place = tempfile.gettempdir()
    if len(os.fsencode(place)) > PATH_BYTES_MAX - len("/pgdyno-xxxxxxxx/objects"):
        place = "/tmp"
    return Path(tempfile.mkdtemp(prefix="pgdyno-", dir=place))
