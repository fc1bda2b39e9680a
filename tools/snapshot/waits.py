"""How long requests wait beside a set of snapshots and without one: fio's own latencies, on one of the volumes that are frozen."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pgdyno.machine import snapshot, snapshot_delete, volume
from pgdyno.machine.waiting import wait_until
from tools.fidelity.fio import read_log
from tools.snapshot.record import Waits
from tools.snapshot.server import FAST_MIB_PER_S

if TYPE_CHECKING:
    from pathlib import Path

PERIOD_S = 0.4
"""From one set to the next."""
WINDOW_S = 0.150
"""More than the command takes: the instant is somewhere in it."""
RATE = 2_000
"""Requests a second: one every half a millisecond."""


def measured(folder: Path, windows: int) -> Waits:
    """The longest latency in each of ``windows`` with a set, and in as many half way between them."""
    log = folder / "fio"
    with ExitStack() as stack:
        volumes = [
            stack.enter_context(volume.attached("null:size=1GiB", mount=None, name=name, instance="db"))
            for name in ("data", "wal")
        ]
        seconds = windows * PERIOD_S + 2
        command = [
            *(
                "fio",
                "--name=load",
                f"--filename={volumes[0].block_device}",
                "--size=64m",
                "--direct=1",
                "--ioengine=psync",
            ),
            *(
                "--rw=randwrite",
                "--bs=8k",
                f"--rate_iops={RATE}",
                f"--runtime={seconds:.0f}",
                "--time_based",
                "--norandommap",
            ),
            *(f"--write_lat_log={log}", "--log_offset=1", "--log_unix_epoch=1", "--output=/dev/null"),
        ]
        with subprocess.Popen(command) as process:
            wait_until(lambda: volumes[0].stats()["counters"]["write_ops"] > RATE // 4, 60.0)
            begins = []
            for number in range(windows):
                begins.append(time.time())
                taken = snapshot.take(volumes, rate_mib_per_s=FAST_MIB_PER_S).snapshots
                if number % 20 == 19:
                    snapshot_delete.delete(taken, volumes[0].state_dir)
                time.sleep(max(0.0, begins[-1] + PERIOD_S - time.time()))
            process.wait(seconds + 60)
        snapshot_delete.delete(snapshot.list_snapshots(volumes[0].state_dir), volumes[0].state_dir)
    requests = read_log(log)
    ended = sorted((request.at_ms / 1000, request.latency_ns / 1e6) for request in requests)

    def longest(begin: float) -> float:
        return max((ms for at, ms in ended if begin <= at < begin + WINDOW_S), default=0.0)

    return Waits(
        windows=windows,
        beside_ms=[round(longest(begin), 3) for begin in begins],
        without_ms=[round(longest(begin + PERIOD_S - WINDOW_S), 3) for begin in begins],
    )
