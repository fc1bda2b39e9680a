"""The events of a run: each begins at its instant in the subject's time, and what came of it is recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from pgdyno.experiment.event import ON_SERVER, EventTable
from pgdyno.probe.samples import ProbeTables

from ..base.errors import PgdynoError
from ..base.quantity import duration_words
from ..results.record import Check
from ..results.tables import SubjectClock

LASTS_MAX_S = 900.0
"""The longest that a run waits, after its load has ended, for an event that has begun: a recovery of many GB of WAL."""


class EventTimeline:
    """Runs events on a thread of its own, one after the other; one that is due while another runs begins after it.

    ``act`` does an event and returns what came of it in words; ``price_of`` is the price a month of the volume of a role. Leaving the ``with`` block begins no further event and waits for
    the one that runs.
    """

    def __init__(
        self,
        events: Iterable[EventTable],
        act: Callable[[EventTable], str],
        clock: SubjectClock,
        price_of: Callable[[str], float | None] = lambda _: None,
    ) -> None:
        self._events = tuple(events)
        self._price_of = price_of
        self._act = act
        self._clock = clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pgdyno-events", daemon=True)
        self._begin_ns = 0
        self._rows: list[dict[str, Any]] = []
        self._error: PgdynoError | None = None

    def begin(self) -> None:
        """Measuring begins now."""
        self._begin_ns = time.monotonic_ns()
        if self._events:
            self._thread.start()

    def error(self) -> PgdynoError | None:
        """The failure of an event, which is one of the run; None while all that began worked."""
        return self._error

    def require_done(self) -> None:
        """Wait for the event that runs. :class:`PgdynoError` when one failed, or did not come before the load ended."""
        self._end()
        if self._error is not None:
            raise self._error
        if missing := self._events[len(self._rows) :]:
            raise PgdynoError(
                f"the run ended before an event: {missing[0].words}, {missing[0].at_s:g} s after measuring began",
                remedy="use an earlier time, or more work",
            )

    def samples(self) -> ProbeTables:
        """The table of events, on the host's clock; nothing of a run without any."""
        from ..results.tables import from_rows

        return ProbeTables({"world/event": from_rows("world/event", self._rows)} if self._rows else {})

    def explained(self, checks: Iterable[Check]) -> tuple[Check, ...]:
        """Checks of the driver, in which clients may have lost a server that was ended on purpose."""
        away = ", ".join(event.words for event in self._events if event.do in ON_SERVER)
        return tuple(
            check.model_copy(update={"ok": True, "detail": f"{check.detail}; on purpose: {away}"})
            if away and check.name == "clients_lasted" and not check.ok
            else check
            for check in checks
        )

    def __enter__(self) -> Self:
        """Nothing begins yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._end()

    def _end(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(LASTS_MAX_S)
            if self._thread.is_alive():
                event = self._events[len(self._rows)]
                self._error = PgdynoError(
                    f"an event did not end within {duration_words(LASTS_MAX_S)}: {event.words}",
                    remedy="read the server's log",
                )

    def _run(self) -> None:
        for event in self._events:
            due_ns = self._begin_ns + round(self._clock.host_s(event.at_s) * 1e9)
            if self._ended.wait(max(0.0, (due_ns - time.monotonic_ns()) / 1e9)):
                return
            begin_ns = time.monotonic_ns()
            try:
                result = self._act(event)
            except PgdynoError as error:
                self._error = PgdynoError(
                    f"an event failed: {event.words}, {event.at_s:g} s after measuring began: {error.message}",
                    remedy=error.remedy,
                )
                return
            except Exception as error:  # noqa: BLE001 - raised by the thread that waits for it
                self._error = PgdynoError(
                    f"an event failed: {event.words}: {error!r}", remedy="this is a bug in pgdyno"
                )
                return
            self._rows.append(
                {
                    "planned_s": event.at_s,
                    "kind": event.do,
                    "target": event.target,
                    "words": event.words,
                    "t_begin_ns": begin_ns,
                    "t_end_ns": time.monotonic_ns(),
                    "result": result,
                    "usd_per_month": self._price_of(event.target) if event.do == "modify" else None,
                }
            )
