"""Watches a pgbench that runs: hears what it says, and decides when measuring begins and ends."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from pgdyno.workload.clock import SECOND_NS, now_ns
from pgdyno.workload.loaded import Progress

from ..base.errors import PgdynoError

_GRACE_S = 60.0
"""How long pgbench may take to end after its time is up: a transaction may wait for a slow volume."""
_EDGE_S = 0.1
"""Measuring ends at least this long before pgbench stops, so that the load is whole until then."""
_PROGRESS = re.compile(r"progress: ([\d.]+) s, ([\d.]+) tps, lat ([\d.]+|NaN) ms")


@dataclass
class RunTimeline:
    """When things happened, in nanoseconds of CLOCK_MONOTONIC."""

    started_ns: int
    stops_ns: int
    """When pgbench's own timer ends it."""
    bench_ns: int = 0
    """When its clients had connected and went to work; 0 until known."""
    begin_ns: int = 0
    end_ns: int = 0
    """The measure phase, planned until it happened."""


@dataclass
class PgbenchMonitor:
    """Waits for pgbench, reads what it says, and calls when the measure phase begins and ends.

    All of it in the host's time, which is pgbench's; only what is shown is in the subject's.
    """

    process: subprocess.Popen[bytes]
    time: RunTimeline
    warmup_s: float
    duration_s: float
    edges: tuple[Callable[[], None], Callable[[], None]]
    progress: Progress
    dilation: int = 1
    messages: list[str] = field(default_factory=list)
    exited_ns: int = 0
    _measuring: bool = False
    _measured: bool = False
    _rest: bytes = b""

    def begin_at_once(self) -> None:
        """Measure until pgbench ends by itself, after its number of transactions; at most :data:`_GRACE_S` too long."""
        self._measuring = True
        self.time.bench_ns = self.time.begin_ns = now_ns()
        # Not when its time is up: what is counted then would lack the transactions after it, which are measured too.
        self.time.end_ns = self.time.stops_ns + int(_GRACE_S * SECOND_NS)
        self.edges[0]()

    def until_the_end(self) -> None:
        """Return when pgbench has ended; it is ended by force when it overruns."""
        assert self.process.stderr is not None
        stream = self.process.stderr.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                deadline_ns = self._next_deadline_ns()
                if selector.select(max(0.0, (deadline_ns - now_ns()) / SECOND_NS)):
                    text = os.read(stream, 65536)
                    if not text:
                        break
                    self._hear(text)
                self._turn()
        self.process.wait()
        self.exited_ns = now_ns()
        if self.time.end_ns > self.exited_ns:
            self.time.end_ns = max(self.time.begin_ns, self.exited_ns)
        if self._measuring and not self._measured:
            self.edges[1]()

    def _next_deadline_ns(self) -> int:
        if self.time.bench_ns and not self._measuring:
            return self.time.begin_ns
        if self._measuring and not self._measured:
            return self.time.end_ns
        return self.time.stops_ns + int(_GRACE_S * SECOND_NS)

    def _turn(self) -> None:
        """Begin or end the measure phase if it is time, or give up."""
        at_ns = now_ns()
        if at_ns < self._next_deadline_ns():
            return
        if self.time.bench_ns and not self._measuring:
            self._measuring = True
            self.time.begin_ns, self.time.end_ns = at_ns, at_ns + int(self.duration_s * SECOND_NS)
            self.edges[0]()
        elif self._measuring and not self._measured:
            self._measured = True
            self.edges[1]()
        else:
            self.process.kill()
            raise PgdynoError(
                f"pgbench did not end within {_GRACE_S:g} s after its time was up",
                remedy="the server or the volume hangs: look at the server's log and `pgdyno volume stats`; a run of a"
                " fixed number of transactions may need a longer workload.duration",
            )

    def _hear(self, text: bytes) -> None:
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            result = line.decode(errors="replace").strip()
            self.messages.append(result)
            if match := _PROGRESS.match(result):
                if not self.time.bench_ns:
                    self._plan(now_ns() - int(float(match[1]) * SECOND_NS))
                self._show(match)

    def _plan(self, bench_ns: int) -> None:
        """Place the measure phase, now that it is known when the clients began.

        The time they took to connect comes out of pgbench's duration; should it be more than was allowed for, the
        warm-up is shortened, never the measurement.
        """
        self.time.bench_ns = bench_ns
        last_ns = self.time.stops_ns - int((self.duration_s + _EDGE_S) * SECOND_NS)
        self.time.begin_ns = max(now_ns(), min(bench_ns + int(self.warmup_s * SECOND_NS), last_ns))
        self.time.end_ns = self.time.begin_ns + int(self.duration_s * SECOND_NS)

    def _show(self, match: re.Match[str]) -> None:
        total_s = (self.time.end_ns - self.time.bench_ns) / SECOND_NS
        done_s = (now_ns() - self.time.bench_ns) / SECOND_NS
        doing = "measure" if self._measuring else "warm up"
        tps, latency_ms = float(match[2]) * self.dilation, float(match[3]) / self.dilation
        self.progress(min(1.0, done_s / total_s), f"{doing}: {tps:,.0f} tps, {latency_ms:.3f} ms")

