"""Programs run to their end, with the CPU that they took; and one that runs, with the memory that it holds."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import PgdynoError
from tools.driver.load import Run

GRACE_S = 60.0
"""How much longer than it was told to a program may take: to connect, and to end what it has begun."""


@dataclass(frozen=True)
class Ended:
    """A program that ended well."""

    cpu_s: float
    """User and system, from its first instruction to its last, all threads."""
    printed: str
    peak_kib: int
    """Resident memory at its peak."""


def run(wanted: Run, environment: Mapping[str, str], seconds: float) -> Ended:
    """Run a program; :class:`PgdynoError` with its last words when it fails or takes too long."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            wanted.command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, env=environment
        )
        try:
            assert process.stdin is not None
            process.stdin.write(wanted.given)
            process.stdin.close()
            _require_end(process.pid, seconds + GRACE_S)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
        out.seek(0)
        printed = out.read().decode(errors="replace")
    if process.returncode != 0:
        text = f"{wanted.command[0]} ended with exit code {process.returncode}: {printed[-500:]}"
        raise PgdynoError(text, remedy="run the command by itself")
    return Ended(usage.ru_utime + usage.ru_stime, printed, usage.ru_maxrss)


def _require_end(pid: int, timeout_s: float) -> None:
    """Wait for a child without taking its exit status, which carries what it used."""
    handle = os.pidfd_open(pid)
    try:
        if not select.select([handle], [], [], timeout_s)[0]:
            raise PgdynoError(f"process {pid} did not end within {timeout_s:g} s", remedy="look at the server's log")
    finally:
        os.close(handle)


def resident_kib(pid: int) -> list[int]:
    """Memory that a process holds now, one value; none once it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("VmRSS:")]
