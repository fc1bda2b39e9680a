"""What reading a log costs: its CPU and its memory, whatever the size of the log."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from pgdyno import _engine

from .test_refused import line

MEGABYTES = 120
SESSIONS = 60
MB_PER_CPU_S_LEAST = 100
MEMORY_MIB_MOST = 200
"""Issue 21: reading at least 100 MB of csvlog a second on one core, in at most 200 MB."""


def _log(path: Path) -> int:
    """A csvlog of many sessions beside each other; its size in bytes."""
    draw, written, lines = random.Random(1), 0, dict.fromkeys(range(100, 100 + SESSIONS), 0)
    with path.open("w") as out:
        while written < MEGABYTES * 1_000_000:
            pid = draw.choice(list(lines))
            for message, detail in (
                ("statement: BEGIN", ""),
                ("duration: 0.041 ms", ""),
                (
                    "execute <unnamed>: SELECT id, placed_at, total FROM orders WHERE customer = $1 ORDER BY placed_at DESC",
                    f"parameters: $1 = '{draw.randrange(200_000)}'",
                ),
                ("duration: 3.912 ms", ""),
                (f"statement: UPDATE customers SET note = 'visit {draw.randrange(10**6)}' WHERE id = 7", ""),
                ("duration: 1.230 ms", ""),
                ("statement: COMMIT", ""),
                ("duration: 2.018 ms", ""),
            ):
                lines[pid] += 1
                written += out.write(line(message, lines[pid], pid=pid, detail=detail))
    return written


@pytest.mark.bench
def test_a_log_is_read_fast_and_in_little_memory(tmp_path: Path) -> None:
    log, output = tmp_path / "a.csv", tmp_path / "a.capture"
    written = _log(log)
    asked = json.dumps({"logs": [str(log)], "output": str(output)}) + "\n"
    process = subprocess.Popen([_engine.checked(), "capture", "read"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.write(asked.encode())
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    speed = written / 1e6 / (usage.ru_utime + usage.ru_stime)
    print(f"{speed:,.0f} MB per second of CPU, {usage.ru_maxrss / 1024:,.0f} MiB, {output.stat().st_size:,} bytes")
    assert speed >= MB_PER_CPU_S_LEAST
    assert usage.ru_maxrss / 1024 <= MEMORY_MIB_MOST
