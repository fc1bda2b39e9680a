"""Programs of the system, such as mount and mkfs: run to their end, with what they said when they failed."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

from ..base.errors import HostError

TIMEOUT_S = 120.0
_SAID_MAX = 200
"""Characters of a message; the end has the reason."""


def failure(*command: str | Path, timeout_s: float = TIMEOUT_S, **how: Any) -> str | None:
    """Run a program; ``None`` when it ended with 0, else what it said, in one line. :class:`HostError` where it is not
    installed or has not ended after ``timeout_s``. ``how`` is more for :class:`subprocess.Popen`, as ``cwd``, ``env`` or ``user``.
    """
    name = str(command[0])
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout_s, **how
        )
    except FileNotFoundError as error:
        raise HostError(f"{name} is not installed", remedy=f"install the package that has {name}") from error
    except subprocess.TimeoutExpired as error:
        raise HostError(f"{name} has not ended after {timeout_s:.0f} s", remedy="look into `dmesg`") from error
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        raise HostError(
            f"{name} was ended by {signal.Signals(-done.returncode).name}",
            remedy="try again; another program, or the kernel for want of memory (`dmesg`), ended it",
        )
    return " ".join((done.stderr or done.stdout).split())[-_SAID_MAX:] or f"{name} ended with {done.returncode}"


def run(*command: str | Path, timeout_s: float = TIMEOUT_S, **how: Any) -> None:
    """Run a program as :func:`failure` does. :class:`HostError` with what it said when it fails."""
    text = failure(*command, timeout_s=timeout_s, **how)
    if text is not None:
        raise HostError(f"{command[0]} failed: {text}", remedy=f"run `{' '.join(map(str, command))}` by hand")
