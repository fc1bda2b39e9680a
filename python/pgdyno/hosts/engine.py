"""A program on a worker, as if it were a process of this machine: its pipes and its exit code, carried by Dask."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

from pgdyno.hosts.seat import DRIVE, PATIENCE_S, WAIT_S
from pgdyno.hosts.seat_there import RemoteSeat

from ..base import engine

LOST = -1
"""The exit code of a program that cannot be asked any more."""


def launch(
    seat: RemoteSeat, loop: Any, document: Mapping[str, Any], log: Path, *, timeout_s: float
) -> engine.EngineProcess:
    """Start ``pgdyno-engine drive`` on a seat; it is not ready yet. ``loop`` is that of the connection.

    Its standard input stays open. :class:`~pgdyno.base.errors.PgdynoError` as :func:`pgdyno.base.engine.spawn`, and where the worker is lost.
    """
    log.touch()
    begin = log.stat().st_size
    # It has what is used of a Popen, and is not one: no process of this machine ends it.
    process = cast("subprocess.Popen[bytes]", RemoteProcess(seat, loop, log))
    return engine.attend(process, ["drive"], document, log=log, begin=begin, keep_stdin=True, timeout_s=timeout_s)


class RemoteProcess:
    """What is used of :class:`subprocess.Popen`, of a program on a worker."""

    def __init__(self, seat: RemoteSeat, loop: Any, log: Path, what: str = DRIVE) -> None:
        self._seat, self._log, self._what = seat, log, what
        self.pid: int = seat.answer("start", what)
        """Of that host."""
        self.returncode: int | None = None
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self._ended = threading.Event()
        self.stdin = cast("IO[bytes]", _Input(seat))
        self.stdout = ours.makefile("rb", buffering=0)
        ours.close()  # the file keeps it open
        asyncio.run_coroutine_threadsafe(self._carry(theirs), loop)

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for it. It has an end: a worker that is silent is taken for lost."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(self._what, timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, without waiting until it has it."""
        if self.returncode is None:
            self._seat.say("signal", int(number))

    def kill(self) -> None:
        """End it by force."""
        self.send_signal(signal.SIGKILL)

    async def _carry(self, to: socket.socket) -> None:
        """Ask again and again what it says, and hand that on. The reader may be slow: the questions are what keeps the program alive."""
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        handing = asyncio.ensure_future(_hand_on(queue, to))
        code = LOST
        try:
            while True:
                result = await asyncio.wait_for(self._seat.actor.read(), WAIT_S + PATIENCE_S[self._what])
                if result.code is not None:
                    self._write_log(result.err)
                    code = result.code
                    break
                if result.out:
                    queue.put_nowait(result.out)
        except Exception as error:  # noqa: BLE001 - whatever Dask raises where a worker is lost
            host_error = self._seat.lost(error)
            words = {"message": host_error.message, "remedy": host_error.remedy, "of_host": True}
            self._write_log(json.dumps({"error": words}).encode() + b"\n")
        finally:
            self.returncode = code
            self._ended.set()
            queue.put_nowait(b"")
            await handing

    def _write_log(self, text: bytes) -> None:
        with self._log.open("ab") as file:
            file.write(text)


async def _hand_on(queue: asyncio.Queue[bytes], to: socket.socket) -> None:
    """Write what is said until nothing is."""
    loop = asyncio.get_running_loop()
    try:
        with to:
            while text := await queue.get():
                await loop.sock_sendall(to, text)
    except OSError:
        pass  # the reader is gone, and wants no more


class _Input(io.RawIOBase):
    """Standard input on the other host: what is written goes there when it is flushed."""

    def __init__(self, seat: RemoteSeat) -> None:
        super().__init__()
        self._seat = seat
        self._text = b""

    def writable(self) -> bool:
        return True

    def write(self, text: Any) -> int:
        self._text += bytes(text)
        return len(text)

    def flush(self) -> None:
        if self._text:
            text, self._text = self._text, b""
            self._seat.say("write", text)

    def close(self) -> None:
        if not self.closed:
            self.flush()
            super().close()
            self._seat.say("end_input")
