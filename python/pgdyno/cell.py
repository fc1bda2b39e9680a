"""One run: a clone of the data set on one volume, PostgreSQL in its instance, the workload, the probes, the record.

A cell is a function of (experiment, cell, seed) to a run directory; nothing of it outlives the call but that.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.dataset import DATA_FOLDER, Dataset
from pgdyno.errors import PgdynoError
from pgdyno.postgres import settings
from pgdyno.postgres.cluster import Cluster
from pgdyno.probe.host import HostProbe, Role
from pgdyno.probe.samples import Samples, volume_latency
from pgdyno.probe.sql import SqlProbe
from pgdyno.store import record, tables
from pgdyno.store.scratch import scratch_directory
from pgdyno.store.tables import DATA_VOLUME
from pgdyno.workload import invariants, pgbench
from pgdyno.world import paths, volume
from pgdyno.world.instance import Instance
from pgdyno.world.journal import Journal

if TYPE_CHECKING:
    from pgdyno.experiment import Cell, CompareExperiment
    from pgdyno.postgres.binaries import PgBinaries
    from pgdyno.store.writer import RunWriter

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Context:
    """What the cells of an experiment share."""

    experiment: CompareExperiment
    experiment_id: str
    experiment_hash: str
    command: tuple[str, ...]
    binaries: PgBinaries
    dataset: Dataset
    root: Path


@dataclass
class _Stopwatch:
    """Seconds by stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - begin, 3)


@dataclass
class _Measured:
    """What a run brought, before it becomes a record."""

    outcome: pgbench.PgbenchOutcome
    samples: Samples
    checks: tuple[record.Check, ...]
    settings: list[dict[str, str | None]]
    reasons: tuple[str, ...]


def run_cell(context: Context, cell: Cell, writer: RunWriter, progress: Progress) -> Path:
    """Run ``cell`` and return its directory. On any error nothing is left but the error."""
    try:
        return _run(context, cell, writer, progress)
    except BaseException:
        writer.abandon()
        raise


def _run(context: Context, cell: Cell, writer: RunWriter, progress: Progress) -> Path:
    watch = _Stopwatch()
    anchor = record.Anchor.read()
    journal = Journal(paths.state_dir())
    seed = context.experiment.seed_of(cell.block, "volume")
    # The name carries the process id: two experiments on one machine must not meet.
    name = f"run{cell.position}-{os.getpid()}"
    progress(0.0, "attach")
    with journal.directory(paths.state_dir() / "mounts" / name) as mount:
        with watch.stage("attach"):
            attached = volume.attach(cell.arm, mount=mount, name=name, image=context.dataset.image, seed=seed)
        try:
            with Instance(
                name, context.experiment.memory_bytes, context.experiment.server_cpus, journal=journal
            ) as instance:
                measured = _measure(context, cell, attached, instance, writer, watch, progress)
            facts = attached.facts
        finally:
            with watch.stage("detach"):
                attached.detach()
    return _write(context, cell, writer, measured, facts, anchor, watch, seed)


def _measure(
    context: Context,
    cell: Cell,
    attached: volume.AttachedVolume,
    instance: Instance,
    writer: RunWriter,
    watch: _Stopwatch,
    progress: Progress,
) -> _Measured:
    experiment = context.experiment
    mount = attached.mount
    assert mount is not None
    cluster = Cluster(context.binaries, mount / DATA_FOLDER)
    try:
        progress(0.0, "start")
        with watch.stage("start"):
            cluster.start(server_settings(experiment), instance)
        rows = cluster.settings()
        outcome, samples = _drive(experiment, cell, cluster, attached, instance, writer, progress)
        watch.seconds |= {phase.name: round(phase.seconds, 3) for phase in outcome.phases}
        progress(1.0, "check")
        with watch.stage("check"):
            checks = invariants.check(cluster, outcome, full=experiment.full_check)
        with watch.stage("stop"):
            # The volume's content is thrown away, so the server need not write its buffers back first.
            cluster.stop("immediate")
    finally:
        _keep_log(cluster, writer)
        cluster.close()
    reasons = () if attached.alive else ("the volume's daemon died during the run",)
    return _Measured(outcome, samples, (*outcome.checks, *checks), rows, reasons)


def _drive(
    experiment: CompareExperiment,
    cell: Cell,
    cluster: Cluster,
    attached: volume.AttachedVolume,
    instance: Instance,
    writer: RunWriter,
    progress: Progress,
) -> tuple[pgbench.PgbenchOutcome, Samples]:
    """The workload with the probes around it."""
    spec = experiment.workload.model_copy(update={"seed": experiment.seed_of(cell.block, "workload")})
    edges: list[dict[str, Any]] = []
    with scratch_directory(writer.path) as scratch, SqlProbe(cluster.dsn) as sql_probe:
        host_probe = HostProbe(
            scratch,
            {},
            devices={} if attached.block_device is None else {DATA_VOLUME: attached.block_device},
            volumes={DATA_VOLUME: (attached.name, attached.state_dir)},
        )

        def watch_host(driver_pid: int) -> None:
            host_probe.roles = _roles(instance, attached, driver_pid)
            host_probe.start()

        with contextlib.ExitStack() as ending:
            ending.push(host_probe)  # started later, by `watch_host`; ended whatever happens
            outcome = pgbench.run(
                cluster,
                spec,
                experiment.measure_s,
                writer.file("logs/pgbench.out").parent,
                warmup_s=experiment.warmup_s,
                on_start=watch_host,
                on_measure_begin=lambda: edges.append(attached.stats()),
                on_measure_end=lambda: edges.append(attached.stats()),
                progress=progress,
                prefix=("taskset", "-c", experiment.driver_cpus) if experiment.driver_cpus else (),
            )
            samples = host_probe.stop()
        samples = samples | sql_probe.stop() | volume_latency({DATA_VOLUME: edges})
    return outcome, samples


def _roles(instance: Instance, attached: volume.AttachedVolume, driver_pid: int) -> dict[str, Role]:
    groups = {name: Path(path) for name, path in instance.paths.items() if path is not None}
    return {
        "server": Role(cgroup_cpu=groups.get("cgroup_cpu"), cgroup_memory=groups.get("cgroup_memory")),
        "driver": Role(pids=(driver_pid,)),
        "daemon": Role(pids=(attached.daemon.pid,)),
        # This process samples the server's counters, so it is part of the probe.
        "probe": Role(pids=(os.getpid(),)),
    }


def server_settings(experiment: CompareExperiment) -> dict[str, str]:
    """PostgreSQL's settings of a run: the chosen set, and over it what the user named."""
    base = settings.tuned(experiment.memory_bytes) if experiment.settings == "tuned" else settings.defaults()
    return base | experiment.extra_settings


def _keep_log(cluster: Cluster, writer: RunWriter) -> None:
    with contextlib.suppress(OSError):
        writer.file("logs/postgresql.log").write_bytes(cluster.log_path.read_bytes())


def _write(
    context: Context,
    cell: Cell,
    writer: RunWriter,
    measured: _Measured,
    facts: dict[str, Any],
    anchor: record.Anchor,
    watch: _Stopwatch,
    seed: int,
) -> Path:
    experiment, outcome = context.experiment, measured.outcome
    outcome.write(writer)
    measured.samples.write(writer)
    writer.table("postgres/settings", tables.from_rows("postgres/settings", measured.settings))
    run = record.RunRecord(
        run_id=writer.final_path.name,
        experiment_id=context.experiment_id,
        experiment_hash=context.experiment_hash,
        command=context.command,
        arm=cell.arm,
        arm_index=cell.arm_index,
        block=cell.block,
        position=cell.position,
        seed=seed,
        anchor=anchor,
        world=record.WorldRecord(
            kind="emulated",
            volume=facts["spec"],
            attach={name: value for name, value in facts.items() if name != "spec"},
            instance=record.InstanceRecord(memory_bytes=experiment.memory_bytes, cpus=experiment.server_cpus),
            host=host_facts(),
        ),
        workload=outcome.spec.record() | {"driver_cpus": experiment.driver_cpus},
        postgres=record.PostgresRecord(version=context.binaries.version, source=context.binaries.source),
        phases=outcome.phases,
        account=outcome.account,
        checks=measured.checks,
        validity=record.Validity(valid=not measured.reasons, reasons=measured.reasons),
        seconds=watch.seconds,
    )
    return writer.finish(run)


def host_facts() -> record.HostRecord:
    """The machine that runs the experiment."""
    cores = len(os.sched_getaffinity(0))
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory_bytes <= 0:
        raise PgdynoError("this machine does not say how much memory it has", remedy="run on Linux")
    return record.HostRecord(cores=cores, kernel=platform.release(), memory_bytes=memory_bytes)
