"""``pgdyno COMMAND --help`` starts within 0.2 s of CPU more than Python alone, measured beside it in the same minute.

CPU and not wall-clock time, and the least of a few starts, because others use this machine too. A slow machine has
slow Pythons: where Python alone takes longer than it should, the allowance grows by as much.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.lint import Finding

ALLOWED_S = 0.2
BARE_S = 0.03
"""What Python alone takes at most on the machines that :data:`ALLOWED_S` is meant for (10 to 20 ms on most)."""
STARTS = 5
BARE = ("-c", "pass")


def check(root: Path) -> list[Finding]:
    """Commands whose help takes longer to start."""
    commands = command_names(root)
    if not commands:
        return []
    bare_s = least_cpu_s(root, BARE)
    allowed_s = ALLOWED_S * max(1.0, bare_s / BARE_S)
    findings = []
    for words in ((), *((name,) for name in commands)):
        took_s = least_cpu_s(root, ("-m", "pgdyno", *words, "--help"), enough_s=bare_s + allowed_s)
        if took_s - bare_s > allowed_s:
            named = " ".join(("pgdyno", *words, "--help"))
            message = (
                f"`{named}` takes {took_s:.2f} s of CPU, Python alone {bare_s:.2f} s: {allowed_s:.2f} s more are"
                f" allowed; import inside the functions that need it (python -X importtime -m {named})"
            )
            findings.append(Finding("python/pgdyno/cli", 0, message))
    return findings


def command_names(root: Path) -> list[str]:
    """Commands by their files."""
    folder = root / "python" / "pgdyno" / "cli"
    return sorted(
        path.stem for path in folder.glob("[a-z]*.py") if "\ndef command(" in path.read_text(encoding="utf-8")
    )


def least_cpu_s(root: Path, arguments: tuple[str, ...], enough_s: float = 0.0) -> float:
    """The least user and system time of a few starts of Python; stops when one stayed below ``enough_s``."""
    least_s = float("inf")
    for _ in range(STARTS):
        least_s = min(least_s, _cpu_s(root, arguments))
        if least_s < enough_s:
            break
    return least_s


def _cpu_s(root: Path, arguments: tuple[str, ...]) -> float:
    environment = os.environ | {"PYTHONPATH": str(root / "python")}
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"python {' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
