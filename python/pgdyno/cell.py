"""One run: the server under test, the workload, the probes, the record.

A cell is a function of (experiment, cell, seed) to a run directory; nothing of it outlives the call but that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgdyno import subject as subjects
from pgdyno.bulk_load import Files, Loading
from pgdyno.probe.host import HostProbe, Role
from pgdyno.probe.samples import Samples, volume_latency
from pgdyno.probe.sql import SqlProbe
from pgdyno.store import record, tables
from pgdyno.store.subject_clock import SubjectClock
from pgdyno.workload import driver, invariants
from pgdyno.workload.spec import WorkloadSpec
from pgdyno.world.scratch import scratch_directory

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.dataset import Dataset
    from pgdyno.experiment import Cell, Experiment
    from pgdyno.resolved import ResolvedArm
    from pgdyno.store.writer import RunWriter
    from pgdyno.workload.outcome import Outcome, Runner

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Context:
    """What the cells of an experiment share."""

    experiment: Experiment
    experiment_id: str
    experiment_hash: str
    command: tuple[str, ...]
    arms: tuple[ResolvedArm, ...]
    datasets: dict[int, Dataset]
    """By the arm's index; empty in the real world."""
    files: dict[int, tuple[Files, ...]] = field(default_factory=dict)
    """What is loaded in arms that measure that, by their index."""


@dataclass
class _Measured:
    """What a run brought, before it becomes a record."""

    outcome: Outcome
    samples: Samples
    checks: tuple[record.Check, ...]
    settings: list[dict[str, str | None]]
    subject: subjects.Subject
    reasons: tuple[str, ...]
    client: record.ClientRecord


def run_cell(context: Context, cell: Cell, writer: RunWriter, progress: Progress) -> Path:
    """Run ``cell`` and return its directory. On any error nothing is left but the error."""
    try:
        return _run(context, cell, writer, progress)
    except BaseException:
        writer.abandon()
        raise


def _run(context: Context, cell: Cell, writer: RunWriter, progress: Progress) -> Path:
    watch = subjects.Stopwatch()
    anchor = record.Anchor.read()
    clock = SubjectClock(anchor.monotonic_ns, cell.arm.world.dilation)
    seed = context.experiment.seed_of(cell.block, "volume")
    progress(0.0, "start")
    with _subject(context, cell, writer, watch, seed) as subject:
        measured = _measure(context, cell, subject, writer, watch, progress, clock)
    return _write(context, cell, writer, measured, anchor, watch, seed)


def _subject(
    context: Context, cell: Cell, writer: RunWriter, watch: subjects.Stopwatch, seed: int
) -> contextlib.AbstractContextManager[subjects.Subject]:
    resolved = context.arms[cell.arm.index]
    if resolved.server is not None:
        return subjects.existing(resolved, watch=watch)
    return subjects.emulated(
        resolved,
        context.datasets[cell.arm.index],
        # The name carries the process id: two experiments on one machine must not meet.
        name=f"run{cell.position}-{os.getpid()}",
        seed=seed,
        watch=watch,
        log=writer.file("logs/postgresql.log"),
    )


def _measure(
    context: Context,
    cell: Cell,
    subject: subjects.Subject,
    writer: RunWriter,
    watch: subjects.Stopwatch,
    progress: Progress,
    clock: SubjectClock,
) -> _Measured:
    rows = subject.server.settings()
    outcome, samples = _drive(context, cell, subject, writer, progress, clock)
    client = subject.client()
    watch.seconds |= {phase.name: round(clock.host_s(phase.seconds), 3) for phase in outcome.phases}
    progress(1.0, "check")
    with watch.stage("check"):
        full = cell.arm.workload.full_check
        checks = invariants.check(subject.server, outcome, baseline=subject.baseline, full=full)
    subject.stop()
    return _Measured(outcome, samples, (*outcome.checks, *checks), rows, subject, subject.reasons(), client)


def _drive(
    context: Context,
    cell: Cell,
    subject: subjects.Subject,
    writer: RunWriter,
    progress: Progress,
    clock: SubjectClock,
) -> tuple[Outcome, Samples]:
    """The workload with the probes around it, each as often in the subject's time as ever."""
    workload = context.arms[cell.arm.index].arm.workload
    spec = WorkloadSpec(seed=context.experiment.seed_of(cell.block, "workload"), **workload.asked())
    edges: list[dict[str, dict[str, Any]]] = []
    sql_probe = SqlProbe(subject.server.dsn, dilation=clock.dilation)
    with scratch_directory(writer.path) as scratch, sql_probe:
        host_probe = HostProbe(
            scratch,
            {},
            devices=subject.devices,
            volumes={role: (attached.name, attached.state_dir) for role, attached in subject.volumes.items()},
            interval_ms=context.arms[cell.arm.index].sample_interval_ms,
        )

        def watch_host(driver_pid: int) -> None:
            host_probe.roles = subject.roles(driver_pid) | _with_children(spec, driver_pid)
            host_probe.start()

        with contextlib.ExitStack() as ending:
            ending.push(host_probe)  # started later, by `watch_host`; ended whatever happens
            outcome = _runner(context, cell, spec)(
                subject.driven,
                spec,
                workload.measure_s,
                writer.file("logs/driver").parent,
                warmup_s=workload.warmup_s,
                on_start=watch_host,
                on_measure_begin=lambda: edges.append(subject.stats()),
                on_measure_end=lambda: edges.append(subject.stats()),
                progress=progress,
                env=subject.environment,
                prefix=("taskset", "-c", workload.driver_cpus) if workload.driver_cpus else (),
                clock=clock,
            )
            samples = host_probe.stop()
        samples = samples | sql_probe.stop() | _volume_latency(edges)
    return outcome, samples.on(clock)


def _runner(context: Context, cell: Cell, spec: WorkloadSpec) -> Runner:
    """What runs the workload."""
    if spec.kind == "load":
        return Loading(cell.arm.workload.bulk, context.files[cell.arm.index])
    return driver.runner(spec)


def _with_children(spec: WorkloadSpec, driver_pid: int) -> dict[str, Role]:
    """The loader starts an engine for each table; other drivers have no children."""
    return {"driver": Role(parents=(driver_pid,))} if spec.kind == "load" else {}


def _volume_latency(edges: list[dict[str, dict[str, Any]]]) -> Samples:
    """Of every volume, what its daemon said at each edge of the measure phase."""
    return volume_latency({role: [edge[role] for edge in edges] for role in edges[0]} if edges else {})


def _workload(context: Context, cell: Cell, outcome: Outcome) -> dict[str, Any]:
    """The workload as it was run, and what of it the driver was not told."""
    asked = context.arms[cell.arm.index].arm.workload
    if asked.kind == "load":
        return outcome.spec.record() | asked.bulk.record() | {"driver_cpus": asked.driver_cpus}
    size: dict[str, Any] = {} if asked.data_to_memory is None else {"data_to_memory": asked.data_to_memory}
    return outcome.spec.record() | size | {"driver_cpus": asked.driver_cpus}


def _write(
    context: Context,
    cell: Cell,
    writer: RunWriter,
    measured: _Measured,
    anchor: record.Anchor,
    watch: subjects.Stopwatch,
    seed: int,
) -> Path:
    outcome = measured.outcome
    outcome.write(writer)
    measured.samples.write(writer)
    writer.table("postgres/settings", tables.from_rows("postgres/settings", measured.settings))
    run = record.RunRecord(
        run_id=writer.final_path.name,
        experiment_id=context.experiment_id,
        experiment_hash=context.experiment_hash,
        command=context.command,
        arm=cell.arm.label,
        arm_index=cell.arm.index,
        factors=cell.arm.levels,
        block=cell.block,
        position=cell.position,
        seed=seed,
        anchor=anchor,
        world=measured.subject.world,
        client=measured.client,
        workload=_workload(context, cell, outcome),
        driver=outcome.driver,
        postgres=measured.subject.postgres,
        phases=outcome.phases,
        account=outcome.account,
        queries=outcome.queries,
        bulk_load=outcome.bulk_load,
        checks=measured.checks,
        validity=record.Validity(valid=not measured.reasons, reasons=measured.reasons),
        visibility=measured.subject.visibility,
        seconds=watch.seconds,
    )
    return writer.finish(run)
