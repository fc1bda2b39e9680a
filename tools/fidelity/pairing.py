"""Holds each request as fio timed it against what the model said of the same request."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from pgdyno.base.errors import PgdynoError
from tools.fidelity.point import Paired

if TYPE_CHECKING:
    from tools.fidelity.fio import Logged
    from tools.fidelity.submit_log import Requests

CLOSE = 0.05
"""Of its modelled time; the daemon counts a request as late by the same share."""


def paired(modelled: Requests, timed: list[Logged], dilation: int) -> Paired:
    """How far fio's requests were from their modelled time.

    ``timed`` are requests that waited for each other, in real nanoseconds: both have them in one order.
    The volume may have had others between them, from whoever looks at a new device. :class:`PgdynoError` when a
    request of fio's is not in the log, or there is none.
    """
    latencies = modelled.latency_ns.tolist()
    log = enumerate(modelled.offset.tolist())
    errors = []
    for number, (_, real_ns, offset) in enumerate(timed):
        place = next((index for index, logged in log if logged == offset), None)
        if place is None:
            raise PgdynoError(f"request {number} of fio is not in the submit log", remedy="measure it again")
        errors.append(real_ns / dilation / latencies[place] - 1)
    if not errors:
        raise PgdynoError("fio logged no request", remedy="measure it again, for longer")
    close = sum(abs(error) <= CLOSE for error in errors)
    return Paired(requests=len(errors), close=close, median_error=median(errors))
