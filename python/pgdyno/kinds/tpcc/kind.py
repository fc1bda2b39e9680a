"""Kind `tpcc`: transactions derived from TPC-C, as HammerDB's TPROC-C runs them or as the specification says.

After a run the tables must hold the specification's conditions that hold for the profile, and must have grown by what the
driver counted. No figure of it is a result of TPC-C, and none has the name of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from pgdyno.workload.outcome import Outcome
from pgdyno.workload.server import Server
from pgdyno.workload.tables import (
    TpccRoutines,
    TpccTables,
    size_for_memory,
    warehouses_for,
)
from pgdyno.workload.tpcc_conditions import PUBLIC, TPCC_SCHEMA, TpccProfile

from ...results.record import Check
from ...workload.clients import Engine
from ...workload.kind import LoadManner, Refusal
from ..driven import FilledKind
from ..hammerdb.script import MINUTE_S
from . import audit
from .audit import MIX, TableGrowth

WAREHOUSES_MAX = 100_000
_NEW_ORDER_BYTES = 1_300
"""Bytes that an order with its lines adds: 1.0 KB of rows and 0.3 KB of index entries, from their widths; tests/tpcc compares it."""
_NEW_ORDERS = 10 / 23
"""Their share of the mix."""
_CORE_PER_S_MAX = 3_000
"""Transactions of a core that server and driver share, where nothing waits for a volume; 1,700 were measured. It only feeds estimates."""
_PACED_PER_MIN = 12.86
"""New-Orders of a warehouse at most, with keying and think times (TPC-C 5.11, 4.1)."""
_NATIVE = 'use engine = "native"'


class Tpcc(FilledKind):
    """`tpcc`: derived from TPC-C."""

    headline: ClassVar[str] = "nopm"
    blamed: ClassVar[str] = "profile"
    counts_types: ClassVar[bool] = True
    engines: ClassVar[tuple[Engine, ...]] = ("native", "hammerdb")
    manners: ClassVar[tuple[LoadManner, ...]] = ("copy", "hammerdb")

    kind: Literal["tpcc"] = "tpcc"
    """Transactions derived from TPC-C: New-Orders, payments and three others."""
    profile: TpccProfile = "hammerdb"
    """`hammerdb`: as HammerDB's TPROC-C, with its deviations from TPC-C; `spec`: as TPC-C 5.11."""
    warehouses: Annotated[int, Field(ge=1, le=WAREHOUSES_MAX)] = 10
    """Number of warehouses, about 100 MB each."""
    routines: TpccRoutines = "functions"
    """Place of a transaction's statements: `functions` of the server, `procedures` of the profile `hammerdb` (either is one
    statement), or `statements`, which clients of the profile `spec` send one by one."""
    all_warehouses: bool = False
    """Each client draws one of its share of the warehouses for every transaction, so that all are in use. Default: a client has one."""
    keying: bool = False
    """Clients take the keying and think times of the specification before and after a transaction."""
    names_match: bool = False
    """For profile `hammerdb` with `functions`: pass the last names that were drawn. HammerDB's functions never find a customer by name."""
    tables_schema: Literal["pgdyno_tpcc", "public"] = Field(TPCC_SCHEMA, alias="schema")
    """Schema of the tables and routines: pgdyno's own, or `public`, for what HammerDB has built on an existing server. Nothing is made or
    dropped there."""
    tries_max: Annotated[int, Field(ge=0)] = 10
    """Attempts per transaction after a serialization failure or a deadlock; 0: until it succeeds."""

    @model_validator(mode="before")
    @classmethod
    def _as_the_original(cls, values: Any) -> Any:
        """Calls of procedures are sent as text, unless something else is said."""
        if isinstance(values, dict) and values.get("routines") == "procedures":
            return {"protocol": "simple", **values}
        return values

    @property
    def mix(self) -> tuple[tuple[str, int], ...]:
        """The five types."""
        return MIX

    @property
    def history_writers(self) -> frozenset[str]:
        """Payments."""
        return frozenset({"payment"})

    @property
    def writes(self) -> bool:
        """Always."""
        return True

    def native(self) -> dict[str, Any]:
        keys = ("profile", "warehouses", "routines", "all_warehouses", "keying", "names_match")
        return {"tpcc": {key: getattr(self, key) for key in keys} | {"schema": self.tables_schema}}

    def data_set(self) -> TpccTables:
        """With their routines."""
        return TpccTables(self.warehouses, self.profile, self.routines, self.tables_schema)

    def needed_tables(self) -> TpccTables:
        return self.data_set()

    @property
    def size_key(self) -> str:
        return "warehouses" if self.data_to_memory is None else "data_to_memory"

    def sized(self, memory_bytes: int) -> Self:
        if self.data_to_memory is None:
            return self
        number = warehouses_for(size_for_memory(memory_bytes, self.data_to_memory))
        return self.model_copy(update={"warehouses": min(number, WAREHOUSES_MAX)})

    def left_by_runs(self, server: Server) -> str:
        """Orders beyond those of the load."""
        orders = audit.orders_of_runs(server, self.tables_schema)
        if not orders:
            return ""
        return (
            f"the tables in the schema {self.tables_schema} have {orders:,} orders that earlier runs left, and further runs begin with these;"
            " make them again for the rows of a load"
        )

    def adds_bytes(self, dilation: int = 1) -> int:
        """The orders with their lines, at the rate that was asked for or that the cores can do."""
        cores = len(os.sched_getaffinity(0))
        per_s = cores * _CORE_PER_S_MAX * dilation if self.rate_per_s is None else self.rate_per_s
        new_orders_per_s = per_s * _NEW_ORDERS
        if self.keying:
            new_orders_per_s = min(new_orders_per_s, self.warehouses * _PACED_PER_MIN / 60)
        return round(new_orders_per_s * sum(self.phases_s) * _NEW_ORDER_BYTES)

    def baseline(self, server: Server, *, full: bool = False) -> TableGrowth:
        return TableGrowth.of(server, self.tables_schema)

    def proofs(
        self, server: Server, outcome: Outcome, baseline: Any = None, *, full: bool = False
    ) -> tuple[Check, ...]:
        """Checks of the tables' growth, the conditions, the mix and the inputs: :mod:`pgdyno.kinds.tpcc.audit`."""
        return audit.proofs(
            self.data_set(), self.seed, server, outcome, baseline or TableGrowth.loaded(self.warehouses), full=full
        )

    def refusals_on_own(self) -> Iterator[Refusal]:
        yield from super().refusals_on_own()
        if self.tables_schema == PUBLIC:
            why = "tables built by HammerDB are on an existing server; an emulated server has tables of pgdyno"
            yield Refusal("schema", why, 'omit the key, or use kind = "real"')

    def refusals_in_time(self, dilation: int) -> Iterator[Refusal]:
        """HammerDB has its own time."""
        if self.driver == "hammerdb":
            if dilation > 1:
                yield Refusal("engine", "HammerDB counts minutes of the clock, and a dilated world has others", _NATIVE)
            for key, seconds in (("warmup", self.warmup_s), ("duration", self.measure_s)):
                if seconds < MINUTE_S or seconds % MINUTE_S:
                    why = f"HammerDB runs for whole minutes, one at least, and not for {seconds:g} s"
                    yield Refusal(key, why, f'write {key} = "{max(1, round(seconds / MINUTE_S))}min", or {_NATIVE}')
        yield from super().refusals_in_time(dilation)

    def warnings(self, parameters: Mapping[str, str] | None = None) -> Iterator[str]:
        """Clients that lock each other's rows measure no volume."""
        if self.clients > self.warehouses and not self.all_warehouses:
            many = "warehouse" if self.warehouses == 1 else "warehouses"
            yield (
                f"{self.clients:,} clients on {self.warehouses:,} {many}: they wait for each other's rows, and a faster volume"
                " changes little; use more warehouses, fewer clients or all_warehouses = true"
            )

    def record(self) -> dict[str, Any]:
        """HammerDB has a thread for each client, and tries once."""
        own = {"threads": self.clients, "tries_max": 1} if self.driver == "hammerdb" else {}
        return super().record() | own

    def _own_record(self) -> dict[str, Any]:
        own = super()._own_record()
        schema = own.pop("tables_schema")
        return own if schema == TPCC_SCHEMA else own | {"schema": schema}

    def _of_kind(self) -> Iterator[Refusal]:
        if self.profile == "spec" and self.routines == "procedures":
            why = "the profile spec has functions or statements"
            yield Refusal("routines", why, 'omit the key, or use profile = "hammerdb"')
        if self.profile == "hammerdb" and self.routines == "statements":
            why = "the profile hammerdb has functions or procedures"
            yield Refusal("routines", why, 'omit the key, or use profile = "spec"')
        if self.names_match and (self.profile == "spec" or self.routines == "procedures"):
            yield Refusal("names_match", "names match there anyway; it is for the functions of the profile hammerdb")
        if self.tables_schema == PUBLIC and self.profile == "spec":
            yield Refusal("schema", "tables built by HammerDB need the profile hammerdb", "omit one of them")
        if self.keying and self.rate_per_s is not None:
            yield Refusal("keying", "clients of an open loop (rate_per_s) do not think; omit one of them")
        if self.keying and self.think_ms is not None:
            yield Refusal("keying", "it has a think time for each type; omit think_ms")
        if self.driver == "hammerdb":
            yield from self._of_hammerdb()
        yield from self._of_size("warehouses")
        if self.load.foreign_keys:
            yield Refusal("load", "foreign_keys are for pgbench's tables; profile spec always has its own")

    def _of_hammerdb(self) -> Iterator[Refusal]:
        """Refusals of keys that HammerDB does not support or treats in its own way."""
        if self.tables_schema != PUBLIC:
            why = "HammerDB drives the tables and routines that it has built, which are in the schema public"
            yield Refusal("engine", why, f'build them with HammerDB and write schema = "public", or {_NATIVE}')
        usual = "simple" if self.routines == "procedures" else "prepared"
        for key, value, why in (
            ("names_match", False, "HammerDB's functions get no names"),
            ("rate_per_s", None, "HammerDB's users run a closed loop"),
            ("threads", 1, "HammerDB has a thread for each of its users"),
            ("tries_max", 1, "HammerDB does not try a transaction again"),
            ("protocol", usual, f"HammerDB calls {self.routines} by the protocol {usual}"),
        ):
            if key in self.model_fields_set and getattr(self, key) != value:
                yield Refusal(key, why, f"omit the key, or {_NATIVE}")
