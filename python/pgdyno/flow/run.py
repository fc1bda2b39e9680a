"""The flow: an experiment becomes data sets, its cells become run directories, and those become the report."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pgdyno.experiment import Cell, Experiment
from pgdyno.flow import remote_runs
from pgdyno.flow.cell import Context, run_cell
from pgdyno.flow.plan import ExperimentPlan, plan, require_time, servers_of, versions_of
from pgdyno.flow.resume import command_to_resume, finished, more_time
from pgdyno.flow.schedule import Allowance, allowance, further

from ..base.errors import Interrupted, PgdynoError
from ..results import names, open_experiment, record
from ..results.writer import RunWriter, held, other_experiments, write_experiment
from .cell import Listener, ProgressStep


def execute(
    planned: ExperimentPlan,
    *,
    root: Path,
    command: tuple[str, ...],
    budget_s: float | None = None,
    tell: Listener | None = None,
) -> Path:
    """Make the runs of a plan, and return the experiment's directory below ``root`` (or the one that is continued).

    With ``budget_s``, or the budget of the file, no run is started that would end after that time. After an error or an
    interruption the finished runs stay, and the error says how to resume.
    """
    listener = tell or Listener()
    allowed = allowance(planned.experiment, planned.directory, budget_s)
    require_time(planned, allowed)
    if planned.directory is None:
        written = record_of(planned, command)
        directory = write_experiment(root, written)
    else:
        directory = planned.directory
        written = open_experiment(directory).record
    with held(directory):
        _remove_parts(directory)
        if planned.world.spread is not None:
            with _kept(directory, planned):
                remote_runs.make(planned.experiment, planned.world.spread, directory, written, listener)
            return directory
        for pid, other in other_experiments().items():
            listener.note(
                f"another experiment is running (process {pid}, {other}): the two slow each other down, and their numbers may be invalid"
            )
        for text in planned.warnings:
            listener.note(f"warning: {text}")
        planned.world.clean_up(listener.note)
        # Before the lock was taken another process may have made runs that were missing when this was planned.
        done = finished(directory)
        lacking = replace(planned, cells=tuple(cell for cell in planned.cells if cell.position not in done))
        _make(lacking, directory, written, allowance(planned.experiment, directory, budget_s), listener)
    return directory


def _make(
    planned: ExperimentPlan, directory: Path, written: record.ExperimentRecord, allowed: Allowance, listener: Listener
) -> None:
    """Make the runs of a plan in an experiment's directory, which is held."""
    step = partial(_step, listener)
    with (
        _kept(directory, planned),
        planned.world.prepared(planned.due, directory, step, listener.note) as ready,
    ):
        context = Context(planned.experiment, written.experiment_id, written.experiment_hash, written.command, ready)
        for cell in _due(planned, directory, allowed, listener):
            listener.run(cell, _run(context, cell, directory, listener))
        if not finished(directory):
            # The directory of a new experiment does not outlive this error, so nothing is left that could be continued.
            raise PgdynoError(
                "filling the data sets took the whole time, so no run was started",
                remedy=more_time(planned.world, planned.directory, allowed),
                code="run.budget.no_run",
            )


def _due(planned: ExperimentPlan, directory: Path, allowed: Allowance, listener: Listener) -> Iterator[Cell]:
    """The runs to make, each when the one before it is finished."""
    for cell in planned.cells:
        if planned.world.run_s_max(cell) > allowed.left_s:
            way = command_to_resume(planned.world, directory, longer=allowed.of_file)
            listener.note(f"the time is used up; {way} makes the remaining runs")
            return
        yield cell
    if planned.further:
        yield from further(planned.experiment, directory, lambda: allowed.left_s, planned.world.run_s_max)


def run_experiment(experiment: Experiment, *, root: Path, command: tuple[str, ...]) -> Path:
    """Plan and execute an experiment without an audience."""
    return execute(plan(experiment), root=root, command=command)


def _run(context: Context, cell: Cell, directory: Path, listener: Listener) -> Path:
    name = names.run_name(cell.position, cell.arm.label, cell.block)
    writer = RunWriter(directory.parent, directory.name, name)
    planned = context.experiment.replicates
    title = f"{cell.arm.label}, replicate {cell.block}" + (f" of {planned}" if cell.block <= planned else "")
    return run_cell(context, cell, writer, _step(listener, title))


def _step(listener: Listener, title: str) -> Callable[[float, str], None]:
    return lambda share, text: listener.step(ProgressStep(title, text, share))


def record_of(planned: ExperimentPlan, command: tuple[str, ...]) -> record.ExperimentRecord:
    """What is recorded of an experiment before its first run."""
    versions = versions_of(planned.arms)
    experiment = planned.experiment
    identity = experiment.identity() | {"versions": servers_of(planned.arms), "engine": versions["engine"]}
    experiment_hash = names.identity_hash(identity)
    created_unix_ns = time.time_ns()
    return record.ExperimentRecord(
        experiment_id=names.experiment_id(experiment.name, experiment_hash, created_unix_ns),
        experiment_hash=experiment_hash,
        kind=experiment.kind,
        name=experiment.name,
        title=experiment.file.title,
        file_schema_version=experiment.file.schema_version,
        created_unix_ns=created_unix_ns,
        command=command,
        seed=experiment.seed,
        arms=tuple(arm.label for arm in experiment.arms),
        factors=experiment.factors,
        replicates=experiment.replicates,
        order=tuple((cell.block, cell.arm.index) for cell in experiment.cells),
        settings=experiment.settings(),
        versions=versions,
    )


@contextmanager
def _kept(directory: Path, planned: ExperimentPlan) -> Iterator[None]:
    """A new experiment that ends before its first run leaves nothing behind but the logs of what failed; any other says how to resume."""
    try:
        yield
    except BaseException as error:
        done = len(finished(directory))
        if done == 0 and planned.directory is None:
            _forget(directory)
            raise
        total = len(planned.experiment.cells)
        rest = f"makes the remaining {total - done}" if done < total else "resumes it"
        way = f"{command_to_resume(planned.world, directory)} {rest}"
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(f"interrupted; {done} of {max(done, total)} runs are finished", remedy=way) from None
        if isinstance(error, PgdynoError) and str(directory) not in error.remedy:
            error.remedy = f"{error.remedy}; then {way}" if error.remedy else way
        raise


def _forget(directory: Path) -> None:
    (directory / "experiment.json").unlink(missing_ok=True)
    _remove_parts(directory)
    shutil.rmtree(directory / "loads", ignore_errors=True)
    for folder in (directory / "runs", directory):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _remove_parts(directory: Path) -> None:
    """Remove what a killed process left half written: a load that is made again gets another number, so nothing replaces its part."""
    for folder in ("loads", "runs"):
        for left in (directory / folder).glob(f"*{names.PARTIAL}"):
            shutil.rmtree(left, ignore_errors=True)
