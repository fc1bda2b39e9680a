"""Whether the driver's memory stays what it is: its resident KiB, minute by minute, under transactions of TPC-C at a steady rate."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base import engine
from pgdyno.base.endpoint import local
from pgdyno.base.errors import PgdynoError
from pgdyno.workload.fill import fill
from tools.equivalence.workloads import WORKLOADS, Length

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

MINUTES = 30.0
RATE_PER_S = 1000
"""Transactions. Without a rate the tables would grow by 5 GB in half an hour."""
_CLIENTS = 16
_MINUTE_S = 60.0
_LOOK_S = 0.5
_TPCC = next(item for item in WORKLOADS if item.name == "tpcc")


def measure(cluster: Cluster, minutes: float, seed: int, minute_s: float = _MINUTE_S) -> list[int]:
    """The largest resident KiB of each minute of a run of so many."""
    assert _TPCC.filled is not None
    fill(cluster, _TPCC.filled)
    document = _TPCC.native(seed, Length(_CLIENTS, max(1, round(minutes * minute_s))))
    document |= {
        "server": local(cluster.dsn).order("pgdyno drive"),
        "arrivals": {"poisson": {"rate_per_s": RATE_PER_S}},
    }
    # Its lines are read by nobody, so they must not fill a pipe.
    process = subprocess.Popen(
        engine.child([engine.checked(), "drive"]), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(document).encode() + b"\n")
    process.stdin.close()
    numbers: list[int] = []
    begin, status = time.monotonic(), Path(f"/proc/{process.pid}/status")
    try:
        while process.poll() is None:
            minute = int((time.monotonic() - begin) // minute_s)
            if (resident_kib := _resident_kib(status)) is not None:
                numbers += [0] * (minute + 1 - len(numbers))
                numbers[minute] = max(numbers[minute], resident_kib)
            time.sleep(_LOOK_S)
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        raise PgdynoError(f"the driver ended with {process.returncode}", remedy="see what it said above")
    # What is left of the last one may be a moment.
    whole = numbers[: max(1, int(minutes))]
    print(f"resident KiB by minute: {', '.join(f'{number:,}' for number in whole)}", file=sys.stderr, flush=True)
    return whole


def _resident_kib(status: Path) -> int | None:
    """None of a process that has ended."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), None)
