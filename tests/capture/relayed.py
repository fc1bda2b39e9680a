"""A recording that runs: clients connect to it in place of the server."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

PATIENCE_S = 60.0
_WHERE = re.compile(r"recording clients of 127\.0\.0\.1:(\d+); Ctrl-C ends it\n")


@dataclass
class Recording:
    """What clients connect to, and what was recorded once it has ended."""

    port: int
    output: Path
    user: str
    database: str
    process: subprocess.Popen[str] = field(repr=False)
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def dsn(self) -> str:
        """For clients."""
        return self.dsn_of(self.user)

    def dsn_of(self, user: str) -> str:
        """For clients of this role."""
        return f"host=127.0.0.1 port={self.port} user={user} dbname={self.database} gssencmode=disable"

    def end(self, code: int = 0, says: str = "") -> dict[str, Any]:
        """End it, as Ctrl-C does too, which a shell in the background may ignore; what it printed."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == code and says in err, err
        self.found = json.loads(out)
        return self.found


def start(*options: str | Path) -> subprocess.Popen[str]:
    """`capture record` with these options, in a process of its own."""
    command = [sys.executable, "-m", "pgdyno", "capture", "record", *map(str, options), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextlib.contextmanager
def recording(cluster: Cluster, output: Path, to: str | None = None) -> Iterator[Recording]:
    """A recording of a server's clients, by its socket unless ``to`` names another way."""
    where = to or f"host={cluster.socket_dir} port={cluster.port}"
    process = start("--listen", "127.0.0.1:0", "--to", where, "--output", output)
    try:
        yield Recording(_port(process.stderr), output, cluster.role, cluster.database, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _port(io: IO[str] | None) -> int:
    assert io is not None
    line = io.readline()
    match = _WHERE.fullmatch(line)
    assert match is not None, line + io.read()
    return int(match[1])
