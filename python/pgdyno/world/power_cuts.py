"""Power cuts of an arm: after a run a server like its own is recorded on volumes of its own, and the recording is cut.

Nothing of it happens while a run is measured. What is cut is not the workload but the ledger of :mod:`pgdyno.durability.crash`, on the arm's volumes, file
system, mount options and PostgreSQL, with its parameters as far as they do not undo what makes the recording small.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

from pgdyno.world.base import PlannedRun
from pgdyno.world.resolved import ResolvedArm

from ..base import owner
from ..durability.crash import recording, recovery
from ..durability.crash.campaign import ROOM_BYTES, CampaignResult
from ..durability.crash.recording import SETTINGS, RecordingOptions
from ..results.work_record import FailedCut, PowerCutsRecord

__all__ = ["ROOM_BYTES", "SEED_MAX", "asked_of", "made"]
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


def made(run: PlannedRun, resolved: ResolvedArm, directory: Path) -> tuple[PowerCutsRecord, ...]:
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
