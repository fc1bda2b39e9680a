"""Tables of an experiment file (world, instance, postgres, client), and what each kind of world allows in them.

A field whose unit is in its value has the unit in its name here and not in the file: ``memory = "512MiB"`` is
``memory_bytes``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pgdyno.workload.keys import Bytes, KeyTable, at_key
from pgdyno.workload.kind import Workload
from pgdyno.workload.outcome import WHOLE

from ..base.endpoint import wrong_in
from ..base.specification import with_init
from ..kinds.pgbench import TABLESPACE
from .events import CrashTable, EventTable


@dataclass(frozen=True)
class WorldKind:
    """The keys of one kind. What its arms must not ask for is in :mod:`pgdyno.experiment.tables`."""

    foreign_keys: dict[str, str]
    """Key of ``[world]`` that this kind does not have -> why."""
    label: str
    """What an arm of an experiment without factors is called where it names no volume."""
    chooses_server: bool = True
    """Whether pgdyno starts the server, so that its storage, instance and settings are chosen in the file."""
    public: bool = True
    """Whether the schema and the reference name it."""


_ITS_OWN_SERVER = {
    "dsn": 'dsn is for kind = "real"; an emulated world starts its own server',
    "bought": 'bought is for kind = "real"; an emulated world has the volumes that it names',
}
_NOT_CHOSEN = 'it cannot be chosen with kind = "real": the server has its storage and its clock'
EMULATED = WorldKind(_ITS_OWN_SERVER, "emulated server")
WORLD_KINDS = {
    "emulated": EMULATED,
    "real": WorldKind(
        dict.fromkeys(
            ("volume", "volumes", "restored", "file_system", "mount_options", "dilation", "cpus_awake"), _NOT_CHOSEN
        ),
        "real server",
        chooses_server=False,
    ),
    "fake": WorldKind(_ITS_OWN_SERVER, "fake server", public=False),
}
"""The kinds by name. ``fake`` makes figures up and is for tests."""


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


MEMORY_BYTES_DEFAULT = 512 << 20

MEMORY_BYTES_MIN = 64 << 20
"""PostgreSQL's own processes need about half of this before they cache anything."""

DRIVERS_MAX = 64
"""Of one load. More than a machine has cores only compete."""

WEIGHT_MAX = 1000

ROLES = ("data", "wal", "temp", "backup", "tablespace.NAME")
"""Roles of volumes. ``tablespace.NAME`` holds the tablespace of that name; there may be several."""

PUBLIC_KINDS = [name for name, kind in WORLD_KINDS.items() if kind.public]

_ROLE = re.compile(r"data|wal|temp|backup|tablespace\." + TABLESPACE.strip("^$"))


def _text(value: Any) -> Any:
    """A setting as the file may give it, as PostgreSQL's configuration file takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


Parameter = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""The value of a setting of PostgreSQL."""


def _drivers(value: Any) -> Any:
    """Drivers in one notation: a weight for each, or for each host by its name."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = (1,) * min(value, DRIVERS_MAX + 1)
    weights = (
        list(value.values() if isinstance(value, dict) else value) if isinstance(value, list | tuple | dict) else []
    )
    if not 1 <= len(weights) <= DRIVERS_MAX:
        raise ValueError(f"write the number of drivers (1 to {DRIVERS_MAX}), a weight for each, or one for each host")
    if any(
        isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= WEIGHT_MAX for weight in weights
    ):
        raise ValueError(f"a weight is a whole number from 1 to {WEIGHT_MAX}")
    return {str(name): weight for name, weight in value.items()} if isinstance(value, dict) else tuple(weights)


_WEIGHT = {"type": "integer", "minimum": 1, "maximum": WEIGHT_MAX}

Drivers = Annotated[
    tuple[int, ...] | dict[str, int],
    PlainValidator(_drivers),
    PlainSerializer(lambda drivers: drivers if isinstance(drivers, dict) else list(drivers), when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": DRIVERS_MAX},
                {"type": "array", "items": _WEIGHT},
                {"type": "object", "minProperties": 1, "additionalProperties": _WEIGHT},
            ]
        }
    ),
]
"""A weight for each driver; with names, each on the host of its name."""


class WorldTable(KeyTable):
    """What PostgreSQL stands on."""

    kind: Annotated[str, WithJsonSchema({"enum": PUBLIC_KINDS, "type": "string"})] = "emulated"
    """`emulated`: volumes that behave like the ones named. `real`: an existing server, named by `dsn`."""
    volume: str | None = None
    """The data volume, for example `gp3:iops=6000`: short for `volumes.data`."""
    volumes: dict[str, str] = Field(default_factory=dict)
    """A volume for each role: `data`, `wal`, `temp`, `backup`, `tablespace.NAME`. Empty: no separate volume."""
    restored: str = ""
    """Every run's volumes are made from snapshots of the data set just before it: `lazy`, `lazy_half`, `lazy_double`, `fsr`, or a rate such as `200MiB/s`. It is `init=` of each volume that does not have one. Empty: their blocks are there."""
    file_system: Literal["ext4", "xfs"] = "ext4"
    """File system of every volume."""
    mount_options: str = ""
    """Mount options, for example `noatime`. Empty: the file system's own."""
    dilation: Annotated[int, Field(ge=1)] = 1
    """Slows volumes, arrivals and PostgreSQL's timers by this factor, so that this machine stands for a larger one."""
    cpus_awake: bool | None = None
    """Keeps idle CPUs of this host polling during a run: a sleeping CPU of a virtual machine may wake up late. Default: yes if this host allows it; `true` requires it."""
    dsn: str | None = None
    """Connection string of a real server, without a password (use a service file, PGPASSFILE or PGPASSWORD)."""
    bought: dict[str, str] = Field(default_factory=dict)
    """How the volumes of an existing server were provisioned, by role: `data = "gp3:iops=6000"`. Only for the report, which then names the limit that binds and the cost."""

    @field_validator("kind")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in WORLD_KINDS:
            raise PydanticCustomError(
                "world_kind",
                "there is no world `{kind}`; there are {known}",
                {"kind": value, "known": ", ".join(PUBLIC_KINDS)},
            )
        return value

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if self.volume is not None and "data" in self.volumes:
            raise at_key("volume", "volume and volumes.data are the same; use one of them")
        for key, roles in (("volumes", self.volumes), ("bought", self.bought)):
            for role in roles:
                if not _ROLE.fullmatch(role):
                    raise at_key(key, f"a volume cannot be for `{role}`; there are {', '.join(ROLES)}")
        foreign = WORLD_KINDS[self.kind].foreign_keys
        if results := sorted(foreign.keys() & self.model_fields_set):
            raise at_key(results[0], foreign[results[0]])
        if self.dsn is not None and (why := wrong_in(self.dsn)) is not None:
            raise at_key("dsn", why)
        return self

    @property
    def placement(self) -> dict[str, str]:
        """Role -> specification of every volume there is, the data's first, with what `restored` adds to it."""
        return {
            role: with_init(spec, self.restored) if self.restored else spec for role, spec in self.made_full.items()
        }

    @property
    def made_full(self) -> dict[str, str]:
        """The same as they were written."""
        data = {} if self.volume is None else {"data": self.volume}
        given = data | self.volumes
        return {role: given[role] for role in sorted(given, key=lambda role: (role != "data", role)) if given[role]}


class InstanceTable(KeyTable):
    """The machine that PostgreSQL is given."""

    type: str | None = None
    """An instance type, for example `r6g.large`: its memory, vCPUs and EBS limits."""
    memory_bytes: Bytes | None = Field(None, alias="memory")
    """Memory, page cache included, for example `512MiB`. Default: the type's, or 512 MiB without a type."""
    vcpus: Annotated[int, Field(ge=1)] | None = None
    """Number of vCPUs. If there are more than this host's cores, the run is labelled storage-only."""
    cpus: str | None = None
    """CPUs of this host that the server may use, for example `0-1`. Default: all, shared with the test harness."""
    cpu_share: Annotated[float, Field(ge=0.05, le=1)] = 1.0
    """Share of these CPUs' time that the server gets, as where other customers use the same vCPUs: with `0.5` half of each 100 ms. 1: all of it."""

    @field_validator("memory_bytes")
    @classmethod
    def _is_enough(cls, memory_bytes: int | None) -> int | None:
        if memory_bytes is not None and memory_bytes < MEMORY_BYTES_MIN:
            raise ValueError(f"PostgreSQL needs at least {MEMORY_BYTES_MIN >> 20}MiB")
        return memory_bytes


class PostgresTable(KeyTable):
    """The server."""

    bin: str = ""
    """Directory of PostgreSQL's programs, 12 to 18 (19 is not tried yet). Empty: the embedded PostgreSQL."""
    settings: Literal["tuned", "defaults"] = "tuned"
    """`tuned` is a plain set for the instance's memory, `defaults` are PostgreSQL's defaults."""
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    """Settings by name; they override `settings`."""
    given_up: list[Literal["full_page_writes"]] = Field(default_factory=list)
    """Settings that are switched off although durability rests on them, as `["full_page_writes"]`: what a power cut leaves may be damaged. The report's first line says so, and such runs are never pooled with others."""


class ClientTable(KeyTable):
    """Where the driver stands, seen from the server."""

    rtt_ms: Annotated[float, Field(ge=0, le=1000)] = 0.0
    """Emulated round trip between driver and server. 0: both on this machine, over a local socket."""
    drivers: Drivers = WHOLE
    """Driver processes that share the load and begin at the same instant: their number, or a weight for each, as `[2, 1]`. Clients and threads are divided. On other hosts: a weight for each by its name, as `{alpha = 2, beta = 1}`, with `pgdyno run --drivers`."""

    @property
    def weights(self) -> tuple[int, ...]:
        """A weight for each driver."""
        return tuple(self.drivers.values()) if isinstance(self.drivers, dict) else self.drivers

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the drivers, by their names; empty where all are processes of this machine."""
        return tuple(self.drivers) if isinstance(self.drivers, dict) else ()
