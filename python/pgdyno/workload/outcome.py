"""Outcome of a run, the same for every driver: tables, accounts and checks; and of filling tables. Shares of several drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pgdyno.workload.server import Server

from ..base.engine import EngineProcess
from ..base.errors import InputError
from ..results.record import Account, Check, DriverHostRecord, DriverRecord, RunPhase
from ..results.tables import SubjectClock
from ..results.work_record import BulkLoadRecord, ReplayRecord, SampleRecord, StreamsRecord
from ..results.writer import RunWriter

if TYPE_CHECKING:
    import pyarrow as pa


WHOLE = (1,)
"""The weights of one driver."""
Progress = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and what is being done."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run."""

    phases: tuple[RunPhase, ...]
    """warmup and measure."""
    account: Account
    """Transactions that ended in the measure phase."""
    account_total: Account
    """Every transaction since the driver began, those after the measure phase too: what the tables must agree with."""
    writes_total: int
    """Succeeded transactions, since the driver began, of the scripts that write a row of history."""
    uncounted_max: int
    """Transactions that may be committed without having been counted: of clients that were lost on the way."""
    latency: pa.Table
    throughput: pa.Table
    service: pa.Table | None
    """Latency from the actual start; an open loop only."""
    statement: pa.Table | None
    """Latency of each statement; where the driver tells it."""
    histograms: dict[str, Any]
    """``workload/latency.hdr.json``: the measure phase, by script and whole."""
    checks: tuple[Check, ...]
    driver: DriverRecord
    queries: int | None = None
    """Statements of a test of sysbench that were answered in the measure phase, BEGIN and COMMIT and what was tried in
    vain among them, as sysbench counts; None of other workloads."""
    command: tuple[str, ...] = field(default=())
    succeeded_by_type: Mapping[str, int] = field(default_factory=dict)
    """Succeeded transactions of the measure phase by type, where a workload is judged by one of them."""
    succeeded_by_type_total: Mapping[str, int] = field(default_factory=dict)
    """The same since the driver began."""
    drivers: Mapping[str, DriverRecord] = field(default_factory=dict)
    """Each of several drivers that shared the load, by its name; ``driver`` is all together. Empty for one."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """Inputs that clients drew since the driver began, if a workload counts it: ``payments_by_name``."""
    bulk_load: BulkLoadRecord | None = None
    """Outcome of a load; None for other kinds."""
    moments: pa.Table | None = None
    """``workload/bulk_load`` of a load."""
    streams: StreamsRecord | None = None
    """Outcome of streams of queries; None for other kinds."""
    query_rows: pa.Table | None = None
    """``workload/query`` of streams of queries."""
    replay: ReplayRecord | None = None
    """Outcome of a replay; None for other kinds."""
    replay_seconds: pa.Table | None = None
    """``workload/replay`` of a replay."""
    sample: SampleRecord | None = None
    """Transactions that a sample was drawn from; None for other kinds."""

    @property
    def tps(self) -> float:
        """Succeeded transactions per second of the measure phase."""
        measure = self.phases[-1]
        return self.account.succeeded / measure.seconds if measure.seconds else 0.0

    def write(self, writer: RunWriter) -> None:
        """Put tables and histograms into a run's directory."""
        import json

        writer.table("workload/latency", self.latency)
        writer.table("workload/throughput", self.throughput)
        for name, table in (
            ("workload/service", self.service),
            ("workload/statement", self.statement),
            ("workload/bulk_load", self.moments),
            ("workload/query", self.query_rows),
            ("workload/replay", self.replay_seconds),
        ):
            if table is not None:
                writer.table(name, table)
        writer.file("workload/latency.hdr.json").write_text(json.dumps(self.histograms, indent=1) + "\n")


def _ignore(*_: object) -> None:
    """The callback of a caller who wants no reports."""


@dataclass(frozen=True)
class RunRequest:
    """Duration, place and callbacks of a driver's run."""

    duration_s: float
    """Length of the measure phase, in the time of ``clock``, as all times here and those of the outcome."""
    out_dir: Path
    """Receives what the driver prints."""
    warmup_s: float = 0.0
    clock: SubjectClock = field(default_factory=SubjectClock)
    on_start: Callable[..., None] = _ignore
    """Gets the driver's process id as soon as it has one; of several drivers all, before they begin."""
    drivers: Sequence[int] = WHOLE
    """Weights by which several drivers share the load; only pgdyno's own can."""
    hosts: Mapping[str, RemoteHost] = field(default_factory=dict)
    """The hosts of the drivers, by name in the order of ``drivers``; empty where all are processes of this machine."""
    on_measure_begin: Callable[[], None] = _ignore
    """Called when the measure phase begins; it should be quick."""
    on_measure_end: Callable[[], None] = _ignore
    progress: Progress = _ignore
    """Called about once a second."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of libpq in addition to the connection string."""
    prefix: Sequence[str] = ()
    """A command that runs the driver: ``taskset -c 1``."""


class Runner(Protocol):
    """Runs a workload against a server.

    Raises :class:`~pgdyno.base.errors.PgdynoError` when the driver could not work; clients that were lost on the way are a
    failed check of the outcome instead.
    """

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Run it."""


@dataclass(frozen=True)
class LoadStep:
    """One thing that one session did."""

    what: str
    """``drop``, ``create``, ``copy``, ``vacuum``, ``primary key``, ``index``, ``foreign key``, ``analyze``."""
    table: str | None
    """None where it is of all tables."""
    session: int
    begin_ns: int
    end_ns: int
    """CLOCK_MONOTONIC, as in all records."""
    rows: int
    """Rows copied."""


@dataclass(frozen=True)
class LoadMoment:
    """Progress of a load at an instant."""

    t_ns: int
    rows: int
    """Rows sent so far."""
    bytes: int
    """Bytes of those rows, as sent to COPY."""


@dataclass(frozen=True)
class LoadOutcome:
    """Times and rows of a load."""

    seconds: dict[str, float]
    """By step, in which at least one session was at it; of pgbench by its own words: ``client-side generate``,
    ``vacuum``, ``primary keys``. And ``checkpoint`` if it was made."""
    rows: dict[str, int]
    """Rows of each table."""
    loader: Literal["native", "pgbench", "restore"] = "pgbench"
    sessions: int = 1
    """Maximum number of sessions that worked at the same time."""
    row_bytes: int | None = None
    """Bytes of all rows, as sent to COPY; None if not reported."""
    digests: dict[str, str] = field(default_factory=dict)
    """Table -> digest of its rows, as sent to COPY, in any order; empty if not reported."""
    steps: tuple[LoadStep, ...] = ()
    moments: tuple[LoadMoment, ...] = ()
    """About one each second; none if not reported."""


def checkpoint(server: Server) -> dict[str, float]:
    """Put all of it on the volume now, so that the first replicate does not pay for it; the seconds that it took.

    Nothing where the role may not: on a server that is not ours.
    """
    import time

    import psycopg

    begin = time.monotonic()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        try:
            connection.execute("CHECKPOINT")
        except psycopg.errors.InsufficientPrivilege:
            return {}
    return {"checkpoint": time.monotonic() - begin}


class RemoteHost(Protocol):
    """Another host."""

    def launch(self, document: Mapping[str, Any], log: Path, *, timeout_s: float) -> EngineProcess:
        """Start a driver there; it is not ready yet. Its standard error goes to ``log``, here."""

    def clock_ns(self) -> int:
        """CLOCK_MONOTONIC of that host, for every program. :class:`~pgdyno.base.errors.HostError` where it does not answer."""

    def record(self, server: Mapping[str, Any]) -> DriverHostRecord:
        """Facts of the host, and its round trip to the server that the driver's document names."""


@dataclass(frozen=True)
class DriverShare:
    """Share of a load for one of several drivers."""

    name: str
    """Name in records and findings: ``driver 2``, or its host's name."""
    clients: int
    clients_before: int
    """Clients of the drivers before it: its own are numbered from there."""
    threads: int
    threads_before: int

    def of(self, document: dict[str, Any]) -> dict[str, Any]:
        """Its specification, from that of the whole load: rates stay those of all."""
        share = {
            "clients_before": self.clients_before,
            "clients_all": document["clients"],
            "threads_before": self.threads_before,
            "threads_all": document["threads"],
        }
        return document | {"clients": self.clients, "threads": self.threads, "share": share}


def shares_of(weights: Sequence[int], clients: int, threads: int, names: Sequence[str] = ()) -> tuple[DriverShare, ...]:
    """Clients and threads divided by weights; drivers are called by ``names``, or by their number.

    :class:`InputError` where a driver would get no thread, or a thread no client.
    """
    called = names or [f"driver {number}" for number in range(1, len(weights) + 1)]
    of_clients, of_threads = divided(clients, weights), divided(threads, weights)
    for name, own, served in zip(called, of_threads, of_clients, strict=True):
        if own == 0:
            enough = next(count for count in range(len(weights), sum(weights) + 1) if all(divided(count, weights)))
            raise InputError(
                f"each of {len(weights)} drivers needs a thread, and {name} would get none of {threads}",
                remedy=f"write threads = {enough} below workload, or use fewer drivers",
            )
        if served < own:
            raise InputError(
                f"{name} of {len(weights)} would have fewer clients ({served}) than threads ({own})",
                remedy="use more clients, or fewer threads",
            )
    places = zip(of_clients, accumulate(of_clients), of_threads, accumulate(of_threads), strict=True)
    return tuple(
        DriverShare(name, own_clients, until_client - own_clients, own_threads, until_thread - own_threads)
        for name, (own_clients, until_client, own_threads, until_thread) in zip(called, places, strict=True)
    )


def divided(count: int, weights: Sequence[int]) -> list[int]:
    """``count`` in whole parts by weight, none more than one away from its exact part; they add up to ``count``."""
    total = sum(weights)
    edges = [count * reached // total for reached in accumulate(weights)]
    return [edge - before for before, edge in zip([0, *edges], edges, strict=False)]
