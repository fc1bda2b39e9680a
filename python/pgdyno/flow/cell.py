"""One run: what the world measured becomes a run directory.

A cell is a function of (experiment, cell, seed) to a run directory; nothing of it outlives the call but that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pgdyno.experiment import Cell, Experiment
from pgdyno.world import PlannedRun, PreparedWorld, RunOutcome
from pgdyno.world.subject import Stopwatch

from .. import results as store
from ..advise.size.offers import of_run
from ..results import record, tables
from ..results.tables import SubjectClock
from ..results.writer import RunWriter
from ..workload.fill import Progress


@dataclass(frozen=True)
class Context:
    """What the cells of an experiment share."""

    experiment: Experiment
    experiment_id: str
    experiment_hash: str
    command: tuple[str, ...]
    ready: PreparedWorld
    """The world, prepared."""


def run_cell(context: Context, cell: Cell, writer: RunWriter, progress: Progress) -> Path:
    """Run ``cell`` and return its directory. If a run fails, only the logs are kept, and the error says where."""
    try:
        return _run(context, cell, writer, progress)
    except Exception as error:
        writer.explain(error)
        raise
    except BaseException:
        writer.abandon()
        raise


def _run(context: Context, cell: Cell, writer: RunWriter, progress: Progress) -> Path:
    anchor = record.Anchor.read()
    run = PlannedRun(
        cell,
        seed=context.experiment.seed_of(cell.block, "volume"),
        workload_seed=context.experiment.seed_of(cell.block, "workload"),
        writer=writer,
        watch=Stopwatch(),
        clock=SubjectClock(anchor.monotonic_ns, cell.arm.world.dilation),
        progress=progress,
    )
    progress(0.0, "start")
    return _write(context, run, context.ready(run), anchor)


def _write(context: Context, run: PlannedRun, measured: RunOutcome, anchor: record.Anchor) -> Path:
    cell, outcome, writer = run.cell, measured.outcome, run.writer
    outcome.write(writer)
    measured.samples.write(writer)
    writer.table("postgres/settings", tables.from_rows("postgres/settings", measured.settings))
    made = record.RunRecord(
        run_id=writer.final_path.name,
        experiment_id=context.experiment_id,
        experiment_hash=context.experiment_hash,
        command=context.command,
        arm=cell.arm.label,
        arm_index=cell.arm.index,
        factors=cell.arm.levels,
        block=cell.block,
        position=cell.position,
        seed=run.seed,
        anchor=anchor,
        world=measured.world,
        client=measured.client,
        workload=cell.arm.workload.seeded(run.workload_seed).record(),
        driver=outcome.driver,
        drivers=dict(outcome.drivers),
        postgres=measured.postgres,
        phases=outcome.phases,
        account=outcome.account,
        queries=outcome.queries,
        succeeded_by_type=dict(outcome.succeeded_by_type),
        bulk_load=outcome.bulk_load,
        streams=outcome.streams,
        replay=outcome.replay,
        sample=outcome.sample,
        power_cuts=measured.power_cuts,
        metric=cell.arm.workload.headline,
        checks=measured.checks,
        validity=record.Validity(valid=not measured.reasons, reasons=measured.reasons),
        visibility=measured.visibility,
        seconds=run.watch.seconds,
    )
    return writer.finish(of_run(store.StoredRun(writer.path, made)))


@dataclass(frozen=True)
class ProgressStep:
    """Where an experiment is: for a progress bar."""

    title: str
    text: str
    share: float
    """Of this step, 0 to 1."""


@dataclass(frozen=True)
class Listener:
    """Receives the progress of an experiment."""

    step: Callable[[ProgressStep], None] = lambda _step: None
    run: Callable[[Cell, Path], None] = lambda _cell, _path: None
    note: Callable[[str], None] = lambda _text: None
