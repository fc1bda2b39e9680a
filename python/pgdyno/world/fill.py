"""Filling a data set as a measured phase, and the estimate of how long it takes.

A load by COPY takes as long as its bytes. In HammerDB's manner each session commits its share of many small batches:

    LOAD_S_FIXED + max(cpu_s / cores, cpu_s / sessions + commits / sessions * COMMIT_WRITES * write_s * dilation)

Its CPU is this machine's and is not slowed; its commits wait for volumes, whose time is. Tables whose answers are known are asked for
these afterwards.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

from pgdyno.base.errors import PgdynoError
from pgdyno.base.specification import VolumeSpec
from pgdyno.kinds.tpch import validation
from pgdyno.kinds.tpch.validation import has_answers
from pgdyno.probe.host import HostProbe, Role
from pgdyno.probe.samples import ProbeTables
from pgdyno.workload.database import DataSet, OwnDatabase
from pgdyno.workload.server import Server
from pgdyno.workload.tables import BulkTables, PgbenchTables, Tables, TpccTables, TpchTables
from pgdyno.world.resolved import ResolvedArm

from ..analysis.binding.device import ProvisionedVolume
from ..machine.file_system import FileSystem, dilated_options
from ..machine.instance import InstanceGroup
from ..machine.journal import HostJournal
from ..machine.placement import Placement
from ..machine.scratch import scratch_directory
from ..results import record
from ..results.tables import SubjectClock
from ..results.writer import LoadWriter
from ..workload.fill import LoadOutcome, Progress, fill, load
from ..workload.kind import LoadManner
from ..workload.outcome import LoadMoment, LoadStep
from ..workload.server import counting

LOAD_S_FIXED = 5.0
LOAD_BYTES_PER_S = 80 << 20
"""Loading on two cores, as measured with pgbench's tables."""
COMMIT_WRITES = 2.5
"""Writes for which a batch waits one after another: 2 warehouses by 2 sessions, 1,526 commits, made 4,640 requests (gp3 as io2bx); the
checkpoint had a sixth of them."""
COMMIT_WRITE_BYTES = 128 << 10
"""Of each: the same load wrote 675 MiB."""
_COMMITS_PER_WAREHOUSE = 762
_COMMITS_PER_SCALE = 3_560
_CPU_S_PER_WAREHOUSE = 4.5
"""Seconds of one core for server, loader and emulated volumes."""
ANSWERS_S = 20.0
"""The 22 queries whose answers are compared with dbgen's at scale factor 1, on two cores; a load does not have them in its time."""
_CPU_S_PER_SCALE = 125.0
"""The same at scale factor 1, with keys, references and indexes."""


@dataclass(frozen=True)
class BatchedLoad:
    """A load in HammerDB's manner."""

    commits: float
    cpu_s: float

    @classmethod
    def of(cls, tables: DataSet) -> BatchedLoad | None:
        """None of tables that are not loaded so."""
        if isinstance(tables, TpccTables):
            return cls(tables.warehouses * _COMMITS_PER_WAREHOUSE, tables.warehouses * _CPU_S_PER_WAREHOUSE)
        if isinstance(tables, TpchTables):
            return cls(tables.scale_factor * _COMMITS_PER_SCALE, tables.scale_factor * _CPU_S_PER_SCALE)
        return None

    def seconds(self, sessions: int, cores: int, write_s: float) -> float:
        """In the host's time; ``write_s`` is how long a write of WAL takes in it."""
        of_session = self.cpu_s / sessions + self.commits / sessions * COMMIT_WRITES * write_s
        return LOAD_S_FIXED + max(self.cpu_s / cores, of_session)


def load_estimate_s(
    tables: DataSet, manner: LoadManner = "copy", connections: int | None = None, write_s: float = 0.0
) -> float:
    """How long loading takes, about, with the queries whose answers are compared afterwards.

    ``connections`` are the sessions of a load in batches, by default one for each core.
    """
    alone_s = _load_s(tables, manner, connections, write_s)
    return alone_s + ANSWERS_S if has_answers(tables) else alone_s


def _load_s(tables: DataSet, manner: LoadManner, connections: int | None, write_s: float) -> float:
    batched = BatchedLoad.of(tables) if manner == "hammerdb" else None
    if batched is not None:
        cores = len(os.sched_getaffinity(0))
        parts = tables.warehouses if isinstance(tables, TpccTables) else connections or cores
        return batched.seconds(min(connections or cores, parts), cores, write_s)
    if isinstance(tables, BulkTables):
        return LOAD_S_FIXED  # they begin empty
    return LOAD_S_FIXED + tables.size_bytes / LOAD_BYTES_PER_S


def usual_write_s(volume: VolumeSpec) -> float:
    """How long a write of WAL usually takes on a volume; 0 of one that has no delay."""
    bought = ProvisionedVolume.of(volume.document)
    return 0.0 if bought is None or bought.usual is None else bought.usual.ms(COMMIT_WRITE_BYTES, 1.0) / 1e3


Work = Callable[[Callable[[int], None], "Path"], LoadOutcome]
"""What makes a data set. It gives the process id of each program that works to its first argument; its second is the log."""
Proof = Callable[[], tuple[record.Check, ...]]
"""What is asked of a data set that is made; :class:`PgdynoError` where it is not what it is called."""
_WRITTEN_TWICE = 2.0
"""Times the size of its tables that a load writes, about: their pages, and as much WAL."""


@dataclass(frozen=True)
class Loader:
    """Who makes the tables."""

    native: bool = False
    """pgdyno's own loader, whose tables are equal to those of ``pgbench -i``; sysbench's are always made by it."""
    connections: int | None = None
    """How many of its sessions work at a time; None: as many as this process may use cores."""
    split: bool = False
    """Whether several of them write parts of one large table."""
    manner: LoadManner = "copy"
    """In which they write."""


@dataclass(frozen=True)
class LoadWorld:
    """The world of an arm, in which its tables are loaded with every limit on."""

    file_system: FileSystem
    volumes: tuple[tuple[str, str], ...]
    """(role, specification), the data's first."""
    mount_options: str
    instance_type: str | None
    """Whose limits the volumes share; None where there are none to share."""
    memory_bytes: int
    cpus: str | None
    cpu_share: float
    dilation: int
    settings: tuple[tuple[str, str], ...]
    """PostgreSQL's."""
    throughput_mib_per_s: float | None
    """Throughput of the data volume; only for estimates."""
    wal_write_s: float
    """How long a write of WAL usually takes, in the world's time; only for estimates."""

    @classmethod
    def of(cls, arm: ResolvedArm, roles: tuple[str, ...]) -> Self:
        """The world of an arm, with its volumes of those roles."""
        world = arm.arm.world
        limit = arm.volumes["data"].mib_per_s
        return cls(
            file_system=world.file_system,
            volumes=tuple((role, world.made_full[role]) for role in roles),
            mount_options=world.mount_options,
            instance_type=arm.instance.type if arm.instance.ebs else None,
            memory_bytes=arm.memory_bytes,
            cpus=arm.instance.cpus,
            cpu_share=arm.instance.cpu_share,
            dilation=world.dilation,
            settings=tuple(sorted(arm.settings.items())),
            throughput_mib_per_s=None if limit is None else limit.sustained,
            wal_write_s=usual_write_s(arm.volumes.get("wal", arm.volumes["data"])),
        )

    @property
    def placement(self) -> Placement:
        """Its volumes."""
        options = dilated_options(self.file_system, self.mount_options, self.dilation)
        return Placement(dict(self.volumes), self.file_system, options, self.instance_type, self.dilation)

    def estimate_s(self, size_bytes: int) -> float:
        """How long the data's volume takes at least, in the host's time."""
        if self.throughput_mib_per_s is None:
            return 0.0
        return _WRITTEN_TWICE * size_bytes / (self.throughput_mib_per_s * 2**20) * self.dilation

    def instance(self, name: str, journal: HostJournal) -> InstanceGroup:
        """Its memory and CPUs, for the length of a ``with`` block."""
        return InstanceGroup(
            name, self.memory_bytes, self.cpus, cpu_share=self.cpu_share, dilation=self.dilation, journal=journal
        )

    def __str__(self) -> str:
        """As a title has it."""
        return " and ".join(spec if role == "data" else f"{spec} for {role}" for role, spec in self.volumes)


@dataclass(frozen=True)
class LoadPhase:
    """Where a load takes place, and what is watched of it."""

    directory: Path
    """The experiment's."""
    title: str
    postgres: record.PostgresRecord
    roles: Mapping[str, Role]
    """``server`` and, in an emulated world, ``daemon``; those of the test harness are added."""
    devices: Mapping[str, str]
    """Block device by the role of its volume."""
    volumes: Mapping[str, tuple[str, Path]] = field(default_factory=dict)
    """Name and state directory of each emulated volume, by the same roles."""
    world: LoadWorld | None = None
    """The arm's own; None for volumes without limits, and for an existing server."""

    @property
    def dilation(self) -> int:
        """How many times slower than the host the load's time goes."""
        return 1 if self.world is None else self.world.dilation


@dataclass(frozen=True)
class PhaseResult:
    """A load that is done."""

    path: Path
    """The directory of its record."""
    said: str
    """What it came to, in a line."""


def measured(
    server: Server,
    tables: Tables,
    phase: LoadPhase,
    progress: Progress | None = None,
    *,
    loader: Loader | None = None,
    replace: bool = True,
    env: Mapping[str, str] | None = None,
) -> PhaseResult:
    """Load ``tables`` and write the load's record. If it fails, only the logs are kept, and the error says where.

    pgbench's tables are loaded by ``pgbench -i`` unless the ``loader`` is native; all others by pgdyno's own engine.
    """
    by = loader or Loader()

    def work(watch: Callable[[int], None], log: Path) -> LoadOutcome:
        if not by.native and isinstance(tables, PgbenchTables):
            return load(server, tables, progress, replace=replace, env=env, log=log, on_start=watch)
        return fill(
            server,
            tables,
            progress,
            connections=by.connections,
            split=by.split,
            manner=by.manner,
            replace=replace,
            log=log,
            on_start=watch,
        )

    return recorded(work, tables, phase, lambda: require_whole(server, tables, progress))


def recorded(work: Work, tables: Tables | OwnDatabase, phase: LoadPhase, proof: Proof = tuple) -> PhaseResult:
    """Do ``work`` with the devices watched, and write its record. If it or the ``proof`` fails, only the logs are kept."""
    writer = LoadWriter(phase.directory, phase.title)
    log = writer.file("logs/load.log")
    try:
        return _measured(lambda watch: work(watch, log), tables, phase, writer, proof)
    except Exception as error:
        writer.explain(error)
        raise
    except BaseException:
        writer.abandon()
        raise


def require_whole(server: Server, tables: Tables, progress: Progress | None = None) -> tuple[record.Check, ...]:
    """Refuse tables that are not what they are called: what runs on them would be something else.

    Returns what was asked of them beside their rows: TPC-H's at scale factor 1 bring dbgen's answers.
    """
    with counting(server) as connection:
        wrong = list(tables.broken(connection))
    checks = _answers(server, tables, progress)
    wrong += [check.detail for check in checks if not check.ok]
    if wrong:
        raise PgdynoError(
            f"the tables just loaded ({tables}) are wrong: {'; '.join(wrong)}",
            remedy="this is a bug in pgdyno, unless another session wrote into them: load them again",
        )
    return checks


def _answers(server: Server, tables: Tables, progress: Progress | None) -> tuple[record.Check, ...]:
    if not isinstance(tables, TpchTables) or not validation.has_answers(tables):
        return ()
    tell = progress or (lambda _share, _text: None)
    return (validation.check(server, tables, partial(tell, 1.0)),)


def _measured(
    work: Callable[[Callable[[int], None]], LoadOutcome],
    tables: Tables | OwnDatabase,
    phase: LoadPhase,
    writer: LoadWriter,
    proof: Proof,
) -> PhaseResult:
    anchor = record.Anchor.read()
    clock = SubjectClock(anchor.monotonic_ns, phase.dilation)
    host_begin_ns = _now_ns()
    outcome, samples = _watched(work, phase, writer.path)
    begin_ns, end_ns = clock.instant_ns(host_begin_ns), clock.instant_ns(_now_ns())
    samples = samples.on(clock)
    samples.write(writer)
    checks = proof()
    world = phase.world
    path = writer.finish(
        record.LoadRecord(
            load_id=writer.final_path.name,
            experiment_id=phase.directory.name,
            title=phase.title,
            tables=tables.document(),
            loader=outcome.loader,
            sessions=outcome.sessions,
            anchor=anchor,
            begin_ns=begin_ns,
            end_ns=end_ns,
            rows=outcome.rows,
            row_bytes=outcome.row_bytes,
            digests=outcome.digests,
            seconds={what: round(seconds / phase.dilation, 3) for what, seconds in outcome.seconds.items()},
            steps=tuple(_step(step, clock) for step in outcome.steps),
            moments=tuple(_moment(moment, clock) for moment in outcome.moments),
            postgres=phase.postgres,
            limited=world is not None,
            dilation=phase.dilation,
            volumes={} if world is None else dict(world.volumes),
            memory_bytes=None if world is None else world.memory_bytes,
            checks=checks,
        )
    )
    seconds = (end_ns - begin_ns) / 1e9
    rows = sum(outcome.rows.values())
    text = f"{phase.title}: {rows:,} rows loaded in {seconds:.1f} s ({rows / seconds:,.0f} rows/s)"
    return PhaseResult(path, text + _written(samples))


def _step(step: LoadStep, clock: SubjectClock) -> record.LoadedStep:
    instants = {"begin_ns": clock.instant_ns(step.begin_ns), "end_ns": clock.instant_ns(step.end_ns)}
    return record.LoadedStep(**asdict(step) | instants)


def _moment(moment: LoadMoment, clock: SubjectClock) -> record.LoadedMoment:
    return record.LoadedMoment(**asdict(moment) | {"t_ns": clock.instant_ns(moment.t_ns)})


def _watched(
    work: Callable[[Callable[[int], None]], LoadOutcome], phase: LoadPhase, fallback: Path
) -> tuple[LoadOutcome, ProbeTables]:
    """The loader with the host's probe beside it."""
    with scratch_directory(fallback) as scratch, contextlib.ExitStack() as ending:
        probe = HostProbe(scratch, {}, devices=phase.devices, volumes=phase.volumes, interval_ms=1000 * phase.dilation)
        ending.push(probe)  # started by `watch`; ended whatever happens

        begun: list[int] = []

        def watch(pid: int) -> None:
            begun.append(pid)
            if len(begun) > 1:
                return  # a restore has several programs, one after another
            # This process only waits and shows how far it is.
            probe.roles = {**phase.roles, "driver": Role(pids=(pid,)), "probe": Role(pids=(os.getpid(),))}
            probe.start()

        outcome = work(watch)
        return outcome, probe.stop()


def _written(samples: ProbeTables) -> str:
    """What the devices wrote meanwhile, by volume; nothing where none could be seen."""
    disk = samples.tables.get("probe/disk")
    if disk is None:
        return ""
    counted: dict[str, list[int]] = {}
    for row in disk.select(["volume", "write_bytes"]).to_pylist():
        counted.setdefault(row["volume"], []).append(row["write_bytes"])
    each = (f"{volume} wrote {(values[-1] - values[0]) / 2**30:.2f} GiB" for volume, values in counted.items())
    return "; " + ", ".join(each)


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
