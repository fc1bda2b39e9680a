"""Whether an emulated distance between driver and server was the one that was asked for."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis.finding import CheckResult, Level

from ..base.text import percent
from .run import RunFigures

RELAY_BUSY_INVALID = 0.90
"""One thread relays everything: when it computes nine tenths of the time, messages queue for it."""
LONGER_WARN = 0.10
"""A round trip that is a tenth longer than asked, for half of the messages, is another distance."""
_DIRECTIONS = ("to_server", "to_client")


def distance(run: RunFigures) -> Iterator[CheckResult]:
    """What the relay added to its own delay, and whether it kept up. Nothing for a client without a distance."""
    client = run.record.client
    if not client.rtt_ms:
        return
    known = client.relay.get("rtt_ns") and all(direction in client.relay for direction in _DIRECTIONS)
    share = run.cpu_share.get("relay")
    if not known or share is None:
        yield CheckResult("client's distance", "unknown", "the relay's lateness or its CPU was not recorded")
        return
    busy = share * run.record.world.host.cores
    longer = sum(client.relay[direction]["late_ns_p50"] for direction in _DIRECTIONS) / client.relay["rtt_ns"]
    level: Level = "invalid" if busy >= RELAY_BUSY_INVALID else "warn" if longer > LONGER_WARN else "ok"
    figure = (
        f"{client.rtt_ms:g} ms, by the relay's own clock {percent(longer)} more for half of the messages;"
        f" its thread computed {percent(busy)} of the time"
    )
    yield CheckResult("client's distance", level, figure)
