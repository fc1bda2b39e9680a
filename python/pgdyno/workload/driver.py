"""Which program drives a workload: pgdyno's own, pgbench, or sysbench. All come to the same tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.workload import native, pgbench, sysbench

if TYPE_CHECKING:
    from pgdyno.workload.outcome import Runner
    from pgdyno.workload.spec import Engine, WorkloadAsked

_RUNNERS: dict[Engine, Runner] = {"native": native.run, "pgbench": pgbench.run, "sysbench": sysbench.run}


def runner(asked: WorkloadAsked) -> Runner:
    """What runs a workload."""
    return _RUNNERS[asked.driver]


def require(asked: WorkloadAsked) -> None:
    """Refuse, before anything is changed, what the driver could not do on this machine.

    :class:`~pgdyno.errors.HostError` for an original that is not installed, :class:`~pgdyno.errors.InputError` for a
    script that the driver cannot read.
    """
    if asked.driver == "sysbench":
        sysbench.require(asked)
    elif asked.driver == "native":
        native.require(asked)
