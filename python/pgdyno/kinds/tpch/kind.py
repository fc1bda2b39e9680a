"""Kind `tpch`: streams of queries derived from TPC-H, as HammerDB's TPROC-H asks them or as the specification says.

A run ends with its queries. No figure of it is a result of TPC-H, and none has the name of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from pgdyno.workload.outcome import Outcome, Runner
from pgdyno.workload.server import Server
from pgdyno.workload.tables import TPCH_SCHEMA, TpchProfile, TpchTables, scale_factor_for, size_for_memory
from pgdyno.workload.tpcc_conditions import PUBLIC

from ...results.record import Check
from ...workload.generated import SCALE_LEAST, SCALE_MOST, repeats_suppliers
from ...workload.keys import Seconds
from ...workload.kind import LoadManner, Refusal, WithTables, Workload
from .queries import QUERIES, Streams
from .refresh import SETS_MAX, Refresh, RefreshFunctions, orders_of_set

_SET_S_PER_SCALE = 40.0
"""Seconds of a set of 22 queries at scale factor 1, on two cores; it only feeds estimates."""
_QUERY_READS_PER_SCALE = dict.fromkeys(QUERIES, 2_700) | {9: 155_000, 13: 25_000, 16: 1_000, 18: 45_000, 21: 65_000}
"""Requests to a volume of each query at scale factor 1, where little is cached; it only feeds estimates. Those that were counted one by one are
of experiments/temp-volume.toml: two streams at scale factor 0.5 made 300,000 in all, and took 90 to 111 s for them at 3,000 IOPS."""

_SET_MIB_PER_SCALE = 27_000
"""MiB that the requests of a set move: 23 scans of lineitem of 0.9 GiB, and a quarter more of other tables and temporary files; it only
feeds estimates."""

_NATIVE = 'use engine = "native"'
_HAMMERDB_SETS = 100
_WORKERS = 8
"""PostgreSQL's default of max_parallel_workers and of max_worker_processes (14 to 18)."""


class Tpch(WithTables, Workload):
    """`tpch`: derived from TPC-H."""

    headline: ClassVar[str] = "geomean_s"
    blamed: ClassVar[str] = "profile"
    without: ClassVar[str] = "a stream asks its next query when the last one has ended, and ends with its queries"
    forks: ClassVar[bool] = True
    manners: ClassVar[tuple[LoadManner, ...]] = ("copy", "hammerdb")

    kind: Literal["tpch"] = "tpch"
    """Streams of analytical queries derived from TPC-H."""
    profile: TpchProfile = "hammerdb"
    """`hammerdb`: tables, keys and queries as HammerDB's TPROC-H; `spec`: as TPC-H 3.0. The rows are dbgen's in both."""
    scale_factor: Annotated[float, Field(ge=SCALE_LEAST, le=SCALE_MOST)] = 1.0
    """dbgen's scale factor, 0.01 to 1000 in thousandths: 1 is 8.7 million rows, about 2 GiB with keys and indexes."""
    clients: Annotated[int, Field(ge=1, le=1000)] = 1
    """Number of streams, each with a connection. One asks in the order of the power run, several each in an order of its own."""
    query_sets: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Sets of all queries that a stream runs, each with other parameters."""
    degree: Annotated[int, Field(ge=0, le=1024)] | None = None
    """Parallel workers of a query: `max_parallel_workers_per_gather`. Default: 2 for profile `hammerdb`, the server's setting for `spec`."""
    queries: tuple[Annotated[int, Field(ge=QUERIES.start, le=QUERIES.stop - 1)], ...] = tuple(QUERIES)
    """The queries that are asked, by their numbers. Default: all 22."""
    tables_schema: Literal["pgdyno_tpch", "public"] = Field(TPCH_SCHEMA, alias="schema")
    """Schema of the tables: pgdyno's own, or `public`, for what HammerDB has built on an existing server. Nothing is made or dropped there;
    the view of query 15 is a temporary one."""
    refresh: Refresh = "none"
    """The refresh functions, which insert and delete a thousandth of the orders: `power`, before and after the queries of a single stream;
    `stream`, in a further session beside the streams, a set for each set of queries. They are reported apart."""
    limit_s: Annotated[Seconds, Field(ge=1)] = Field("1h", alias="duration", validate_default=True)
    """The longest time that a run may take. A query that takes longer is cancelled, and the run is invalid."""
    engine: Literal["native", "hammerdb"] = "native"
    """Driver: `native` is a process of pgdyno, `hammerdb` an installed HammerDB, for the tables that it has built."""

    @property
    def driver(self) -> str:
        """A process with a thread for each stream, or HammerDB."""
        return "hammerdb" if self.engine == "hammerdb" else "streams"

    @property
    def writes(self) -> bool:
        """Views are made and dropped, and rows where they are refreshed."""
        return True

    @property
    def sessions(self) -> int:
        """One for each stream, and one that refreshes beside them."""
        return self.clients + (self.refresh == "stream")

    @property
    def prepares(self) -> bool:
        """A session's settings and notices have to be its own."""
        return True

    @property
    def streams(self) -> Streams:
        """Streams to run."""
        degree = 2 if self.degree is None and self.profile == "hammerdb" else self.degree
        return Streams(
            self.profile,
            self.scale_factor,
            self.clients,
            self.query_sets,
            self.queries,
            degree,
            self.seed,
            self.refresh,
            self.tables_schema,
        )

    @property
    def phases_s(self) -> tuple[float, float]:
        """There is no warm-up: a stream's first queries are part of it."""
        return 0.0, self.limit_s

    @property
    def estimate_s(self) -> float:
        """The longest that it may take."""
        return self.limit_s

    @property
    def counted(self) -> bool:
        """It ends with its queries."""
        return True

    def work_s(self, iops: float, dilation: int = 1, mib_per_s: float = math.inf) -> float:
        """By the scale factor and the CPU, which is not slowed; or when the volume has done the requests of all queries, or their bytes."""
        scale = self.scale_factor * self.query_sets * self.clients
        sets = scale * len(self.queries) / len(QUERIES)
        return max(
            sets * _SET_S_PER_SCALE / dilation,
            scale * sum(_QUERY_READS_PER_SCALE[query] for query in self.queries) / iops,
            sets * _SET_MIB_PER_SCALE / mib_per_s,
        )

    def left_by_runs(self, server: Server) -> str:
        """Orders that the refresh functions of earlier runs changed."""
        functions = RefreshFunctions(self.profile, self.scale_factor, 1, self.tables_schema)
        if not orders_of_set(self.scale_factor) or functions.are_fresh(server):
            return ""
        return (
            f"the tables in the schema {self.tables_schema} were refreshed by an earlier run: their orders are not those of the load,"
            " and answers are not those of other tables; make them again"
        )

    def require(self) -> None:
        """Nothing beside Python is needed. Of HammerDB it is seen where the server is known."""

    def connecting(self, server: Server, environment: Mapping[str, str]) -> Self:
        """HammerDB has to be there, and able to pass on the log-in."""
        from ..hammerdb.runner import require

        if self.engine == "hammerdb":
            require(server)
        return self

    def data_set(self) -> TpchTables:
        """The eight tables."""
        return TpchTables(self.scale_factor, self.profile, self.tables_schema)

    def needed_tables(self) -> TpchTables:
        return self.data_set()

    @property
    def size_key(self) -> str:
        return "scale_factor" if self.data_to_memory is None else "data_to_memory"

    def sized(self, memory_bytes: int) -> Self:
        if self.data_to_memory is None:
            return self
        value = scale_factor_for(size_for_memory(memory_bytes, self.data_to_memory), self.profile)
        return self.model_copy(update={"scale_factor": min(value, float(SCALE_MOST))})

    def warnings(self, parameters: Mapping[str, str] | None = None) -> Iterator[str]:
        """Streams that get fewer workers than they ask for measure their wait for these too; of a server that is there a report says it."""
        degree = self.streams.degree
        if parameters is None or degree is None:
            return
        given = (parameters.get(name, "") for name in ("max_parallel_workers", "max_worker_processes"))
        most = min(int(value) if value.isdigit() else _WORKERS for value in given)
        if (number := degree * self.clients) > most:
            yield (
                f"the streams may ask for {number:,} parallel workers at a time, and the server gives {most:,}: some queries run with fewer;"
                " raise max_parallel_workers and max_worker_processes, or use a smaller degree"
            )

    def refusals_on_own(self) -> Iterator[Refusal]:
        yield from super().refusals_on_own()
        if self.tables_schema == PUBLIC:
            why = "tables built by HammerDB are on an existing server; an emulated server has tables of pgdyno"
            yield Refusal("schema", why, 'omit the key, or use kind = "real"')

    def refusals(self) -> Iterator[Refusal]:
        yield from self._of_manner()
        yield from self._of_size("scale_factor")
        thousandths = self.scale_factor / SCALE_LEAST
        if abs(thousandths - round(thousandths)) > 1e-6:
            yield Refusal("scale_factor", f"{self.scale_factor:g} is not a whole number of thousandths")
        elif repeats_suppliers(self.scale_factor):
            why = "dbgen gives some parts one supplier twice, so that partsupp has no primary key; use 0.01 or more"
            yield Refusal("scale_factor", f"{self.scale_factor:g}: {why}")
        if not self.queries or len(set(self.queries)) < len(self.queries):
            yield Refusal("queries", "use numbers from 1 to 22, each once")
        if self.tables_schema == PUBLIC and self.profile == "spec":
            yield Refusal("schema", "tables built by HammerDB need the profile hammerdb", "omit one of them")
        yield from self._of_refresh()
        if self.engine == "hammerdb":
            yield from self._of_hammerdb()
        if self.load.foreign_keys:
            yield Refusal("load", "foreign_keys are for pgbench's tables; those of tpch always have theirs")

    def refusals_in_time(self, dilation: int) -> Iterator[Refusal]:
        """HammerDB has its own time."""
        if self.engine == "hammerdb" and dilation > 1:
            why = "HammerDB counts seconds of the clock, and a dilated world has others"
            yield Refusal("engine", why, _NATIVE)
        yield from super().refusals_in_time(dilation)

    def _of_hammerdb(self) -> Iterator[Refusal]:
        """Refusals of keys that HammerDB does not support or treats in its own way."""
        if self.tables_schema != PUBLIC:
            why = "HammerDB asks the tables that it has built, which are in the schema public"
            yield Refusal("engine", why, f'build them with HammerDB and write schema = "public", or {_NATIVE}')
        if self.scale_factor != round(self.scale_factor):
            yield Refusal(
                "scale_factor", f"HammerDB takes whole scale factors only, not {self.scale_factor:g}", _NATIVE
            )
        if sorted(self.queries) != list(QUERIES):
            yield Refusal("queries", "HammerDB asks all 22 queries of a set", f"omit the key, or {_NATIVE}")
        if self.refresh == "power" and self.query_sets > 1:
            why = "HammerDB refreshes once around all sets of queries"
            yield Refusal("refresh", why, f"write query_sets = 1, or {_NATIVE}")
        if self.refresh != "none" and self.clients * self.query_sets >= _HAMMERDB_SETS:
            why = f"from set {_HAMMERDB_SETS} on HammerDB inserts other keys than dbgen"
            yield Refusal("refresh", why, f"ask for fewer clients or query_sets, or {_NATIVE}")

    def _of_refresh(self) -> Iterator[Refusal]:
        if self.refresh == "none":
            return
        if self.refresh == "power" and self.clients > 1:
            yield Refusal("refresh", f'"power" is for one stream, and there are {self.clients:,}', 'use "stream"')
        if orders_of_set(self.scale_factor) == 0:
            yield Refusal("refresh", f"a set has no order at scale factor {self.scale_factor:g}; use 0.01 or more")
        if (sets := self.clients * self.query_sets) > SETS_MAX:
            yield Refusal(
                "refresh", f"{sets:,} sets would delete all orders; {SETS_MAX:,} at most (clients times query_sets)"
            )

    def runner(self, shared: Any = None) -> Runner:
        """See :class:`pgdyno.kinds.tpch.run.QueryStreamsRunner`, and that of HammerDB."""
        from ..hammerdb.runner import HammerdbQueriesRunner
        from .run import QueryStreamsRunner

        return HammerdbQueriesRunner(self.streams) if self.engine == "hammerdb" else QueryStreamsRunner(self.streams)

    def proofs(
        self, server: Server, outcome: Outcome, baseline: Any = None, *, full: bool = False
    ) -> tuple[Check, ...]:
        """Check that no stream left its view behind, and that refreshed orders are in the tables."""
        from .refresh import left_views

        left = [] if self.tables_schema == PUBLIC else left_views(server)
        detail = f"left in the schema: {', '.join(left)}" if left else "no view of a stream is left"
        views = Check(name="tpch_views", ok=not left, detail=detail)
        functions = self.streams.functions
        if functions is None or outcome.streams is None:
            return (views,)
        return views, functions.check(server, outcome.streams.refresh)

    def record(self) -> dict[str, Any]:
        """Keys in use."""
        own = {"profile", "scale_factor", "clients", "query_sets", "queries", "refresh"}
        own |= set() if self.data_to_memory is None else {"data_to_memory"}
        first = {"kind": self.kind, "seed": self.seed, "degree": self.streams.degree}
        last = {"limit_s": self.limit_s, "driver_cpus": self.driver_cpus}
        if self.engine != "native":
            first["engine"] = self.engine
        if self.tables_schema != TPCH_SCHEMA:
            first["schema"] = self.tables_schema
        return first | self.model_dump(mode="json", include=own) | last
