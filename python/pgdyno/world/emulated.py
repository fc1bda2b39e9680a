"""PostgreSQL on emulated volumes of this machine: a server of its own for each run, on a clone of a data set."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pgdyno.experiment import Arm, Experiment
from pgdyno.workload.database import OwnDatabase
from pgdyno.world import events, kept, on_server
from pgdyno.world import subject as subjects
from pgdyno.world.base import PlannedRun, Preparation, PreparedWorld, RunOutcome, World
from pgdyno.world.dataset import Dataset, DatasetKey, dataset_keys, loaded, memory_bytes, unlimited
from pgdyno.world.resolved import ResolvedArm, emulated_arms

from ..base import owner
from ..base.errors import HostError, InputError
from ..durability.crash import recording, recovery
from ..durability.crash.campaign import ROOM_BYTES, CampaignResult
from ..durability.crash.recording import SETTINGS, RecordingOptions
from ..machine import clean, dirty_limits, preflight
from ..machine.process import own_name
from ..results.work_record import FailedCut, PowerCutsRecord
from ..server.binaries import PgBinaries
from ..workload.fill import Progress
from .driver_hosts import connected

__all__ = ["ROOM_BYTES", "SEED_MAX", "asked_of", "power_cuts_after"]
CUTS = "cuts"
"""Folder of an experiment for recordings of which a cut failed; of the others nothing is kept."""
FAILED_KEPT = 5
"""Failed cuts that a record names; each has the whole recording to be looked at."""
_INIT = re.compile(r",init=[^,]*")
"""In a canonical specification, which begins with its size."""
SEED_MAX = 2**32
"""As `pgdyno crashtest --seed`."""


def asked_of(resolved: ResolvedArm) -> RecordingOptions:
    """What is recorded of an arm."""
    arm = resolved.arm
    # A recorded volume is new, so nothing of it has to be fetched from a snapshot.
    specs = {role: _INIT.sub("", volume.spec) for role, volume in resolved.volumes.items()}
    return RecordingOptions(
        volume=specs["data"],
        wal_volume=specs.get("wal", ""),
        file_system=arm.world.file_system,
        mount_options=arm.world.mount_options,
        cache=arm.crash.cache,
        wal_apart="wal" in specs,
        seconds=arm.crash.duration_s,
        settings={name: value for name, value in arm.postgres.parameters.items() if name not in SETTINGS},
        given_up=resolved.given_up,
        pg_bin=arm.postgres.bin or None,
    )


def power_cuts_after(run: PlannedRun, resolved: ResolvedArm, directory: Path) -> tuple[PowerCutsRecord, ...]:
    """Cut the power of this arm's server; none where the experiment does not ask for it.

    The recording is in the experiment's ``directory``, and stays there if a cut failed.
    """
    table = resolved.arm.crash
    if not table.cuts:
        return ()
    folder = directory / CUTS / f"{run.cell.position:02d}-{directory.name[-6:]}"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was interrupted
    failed = False
    try:
        with run.watch.stage("cuts"):
            run.progress(0.0, "record a server for power cuts")
            recorded = recording.record(asked_of(resolved), folder)
            results = [_cut(run, recorded, place, resolved) for place in range(len(table.reading))]
        failed = any(result.failed for result in results)
        if failed:
            owner.give(directory / CUTS)
        return tuple(_record(result) for result in results)
    finally:
        if not failed:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # it has those of other runs
                folder.parent.rmdir()


def _cut(run: PlannedRun, recorded: recording.Recording, place: int, resolved: ResolvedArm) -> CampaignResult:
    table = resolved.arm.crash
    reading, every = table.reading[place], table.cuts * len(table.reading)

    def tell(result: CampaignResult) -> None:
        done = place * table.cuts + result.tried
        lost = f", {len(result.failed)} failed" if result.failed else ""
        run.progress(done / every, f"cut the power: {done} of {every}{lost}")

    return recovery.cut(recorded, reading, run.workload_seed % SEED_MAX, table.cuts, tell=tell)


def _record(result: CampaignResult) -> PowerCutsRecord:
    by_check: dict[str, int] = {}
    for outcome in result.failed:
        for check in outcome.failures:
            by_check[check] = by_check.get(check, 0) + 1
    return PowerCutsRecord(
        reading=result.reading,
        cache=result.recording.asked.cache,
        cuts=result.tried,
        failed=len(result.failed),
        by_check=by_check,
        first_failed=tuple(
            FailedCut(id=str(outcome.cut.name), stratum=outcome.cut.stratum, failures=outcome.failures)
            for outcome in result.failed[:FAILED_KEPT]
        ),
        strata=dict(sorted(result.strata.items())),
        audit=result.audit,
    )


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
            events.require_possible(self.experiment, resolved)
        self._keys = dataset_keys(self.experiment, self.arms)
        compared: set[tuple[str, PgBinaries]] = set()
        for arm in self.arms:
            key = self._keys[arm.arm.index]
            if isinstance(key.tables, OwnDatabase) and (key.tables.digest, arm.binaries) not in compared:
                compared.add((key.tables.digest, arm.binaries))
                with self.experiment.origin.explained(arm.arm.written(("workload", "database", "from"))):
                    kept.require_restorable(key.tables, arm.binaries)

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
        cut = ROOM_BYTES if self.experiment.file.crash.cuts else 0
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
                return replace(measured, power_cuts=power_cuts_after(run, resolved, directory))

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
            kept.rehearse(workloads, binaries, unlimited(key), dataset.images, dataset.database)

    def _wanted(self, due: Sequence[Arm]) -> dict[DatasetKey, PgBinaries]:
        """The data sets of these arms, each with the programs to load it with."""
        return {self._keys[arm.index]: self.arms[arm.index].binaries for arm in due}


def _adds_bytes(due: Sequence[Arm]) -> int:
    """What the run that adds most makes of its own, on its clone."""
    return max((arm.workload.adds_bytes(arm.world.dilation) for arm in due), default=0)


def _title(key: DatasetKey, wanted: dict[DatasetKey, PgBinaries]) -> str:
    return "load" if len(wanted) < 2 else f"filling for {key}"
