"""What pgdyno does on a worker: an actor of Dask, one for each program that runs there, and for each host that is examined.

All of it runs in the worker's event loop, so that one call is answered while another waits. What arrives here can hold the
password of the server: it goes to the program's standard input, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass

from pgdyno.hosts import facts
from pgdyno.hosts.facts import HostFacts
from pgdyno.workload.clock import now_ns

from ..base import engine
from ..base.errors import HostError

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
            command = (sys.executable, "-m", "pgdyno.flow.there") if what == RUNS else (engine.checked(), DRIVE)
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
