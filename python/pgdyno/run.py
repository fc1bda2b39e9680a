"""The flow: an experiment becomes data sets, its cells become run directories, and those become the report."""

from __future__ import annotations

import platform
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pgdyno import __version__, _engine
from pgdyno.bulk_load import estimate_s, files_of
from pgdyno.cell import Context, run_cell
from pgdyno.dataset import DatasetKey, create_tables, dataset_keys, load_estimate_s, loaded, loader_of, missing_tables
from pgdyno.errors import HostError, InputError, Interrupted, PgdynoError
from pgdyno.resolved import resolve
from pgdyno.resume import finished, require_same
from pgdyno.schedule import Allowance, allowance, further
from pgdyno.store import names, open_experiment, record
from pgdyno.store.writer import RunWriter, held, write_experiment
from pgdyno.world import clean

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.experiment import Arm, Cell, Experiment
    from pgdyno.postgres.binaries import PgBinaries
    from pgdyno.resolved import ResolvedArm
    from pgdyno.workload.tables import Tables

OVERHEAD_S = 6.0
"""Attaching, starting, checking and stopping of one run, as measured; it only feeds the estimate of what is left."""


@dataclass(frozen=True)
class Step:
    """Where an experiment is: for a progress bar."""

    title: str
    text: str
    share: float
    """Of this step, 0 to 1."""


@dataclass(frozen=True)
class Plan:
    """What is going to be done: nothing in it has been refused, and nothing has been changed."""

    experiment: Experiment
    arms: tuple[ResolvedArm, ...]
    keys: dict[int, DatasetKey]
    """The data set of each arm; empty in the real world."""
    cells: tuple[Cell, ...]
    """The runs to make, in their order."""
    directory: Path | None = None
    """The experiment that is continued."""
    tables: Tables | None = None
    """What has to be made on an existing server first."""
    further: bool = False
    """Whether more runs follow while the experiment's budget lasts."""

    @property
    def due(self) -> Sequence[Arm]:
        """The arms that have a run to make, as often as they have."""
        return self.experiment.arms if self.further else [cell.arm for cell in self.cells]

    @property
    def wanted(self) -> dict[DatasetKey, PgBinaries]:
        """The data sets to load, each with the programs to load it with."""
        indices = [arm.index for arm in self.due if arm.index in self.keys]
        return {self.keys[index]: self.arms[index].binaries for index in indices}

    def load_title(self, key: DatasetKey | None) -> str:
        """Title of the step that loads one of several data sets; without a key, of what is made for all of them."""
        return "load" if key is None or len(self.wanted) < 2 else f"load for {key}"

    @property
    def load_s(self) -> float:
        """Estimate: loading every data set."""
        made_s = 0.0 if self.tables is None else load_estimate_s(self.tables)
        return made_s + sum(key.estimate_s for key in self.wanted)

    @property
    def cells_s(self) -> float:
        """Estimate: every run that is to be made."""
        return sum(self.seconds(cell) for cell in self.cells)

    def seconds(self, cell: Cell) -> float:
        """Estimate: how long a run takes, :func:`cell_s` at most."""
        if cell.arm.workload.transactions is None:
            return cell_s(cell)
        return min(cell_s(cell), self.arms[cell.arm.index].measure_s * cell.arm.world.dilation + OVERHEAD_S)


@dataclass(frozen=True)
class Listener:
    """Who is told how far an experiment is."""

    step: Callable[[Step], None] = lambda _step: None
    run: Callable[[Cell, Path], None] = lambda _cell, _path: None
    note: Callable[[str], None] = lambda _text: None


def cell_s(cell: Cell) -> float:
    """Estimate: how long a run takes on this machine at most. What ends by itself may end before its time."""
    workload = cell.arm.workload
    if workload.kind == "load":
        return estimate_s(workload.bulk) * cell.arm.world.dilation + OVERHEAD_S
    return (workload.warmup_s + workload.measure_s) * cell.arm.world.dilation + OVERHEAD_S


def plan(
    experiment: Experiment,
    *,
    resume: Path | None = None,
    only: Sequence[int] = (),
    yes_create: bool = False,
    to_run: bool = True,
) -> Plan:
    """Everything that can be refused before the first change: volumes, sizes, settings, root, devices, programs.

    ``resume`` is the directory of an experiment that is continued, ``only`` the indexes of the arms to run. Without
    ``yes_create`` an existing server without pgbench's tables is refused. A plan that is not ``to_run`` can be made
    without root.
    """
    arms = resolve(experiment, to_run=to_run)
    if resume is not None:
        require_same(resume, experiment, versions_of(arms))
    cells = experiment.cells
    left_s = allowance(experiment, resume, None).left_s
    more = experiment.file.budget_s is not None and not only and left_s > 0
    if resume is not None:
        done = finished(resume)
        cells = tuple(cell for cell in cells if cell.position not in done)
    if only:
        cells = tuple(cell for cell in cells if cell.arm.index in only)
    if experiment.real:
        missing = missing_tables(experiment, arms, yes_create=yes_create)
        return Plan(experiment, arms, {}, cells, resume, missing, further=more)
    planned = Plan(experiment, arms, dataset_keys(experiment, arms), cells, resume, further=more)
    # What is left of the budget may be too little for loading anew: then there would be nothing to load for.
    return planned if cells or planned.load_s < left_s else replace(planned, further=False)


def execute(
    planned: Plan, *, root: Path, command: tuple[str, ...], budget_s: float | None = None, tell: Listener | None = None
) -> Path:
    """Make the runs of a plan, and return the experiment's directory below ``root`` (or the one that is continued).

    With ``budget_s``, or the budget of the file, no run is begun that would not end within that time. After an error or an
    interruption the finished runs stay, and the error says how to go on.
    """
    listener = tell or Listener()
    allowed = allowance(planned.experiment, planned.directory, budget_s)
    _require_time(planned, allowed)
    if planned.directory is None:
        written = _record(planned, command)
        directory = write_experiment(root, written)
    else:
        directory = planned.directory
        written = open_experiment(directory).record
    with held(directory):
        if not planned.experiment.real:
            _clean_up(listener)
        # Before the lock was taken another process may have made runs that were missing when this was planned.
        done = finished(directory)
        lacking = replace(planned, cells=tuple(cell for cell in planned.cells if cell.position not in done))
        _make(lacking, directory, written, allowance(planned.experiment, directory, budget_s), listener)
    return directory


def _make(
    planned: Plan, directory: Path, written: record.ExperimentRecord, allowed: Allowance, listener: Listener
) -> None:
    """Make the runs of a plan in an experiment's directory, which is held."""
    with (
        _kept(directory, planned),
        loaded(planned.wanted, partial(_loading, listener, planned), directory, listener.note) as datasets,
        files_of(planned.due, planned.experiment.seed, _loading(listener, planned)) as files,
    ):
        if planned.tables is not None:
            server = planned.arms[0].server
            assert server is not None
            loader = loader_of(planned.arms[0])
            made = create_tables(server, planned.tables, _loading(listener, planned), directory, loader=loader)
            listener.note(made.said)
        context = Context(
            planned.experiment,
            written.experiment_id,
            written.experiment_hash,
            written.command,
            planned.arms,
            {index: datasets[key] for index, key in planned.keys.items() if key in datasets},
            files,
        )
        for cell in _due(planned, directory, allowed, listener):
            listener.run(cell, _run(context, cell, directory, listener))
        if not finished(directory):
            # The directory does not outlive this error, so nothing is left that could be continued.
            anew = _more_time(replace(planned, directory=None), allowed)
            raise PgdynoError("loading took the whole time, no run was begun", remedy=anew)


def _clean_up(listener: Listener) -> None:
    """What a killed command left takes memory and CPU from what is measured now; what lives is not touched."""
    try:
        done = clean.clean()
    except HostError as error:
        listener.note(f"{error.message}; {error.remedy}")
        return
    if done:
        listener.note(f"cleaned up after a command that was killed: {'; '.join(done)}")


def _require_time(planned: Plan, allowed: Allowance) -> None:
    """Refuse a budget in which nothing fits."""
    least_s = planned.load_s + (cell_s(planned.cells[0]) if planned.cells else 0.0)
    if planned.cells and least_s > allowed.left_s:
        raise InputError(
            f"loading and the first run take about {least_s:.0f} s",
            remedy=_more_time(planned, allowed),
        )


def _due(planned: Plan, directory: Path, allowed: Allowance, listener: Listener) -> Iterator[Cell]:
    """The runs to make, each when the one before it is finished."""
    for cell in planned.cells:
        if cell_s(cell) > allowed.left_s:
            way = _way_on(planned, directory, longer=allowed.of_file)
            listener.note(f"the time is used up; {way} makes the other runs")
            return
        yield cell
    if planned.further:
        yield from further(planned.experiment, directory, lambda: allowed.left_s, cell_s)


def begun(planned: Plan, budget_s: float | None) -> int:
    """How many of the planned runs are begun before the time is used up, as far as one knows before.

    :class:`InputError` where none is, as :func:`execute` says it.
    """
    allowed = allowance(planned.experiment, planned.directory, budget_s)
    _require_time(planned, allowed)
    left_s = allowed.left_s - planned.load_s
    for number, cell in enumerate(planned.cells):
        if cell_s(cell) > left_s:
            return number
        left_s -= planned.seconds(cell)
    return len(planned.cells)


def run_experiment(experiment: Experiment, *, root: Path, command: tuple[str, ...]) -> Path:
    """Plan and execute an experiment without an audience."""
    return execute(plan(experiment), root=root, command=command)


def _run(context: Context, cell: Cell, directory: Path, listener: Listener) -> Path:
    name = names.run_name(cell.position, cell.arm.label, cell.block)
    writer = RunWriter(directory.parent, directory.name, name)
    planned = context.experiment.replicates
    title = f"{cell.arm.label}, replicate {cell.block}" + (f" of {planned}" if cell.block <= planned else "")
    return run_cell(context, cell, writer, lambda share, text: listener.step(Step(title, text, share)))


def _loading(listener: Listener, planned: Plan, key: DatasetKey | None = None) -> Callable[[float, str], None]:
    title = planned.load_title(key)
    return lambda share, text: listener.step(Step(title, text, share))


def _record(planned: Plan, command: tuple[str, ...]) -> record.ExperimentRecord:
    versions = versions_of(planned.arms)
    experiment = planned.experiment
    identity = experiment.identity() | {"versions": _servers(planned.arms), "engine": versions["engine"]}
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


def _servers(arms: Sequence[ResolvedArm]) -> dict[str, str]:
    """The version of each PostgreSQL, by where it was looked for."""
    return {resolved.arm.postgres.bin: resolved.postgres.version for resolved in arms}


def versions_of(arms: Sequence[ResolvedArm]) -> dict[str, str]:
    """What makes the runs, by name: numbers of other versions must not be mixed with theirs."""
    postgres = {f"PostgreSQL in {place}" if place else "PostgreSQL": text for place, text in _servers(arms).items()}
    built = _engine.facts().build_hash
    return {"pgdyno": __version__, "engine": built, "python": platform.python_version(), **postgres}


@contextmanager
def _kept(directory: Path, planned: Plan) -> Iterator[None]:
    """What ends before its first run leaves no directory behind; what ends later says how to go on."""
    try:
        yield
    except BaseException as error:
        done = len(finished(directory))
        if done == 0:
            _forget(directory)
            raise
        total = len(planned.experiment.cells)
        rest = f"makes the other {total - done}" if done < total else "goes on"
        way = f"{_way_on(planned, directory)} {rest}"
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(f"interrupted; {done} of {max(done, total)} runs are finished", remedy=way) from None
        if isinstance(error, PgdynoError):
            error.remedy = f"{error.remedy}; then {way}" if error.remedy else way
        raise


def _way_on(planned: Plan, directory: Path, *, longer: bool = False) -> str:
    """The command that continues an experiment; ``longer`` where the budget of its file is used up.

    A connection string is not in its record, and a longer budget neither, so the file is named; with it the flags that
    were given beside it, without which it would be another experiment.
    """
    name = planned.experiment.origin.name
    # What was continued without its file comes from its record.
    named = name if name and not name.endswith(".json") else "EXPERIMENT.toml"
    file = f"{shlex.quote(named)} " if planned.experiment.real or longer else ""
    more = " --set budget=TIME" if longer else ""
    again = _flags(planned.experiment, longer=longer) if file else ""
    return f"`pgdyno run {file}--resume {shlex.quote(str(directory))}{again}{more}`"


def _flags(experiment: Experiment, *, longer: bool) -> str:
    """The flags that changed an experiment's file, to be given again; of a connection string only its flag."""
    values = {"--seed": str(experiment.seed), "--replicates": str(experiment.replicates), "--dsn": "DSN"}
    words: dict[str, None] = {}
    for path, flag in experiment.origin.flags.items():
        name, _, assigned = flag.partition(" ")
        if not (longer and path == ("budget",)):
            words[f" {name} {shlex.quote(assigned or values.get(name, ''))}"] = None
    return "".join(words)


def _more_time(planned: Plan, allowed: Allowance) -> str:
    """How to allow more. The budget of a file that is continued counts from its first run, and stands in the record."""
    if not allowed.of_file:
        return "allow more time with --budget"
    if planned.directory is None:
        return "allow more time: raise the file's budget, or give --set budget=TIME"
    return f"allow more time: {_way_on(planned, planned.directory, longer=True)}"


def _forget(directory: Path) -> None:
    (directory / "experiment.json").unlink(missing_ok=True)
    # A run that was killed before this experiment was continued left its part.
    for left in (directory / "loads", *(directory / "runs").glob(f"*{names.PARTIAL}")):
        shutil.rmtree(left, ignore_errors=True)
    for folder in (directory / "runs", directory):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
