"""Clients driven by pgdyno's own driver, pgbench or HammerDB, which all fill the same result tables."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Self

from pgdyno.workload import native, pgbench
from pgdyno.workload.outcome import Outcome, Runner
from pgdyno.workload.server import Server

from ..base.errors import InputError
from ..workload.clients import Clients, Engine
from ..workload.kind import Refusal, WithTables
from .hammerdb import runner as hammerdb

RUNNERS: dict[Engine, Callable[..., Outcome]] = {
    "native": native.run,
    "pgbench": pgbench.run,
    "hammerdb": hammerdb.run,
}
DESCRIPTORS_BESIDE = 64
"""Open files of a driver beside its clients' connections: its logs, pipes and libraries."""


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
                remedy=f"use at most {(limit - DESCRIPTORS_BESIDE) // each:,} clients, or raise the limit: `ulimit -n {needed}`",
            )


class DrivenKind(Clients):
    """Clients with a driver."""

    def runner(self, shared: Any = None) -> Runner:
        """The driver's."""
        return partial(RUNNERS[self.driver], spec=self)

    def require(self) -> None:
        if self.driver == "native":
            native.require(self)

    def require_descriptors(self, *, distant: bool = False) -> None:
        require_descriptors(self, distant=distant)

    def connecting(self, server: Server, environment: Mapping[str, str]) -> Self:
        """By pgbench where pgdyno's driver cannot connect as libpq did, unless that was asked for.

        pgbench is tried: it may be built without TLS. Of HammerDB it is seen that it is there, and can pass on the log-in.
        """
        if self.driver == "native":
            if self.engine is not None or "pgbench" not in self.engines or _reaches(server):
                return self
            return self.model_copy(update={"engine": "pgbench"}).connecting(server, environment)
        if self.driver == "hammerdb":
            hammerdb.require(server)
            return self
        reason = pgbench.refusal(server, environment)
        if reason is not None:
            raise InputError(
                f"pgbench of {server.binaries.bin_dir} cannot connect ({reason})",
                remedy="`--set workload.engine=native` uses pgdyno's own driver, `--set postgres.bin=DIR` another pgbench",
            )
        return self


def _reaches(server: Server) -> bool:
    """True if the engine can do what the connection string asks for."""
    try:
        return server.endpoint is not None
    except InputError:
        return False


class FilledKind(WithTables, DrivenKind):
    """The kinds `pgbench`, `script`, `sysbench` and `tpcc`, whose tables are filled before the first run."""

    def refusals(self) -> Iterator[Refusal]:
        """First about how its tables are filled."""
        yield from self._of_manner()
        yield from super().refusals()

    def _own_record(self) -> dict[str, Any]:
        own = super()._own_record()
        del own["load"]
        return own if self.data_to_memory is not None else {key: own[key] for key in own if key != "data_to_memory"}
