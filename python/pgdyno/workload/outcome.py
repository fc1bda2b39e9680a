"""What a run of any driver comes to: the same tables, accounts and checks, so that engines can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pgdyno.workload.elsewhere import RemoteHost
from pgdyno.workload.loaded import Progress
from pgdyno.workload.server import Server
from pgdyno.workload.share import WHOLE

from ..results.record import Account, Check, DriverRecord, RunPhase
from ..results.tables import SubjectClock
from ..results.work_record import BulkLoadRecord, ReplayRecord, SampleRecord, StreamsRecord
from ..results.writer import RunWriter

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

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
    """What clients asked for since the driver began, where a workload counts it: ``payments_by_name``."""
    bulk_load: BulkLoadRecord | None = None
    """What was loaded; None of other workloads."""
    moments: pa.Table | None = None
    """``workload/bulk_load`` of a load."""
    streams: StreamsRecord | None = None
    """What streams of queries came to; None of other workloads."""
    query_rows: pa.Table | None = None
    """``workload/query`` of streams of queries."""
    replay: ReplayRecord | None = None
    """What a replay came to; None of other workloads."""
    replay_seconds: pa.Table | None = None
    """``workload/replay`` of a replay."""
    sample: SampleRecord | None = None
    """What the transactions of a sample were drawn from; None of other workloads."""

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
    """How long a driver runs, where it runs, and which callbacks it calls."""

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
    """What libpq needs beside the connection string."""
    prefix: Sequence[str] = ()
    """A command that runs the driver: ``taskset -c 1``."""


class Runner(Protocol):
    """Runs a workload against a server.

    Raises :class:`~pgdyno.base.errors.PgdynoError` when the driver could not work; clients that were lost on the way are a
    failed check of the outcome instead.
    """

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Run it."""
