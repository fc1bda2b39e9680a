"""The interface between the flow of an experiment and what its runs stand on."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol, Self

from pgdyno.experiment import Arm, Cell, Experiment
from pgdyno.probe.samples import ProbeTables
from pgdyno.workload.outcome import Outcome
from pgdyno.world.resolved import ResolvedArm
from pgdyno.world.subject import Stopwatch

from ..base.errors import InputError, PgdynoError
from ..hosts.connection import HostsFile
from ..hosts.examine import SpreadOptions
from ..results import record
from ..results.tables import SubjectClock
from ..results.work_record import PowerCutsRecord
from ..results.writer import RunWriter
from ..workload.fill import Progress

OVERHEAD_S = 6.0
"""Attaching, starting, checking and stopping of one run, as measured; it only feeds the estimate of the time left."""


@dataclass(frozen=True)
class PlannedRun:
    """One run to make."""

    cell: Cell
    seed: int
    """Seed of the volumes' service times. The arms of a block share it."""
    workload_seed: int
    """Seed of the workload's draws; also shared."""
    writer: RunWriter
    """Receives logs. The record is written by the caller."""
    watch: Stopwatch
    """Receives the seconds of each stage."""
    clock: SubjectClock
    progress: Progress


@dataclass(frozen=True)
class RunOutcome:
    """What a run brought, before it becomes a record. Times are those of the run's clock."""

    outcome: Outcome
    samples: ProbeTables
    checks: tuple[record.Check, ...]
    """Proofs that the workload was the workload."""
    settings: list[dict[str, str | None]]
    """Rows of ``postgres/settings``."""
    world: record.WorldRecord
    postgres: record.PostgresRecord
    client: record.ClientRecord
    visibility: tuple[record.Visibility, ...] = ()
    reasons: tuple[str, ...] = ()
    """What broke during the run and makes it invalid."""
    power_cuts: tuple[PowerCutsRecord, ...] = ()
    """What became of a server like the run's when its power was cut."""


class PreparedWorld(Protocol):
    """A prepared world: makes runs, one after the other."""

    def __call__(self, run: PlannedRun) -> RunOutcome:
        """Make a run. :class:`~pgdyno.base.errors.PgdynoError` when it came to no result; nothing of it is left on the machine."""


@dataclass(frozen=True)
class Preparation:
    """A step before the first run."""

    title: str
    """As progress shows it; no two steps have the same."""
    what: str
    """What is made, in words."""
    estimate_s: float


class World(ABC):
    """What the runs of one experiment stand on. The flow knows no more of it than this."""

    kind: ClassVar[str]
    """Its name in an experiment file and in records."""
    resumed_by_file: ClassVar[bool] = False
    """Whether a record lacks what a resumed run needs (a connection string), so that the experiment file must be named again."""

    def __init__(self, experiment: Experiment, arms: tuple[ResolvedArm, ...]) -> None:
        self.arms = arms
        self.hosts_file: HostsFile | None = None
        """Where the drivers' hosts are; None where all drivers are processes of this machine."""
        self.spread: SpreadOptions | None = None
        """The hosts that make the runs; None where this machine does."""
        self.experiment = replace(experiment, arms=tuple(arm.arm for arm in arms))
        """With each arm's data sized for its instance."""

    @classmethod
    @abstractmethod
    def open(cls, experiment: Experiment, *, to_run: bool, yes_create: bool) -> Self:
        """Resolve every arm, or raise the first reason why it cannot be run. Changes nothing.

        Unless it is ``to_run``, what only a run needs is not required: root, devices, programs. ``yes_create`` allows
        making tables on an existing server.
        """

    @abstractmethod
    def check(self) -> None:
        """Refuse what cannot be prepared."""

    def refusal(self, arm: Arm) -> PgdynoError | None:
        """Why this machine cannot run an arm that is sound, as it may run others; None where it can."""
        return None

    def parameters_of(self, arm: Arm) -> Mapping[str, str] | None:
        """Settings that an arm's server gets beside its defaults; None where its settings are not chosen."""
        return arm.postgres.parameters

    def remove_tables(self) -> None:
        """Have the tables removed after the last run that are made on an existing server; :class:`InputError` where none are."""
        raise InputError(
            "--yes-drop is for an existing server, and this experiment starts its own",
            remedy="omit --yes-drop, or name a server with --dsn",
        )

    def warnings(self) -> list[str]:
        """What of it can be used and is rarely meant, said before the first run."""
        return []

    @abstractmethod
    def preparation(self, due: Sequence[Arm]) -> list[Preparation]:
        """The steps before the first run of these arms."""

    def memory_bytes(self, due: Sequence[Arm]) -> int | None:
        """What the data of these arms and one run take of this machine's memory, at most; None where they are elsewhere."""
        return None

    @abstractmethod
    def prepared(
        self, due: Sequence[Arm], directory: Path, step: Callable[[str], Progress], note: Callable[[str], None]
    ) -> contextlib.AbstractContextManager[PreparedWorld]:
        """Prepare what the runs of these arms share, for the length of a ``with`` block.

        Records of what is loaded are written below the experiment's ``directory``; ``step`` gives the progress of a step by
        its title, ``note`` gets the result of a step.
        """

    @abstractmethod
    def clean_up(self, note: Callable[[str], None]) -> None:
        """Remove what a killed command left and would disturb the runs. Living commands are not touched."""

    def run_s_max(self, cell: Cell) -> float:
        """Estimate: how long a run takes on this machine at most, in seconds."""
        return longest_s(cell)

    def run_s(self, cell: Cell) -> float:
        """Estimate: how long a run takes. One that ends after a number of transactions may end before its longest time."""
        if not cell.arm.workload.counted:
            return self.run_s_max(cell)
        measure_s = self.arms[cell.arm.index].measure_s * cell.arm.world.dilation
        return min(self.run_s_max(cell), measure_s + OVERHEAD_S + cell.arm.crash.estimate_s)


def longest_s(cell: Cell) -> float:
    """Estimate: how long a run takes at most. What ends by itself may end before."""
    return cell.arm.workload.estimate_s * cell.arm.world.dilation + OVERHEAD_S + cell.arm.crash.estimate_s
