"""What a workload asks for: which transactions, by which driver, from how many clients, and when they begin."""

from __future__ import annotations

import math
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pgdyno.errors import InputError
from pgdyno.workload.options import SysbenchOptions
from pgdyno.workload.scripts import READ_ONLY, ScriptFile, ScriptName, parse_script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

Kind = Literal["pgbench", "script", "sysbench", "idle", "load"]
Engine = Literal["native", "pgbench", "sysbench"]
SysbenchTest = Literal[
    "legacy",
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_insert",
    "oltp_delete",
    "oltp_update_index",
    "oltp_update_non_index",
    "select_random_points",
    "select_random_ranges",
]
LEGACY = "legacy"
"""The test of sysbench 0.5."""
SENDS_TEXT: frozenset[str] = frozenset({LEGACY, "oltp_insert"})
"""Tests whose originals send statements as text, never prepared."""
ON_K: frozenset[str] = frozenset({"select_random_points", "select_random_ranges"})
"""Tests that have one table."""
SYSBENCH_READ_ONLY: frozenset[str] = frozenset(
    {"oltp_read_only", "oltp_point_select", "select_random_points", "select_random_ranges"}
)
"""Tests of sysbench that write nothing."""
RATE_OFF_MAX = 0.01
"""Of a rate: an original that can only drive another one may be so far off, which no comparison of loads would notice."""
ROWS_PER_SCALE = {"pgbench_branches": 1, "pgbench_tellers": 10, "pgbench_accounts": 100_000}
"""Rows for each unit of the scale factor; ``pgbench_history`` begins empty."""

TABLESPACE = r"^[a-z][a-z0-9_]{0,30}$"
"""A name that needs no quotes, and is a folder's name too."""

_PGBENCH_TABLES = ("scale", "fillfactor", "tablespace", "index_tablespace")
_KEYS_OF: dict[str, frozenset[str]] = {
    "pgbench": frozenset({"script", *_PGBENCH_TABLES}),
    "script": frozenset({"files", *_PGBENCH_TABLES}),
    "sysbench": frozenset({"test", "tables", "rows", "keys", "options"}),
    "idle": frozenset(),
    "load": frozenset(),
}
"""Keys that only some kinds of workload have."""
_KIND_KEYS: frozenset[str] = frozenset().union(*_KEYS_OF.values())


@contextmanager
def explained(subject: str = "") -> Iterator[None]:
    """Turn what pydantic says of a wrong value into an :class:`InputError` that names the field."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (*first["loc"], *_key(first)))
        raise InputError(
            f"{subject}{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}",
            remedy="see `pgdyno compare --help`",
        ) from error


def at_key(key: str, message: str) -> PydanticCustomError:
    """What a check of a whole table raises about one of its keys."""
    return PydanticCustomError("at_key", "{message}", {"key": key, "message": message})


def _key(found: ErrorDetails) -> tuple[str, ...]:
    return (str(found["ctx"]["key"]),) if found["type"] == "at_key" else ()


class Binaries(Protocol):
    """Where PostgreSQL's programs are."""

    @property
    def bin_dir(self) -> Any:
        """Directory (``pathlib.Path``) that holds ``pgbench``."""


class Server(Protocol):
    """What a workload needs of a server; :class:`pgdyno.postgres.cluster.Cluster` is one."""

    @property
    def dsn(self) -> str:
        """Connection string in libpq's notation."""

    @property
    def binaries(self) -> Binaries:
        """The programs that belong to it."""


class WorkloadAsked(BaseModel):
    """A workload as an experiment asks for it: everything but the seed, which the experiment draws.

    Without ``rate_per_s`` the loop is closed: a client sends when its last transaction has ended (and it has thought),
    so a stall of the server lowers the load, and latency is service time under that load. With it the loop is open:
    transactions are scheduled, and latency counts from the schedule.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    kind: Kind = "pgbench"
    """`pgbench`: its built-in scripts. `script`: `files` of yours. `sysbench`: one of its tests. `idle`: transactions without a statement, which measure the driver. `load`: files into empty tables, by `pgdyno load`."""
    engine: Engine | None = None
    """The driver: `native` is pgdyno's own, `pgbench` and `sysbench` are the original programs. Default: `pgbench` for scripts, else `native`."""
    script: str = "tpcb-like"
    """For kind `pgbench`: `tpcb-like`, `simple-update`, `select-only`, or a mix: `select-only@3,simple-update@1`."""
    files: Annotated[
        tuple[ScriptFile, ...], WithJsonSchema({"type": "array", "items": {"type": ["string", "object"]}})
    ] = ()
    """For kind `script`: files in pgbench's language, `FILE.sql@WEIGHT`, beside the experiment file."""
    scale: Annotated[int, Field(ge=1)] = 100
    """Of pgbench's tables: 100,000 accounts each, about 15 MB with the primary key."""
    fillfactor: Annotated[int, Field(ge=10, le=100)] = 100
    """Of the tables, in per cent: what is left free is room for updates."""
    tablespace: Annotated[str, Field(pattern=TABLESPACE)] | None = None
    """Tablespace of the tables, as `fast` for the volume `tablespace.fast`. Default: the database's own."""
    index_tablespace: Annotated[str, Field(pattern=TABLESPACE)] | None = None
    """Tablespace of the primary keys."""
    test: SysbenchTest = "oltp_read_write"
    """For kind `sysbench`: the test, by the name of its script in 1.0.20; `legacy` is that of 0.5."""
    tables: Annotated[int, Field(ge=1, le=10_000)] = 1
    """For kind `sysbench`: how many tables."""
    rows: Annotated[int, Field(ge=1, le=2**31 - 1)] = 10_000
    """For kind `sysbench`: rows of each table."""
    keys: Literal["special", "uniform", "gaussian", "pareto"] = "special"
    """For kind `sysbench`: how rows are drawn, as its `--rand-type`."""
    options: SysbenchOptions = Field(default_factory=SysbenchOptions)
    """For kind `sysbench`: options of its tests."""
    clients: Annotated[int, Field(ge=1)] = 8
    """Connections that work at a time."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads of the driver. One drives tens of thousands of transactions a second; more only compete with the server."""
    protocol: Literal["simple", "extended", "prepared"] = "prepared"
    """Query protocol. Of sysbench's `legacy` and `oltp_insert` it is `simple` unless this is said, as there."""
    rate_per_s: Annotated[float, Field(gt=0)] | None = None
    """Open loop: transactions started per second. Default: a closed loop."""
    arrivals: Literal["poisson", "fixed"] = "poisson"
    """Of an open loop: independent of each other, or evenly spaced."""
    think_ms: Annotated[float, Field(gt=0)] | None = None
    """Closed loop: how long a client waits between two transactions."""
    late_max_ms: Annotated[int, Field(ge=1)] | None = None
    """Transactions that an open loop would start later than this are skipped, and counted as skipped."""
    transactions: Annotated[int, Field(ge=1)] | None = None
    """Closed loop, by pgbench: each client ends after so many, and `duration` is the longest that it may take. Default: all go on for `duration`."""
    tries_max: Annotated[int, Field(ge=0)] = 1
    """How often a transaction is tried that ends in a serialisation failure or a deadlock; 0: until it succeeds, as sysbench does unless this is said."""

    @model_validator(mode="before")
    @classmethod
    def _as_the_original(cls, values: Any) -> Any:
        """Sysbench tries again until it succeeds, and sends two of its tests as text, unless something else is said."""
        if isinstance(values, dict) and values.get("kind") == "sysbench":
            text = {"protocol": "simple"} if values.get("test") in SENDS_TEXT else {}
            return {"tries_max": 0, **text, **values}
        return values

    @field_validator("script")
    @classmethod
    def _is_a_script(cls, script: str) -> str:
        parse_script(script)
        return script

    def refusal(self) -> tuple[str, str] | None:
        """The first key that does not go with the others, and why; None for a workload that can be run.

        A table of an experiment file may lack what its factors give, so this is asked of each arm.
        """
        return next(chain(_of_loop(self), _of_count(self), _of_kind(self), _of_engine(self)), None)

    def rates_instead(self, dilation: int) -> tuple[int, ...]:
        """The nearest rates that sysbench can drive, where it cannot drive the one that is asked for; else none.

        It takes whole numbers only, and counts in the host's seconds.
        """
        if self.driver != "sysbench" or self.rate_per_s is None:
            return ()
        below = math.floor(self.rate_per_s / dilation)
        nearest = tuple(rate * dilation for rate in (below, below + 1) if rate > 0)
        off = min(abs(rate - self.rate_per_s) for rate in nearest)
        return nearest if off > RATE_OFF_MAX * self.rate_per_s else ()

    @property
    def driver(self) -> Engine:
        """The engine that drives, with the default put in."""
        return self.engine or ("pgbench" if self.kind in ("pgbench", "script") else "native")

    @property
    def closed(self) -> bool:
        """Whether clients wait for completions."""
        return self.rate_per_s is None

    @property
    def mix(self) -> tuple[tuple[str, int], ...]:
        """(name, weight) of every script, in the order in which a driver numbers them."""
        if self.kind == "script":
            return tuple((file.name, file.weight) for file in self.files)
        if self.kind == "pgbench":
            return self.scripts
        return ((self.test if self.kind == "sysbench" else self.kind, 1),)

    @property
    def scripts(self) -> tuple[tuple[ScriptName, int], ...]:
        """The built-in scripts; none for other kinds than pgbench's."""
        return parse_script(self.script) if self.kind == "pgbench" else ()

    @property
    def writes(self) -> bool:
        """Whether it may change rows; of a user's script that is not known."""
        if self.kind == "pgbench":
            return any(name not in READ_ONLY for name, _ in self.scripts)
        return self.kind in ("script", "load") or (self.kind == "sysbench" and self.test not in SYSBENCH_READ_ONLY)


def _of_loop(asked: WorkloadAsked) -> Iterator[tuple[str, str]]:
    """Clients, threads and arrivals."""
    if asked.threads > asked.clients:
        yield "threads", f"{asked.threads} threads for {asked.clients} clients: a thread needs a client"
    for key in ("late_max_ms", "arrivals"):
        if key in asked.model_fields_set and getattr(asked, key) is not None and asked.rate_per_s is None:
            yield key, "it needs rate_per_s: without a schedule nothing is late, and nothing arrives"
    if asked.think_ms is not None and asked.rate_per_s is not None:
        yield "think_ms", "clients that keep a schedule (rate_per_s) do not think; leave one of them away"


def _of_count(asked: WorkloadAsked) -> Iterator[tuple[str, str]]:
    """Clients that end after so many transactions."""
    if asked.transactions is None:
        return
    if asked.rate_per_s is not None:
        yield "transactions", "clients that keep a schedule (rate_per_s) end after a time; leave one of them away"
    if asked.driver != "pgbench":
        yield "transactions", f'{asked.driver} drives for a time; engine = "pgbench" can count'


def _of_kind(asked: WorkloadAsked) -> Iterator[tuple[str, str]]:
    """Keys of another kind, which would be passed over, and lack of what a kind needs."""
    for key in sorted(asked.model_fields_set & (_KIND_KEYS - _KEYS_OF[asked.kind])):
        kinds = " or ".join(f'"{kind}"' for kind, keys in _KEYS_OF.items() if key in keys)
        yield key, f'it is for kind = {kinds}, and this is kind = "{asked.kind}"'
    names = [file.name for file in asked.files]
    if asked.kind == "script" and not names:
        yield "files", 'kind = "script" needs files = ["FILE.sql"]'
    if len(set(names)) < len(names):
        yield "files", f"{max(names, key=names.count)} is there twice; give it one weight"
    if asked.kind == "sysbench" and asked.test in ON_K and asked.tables > 1:
        yield "tables", f"{asked.test} has one table, as in sysbench"
    if asked.kind == "sysbench" and (why := asked.options.refusal(asked.test)) is not None:
        yield "options", why
    if asked.kind == "idle" and asked.rate_per_s is None and asked.think_ms is None:
        yield "rate_per_s", "idle clients in a closed loop would never rest: give a rate, or think_ms"


def _of_engine(asked: WorkloadAsked) -> Iterator[tuple[str, str]]:
    """What the chosen program cannot do."""
    driver = asked.driver
    able = {"pgbench": ("pgbench", "script"), "sysbench": ("sysbench",)}.get(driver)
    if able is not None and asked.kind not in able:
        yield "engine", f'{driver} cannot run kind = "{asked.kind}"; engine = "native" can'
    if driver == "native":
        return
    if asked.arrivals == "fixed":
        yield "arrivals", f'{driver} draws its arrivals at random; engine = "native" has them evenly spaced'
    if asked.think_ms is not None:
        yield "think_ms", f'clients of {driver} do not think; those of engine = "native" do'
    if driver == "sysbench":
        if asked.late_max_ms is not None:
            yield "late_max_ms", 'sysbench skips nothing; engine = "native" does'
        if asked.tries_max != 0:
            yield "tries_max", 'sysbench tries again until it succeeds; engine = "native" can be told'
        if asked.protocol == "extended":
            yield "protocol", "sysbench has the protocols simple and prepared"


class WorkloadSpec(WorkloadAsked):
    """One workload, with its seed: two runs of it ask for the same transactions."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        if (refusal := self.refusal()) is not None:
            raise at_key(*refusal)
        return self

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The specification, or an :class:`InputError` that names the field."""
        with explained("workload: "):
            return cls(**values)

    def dilated(self, dilation: int) -> Self:
        """What a driver is told in a world that is so many times slower: what it does each second, and by when."""
        rate, late_ms, think_ms = self.rate_per_s, self.late_max_ms, self.think_ms
        return self.model_copy(
            update={
                "rate_per_s": None if rate is None else rate / dilation,
                "late_max_ms": None if late_ms is None else late_ms * dilation,
                "think_ms": None if think_ms is None else think_ms * dilation,
            }
        )

    def record(self) -> dict[str, Any]:
        """The specification as it stands in ``run.json``, without the keys of other kinds and loops."""
        if self.kind == "load":
            return {"kind": self.kind, "seed": self.seed}
        loop = {"arrivals", "late_max_ms"} if self.closed else {"think_ms"}
        loop |= {"transactions"} if self.transactions is None else set()
        others = _KIND_KEYS - _KEYS_OF[self.kind]
        written = self.model_dump(mode="json", exclude={*others, *loop, "engine", "options"})
        if self.kind == "sysbench":
            written |= self.options.in_use(self.test)
        if self.kind == "script":
            written["script"] = ",".join(f"{name}@{weight}" for name, weight in self.mix)
        return {"kind": self.kind, "engine": self.driver, "closed": self.closed, **written}
