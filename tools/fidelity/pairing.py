"""Holds each request as fio timed it against what the model said of the same request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.errors import PgdynoError

if TYPE_CHECKING:
    from tools.fidelity.fio import Logged
    from tools.fidelity.submit_log import Requests

CLOSE = 0.05
"""Of its modelled time; the daemon counts a request as late by the same share."""


def close(modelled: Requests, timed: list[Logged], dilation: int) -> tuple[int, int]:
    """How many of fio's requests took their modelled time but for :data:`CLOSE` of it, and how many there are.

    ``timed`` are requests that waited for each other, in real nanoseconds: both have them in one order.
    The volume may have had others between them, from whoever looks at a new device. :class:`PgdynoError` when a
    request of fio's is not in the log.
    """
    latencies = modelled.latency_ns.tolist()
    log = enumerate(modelled.offset.tolist())
    found = 0
    for number, (_, real_ns, offset) in enumerate(timed):
        place = next((index for index, logged in log if logged == offset), None)
        if place is None:
            raise PgdynoError(f"request {number} of fio is not in the submit log", remedy="measure it again")
        found += abs(real_ns / dilation / latencies[place] - 1) <= CLOSE
    return found, len(timed)
