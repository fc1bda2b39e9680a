"""Which program drives a workload: pgdyno's own, pgbench or HammerDB. All come to the same tables."""

from __future__ import annotations

import resource
from collections.abc import Callable

from pgdyno.workload import native, pgbench
from pgdyno.workload.hammerdb import running as hammerdb
from pgdyno.workload.kind.clients import Clients, Engine
from pgdyno.workload.outcome import Outcome

from ..base.errors import InputError

RUNNERS: dict[Engine, Callable[..., Outcome]] = {
    "native": native.run,
    "pgbench": pgbench.run,
    "hammerdb": hammerdb.run,
}
DESCRIPTORS_BESIDE = 64
"""Open files of a driver beside its clients' connections: its logs, pipes and libraries."""


def require(clients: Clients) -> None:
    """Refuse, before anything is changed, what the driver could not do on this machine.

    :class:`~pgdyno.base.errors.InputError` for a script that the driver cannot read.
    """
    if clients.driver == "native":
        native.require(clients)


def require_descriptors(clients: Clients, *, distant: bool = False) -> None:
    """Refuse more clients than the driver may have open files: each has a connection.

    At a distance each has two in the relay. pgdyno's own programs raise the soft limit to the hard one, pgbench does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    own = clients.driver == "native"
    for limit, each, what in (
        (hard if own else soft, 1, f"the driver ({clients.driver})"),
        *([(hard, 2, "the relay of a distant client")] if distant else []),
    ):
        needed = each * clients.clients + DESCRIPTORS_BESIDE
        if limit != resource.RLIM_INFINITY and limit < needed:
            raise InputError(
                f"{clients.clients:,} clients need {needed:,} open files in {what}, and {limit:,} are allowed",
                remedy=f"ask for {(limit - DESCRIPTORS_BESIDE) // each:,} clients at most, or allow more: `ulimit -n {needed}`",
            )
