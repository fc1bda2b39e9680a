"""Measures sets of snapshots under load: what their restored servers lack, how long requests waited, what fio and fsck find."""

from __future__ import annotations

import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import psycopg

from pgdyno.base.errors import PgdynoError
from pgdyno.machine import preflight, snapshot, snapshot_delete
from pgdyno.server.binaries import find_binaries
from tools.fidelity import fio
from tools.measured import state_of_its_own
from tools.snapshot import restores, waits
from tools.snapshot.record import Record, Restores, Sets
from tools.snapshot.server import FAST_MIB_PER_S, WRITTEN_BETWEEN, lost, recovered, server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pgdyno.machine.file_system import FileSystem
    from pgdyno.machine.snapshot_file import VolumeSnapshot

SETS_OF_A_SERVER = 25
"""A chain of so many layers, then new volumes."""
APART_S = 0.050
AT_A_TIME = 3
"""Sets that are restored and looked at: each waits for devices, mounts and a server most of its time."""


def collect(path: Path, sets: int, looked_at: int, windows: int, minutes: float | None = None) -> Record:
    """Measure what the record at ``path`` lacks: so many sets, restores that others look at, and windows with a set.

    After ``minutes`` no further server or chain is begun; a later call continues. The waits come last: they need a quiet machine. Without
    ``windows`` they are left to such a call.
    """
    preflight.require_root("the record of snapshots")
    preflight.require_fuse()
    fio.require()
    record = Record.here(find_binaries().version).resumed(path)
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    with state_of_its_own() as folder:
        if record.apart is None:
            record.apart = sets_under_load(folder, "ext4", SETS_OF_A_SERVER, apart_s=APART_S)
            _said(record, path, f"the control: {len(record.apart.failed)} of {record.apart.sets} failed")
        while (done := sum(other.sets for other in record.sets)) < sets and time.monotonic() < until:
            file_system: FileSystem = "ext4" if len(record.sets) % 2 == 0 else "xfs"
            result = sets_under_load(folder, file_system, min(SETS_OF_A_SERVER, sets - done))
            record.sets.append(result)
            _said(
                record,
                path,
                f"{done + result.sets} of {sets} sets, {len(result.failed)} failed, {result.seconds:.0f} s",
            )
        record.restores = record.restores or Restores()
        while (done := record.restores.restored) < looked_at and time.monotonic() < until:
            restores.look_at(folder, looked_at - done, record.restores)
            _said(record, path, f"{record.restores.restored} of {looked_at} restores looked at by fio and fsck")
        if record.waits is None and windows and time.monotonic() < until:
            record.waits = waits.measured(folder, windows)
            _said(record, path, "the waits of fio's requests")
    record.save(path)
    return record


def _said(record: Record, path: Path, what: str) -> None:
    record.save(path)
    print(what, file=sys.stderr, flush=True)


def sets_under_load(folder: Path, file_system: FileSystem, count: int, apart_s: float = 0.0) -> Sets:
    """Take ``count`` sets of a new server's volumes while clients commit, and look at each after its recovery.

    With ``apart_s`` the two of a set are taken one after the other, the WAL's first, with a checkpoint between them.
    """
    sets, begin = Sets(file_system=file_system), time.monotonic()
    taken: list[tuple[list[int], Sequence[VolumeSnapshot]]] = []
    with server(folder, file_system) as (ledger, volumes):
        with ledger.running():
            for _ in range(count):
                ledger.reach(WRITTEN_BETWEEN)
                acknowledged = list(ledger.acknowledged)
                if apart_s:
                    wal = snapshot.take(volumes[1:], rate_mib_per_s=FAST_MIB_PER_S)
                    due_s = time.monotonic() + apart_s
                    with ledger.cluster.connect() as connection:
                        connection.execute("CHECKPOINT")
                    time.sleep(max(0.0, due_s - time.monotonic()))
                    data = snapshot.take(volumes[:1], rate_mib_per_s=FAST_MIB_PER_S)
                    together: Sequence[VolumeSnapshot] = (*data.snapshots, *wal.snapshots)
                    waited_s = max(data.waited_s, wal.waited_s)
                else:
                    both = snapshot.take(volumes, rate_mib_per_s=FAST_MIB_PER_S)
                    together, waited_s = both.snapshots, both.waited_s
                taken.append((acknowledged, together))
                sets.waited_ms.append(round(waited_s * 1000, 3))
            ledger.reach(WRITTEN_BETWEEN)
        sets.commits = sum(ledger.acknowledged)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            for wrong in pool.map(partial(_restored, folder, volumes[0].state_dir), taken):
                sets.failed += ["; ".join(wrong)[:200]] if wrong else []
                sets.sets += 1
    sets.seconds = round(time.monotonic() - begin, 1)
    return sets


def _restored(folder: Path, state: Path, taken: tuple[list[int], Sequence[VolumeSnapshot]]) -> list[str]:
    """What the server of a set lacks of what had been acknowledged, and what is wrong with it; the set is deleted."""
    acknowledged, (data, wal) = taken
    try:
        with recovered(folder, data, wal) as cluster:
            return lost(cluster, acknowledged)
    except (PgdynoError, psycopg.Error) as error:
        return [" ".join(str(error).split())]
    finally:
        snapshot_delete.delete([data, wal], state)
