"""A plain server: made by its own initdb, started by its own pg_ctl, on an ordinary disk, with TLS; and PgBouncer before it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.machine import preflight, program
from pgdyno.machine.waiting import wait_until
from pgdyno.server.user import server_user

if TYPE_CHECKING:
    from collections.abc import Iterator

SCALE = 20
"""Of pgbench's tables: 300 MB, more than shared_buffers and less than any machine's page cache."""
START_S = 30.0
PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@dataclass(frozen=True)
class Plain:
    """Where it listens, and its programs."""

    programs: Path
    data: Path
    port: int
    tls: bool
    """Whether its build has TLS at all."""

    def dsn(self, role: str = "monitor", **further: str) -> str:
        """A connection string over TCP."""
        words = {"host": "127.0.0.1", "port": str(self.port), "dbname": "bench", "user": role, **further}
        return " ".join(f"{name}={value}" for name, value in words.items())

    def program(self, name: str, *words: str) -> list[str]:
        """A client program of the server's own version, as its superuser."""
        return [str(self.programs / name), "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", *words]

    def psql(self, statement: str, database: str = "bench") -> None:
        """Run a statement."""
        program.run(*self.program("psql", "-q", "-d", database, "-c", statement))


@contextlib.contextmanager
def plain(programs: Path, folder: Path) -> Iterator[Plain]:
    """A started server with pgbench's tables and two roles, gone afterwards."""
    user = server_user()
    home = Path(tempfile.mkdtemp(prefix="pgdyno-watched-", dir=folder))
    home.chmod(0o755)
    if user is not None:
        os.chown(home, user.uid, user.gid)
    server = Plain(programs, home / "data", preflight.free_port(), _has_tls(programs))
    owner: dict[str, Any] = {"cwd": "/"}
    if user is not None:
        owner |= {"user": user.uid, "group": user.gid, "extra_groups": []}
    try:
        program.run(programs / "initdb", "-D", server.data, "-U", "postgres", "--auth=trust", **owner)
        settings = f"port = {server.port}\nunix_socket_directories = '{home}'\n"
        if server.tls:
            _certificate(home, **owner)
            settings += f"ssl = on\nssl_cert_file = '{home}/server.crt'\nssl_key_file = '{home}/server.key'\n"
        with (server.data / "postgresql.conf").open("a") as file:
            file.write(settings)
        control: list[str | Path] = [programs / "pg_ctl", "-D", server.data, "-l", home / "log", "-w"]
        program.run(*control, "start", **owner)
        try:
            server.psql("CREATE DATABASE bench", "postgres")
            program.run(*server.program("pgbench", "-q", "-i", "-s", str(SCALE), "bench"))
            server.psql("CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor; CREATE ROLE weak LOGIN")
            yield server
        finally:
            program.run(*control, "-m", "immediate", "stop", **owner)
    finally:
        shutil.rmtree(home)


@contextlib.contextmanager
def pooled(server: Plain) -> Iterator[str]:
    """The connection string through a PgBouncer in transaction mode."""
    assert PGBOUNCER is not None
    user = server_user()
    with tempfile.TemporaryDirectory(prefix="pgdyno-watched-") as name:
        folder, port = Path(name), preflight.free_port()
        folder.chmod(0o755)
        (folder / "users.txt").write_text('"monitor" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users.txt\npool_mode = transaction\n"
        )
        run_as = [] if user is None else ["-u", user.name]
        with subprocess.Popen(
            [PGBOUNCER, "-q", *run_as, str(folder / "pgbouncer.ini")], stderr=subprocess.DEVNULL
        ) as process:
            try:
                if not wait_until(lambda: _listens(port), START_S):
                    raise TimeoutError("PgBouncer did not start")
                yield server.dsn(port=str(port))
            finally:
                process.kill()


def _has_tls(programs: Path) -> bool:
    """Whether the server is linked with OpenSSL."""
    linked = subprocess.run(["ldd", programs / "postgres"], capture_output=True, text=True, check=True)
    return "libssl" in linked.stdout


def _certificate(home: Path, **owner: Any) -> None:
    key, certificate = home / "server.key", home / "server.crt"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    program.run(*words, "-keyout", key, "-out", certificate, **owner)
    key.chmod(0o600)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False
