"""Everything that is sampled of a server by SQL: its counters once a second, its sessions several times a second."""

from __future__ import annotations

import contextlib
from typing import Self

from pgdyno.probe.counters import CounterProbe
from pgdyno.probe.sampler import PATIENCE_S, SqlSampler
from pgdyno.probe.samples import ProbeTables
from pgdyno.probe.statements import StatementsProbe
from pgdyno.probe.wait_events import INTERVAL_S, WaitEventProbe

SLOWEST_S = 0.3
"""The longest time from look to look. A second still has three of them. For watched servers."""


class SqlProbe:
    """Samples one server, ``dsn`` in libpq's notation, from ``start`` until ``stop``.

    The two samplers have a connection and a thread each: a slow answer of one must not delay the other. In a dilated
    world they query, and time out, that many times later. A server that is ``watched`` is in use: all of its databases
    are counted, its clients are not known, and sessions are looked at less often where a look takes long. There
    pg_stat_statements is read too, where the server has it, with the ``texts`` of the statements if that is asked for.
    """

    def __init__(
        self,
        dsn: str,
        interval_s: float = 1.0,
        wait_events_interval_s: float = INTERVAL_S,
        *,
        dilation: int = 1,
        watched: bool = False,
        texts: bool = False,
    ) -> None:
        patience_s = PATIENCE_S * dilation
        slowest_s = SLOWEST_S if watched else None
        self._samplers: tuple[SqlSampler, ...] = (
            CounterProbe(dsn, interval_s * dilation, patience_s=patience_s, watched=watched),
            WaitEventProbe(
                dsn, wait_events_interval_s * dilation, patience_s=patience_s, watched=watched, slowest_s=slowest_s
            ),
        )
        if watched:
            self._samplers = (*self._samplers, StatementsProbe(dsn, texts=texts, patience_s=patience_s))

    def start(self) -> Self:
        """Connect, take a first sample, continue in threads. :class:`PgdynoError` when there is no server."""
        with contextlib.ExitStack() as undo:
            for sampler in self._samplers:
                undo.enter_context(sampler)
            undo.pop_all()
        return self

    def stop(self) -> ProbeTables:
        """Take a last sample, disconnect, and return everything."""
        result = ProbeTables()
        for sampler in self._samplers:
            sampler.end()  # a server that does not answer is waited for once, and not once for each
        for sampler in self._samplers:
            result |= sampler.stop()
        return result

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop if they were not stopped."""
        for sampler in self._samplers:
            sampler.stop()
