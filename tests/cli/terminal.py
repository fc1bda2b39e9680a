"""The command on a terminal that is none: a pseudo-terminal of a given width, and what appears on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def on_terminal(*arguments: str, columns: int = 80, **environment: str) -> str:
    """What ``python ARGUMENTS`` writes to a terminal of that width, line ends as ``\\n``."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    surroundings = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "TERM")}
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=there,
        stderr=there,
        env=surroundings | {"TERM": "xterm-256color"} | environment,
    ):
        os.close(there)
        written = b""
        with contextlib.suppress(OSError):  # EIO is how the other side's end is told
            while piece := os.read(here, 65536):
                written += piece
    os.close(here)
    return written.decode().replace("\r\n", "\n")
