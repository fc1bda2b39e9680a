"""Everything that is sampled of a server by SQL: its counters once a second, its sessions ten times a second."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Self

from pgdyno.probe.counters import CounterProbe
from pgdyno.probe.sampler import PATIENCE_S
from pgdyno.probe.wait_events import INTERVAL_S, WaitEventProbe

if TYPE_CHECKING:
    from pgdyno.probe.samples import Samples


class SqlProbe:
    """Samples one server, ``dsn`` in libpq's notation, from ``start`` until ``stop``.

    The two samplers have a connection and a thread each: a slow answer of one must not delay the other. In a dilated
    world they query, and time out, that many times later.
    """

    def __init__(
        self, dsn: str, interval_s: float = 1.0, wait_events_interval_s: float = INTERVAL_S, *, dilation: int = 1
    ) -> None:
        patience_s = PATIENCE_S * dilation
        self._samplers = (
            CounterProbe(dsn, interval_s * dilation, patience_s=patience_s),
            WaitEventProbe(dsn, wait_events_interval_s * dilation, patience_s=patience_s),
        )

    def start(self) -> Self:
        """Connect, take a first sample, continue in threads. :class:`PgdynoError` when there is no server."""
        with contextlib.ExitStack() as undo:
            for sampler in self._samplers:
                undo.enter_context(sampler)
            undo.pop_all()
        return self

    def stop(self) -> Samples:
        """Take a last sample, disconnect, and return everything."""
        counters, wait_events = (sampler.stop() for sampler in self._samplers)
        return counters | wait_events

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop if they were not stopped."""
        for sampler in self._samplers:
            sampler.stop()
