"""Processes that do a run's work, ``pgdyno-engine drive`` and helpers in Python: started, given an instant to begin, read, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pgdyno.workload import clock
from pgdyno.workload.clock import now_ns
from pgdyno.workload.native_record import SECOND_NS, DriverOutput, Line

from ..base import engine
from ..base.errors import EngineError, HostError, PgdynoError
from ..results.record import ClockRecord
from .outcome import RemoteHost

LOGIN_S = 6.0
"""Longest log-in of a client: six round trips (TCP, TLS, SCRAM) of a second each (``client.rtt_ms``).
They come one after the other."""
LOST_S = 1.0
"""When a driver is lost, the others may end their transactions for this time; then they are killed. Their figures are not used, and
with the 3.5 s after which a silent host is missed, a run has ended within 5 s."""
_GRACE_MS = 10_000
"""The driver keeps its own deadlines; when it is so much later than all of them, it hangs."""
_ANSWER_S = 5.0
"""An answer takes some tens of microseconds."""
_EXIT_S = 10.0
"""Between the end of what the driver says and its own."""


@dataclass(frozen=True)
class Alarm:
    """Something to be done at an instant of CLOCK_MONOTONIC while drivers work; it should be quick."""

    at_ns: int
    ring: Callable[[], None]


def start_s(document: Mapping[str, Any], dilation: int = 1) -> float:
    """Longest time of a driver until all its clients are connected; a round trip is ``dilation`` times as long as it is said to be.

    One that reads a capture first takes ``reading_s`` more.
    """
    return engine.TIMEOUT_S + float(document.get("reading_s", 0)) + LOGIN_S * dilation * int(document["clients"])


class _NoAnswer(Exception):
    """It did not answer: it has ended, or time is over."""

    def __init__(self, *, ended: bool) -> None:
        super().__init__()
        self.ended = ended


class DriverProcess:
    """A driver; leaving the ``with`` block ends it by force if it is still at work."""

    def __init__(
        self,
        document: Mapping[str, Any],
        log: Path,
        *,
        command: Sequence[str] = ("drive",),
        prefix: Sequence[str] = (),
        dilation: int = 1,
        elsewhere: RemoteHost | None = None,
    ) -> None:
        """Start it, here or ``elsewhere``; :meth:`connected` waits until all its clients are.

        ``document`` is its specification, ``log`` takes its standard error. One elsewhere must wait for :meth:`begin_at`.
        """
        self._ask_clock = self._clock if elsewhere is None else elsewhere.clock_ns
        self._is_told = is_told = document.get("begin", "now") != "now"
        timeout_s = start_s(document, dilation)
        if elsewhere is None:
            self._engine = engine.spawn(
                command, document, log=log, prefix=prefix, keep_stdin=is_told, timeout_s=timeout_s, wait=False
            )
        else:
            self._engine = elsewhere.launch(document, log, timeout_s=timeout_s)
        self._rest = b""
        self._late = False
        self._lasts_ns = 1_000_000 * (
            int(document["warmup_ms"]) + int(document["duration_ms"]) + int(document["drain_ms"]) + _GRACE_MS
        )
        self.give_up_ns = now_ns() + self._lasts_ns
        """When it is killed."""
        self.output = DriverOutput({})
        self.ended = False
        """True if it has closed its output."""
        self.ended_ns = 0
        """When that was; CLOCK_MONOTONIC."""
        self.lost: PgdynoError | None = None
        """Why it ended without the figures of its whole time; known once it has ended."""
        self._asked = 0
        self._ahead_ns = 0

    def connected(self) -> Self:
        """Wait until all its clients are connected, and ask for its clock. What it refuses is raised.

        It has begun then, unless its ``begin`` waits for :meth:`begin_at`.
        """
        self.output = DriverOutput(self._engine.wait_ready().ready)
        self.give_up_ns = now_ns() + self._lasts_ns
        if self._is_told:
            self._look_at_clock()
        return self

    @property
    def pid(self) -> int:
        """The driver's process."""
        return self._engine.process.pid

    @property
    def stream(self) -> int:
        """The descriptor of what it says."""
        assert self._engine.process.stdout is not None
        return self._engine.process.stdout.fileno()

    def begin_at(self, begin_ns: int) -> None:
        """Give it the instant of this process's CLOCK_MONOTONIC to begin at, in its own time. One that has ended meanwhile is found lost by :func:`follow`."""
        pipe = self._engine.process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.write(json.dumps({"begin_ns": begin_ns + self._ahead_ns}).encode() + b"\n")
            pipe.flush()
        self.output.ready["begin_ns"] = begin_ns
        self.give_up_ns = begin_ns + self._lasts_ns

    def follow(self, on_line: Callable[[Line], None], alarms: Sequence[Alarm] = ()) -> DriverOutput:
        """Until the driver has ended: ``heard`` gets each second, ``alarms`` ring in their order.

        May be called again after an interruption. Raises what the driver ended with when it has no summary. One that a refused
        statement ended has one, which says so in ``ended_by``.
        """
        follow([self], lambda _, line: on_line(line), alarms)
        if self.lost is not None:
            raise self.lost
        return self.output

    def stop(self) -> None:
        """Let it end soon: no transaction is started any more, and it prints its summary."""
        if self._engine.process.poll() is None:
            self._engine.process.send_signal(signal.SIGTERM)

    def stop_within(self, seconds: float) -> None:
        """The same, and kill it then."""
        self.stop()
        self.give_up_ns = min(self.give_up_ns, now_ns() + int(seconds * SECOND_NS))

    def give_up(self) -> None:
        """Kill it."""
        self._late = True
        self._engine.process.kill()
        self.give_up_ns += int(_EXIT_S * SECOND_NS)

    def read(self, on_line: Callable[[Line], None]) -> bool:
        """Take what it says; False at the end, when it has ended or ends now."""
        text = os.read(self.stream, 1 << 20)
        if not text:
            self._end()
            return False
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            document = json.loads(line)
            if "second" in document:
                self.output.seconds.append(self._here(document["second"]))
                on_line(document["second"])
            elif "summary" in document:
                self.output.summary = self._here(document["summary"])
                self._look_again()
        return True

    @property
    def broke_off(self) -> bool:
        """True if it ended before its time, by what happened to it or by a statement that the server refused."""
        summary = self.output.summary
        return self.lost is not None or (summary is not None and summary["ended_by"] is not None)

    def __enter__(self) -> Self:
        """:meth:`connected`."""
        try:
            return self.connected()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        process = self._engine.process
        if process.poll() is None:
            process.kill()
            process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._engine.close_stdin()
        if process.stdout is not None:
            process.stdout.close()

    def _here(self, line: Line) -> Line:
        """A line whose instants are of this process's clock."""
        for edge in ("begin_ns", "end_ns"):
            line[edge] -= self._ahead_ns
        return line

    def _look_at_clock(self) -> None:
        """Find out how far its clock is ahead, before it begins."""
        try:
            estimate = clock.estimate(self._ask_clock)
        except HostError:
            self.__exit__(None, None, None)
            raise
        except _NoAnswer as silent:
            self.__exit__(None, None, None)
            if silent.ended:
                raise self._engine.failure() from None
            what = f"the driver did not say within {_ANSWER_S:g} s what its clock shows"
            raise EngineError(what, remedy="run `pgdyno doctor`") from None
        self._ahead_ns = estimate.taken_ns
        self.output.clock = ClockRecord(ahead_ns=estimate.taken_ns, uncertainty_ns=estimate.uncertainty_ns)

    def _look_again(self) -> None:
        """The same after the run; then it may end. One that was stopped does not answer any more."""
        if (before := self.output.clock) is None:
            return
        with contextlib.suppress(_NoAnswer, HostError):
            after = clock.estimate(self._ask_clock)
            self.output.clock = ClockRecord(
                ahead_ns=before.ahead_ns,
                uncertainty_ns=max(before.uncertainty_ns, after.uncertainty_ns),
                drift_ns=after.ahead_ns - before.ahead_ns,
            )
        with contextlib.suppress(BrokenPipeError):
            self._engine.close_stdin()

    def _clock(self) -> int:
        """CLOCK_MONOTONIC of a driver on this machine, which may be in a time namespace."""
        pipe, self._asked = self._engine.process.stdin, self._asked + 1
        assert pipe is not None
        try:
            pipe.write(json.dumps({"clock": self._asked}).encode() + b"\n")
            pipe.flush()
        except BrokenPipeError:
            raise _NoAnswer(ended=True) from None
        limit_ns = now_ns() + int(_ANSWER_S * SECOND_NS)
        while b"\n" not in self._rest:
            left_s = (limit_ns - now_ns()) / SECOND_NS
            if left_s <= 0 or not select.select([self.stream], [], [], left_s)[0]:
                raise _NoAnswer(ended=False)
            text = os.read(self.stream, 1 << 16)
            if not text:
                raise _NoAnswer(ended=True)
            self._rest += text
        line, _, self._rest = self._rest.partition(b"\n")
        shown = json.loads(line)["clock"]
        assert shown["number"] == self._asked
        return int(shown["monotonic_ns"])

    def _end(self) -> None:
        process, summary = self._engine.process, self.output.summary
        self.ended, self.ended_ns = True, now_ns()
        try:
            code = process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            self.lost = EngineError("the driver closed its output and did not end", remedy="run `pgdyno doctor`")
            return
        if self._late:
            self.lost = EngineError("the driver did not end in time", remedy="look at the server's log")
        elif summary is None or (code != 0 and summary["ended_by"] is None):
            self.lost = self._engine.failure()


def follow(
    drivings: Sequence[DriverProcess], on_line: Callable[[DriverProcess, Line], None], alarms: Sequence[Alarm] = ()
) -> list[DriverProcess]:
    """Until all have ended: ``heard`` gets each second of each, ``alarms`` ring in their order.

    Where one breaks off, the others are stopped, and killed after :data:`LOST_S`. Returns those that broke off, the first of them
    first. May be called again after an interruption.
    """
    waiting, rung, broken = list(alarms), False, list[DriverProcess]()
    with selectors.DefaultSelector() as selector:
        for driving in drivings:
            if not driving.ended:
                selector.register(driving.stream, selectors.EVENT_READ, driving)
        while at_work := [key.data for key in selector.get_map().values()]:
            due_ns = min([*(item.give_up_ns for item in at_work), *(alarm.at_ns for alarm in waiting[:1])])
            for key, _ in selector.select(max(0.0, (due_ns - now_ns()) / SECOND_NS)):
                driving = key.data
                if driving.read(lambda line, item=driving: on_line(item, line)):
                    continue
                selector.unregister(key.fd)
                if driving.broke_off:
                    broken.append(driving)
                    for other in drivings:
                        other.stop_within(LOST_S)
            while waiting and now_ns() >= waiting[0].at_ns:
                waiting.pop(0).ring()
                rung = True
            for driving in at_work:
                if not driving.ended and now_ns() >= driving.give_up_ns:
                    driving.give_up()
    # What was started is ended, also if a driver ended early.
    for alarm in waiting if rung else ():
        alarm.ring()
    return broken


_START_S = 60.0
"""Within which the process has to be ready: it imports what its work needs, which takes a second or two."""


@dataclass(frozen=True)
class Words:
    """Name in its errors."""

    process: str
    """``the loader``."""
    work: str
    """``the load``."""
    late_remedy: str
    """Remedy when the work takes too long."""


class HelperProcess:
    """The process, in a group of its own with the engines that it starts; leaving the block ends what is left of it."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str], words: Words) -> None:
        self._command, self._log, self._env, self._words = command, log, env, words
        self._late = threading.Event()
        self._error: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                engine.child(self._command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(self._env),
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        process = self._process
        self._signal(signal.SIGTERM)
        try:
            process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Tell it what to do, and wait until it could begin; returns the line that says so."""
        self._send(json.dumps(document))
        with contextlib.closing(self._lines(_START_S)) as lines:
            for line in lines:
                if line.get("ready"):
                    return line
        if self._late.is_set():
            raise EngineError(
                f"{self._words.process} was not ready within {_START_S:,.0f} s",
                remedy="run it again when the machine is less busy",
            )
        raise self.failure(_START_S)

    def go(self, limit_s: float) -> Generator[dict[str, Any]]:
        """Let it begin; every line that it says until it has ended, or until it took too long."""
        self._send("go")
        yield from self._lines(limit_s)

    def failure(self, limit_s: float) -> PgdynoError:
        """Reason why it ended early."""
        if self._error is not None:
            return PgdynoError(self._error["message"], remedy=self._error["remedy"])
        if self._late.is_set():
            return PgdynoError(
                f"{self._words.work} was not done within {limit_s:,.0f} s", remedy=self._words.late_remedy
            )
        text = self._log.read_text(errors="replace")[-1000:].strip() or "(no output)"
        return EngineError(f"{self._words.process} ended early: {text}", remedy="look at the server's log")

    def _lines(self, limit_s: float) -> Generator[dict[str, Any]]:
        assert self._process.stdout is not None
        timer = threading.Timer(limit_s, self._too_late)
        timer.daemon = True
        timer.start()
        try:
            for line in self._process.stdout:
                document = json.loads(line)
                if "error" in document:
                    self._error = document["error"]
                else:
                    yield document
        finally:
            timer.cancel()

    def _too_late(self) -> None:
        self._late.set()
        self._signal(signal.SIGKILL)

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and what it said explains why
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _signal(self, number: signal.Signals) -> None:
        # The group outlives its first process as long as an engine is there.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """This process's own, without PostgreSQL's variables: the server is named, and what else holds is the server's."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("PG") or name.startswith("PGDYNO_")
    }
    return {**kept, "LC_ALL": "C", **(more or {})}
