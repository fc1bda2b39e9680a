"""How several drivers share one load: each has whole clients and threads, with the numbers that they would have in one driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ..base.errors import InputError

WHOLE = (1,)
"""The weights of one driver."""


@dataclass(frozen=True)
class DriverShare:
    """What one of several drivers has of a load."""

    name: str
    """What it is called in records and findings: ``driver 2``, or its host's name."""
    clients: int
    clients_before: int
    """Clients of the drivers before it: its own are numbered from there."""
    threads: int
    threads_before: int

    def of(self, document: dict[str, Any]) -> dict[str, Any]:
        """Its specification, from that of the whole load: rates stay those of all."""
        share = {
            "clients_before": self.clients_before,
            "clients_all": document["clients"],
            "threads_before": self.threads_before,
            "threads_all": document["threads"],
        }
        return document | {"clients": self.clients, "threads": self.threads, "share": share}


def shares_of(weights: Sequence[int], clients: int, threads: int, names: Sequence[str] = ()) -> tuple[DriverShare, ...]:
    """Clients and threads divided by weights; drivers are called by ``names``, or by their number.

    :class:`InputError` where a driver would get no thread, or a thread no client.
    """
    called = names or [f"driver {number}" for number in range(1, len(weights) + 1)]
    of_clients, of_threads = divided(clients, weights), divided(threads, weights)
    for name, own, served in zip(called, of_threads, of_clients, strict=True):
        if own == 0:
            enough = next(count for count in range(len(weights), sum(weights) + 1) if all(divided(count, weights)))
            raise InputError(
                f"each of {len(weights)} drivers needs a thread, and {name} would get none of {threads}",
                remedy=f"write threads = {enough} below workload, or use fewer drivers",
            )
        if served < own:
            raise InputError(
                f"{name} of {len(weights)} would have fewer clients ({served}) than threads ({own})",
                remedy="use more clients, or fewer threads",
            )
    places = zip(of_clients, accumulate(of_clients), of_threads, accumulate(of_threads), strict=True)
    return tuple(
        DriverShare(name, own_clients, until_client - own_clients, own_threads, until_thread - own_threads)
        for name, (own_clients, until_client, own_threads, until_thread) in zip(called, places, strict=True)
    )


def divided(count: int, weights: Sequence[int]) -> list[int]:
    """``count`` in whole parts by weight, none more than one away from its exact part; they add up to ``count``."""
    total = sum(weights)
    edges = [count * reached // total for reached in accumulate(weights)]
    return [edge - before for before, edge in zip([0, *edges], edges, strict=False)]
