"""What an experiment comes to on this machine: every refusal, every estimate, and no change."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pgdyno.experiment import Arm, Cell, Experiment
from pgdyno.flow.resume import finished, more_time, require_programs, require_same
from pgdyno.flow.schedule import Allowance, allowance
from pgdyno.world.base import Preparation
from pgdyno.world.resolved import ResolvedArm

from .. import __version__
from ..base import engine
from ..base.errors import InputError, PgdynoError
from ..base.quantity import duration_words
from ..hosts.connection import HostsFile
from ..hosts.examine import SpreadOptions
from ..results import open_experiment
from ..world import World, driver_hosts, world_of


def require_divisible(world: World, only: Sequence[int]) -> None:
    """Refuse what cannot be divided among hosts by whole blocks."""
    if world.resumed_by_file:
        raise InputError(
            "--spread: the runs of several hosts would disturb each other on one existing server",
            remedy="omit --spread; with --drivers other hosts can drive the load of its runs",
        )
    if world.experiment.file.budget_s is not None:
        raise InputError(
            "--spread: a budget chooses further runs by those before them, and hosts make whole replicates",
            remedy="remove the budget from the file, and say how many with --replicates",
        )
    if world.experiment.file.crash.cuts:
        raise InputError(
            "--spread: the recording of a power cut that failed would stay on the host that made it",
            remedy="remove [crash] from the file, or omit --spread",
        )
    if only:
        raise InputError("--spread: hosts make whole replicates, not single arms", remedy="omit --only")


def require_same_place(directory: Path, world: World) -> None:
    """Refuse to continue here what was made on other hosts, and there what was made here: the runs of a block are of one host."""
    labels = {run.record.world.host.label for run in open_experiment(directory).runs}
    if None in labels and world.spread is not None:
        raise InputError(f"the runs of {directory} were made without --spread", remedy="resume it without --spread")
    if labels - {None} and world.spread is None:
        there = ", ".join(sorted(label for label in labels if label))
        raise InputError(
            f"the runs of {directory} were made on other hosts: {there}",
            remedy="resume it with --spread and --keys, as it was started",
        )


@dataclass(frozen=True)
class ExperimentPlan:
    """What is going to be done: nothing in it has been refused, and nothing has been changed."""

    world: World
    cells: tuple[Cell, ...]
    """The runs to make, in their order."""
    directory: Path | None = None
    """The experiment that is resumed."""
    further: bool = False
    """Whether more runs follow while the experiment's budget lasts."""
    refused: Mapping[int, PgdynoError] = field(default_factory=dict)
    """Arms that are left out, by their indexes: why this machine cannot run them."""

    @property
    def experiment(self) -> Experiment:
        """What is asked for, with each arm's data sized for its instance."""
        return self.world.experiment

    @property
    def arms(self) -> tuple[ResolvedArm, ...]:
        """What each arm comes to on this machine."""
        return self.world.arms

    @property
    def due(self) -> Sequence[Arm]:
        """The arms that have a run to make, as often as they have."""
        return self.experiment.arms if self.further else [cell.arm for cell in self.cells]

    @property
    def preparation(self) -> list[Preparation]:
        """The steps before the first run."""
        return self.world.preparation(self.due)

    @property
    def memory_bytes(self) -> int | None:
        """What it takes of this machine's memory, at most; None where nothing is kept there."""
        return self.world.memory_bytes(self.due)

    @property
    def warnings(self) -> list[str]:
        """What the arms can do and is rarely meant, each with the arms that it is about."""
        arms = self.experiment.arms
        texts: dict[str, list[str]] = {}
        for arm in arms:
            for text in arm.workload.warnings(self.world.parameters_of(arm)):
                texts.setdefault(text, []).append(arm.label)
        results = [text if len(of) == len(arms) else f"{', '.join(of)}: {text}" for text, of in texts.items()]
        return [*results, *self.world.warnings()]

    @property
    def load_s(self) -> float:
        """Estimate: all that is made before the first run."""
        return sum(step.estimate_s for step in self.preparation)

    @property
    def cells_s(self) -> float:
        """Estimate: every run that is to be made."""
        return sum(map(self.world.run_s, self.cells))


def plan(
    experiment: Experiment,
    *,
    resume: Path | None = None,
    only: Sequence[int] = (),
    yes_create: bool = False,
    to_run: bool = True,
    hosts: HostsFile | None = None,
    spread: SpreadOptions | None = None,
    ordered: bool = False,
    leave_out: bool = False,
) -> ExperimentPlan:
    """Everything that can be refused before the first change: volumes, sizes, settings, root, devices, programs.

    ``resume`` is the directory of an experiment that is continued, ``only`` the indexes of the arms to run. Without
    ``yes_create`` an existing server without the workload's tables is refused. A plan that is not ``to_run`` can be made
    without root. ``hosts`` says where the hosts are that arms name as their drivers'; they are connected when the runs begin.
    With ``leave_out`` arms that this machine cannot run are left out, and the experiment is refused only where none is left.
    ``spread`` says which make the runs: then each of them requires what a run needs. There the experiment is ``ordered``:
    it is read from the record that another host wrote, whose programs this one must have.
    """
    world = world_of(experiment).open(experiment, to_run=to_run and spread is None, yes_create=yes_create)
    world.hosts_file, world.spread = hosts, spread
    if spread is not None:
        require_divisible(world, only)
    driver_hosts.require(experiment, world.arms, hosts)
    if resume is not None:
        versions = versions_of(world.arms)
        if ordered:
            require_programs(resume, versions)
        else:
            require_same(resume, experiment, versions)
        require_same_place(resume, world)
    world.check()
    cells = world.experiment.cells
    left_s = allowance(experiment, resume, None).left_s
    more = experiment.file.budget_s is not None and not only and left_s > 0
    if resume is not None:
        done = finished(resume)
        cells = tuple(cell for cell in cells if cell.position not in done)
    if only:
        cells = tuple(cell for cell in cells if cell.arm.index in only)
    arms = {cell.arm.index: cell.arm for cell in cells} if to_run and spread is None else {}
    refused = {index: why for index, arm in arms.items() if (why := world.refusal(arm)) is not None}
    if refused and (not leave_out or len(refused) == len(arms)):
        raise next(iter(refused.values()))
    cells = tuple(cell for cell in cells if cell.arm.index not in refused)
    planned = ExperimentPlan(world, cells, resume, further=more and not refused, refused=refused)
    # What is left of the budget may be too little for loading again: then there would be nothing to load for.
    return planned if cells or planned.load_s < left_s else replace(planned, further=False)


def begun(planned: ExperimentPlan, budget_s: float | None) -> int:
    """How many of the planned runs will start within the time, by the estimates.

    :class:`InputError` where none is, as :func:`execute` says it.
    """
    allowed = allowance(planned.experiment, planned.directory, budget_s)
    require_time(planned, allowed)
    left_s = allowed.left_s - planned.load_s
    for number, cell in enumerate(planned.cells):
        if planned.world.run_s_max(cell) > left_s:
            return number
        left_s -= planned.world.run_s(cell)
    return len(planned.cells)


def require_time(planned: ExperimentPlan, allowed: Allowance) -> None:
    """Refuse a budget in which nothing fits."""
    least_s = planned.load_s + (planned.world.run_s_max(planned.cells[0]) if planned.cells else 0.0)
    if planned.cells and least_s > allowed.left_s:
        raise InputError(
            f"filling the data sets and the first run take about {duration_words(least_s)}",
            remedy=more_time(planned.world, planned.directory, allowed),
        )


def servers_of(arms: Sequence[ResolvedArm]) -> dict[str, str]:
    """The version of each PostgreSQL, by where it was looked for."""
    return {resolved.arm.postgres.bin: resolved.postgres.version for resolved in arms}


def versions_of(arms: Sequence[ResolvedArm]) -> dict[str, str]:
    """What makes the runs, by name: numbers of other versions must not be mixed with theirs."""
    postgres = {f"PostgreSQL in {place}" if place else "PostgreSQL": text for place, text in servers_of(arms).items()}
    built = engine.facts().build_hash
    own = {name: text for arm in arms for name, text in arm.arm.workload.versions().items()}
    return {"pgdyno": __version__, "engine": built, "python": platform.python_version(), **postgres, **own}
