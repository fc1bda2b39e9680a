"""A distance between client and server on one machine: the engine's relay, which hands on everything half a round trip later.

The relay ends with the process that started it, by the end of its standard input, so a killed run leaves none behind and
the journal need not know it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import engine
from ..base.errors import EngineError, HostError
from .instance import parse_cpus

HOST = "127.0.0.1"
"""Relay and server listen only here, and cannot be reached from other machines."""
_NS_PER_MS = 1_000_000
_STOP_S = 10.0


@dataclass
class Relay:
    """A relay that runs. Clients connect to ``port`` of :data:`HOST`."""

    port: int
    _spawned: engine.EngineProcess = field(repr=False)
    _summary: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._spawned.process.pid

    @property
    def alive(self) -> bool:
        """Whether it still relays."""
        return self._spawned.process.poll() is None

    def stop(self) -> dict[str, Any]:
        """End it and return what it says of itself; connections that are still open are cut.

        Stopping it again returns the same. :class:`EngineError` when it ended before it was stopped.
        """
        if self._summary is None:
            self._summary = self._last_words()
        return self._summary

    def kill(self) -> None:
        """End it without a word; nothing happens when it has ended."""
        process = self._spawned.process
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was to be written has no reader any more
                    pipe.close()

    def _last_words(self) -> dict[str, Any]:
        process = self._spawned.process
        try:
            # This closes its standard input, which is the order to stop.
            result, _ = process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise EngineError(f"the relay did not end within {_STOP_S:g} s", remedy="run `pgdyno doctor`") from None
        for line in result.splitlines():
            document = json.loads(line)
            if "summary" in document:
                return dict(document["summary"])
        raise EngineError(
            f"the relay ended with code {process.returncode} before it was stopped",
            remedy="look at the server's log; without client.rtt_ms no relay is needed",
        )


@contextlib.contextmanager
def relaying(to_port: int, rtt_ms: float, *, log: Path, cpus: str | None = None) -> Iterator[Relay]:
    """A relay to a port of this machine for the length of a ``with`` block, with a round trip of ``rtt_ms``.

    That is in the host's time. ``log`` takes what it has to complain of; ``cpus`` are those that it may use.
    """
    document = {"to": f"{HOST}:{to_port}", "rtt_ns": round(rtt_ms * _NS_PER_MS), "ends_with_stdin": True}
    spawned = engine.spawn(["relay"], document, log=log, keep_stdin=True)
    relay = Relay(int(spawned.ready["port"]), spawned)
    try:
        if cpus is not None:
            _bind(relay.pid, cpus)
        yield relay
    finally:
        relay.kill()


def _bind(pid: int, cpus: str) -> None:
    try:
        os.sched_setaffinity(pid, parse_cpus(cpus))
    except OSError:
        raise HostError(
            f"this machine has no CPUs {cpus} to give", remedy="choose workload.driver_cpus among those that it has"
        ) from None
