"""Processes on workers: pipes and exit codes of programs there, carried by actors of Dask.

All of it runs in the worker's event loop, so that one call is answered while another waits. What arrives here can hold the
password of the server: it goes to the program's standard input, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from pgdyno.hosts.facts import HostFacts
from pgdyno.workload import clock
from pgdyno.workload.clock import Offset, now_ns

from ..base import engine
from ..base.errors import HostError, PgdynoError
from . import dask, facts

SILENT_S = 3.0
"""A side that has heard nothing of the other for this time takes it for lost: three answers at least are missing."""
WAIT_S = 0.5
"""How long a question waits for something to be said."""
_READ_BYTES = 1 << 20
_SAID_BYTES_MAX = 1 << 16
"""Of standard error: the end is kept."""
_EXCHANGES = 16
"""Connections that are opened to find the shortest round trip."""
DRIVE = "drive"
RUNS = "runs"
"""What can be started: the engine's driver, and what makes whole runs."""
PATIENCE_S = {DRIVE: SILENT_S, RUNS: 10.0}
"""The same by what runs there: a load without one of its drivers is worthless, and runs are only late."""
UNDO_S = 60.0
"""What makes runs has changed the machine, and undoes that when its input ends: a server is stopped, volumes are detached. Then it is killed."""

_working: list[Seat] = []
"""The seat whose program is at work: two loads on one host would disturb each other."""


@dataclass(frozen=True)
class ProcessOutput:
    """What a program has said since the last question."""

    out: bytes
    code: int | None = None
    """Its exit code, once it has ended and all was heard."""
    err: bytes = b""
    """The end of its standard error, together with the code."""


class Seat:
    """A place for one program."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._err = b""
        self._asked_ns = 0
        self._what = DRIVE
        self._tasks: list[asyncio.Task[None]] = []

    async def clock_ns(self) -> int:
        """What CLOCK_MONOTONIC shows on this host."""
        return now_ns()

    async def facts(self) -> HostFacts:
        """What this host is."""
        return await asyncio.to_thread(facts.of_this_host)

    async def round_trip_ns(self, host: str, port: int) -> int | None:
        """The shortest time to open a TCP connection: one round trip. None where none can be opened."""
        results = []
        with contextlib.suppress(OSError):  # TimeoutError is one
            async with asyncio.timeout(SILENT_S):
                for _ in range(_EXCHANGES):
                    began_ns = now_ns()
                    _, writer = await asyncio.open_connection(host, port)
                    results.append(now_ns() - began_ns)
                    writer.close()
        return min(results, default=None)

    async def start(self, what: str = DRIVE) -> int:
        """Start a program, which reads its document next; its process id. It ends with this worker, and when no question comes any more."""
        if _working:
            raise HostError("this host drives another load now", remedy="wait until that has ended")
        _working.append(self)
        self._what = what
        try:
            command = (sys.executable, "-m", "pgdyno.flow.remote_worker") if what == RUNS else (engine.checked(), DRIVE)
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        except BaseException:
            _working.remove(self)
            raise
        self._asked_ns = now_ns()
        self._tasks = [asyncio.ensure_future(self._keep_err()), asyncio.ensure_future(self._watch())]
        return self._process.pid

    async def write(self, text: bytes) -> None:
        """Give it text on its standard input."""
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its end says more
            self._process.stdin.write(text)
            await self._process.stdin.drain()

    async def end_input(self) -> None:
        """Close its standard input."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def read(self) -> ProcessOutput:
        """What it has said; waits for something for a while."""
        assert self._process is not None and self._process.stdout is not None
        self._asked_ns = now_ns()
        try:
            out = await asyncio.wait_for(self._process.stdout.read(_READ_BYTES), WAIT_S)
        except TimeoutError:
            return ProcessOutput(b"")
        if out:
            return ProcessOutput(out)
        code = await self._process.wait()
        await self._tasks[0]
        return ProcessOutput(b"", code, self._err)

    async def signal(self, number: int) -> None:
        """Send it a signal."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _keep_err(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        while text := await self._process.stderr.read(_SAID_BYTES_MAX):
            self._err = (self._err + text)[-_SAID_BYTES_MAX:]

    async def _watch(self) -> None:
        """End the program when the one that asked for it is gone."""
        assert self._process is not None
        ended = asyncio.ensure_future(self._process.wait())
        while not ended.done():
            await asyncio.wait({ended}, timeout=WAIT_S)
            if not ended.done() and now_ns() - self._asked_ns > PATIENCE_S[self._what] * 1e9:
                if self._what == RUNS:
                    await self.end_input()
                    await asyncio.wait({ended}, timeout=UNDO_S)
                if not ended.done():
                    self._process.kill()
                await ended
        _working.remove(self)


class RemoteSeat:
    """Questions to a seat, and what it should do."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self.actor = actor

    def facts(self) -> HostFacts:
        """What the host is."""
        facts: HostFacts = self.answer("facts")
        return facts

    def clock(self) -> Offset:
        """How far its clock is ahead of this process's."""
        return clock.estimate(lambda: int(self.answer("clock_ns")))

    def answer(self, question: str, *arguments: Any) -> Any:
        """What the seat answers. :class:`HostError` where it does not; its own :class:`PgdynoError` as it is."""
        try:
            return getattr(self.actor, question)(*arguments).result(timeout=dask.ANSWER_S)
        except PgdynoError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever Dask raises where a worker is lost
            raise self.lost(error) from None

    def say(self, what: str, *arguments: Any) -> None:
        """Have the seat do something without waiting for it. A worker that is lost is noticed elsewhere."""
        try:
            getattr(self.actor, what)(*arguments)
        except RuntimeError:
            return  # Dask knows already that the worker is lost

    def lost(self, error: BaseException) -> HostError:
        """The error of a worker that is lost."""
        return lost(self.name, error)


def lost(name: str, error: BaseException) -> HostError:
    """The error of a host that does not answer."""
    return HostError(
        f"the worker {name} does not answer: {dask.reason(error)}",
        remedy="look at its log and at the network; it needs the same pgdyno as this host",
    )


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
