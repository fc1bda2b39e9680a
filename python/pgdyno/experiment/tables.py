"""The tables of an experiment file: world, instance, postgres, workload. Typed, and every key is known.

A field whose unit is in its value has the unit in its name here and not in the file: ``memory = "512MiB"`` is
``memory_bytes``.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from pgdyno.experiment.bulk import BulkTable
from pgdyno.experiment.quantity import Bytes, Seconds
from pgdyno.workload.spec import TABLESPACE, WorkloadAsked, at_key
from pgdyno.workload.tables import ROWS_EACH_MAX, scale_for, size_for_memory, sysbench_rows_for

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY_BYTES_DEFAULT = 512 << 20
MEMORY_BYTES_MIN = 64 << 20
"""PostgreSQL's own processes need about half of this before they cache anything."""
ROLES = ("data", "wal", "temp", "backup", "tablespace.NAME")
"""What a volume can be for. ``tablespace.NAME`` holds the tablespace of that name; there may be several."""
_ROLE = re.compile(r"data|wal|temp|backup|tablespace\." + TABLESPACE.strip("^$"))
_NOT_OF_A_LOAD = {
    "engine": "engine",
    "clients": "clients",
    "threads": "threads",
    "protocol": "protocol",
    "rate_per_s": "rate_per_s",
    "arrivals": "arrivals",
    "think_ms": "think_ms",
    "late_max_ms": "late_max_ms",
    "transactions": "transactions",
    "tries_max": "tries_max",
    "data_to_memory": "data_to_memory",
    "load": "load",
    "warmup_s": "warmup",
    "measure_s": "duration",
}
"""Field -> key of `[workload]` that means nothing to a load."""
_SECRET = frozenset({"password", "sslpassword", "oauth_client_secret"})
"""Keywords of a connection string that must be nowhere but in the user's own files."""


class Table(BaseModel):
    """A table of the file. A key that is not known is an error, and nothing is changed after reading."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False, allow_inf_nan=False
    )


def _text(value: Any) -> Any:
    """A setting as the file may give it, as PostgreSQL's configuration file takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


Parameter = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""The value of a setting of PostgreSQL."""


class WorldTable(Table):
    """What PostgreSQL stands on."""

    kind: Literal["emulated", "real"] = "emulated"
    """`emulated`: volumes that behave like the ones named. `real`: a server that exists already, named by `dsn`."""
    volume: str | None = None
    """The volume of the data, as `gp3:iops=6000`: short for `volumes.data`."""
    volumes: dict[str, str] = Field(default_factory=dict)
    """A volume for each purpose: `data`, `wal`, `temp`, `backup`, `tablespace.NAME`. Empty: no such volume."""
    file_system: Literal["ext4", "xfs"] = "ext4"
    """File system of every volume."""
    mount_options: str = ""
    """Options for mount(8), as `noatime`. Empty: the file system's own."""
    dilation: Annotated[int, Field(ge=1)] = 1
    """Slows volumes, arrivals and PostgreSQL's timers so many times, so that this machine stands for a larger one."""
    cpus_awake: bool | None = None
    """Keeps idle CPUs of this host polling while a run lasts: a sleeping CPU of a virtual machine may be woken late. Default: yes where this host allows it; `true` insists."""
    dsn: str | None = None
    """Connection string of a real server, without a password (use a service file, PGPASSFILE or PGPASSWORD)."""
    bought: dict[str, str] = Field(default_factory=dict)
    """What the volumes of a real server were bought as, by the same purposes: `data = "gp3:iops=6000"`. Nothing is made; the report tells by it which limit binds and what it costs."""

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if self.volume is not None and "data" in self.volumes:
            raise at_key("volume", "volume and volumes.data are the same thing; write one of them")
        for key, roles in (("volumes", self.volumes), ("bought", self.bought)):
            for role in roles:
                if not _ROLE.fullmatch(role):
                    raise at_key(key, f"a volume cannot be for `{role}`; there are {', '.join(ROLES)}")
        if self.kind == "emulated":
            if self.dsn is not None:
                raise at_key("dsn", 'dsn is for kind = "real"; an emulated world starts its own server')
            if self.bought:
                raise at_key("bought", 'bought is for kind = "real"; an emulated world has the volumes that it names')
            return self
        asked = self.model_fields_set & {"volume", "volumes", "file_system", "mount_options", "dilation", "cpus_awake"}
        if asked:
            raise at_key(min(asked), 'it cannot be chosen with kind = "real": the server has its storage and its clock')
        if self.dsn is not None:
            refuse_secrets(self.dsn)
        return self

    @property
    def placement(self) -> dict[str, str]:
        """Role -> specification of every volume there is, the data's first."""
        data = {} if self.volume is None else {"data": self.volume}
        given = data | self.volumes
        return {role: given[role] for role in sorted(given, key=lambda role: (role != "data", role)) if given[role]}


class InstanceTable(Table):
    """The machine that PostgreSQL is given."""

    type: str | None = None
    """An instance type by name, as `r6g.large`: its memory, vCPUs and EBS limits."""
    memory_bytes: Bytes | None = Field(None, alias="memory")
    """Memory, page cache included, as `512MiB`. Default: the type's, or 512 MiB without one."""
    vcpus: Annotated[int, Field(ge=1)] | None = None
    """vCPUs it is said to have. More than this host's cores: the run is labelled storage-only."""
    cpus: str | None = None
    """CPUs of this host that the server may use, as `0-1`. Default: all, shared with the laboratory."""

    @field_validator("memory_bytes")
    @classmethod
    def _is_enough(cls, memory_bytes: int | None) -> int | None:
        if memory_bytes is not None and memory_bytes < MEMORY_BYTES_MIN:
            raise ValueError(f"PostgreSQL needs at least {MEMORY_BYTES_MIN >> 20}MiB")
        return memory_bytes


class PostgresTable(Table):
    """The server."""

    bin: str = ""
    """Directory of PostgreSQL's programs, 14 to 18. Empty: the embedded PostgreSQL."""
    settings: Literal["tuned", "defaults"] = "tuned"
    """`tuned` is a plain set for the instance's memory, `defaults` PostgreSQL's own."""
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    """Settings by name; they win over `settings`."""


class ClientTable(Table):
    """Where the driver stands, seen from the server."""

    rtt_ms: Annotated[float, Field(ge=0, le=1000)] = 0.0
    """Emulated round trip between driver and server. 0: both on this machine, over a local socket."""


class LoadTable(Table):
    """How the workload's tables are made, once for all arms that can share them. Each load is a measured phase of its own."""

    connections: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Sessions that load at a time, by pgdyno's own loader. Default: as many as this host has cores; `pgbench -i` has one."""
    split: bool = False
    """Several sessions write parts of one large table, by pgdyno's own loader; its rows are then frozen by a vacuum."""
    foreign_keys: bool = False
    """Of pgbench's tables: add them."""
    limited: bool = False
    """Load on the arm's own volumes with their limits on, in its instance and by its settings, as it would be prepared there. Default: on volumes without limits."""


class WorkloadTable(WorkloadAsked):
    """What PostgreSQL is asked to do, and for how long."""

    warmup_s: Annotated[Seconds, Field(ge=0)] = Field("15s", alias="warmup", validate_default=True)
    """Driven, but not measured, as `15s`."""
    measure_s: Annotated[Seconds, Field(ge=2)] = Field("30s", alias="duration", validate_default=True)
    """Measured, as `30s`."""
    driver_cpus: str | None = None
    """CPUs of this host for the driver. Default: all."""
    full_check: bool = False
    """Whether every account's balance, or every row of sysbench's tables, is counted after a run: a scan of all data through the volume."""
    data_to_memory: Annotated[float, Field(gt=0)] | None = None
    """Size of the data with their indexes as a multiple of the instance's memory, instead of `scale` or `rows`: what was cached on a larger machine is cached on a smaller one."""
    load: LoadTable = Field(default_factory=LoadTable)
    """How the tables are made."""
    bulk: BulkTable = Field(default_factory=lambda: BulkTable.model_validate({}))
    """For kind `load`: what is loaded."""

    def asked(self) -> dict[str, Any]:
        """What was said of the fields of :class:`~pgdyno.workload.spec.WorkloadSpec`; the seed is none of them."""
        return {name: getattr(self, name) for name in WorkloadAsked.model_fields if name in self.model_fields_set}

    def refusal(self) -> tuple[str, str] | None:
        """The first key that does not go with the others, and why; None for a workload that can be run."""
        return super().refusal() or next(chain(self._of_bulk(), self._of_data()), None)

    def sized(self, memory_bytes: int) -> Self:
        """The same with as much data as ``data_to_memory`` asks for on an instance of so much memory."""
        if self.data_to_memory is None:
            return self
        size_bytes = size_for_memory(memory_bytes, self.data_to_memory)
        if self.kind != "sysbench":
            return self.model_copy(update={"scale": scale_for(size_bytes, self.fillfactor)})
        rows = sysbench_rows_for(size_bytes, self.tables, secondary_index=self.options.create_secondary)
        return self.model_copy(update={"rows": min(rows, ROWS_EACH_MAX)})

    def _of_bulk(self) -> Iterator[tuple[str, str]]:
        """What is said of files that are loaded."""
        if self.kind != "load":
            if "bulk" in self.model_fields_set:
                yield "bulk", f'it is for kind = "load", and this is kind = "{self.kind}"'
            return
        for name, key in _NOT_OF_A_LOAD.items():
            if name in self.model_fields_set:
                yield key, "a load has no transactions, and lasts as long as its files do; leave it away"
        if (why := self.bulk.refusal()) is not None:
            yield "bulk", why

    def _of_data(self) -> Iterator[tuple[str, str]]:
        """What is said of the tables' size, and of how they are made."""
        said = [key for key in ("scale", "rows") if key in self.model_fields_set]
        if self.kind == "load":
            return
        if self.kind == "idle":
            for key in sorted({"data_to_memory", "load"} & self.model_fields_set):
                yield key, "idle clients have no tables"
        elif self.data_to_memory is not None and said:
            yield "data_to_memory", f"it says how much data there is, and so does {said[0]}; leave one of them away"
        if self.load.foreign_keys and self.kind == "sysbench":
            yield "load", "foreign_keys are for pgbench's tables; sysbench's have nothing to refer to"

    @property
    def tablespaces(self) -> dict[str, str]:
        """Key -> tablespace that the tables or their keys are to be in."""
        asked = {"tablespace": self.tablespace, "index_tablespace": self.index_tablespace}
        return {key: name for key, name in asked.items() if name is not None}


def public_dsn(dsn: str) -> str:
    """What a record may say of a connection string: host, port, database and user."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    parts = conninfo_to_dict(dsn)
    return make_conninfo("", **{name: parts[name] for name in ("host", "port", "dbname", "user") if name in parts})


def refuse_secrets(dsn: str) -> None:
    """Raise when a connection string is none, or holds a password."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        # libpq's message repeats what it could not read, which may be the password.
        raise at_key(
            "dsn", "dsn is no connection string; write it as `host=db.example dbname=app user=bench`"
        ) from error
    secret = sorted(_SECRET & parts.keys())
    if secret:
        raise at_key(
            "dsn",
            f"a {secret[0]} does not belong in a file or on a command line;"
            " use a service file, PGPASSFILE or PGPASSWORD",
        )
