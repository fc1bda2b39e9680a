"""A seat on a worker, from here."""

from __future__ import annotations

from typing import Any

from pgdyno.hosts import library
from pgdyno.hosts.facts import HostFacts
from pgdyno.workload import clock
from pgdyno.workload.clock import Offset

from ..base.errors import HostError, PgdynoError


class RemoteSeat:
    """Questions to a seat, and what it should do."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self.actor = actor

    def facts(self) -> HostFacts:
        """What the host is."""
        facts: HostFacts = self.answer("facts")
        return facts

    def clock(self) -> Offset:
        """How far its clock is ahead of this process's."""
        return clock.estimate(lambda: int(self.answer("clock_ns")))

    def answer(self, question: str, *arguments: Any) -> Any:
        """What the seat answers. :class:`HostError` where it does not; its own :class:`PgdynoError` as it is."""
        try:
            return getattr(self.actor, question)(*arguments).result(timeout=library.ANSWER_S)
        except PgdynoError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever Dask raises where a worker is lost
            raise self.lost(error) from None

    def say(self, what: str, *arguments: Any) -> None:
        """Have the seat do something without waiting for it. A worker that is lost is noticed elsewhere."""
        try:
            getattr(self.actor, what)(*arguments)
        except RuntimeError:
            return  # Dask knows already that the worker is lost

    def lost(self, error: BaseException) -> HostError:
        """The error of a worker that is lost."""
        return lost(self.name, error)


def lost(name: str, error: BaseException) -> HostError:
    """The error of a host that does not answer."""
    return HostError(
        f"the worker {name} does not answer: {library.reason(error)}",
        remedy="look at its log and at the network; it needs the same pgdyno as this host",
    )
