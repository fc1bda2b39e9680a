"""Clients driven by pgdyno's own driver, by pgbench or by HammerDB, and the tables that they begin with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Self

from pgdyno.workload.kind.base import Refusal
from pgdyno.workload.kind.clients import Clients
from pgdyno.workload.kind.filled import WithTables
from pgdyno.workload.outcome import Runner
from pgdyno.workload.server import Server

from ...base.errors import InputError


class DrivenKind(Clients):
    """Clients with a driver."""

    def runner(self, shared: Any = None) -> Runner:
        """The driver's."""
        from pgdyno.workload import driver

        del shared
        return partial(driver.RUNNERS[self.driver], spec=self)

    def require(self) -> None:
        """See :meth:`Workload.require`."""
        from pgdyno.workload import driver

        driver.require(self)

    def require_descriptors(self, *, distant: bool = False) -> None:
        """See :meth:`Workload.require_descriptors`."""
        from pgdyno.workload import driver

        driver.require_descriptors(self, distant=distant)

    def connecting(self, server: Server, environment: Mapping[str, str]) -> Self:
        """By pgbench where pgdyno's driver cannot connect as libpq did, unless that was asked for.

        pgbench is tried: it may be built without TLS. Of HammerDB it is seen that it is there, and can pass on the log-in.
        """
        from pgdyno.workload import pgbench
        from pgdyno.workload.hammerdb import running

        if self.driver == "native":
            if self.engine is not None or "pgbench" not in self.engines or _reaches(server):
                return self
            return self.model_copy(update={"engine": "pgbench"}).connecting(server, environment)
        if self.driver == "hammerdb":
            running.require(server)
            return self
        reason = pgbench.refusal(server, environment)
        if reason is not None:
            raise InputError(
                f"pgbench of {server.binaries.bin_dir} cannot connect ({reason})",
                remedy="`--set workload.engine=native` uses pgdyno's own driver, `--set postgres.bin=DIR` another pgbench",
            )
        return self


def _reaches(server: Server) -> bool:
    """Whether the engine can do what the connection string asks for."""
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
