"""Experiment files of documents as jobs on this machine: finished runs, missing runs, what fits into a budget, and running it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pgdyno.analysis.compare import summarise
from pgdyno.experiment import Arm, Experiment
from pgdyno.flow.cell import Listener
from pgdyno.flow.plan import ExperimentPlan, plan
from pgdyno.flow.run import execute
from pgdyno.published import PublishedDocument
from pgdyno.report import write_report

from ..base.errors import InputError, Interrupted, PgdynoError
from ..base.quantity import duration_words
from ..machine.instance_type import is_storage_only
from ..results import StoredExperiment as Recorded
from ..results import list_experiments, open_experiment
from .document import RequiredRun
from .experiments import ExperimentResult
from .library import DocumentLibrary, arms_named, runs_of

Watch: TypeAlias = Callable[[ExperimentPlan, float], AbstractContextManager[Listener]]


@dataclass(frozen=True)
class ReproduceJob:
    """One experiment file."""

    name: str
    document: str
    planned: ExperimentPlan | None
    """The runs that are missing; None where it cannot be run here."""
    path: Path | None = None
    """The directory of its runs so far."""
    error: PgdynoError | None = None
    """Why it cannot be run here, or was not."""
    left_out: bool = False
    """Whether the budget has no room for it."""
    refused: tuple[tuple[Arm, str], ...] = ()
    """Arms that this machine cannot run, each with the reason as a clause."""

    @property
    def seconds(self) -> float:
        """Estimate of what is left to do; nothing where all runs are there."""
        return 0.0 if self.planned is None or not self.planned.cells else self.planned.load_s + self.planned.cells_s

    @property
    def to_run(self) -> bool:
        """True if runs are missing that can be made here."""
        return self.planned is not None and bool(self.planned.cells)

    @property
    def result(self) -> ExperimentResult:
        """Its result so far."""
        if self.path is not None and open_experiment(self.path).runs:
            return ExperimentResult(self.name, self.path, refused=tuple((arm.levels, why) for arm, why in self.refused))
        if self.left_out:
            return ExperimentResult(self.name, why="it does not fit into the budget")
        why = [] if self.error is None else [self.error.message]
        why += [f"{arm.label}: {clause}" for arm, clause in self.refused]
        return ExperimentResult(self.name, why=": ".join(["it was not run", *why[:1]]))


def jobs_of(
    library: DocumentLibrary, documents: Iterable[PublishedDocument], root: Path | None, *, full: bool, to_run: bool
) -> list[ReproduceJob]:
    """Every experiment file of the documents, with the arms that comparisons rest on; in ``full`` with all of them.

    What cannot be run here has the reason; nothing is changed. ``root`` is where their runs are looked for.
    """
    there = [] if root is None else list_experiments(root, {})
    return [
        _job(library, document, run, there, full=full, to_run=to_run)
        for document in documents
        for run in runs_of(document, full=full)
    ]


def _job(
    library: DocumentLibrary,
    document: PublishedDocument,
    run: RequiredRun,
    recorded: Iterable[Recorded],
    *,
    full: bool,
    to_run: bool,
) -> ReproduceJob:
    path: Path | None = None
    small: list[tuple[Arm, str]] = []
    try:
        experiment = library.experiment(run)
        only = arms_named(document, experiment, full=full)
        there = _started(experiment, only, recorded)
        path, planned = (None, plan(experiment, only=only, to_run=False)) if there is None else there
        if run.by_vcpus:
            small = list(_too_few_cores(planned))
            planned = _without(planned, [arm.index for arm, _ in small])
        if to_run and planned.cells:
            due = sorted({cell.arm.index for cell in planned.cells}) if only or small else ()
            planned = plan(experiment, resume=path, only=due, leave_out=True)
            small += [(experiment.arms[index], error.message) for index, error in planned.refused.items()]
    except PgdynoError as error:
        return ReproduceJob(run.experiment, document.name, None, path, error, refused=tuple(small))
    return ReproduceJob(run.experiment, document.name, planned, path, refused=tuple(small))


def _too_few_cores(planned: ExperimentPlan) -> Iterator[tuple[Arm, str]]:
    """Arms with more vCPUs than this machine's cores can stand for, each with the dilation that would do."""
    cores, due = len(os.sched_getaffinity(0)), {cell.arm.index for cell in planned.cells}
    for arm in planned.arms:
        vcpus, dilation = arm.instance.vcpus, arm.arm.world.dilation
        if arm.arm.index in due and vcpus is not None and is_storage_only(vcpus, dilation):
            why = f"at dilation {dilation} this machine's cores stand for {cores * dilation} of its {vcpus} vCPUs"
            yield arm.arm, f"{why}; dilation {-(-vcpus // cores)} would do"


def _without(planned: ExperimentPlan, arms: Container[int]) -> ExperimentPlan:
    return replace(planned, cells=tuple(cell for cell in planned.cells if cell.arm.index not in arms))


def _started(
    experiment: Experiment, only: Sequence[int], recorded: Iterable[Recorded]
) -> tuple[Path, ExperimentPlan] | None:
    """The directory in which an equal experiment was started by the same programs, and what it lacks; the one that lacks least."""
    results = []
    for other in recorded:
        # Also one that was killed before its first run: what that left is removed when it is resumed.
        if other.record.name == experiment.name:
            try:
                results.append((other.path, plan(experiment, resume=other.path, only=only, to_run=False)))
            except InputError:
                continue  # another experiment, or of another pgdyno
    return min(results, key=lambda result: len(result[1].cells), default=None)


def fitting(jobs: Sequence[ReproduceJob], budget_s: float) -> tuple[list[ReproduceJob], list[ReproduceJob]]:
    """The jobs that fit into a budget as a whole, in their order, and those that it leaves out.

    :class:`InputError` where there is work and none of it fits: half an experiment has arms without an interval.
    """
    kept, left_out, left_s = [], [], budget_s
    for job in jobs:
        if not job.to_run or job.seconds <= left_s:
            left_s -= job.seconds
            kept.append(job)
        else:
            left_out.append(replace(job, left_out=True))
    if left_out and not any(job.to_run for job in kept):
        least = min(left_out, key=lambda job: job.seconds)
        raise InputError(
            f"--budget: no experiment fits into {duration_words(budget_s)}, so no comparison would get an interval",
            remedy=f"the shortest, {least.name}, takes about {duration_words(least.seconds)}: allow that, or --from DIR for recorded results",
        )
    return kept, left_out


def carry_out(
    jobs: Sequence[ReproduceJob],
    root: Path,
    command: tuple[str, ...],
    budget_s: float,
    watch: Watch,
    note: Callable[[str], None],
) -> list[ReproduceJob]:
    """Make the missing runs, one experiment after the other. What fails is noted, and the next one is run.

    ``watch`` shows the runs of a plan, which may take that many seconds.

    :class:`Interrupted` where the user ends it; finished runs stay.
    """
    ends_s = time.monotonic() + budget_s
    done = []
    for job in jobs:
        left_s = ends_s - time.monotonic()
        done.append(_carried_out(job, root, command, left_s, watch, note) if job.to_run else job)
    return done


def _carried_out(
    job: ReproduceJob, root: Path, command: tuple[str, ...], left_s: float, watch: Watch, note: Callable[[str], None]
) -> ReproduceJob:
    assert job.planned is not None
    limit = None if math.isinf(left_s) else left_s
    try:
        with watch(job.planned, left_s) as listener:
            path = execute(job.planned, root=root, command=command, budget_s=limit, tell=listener)
            write_report(summarise(path), path / "report.html")
    except Interrupted as error:
        error.remedy = "run the same command again: it makes the missing runs"
        raise
    except PgdynoError as error:
        note(f"{job.name} did not finish: {error.message}")
        return replace(job, error=error, path=_with_runs(job, root))
    return replace(job, path=path)


def _with_runs(job: ReproduceJob, root: Path) -> Path | None:
    """The directory with the runs that were finished before an experiment failed."""
    assert job.planned is not None
    there = _started(job.planned.experiment, (), list_experiments(root, {}))
    return None if there is None else there[0]
