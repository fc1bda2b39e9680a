"""PostgreSQL on emulated volumes of this machine: a server of its own for each run, on a clone of a data set."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pgdyno.experiment import Arm, Experiment
from pgdyno.workload.database import OwnDatabase
from pgdyno.world import event_checks, on_server, own_database, power_cuts
from pgdyno.world import subject as subjects
from pgdyno.world.base import PlannedRun, Preparation, PreparedWorld, RunOutcome, World
from pgdyno.world.dataset import Dataset, DatasetKey, dataset_keys, loaded, memory_bytes, unlimited
from pgdyno.world.elsewhere import connected
from pgdyno.world.resolved import ResolvedArm, emulated_arms

from ..base.errors import HostError, InputError
from ..machine import clean, dirty_limits, preflight
from ..machine.process import own_name
from ..server.binaries import PgBinaries
from ..workload.fill import Progress


class EmulatedWorld(World):
    """Emulated volumes; needs root."""

    kind = "emulated"

    def __init__(self, experiment: Experiment, arms: tuple[ResolvedArm, ...]) -> None:
        super().__init__(experiment, arms)
        self._keys: dict[int, DatasetKey] = {}

    @classmethod
    def open(cls, experiment: Experiment, *, to_run: bool, yes_create: bool) -> Self:
        """See :meth:`World.open`."""
        if yes_create:
            raise InputError(
                "--yes-create is for an existing server, and this experiment starts its own",
                remedy="omit --yes-create, or name a server with --dsn",
            )
        return cls(experiment, emulated_arms(experiment, to_run=to_run))

    def check(self) -> None:
        """Refuse volumes that are too small for the data, and a database that this PostgreSQL cannot take."""
        for resolved in self.arms:
            event_checks.require_possible(self.experiment, resolved)
        self._keys = dataset_keys(self.experiment, self.arms)
        compared: set[tuple[str, PgBinaries]] = set()
        for arm in self.arms:
            key = self._keys[arm.arm.index]
            if isinstance(key.tables, OwnDatabase) and (key.tables.digest, arm.binaries) not in compared:
                compared.add((key.tables.digest, arm.binaries))
                with self.experiment.origin.explained(arm.arm.written(("workload", "database", "from"))):
                    own_database.require_restorable(key.tables, arm.binaries)

    def refusal(self, arm: Arm) -> HostError | None:
        """An instance takes its memory when a run begins, hours after the first one perhaps."""
        needed = self.arms[arm.index].memory_bytes
        try:
            preflight.require_memory(needed, f"an instance of {needed >> 20} MiB")
        except HostError as error:
            return error
        return None

    def preparation(self, due: Sequence[Arm]) -> list[Preparation]:
        """The data sets to load."""
        wanted = self._wanted(due)
        return [Preparation(_title(key, wanted), f"data set {key}", key.estimate_s) for key in wanted]

    def memory_bytes(self, due: Sequence[Arm]) -> int:
        """Images and a clone of the data sets, and beside them the largest instance, or what a power cut leaves after it."""
        cut = power_cuts.ROOM_BYTES if self.experiment.file.crash.cuts else 0
        return memory_bytes(self._wanted(due), _adds_bytes(due)) + max(
            (max(cut, self.arms[arm.index].memory_bytes) for arm in due), default=0
        )

    def clean_up(self, note: Callable[[str], None]) -> None:
        """What a killed command left takes memory and CPU from the runs."""
        try:
            done = clean.clean()
        except HostError as error:
            note(f"{error.message}; {error.remedy}")
            return
        if done:
            note(f"cleaned up after a command that was killed: {'; '.join(done)}")

    @contextlib.contextmanager
    def prepared(
        self, due: Sequence[Arm], directory: Path, step: Callable[[str], Progress], note: Callable[[str], None]
    ) -> Iterator[PreparedWorld]:
        """Load each data set once, and make what runs share beside them."""
        wanted = self._wanted(due)
        with (
            dirty_limits.reserved(),
            connected(self.hosts_file, due) as hosts,
            loaded(wanted, lambda key: step(_title(key, wanted)), directory, note, _adds_bytes(due)) as datasets,
            contextlib.ExitStack() as ending,
        ):
            self._rehearse(due, datasets, step("scripts"))
            progress, seed = step("load"), self.experiment.seed
            made: dict[Hashable, Any] = {}
            shared = {arm.index: arm.workload.shared(seed, progress, made, ending) for arm in due}

            def ready(run: PlannedRun) -> RunOutcome:
                index = run.cell.arm.index
                resolved = self.arms[index]
                name = own_name(f"run{run.cell.position}")
                log = run.writer.file("logs/postgresql.log")
                dataset = datasets[self._keys[index]]
                listen = None if self.hosts_file is None else self.hosts_file.listen
                with subjects.emulated(
                    resolved, dataset, name=name, seed=run.seed, watch=run.watch, log=log, listen=listen
                ) as subject:
                    measured = on_server.measure(run, resolved, subject, shared[index], hosts=hosts)
                return replace(measured, power_cuts=power_cuts.made(run, resolved, directory))

            yield ready

    def _rehearse(self, due: Sequence[Arm], datasets: dict[DatasetKey, Dataset], progress: Progress) -> None:
        """Scripts on a database of the user's are tried before the first run."""
        for key, dataset in datasets.items():
            if not isinstance(key.tables, OwnDatabase):
                continue
            progress(0.0, "each statement is prepared once")
            arms = {arm.index: arm for arm in due if self._keys[arm.index] == key}
            binaries = self.arms[next(iter(arms))].binaries
            workloads = [arm.workload for arm in arms.values()]
            own_database.rehearse(workloads, binaries, unlimited(key), dataset.images, dataset.database)

    def _wanted(self, due: Sequence[Arm]) -> dict[DatasetKey, PgBinaries]:
        """The data sets of these arms, each with the programs to load it with."""
        return {self._keys[arm.index]: self.arms[arm.index].binaries for arm in due}


def _adds_bytes(due: Sequence[Arm]) -> int:
    """What the run that adds most makes of its own, on its clone."""
    return max((arm.workload.adds_bytes(arm.world.dilation) for arm in due), default=0)


def _title(key: DatasetKey, wanted: dict[DatasetKey, PgBinaries]) -> str:
    return "load" if len(wanted) < 2 else f"filling for {key}"
