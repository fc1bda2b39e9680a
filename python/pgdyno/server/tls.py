"""TLS of a server that pgdyno starts: whether its programs have it, and the settings with a certificate for as long as it runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from .binaries import PgBinaries

_TIMEOUT_S = 30.0
_FILES = {"ssl_cert_file": "server.crt", "ssl_key_file": "server.key"}


def has_tls(binaries: PgBinaries, data_dir: Path) -> bool:
    """Whether the programs were built with a library for it, which only they know; they are asked of a cluster that was made."""
    command = [str(binaries.program("postgres")), "-C", "ssl_library", "-D", str(data_dir)]
    done = subprocess.run(
        command, env=binaries.environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    return bool(done.stdout.strip())


def settings(folder: Path, certify: Callable[[Path], object], give: Callable[[Path], None]) -> dict[str, str]:
    """The server's settings; ``certify`` writes certificate and key into ``folder``, unless they are there, and ``give`` makes them the server's."""
    files = {name: folder / file for name, file in _FILES.items()}
    if not folder.exists():
        folder.mkdir()
        certify(folder)
        for path in files.values():
            give(path)
        give(folder)
    return {"ssl": "on"} | {name: str(path) for name, path in files.items()}
