"""What an arm must not ask of its world, and what it must not leave open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pgdyno.experiment.event import EventTable
from pgdyno.experiment.power_cuts import CrashTable
from pgdyno.experiment.tables import ClientTable, InstanceTable, PostgresTable, WorldTable
from pgdyno.experiment.world_kinds import WORLD_KINDS

from ..workload.kind import Workload

Refusal = tuple[tuple[str, ...], str, str]
"""Path of a key, what is wrong with it, and the remedy."""


class WorldTables(Protocol):
    """The tables of an arm."""

    @property
    def world(self) -> WorldTable:
        """What PostgreSQL stands on."""

    @property
    def instance(self) -> InstanceTable:
        """The machine it is given."""

    @property
    def postgres(self) -> PostgresTable:
        """The server."""

    @property
    def client(self) -> ClientTable:
        """Where the driver stands."""

    @property
    def workload(self) -> Workload:
        """What it is asked to do."""

    @property
    def events(self) -> tuple[EventTable, ...]:
        """What happens during each of its runs."""

    @property
    def crash(self) -> CrashTable:
        """How often the power is cut after each of its runs."""


def world_refusals(arm: WorldTables) -> Iterator[Refusal]:
    """Everything that is wrong with what an arm asks of its world."""
    return _of_chosen(arm) if WORLD_KINDS[arm.world.kind].chooses_server else _of_existing(arm)


def _of_chosen(arm: WorldTables) -> Iterator[Refusal]:
    for refused in arm.workload.refusals_on_own():
        yield ("workload", *refused.key.split(".")), refused.message, refused.remedy
    placement = arm.world.placement
    if "data" not in placement:
        yield ("world",), "the data volume is missing", 'write volume = "gp3"'
    for key, name in arm.workload.tablespaces.items():
        if f"tablespace.{name}" not in placement:
            remedy = f'write "tablespace.{name}" in world.volumes'
            yield ("workload", key), f"there is no volume for the tablespace {name}", remedy
    apart = next((role for role in placement if role.startswith("tablespace.")), None)
    if arm.crash.cuts and apart is not None:
        message = f"power cuts are of the volumes for data and wal, and this arm has one for `{apart}`"
        yield ("crash",), message, "remove that volume, or [crash]"


def _of_existing(arm: WorldTables) -> Iterator[Refusal]:
    if arm.world.dsn is None:
        yield ("world",), 'kind = "real" needs a dsn', "write dsn in the file, or give --dsn"
    remove, fixed = "remove the key", 'with kind = "real" the server is measured as it is'
    for refused in arm.workload.refusals_on_existing():
        yield ("workload", *refused.key.split(".")), refused.message, refused.remedy
    if arm.events:
        yield ("event",), f"events happen to volumes and servers that pgdyno starts; {fixed}", "remove the events"
    if arm.crash.cuts:
        yield ("crash",), f"power is cut of volumes and servers that pgdyno starts; {fixed}", "remove [crash]"
    if arm.client.rtt_ms > 0:
        yield ("client", "rtt_ms"), f"a distance is emulated only to a server that pgdyno starts; {fixed}", remove
    for table, item in (("instance", arm.instance), ("postgres", arm.postgres)):
        for key in sorted(item.model_fields_set - {"bin"}):
            yield (table, key.removesuffix("_bytes")), f"an existing server cannot be configured; {fixed}", remove
