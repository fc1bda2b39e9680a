"""Servers that ask who one is: certificates made here, and a role for each way of authentication."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from pgdyno.machine import preflight
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.waiting import wait_until
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "localhost"
"""The one name in the server's certificate; it is not the address 127.0.0.1."""
SECRET = "correct horse: battery\\staple"
"""A password with the characters that a password file must escape."""
WAYS = {"scrammer": "scram-sha-256", "hasher": "md5", "plain": "password"}
"""A role for each way that a server can ask for a password."""
PATIENCE_S = 20.0

_OPENSSL_CONFIG = f"""
[req]
distinguished_name = subject
prompt = no
[subject]
CN = pgdyno test
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[server]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:{HOST}
"""
EC_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Encrypted:
    """A server with TLS on a TCP port of this machine."""

    cluster: Cluster
    root: Path
    """The certificate that its own was signed with."""
    stranger: Path
    """A certificate of the same name that it was not signed with."""

    @property
    def server(self) -> dict[str, str]:
        """Where it is, in libpq's keywords."""
        return {"host": HOST, "port": str(self.cluster.port), "user": "postgres", "dbname": "postgres"}

    @property
    def password(self) -> dict[str, str]:
        """The environment that says the password."""
        assert self.cluster.password is not None
        return {"PGPASSWORD": self.cluster.password}


def missing_openssl() -> str | None:
    """Why no certificate can be made here, if so."""
    return None if shutil.which("openssl") else "needs openssl (apt install openssl)"


@contextlib.contextmanager
def encrypted_server(pg_bin: Path) -> Iterator[Encrypted]:
    """Yield a started server with TLS and SCRAM, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        root, stranger = (_root(folder, name) for name in ("root", "stranger"))
        certificate, key = _signed(folder)
        cluster = Cluster(
            find_binaries(pg_bin),
            folder / "data",
            port=preflight.free_port(),
            tcp="127.0.0.1",
            journal=HostJournal(folder / "state"),
        )
        for path in (certificate, key):
            path.chmod(0o600)
            if cluster.user is not None:
                os.chown(path, cluster.user.uid, cluster.user.gid)
        settings = {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key)}
        try:
            cluster.initdb()
            with cluster.running(settings):
                yield Encrypted(cluster, root, stranger)
        finally:
            cluster.close()


def ask_for_passwords(cluster: Cluster) -> None:
    """Give the roles of :data:`WAYS` the password :data:`SECRET`, and let the server ask them for it."""
    with cluster.connect() as connection:
        for role, way in WAYS.items():
            connection.execute(f"SET password_encryption = '{'md5' if way == 'md5' else 'scram-sha-256'}'")
            statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            connection.execute(statement.format(sql.Identifier(role), sql.Literal(SECRET)))
        rules = cluster.data_dir / "pg_hba.conf"
        text = "".join(f"local all {role} {way}\n" for role, way in WAYS.items())
        rules.write_text(text + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")
    assert wait_until(lambda: all(_is_asked(cluster, role) for role in WAYS), PATIENCE_S), "it has read the rules"


def _is_asked(cluster: Cluster, role: str) -> bool:
    try:
        psycopg.connect(cluster.dsn, user=role, password="", passfile=os.devnull).close()
    except psycopg.OperationalError:
        return True
    return False


def _root(folder: Path, name: str) -> Path:
    """A certificate that signs others. All have one subject: what tells them apart is the key."""
    made = folder / f"{name}.crt"
    subject = ("-subj", "/CN=pgdyno test root", "-extensions", "root", "-days", "2")
    _openssl(folder, "req", "-x509", *EC_KEY, *subject, "-keyout", f"{name}.key", "-out", made.name)
    return made


def _signed(folder: Path) -> tuple[Path, Path]:
    """The server's certificate, signed by ``root``, and its key."""
    _openssl(folder, "req", *EC_KEY, "-subj", f"/CN={HOST}", "-keyout", "server.key", "-out", "server.csr")
    signer = ("-CA", "root.crt", "-CAkey", "root.key", "-set_serial", "2", "-days", "2")
    extensions = ("-extfile", "openssl.cnf", "-extensions", "server")
    _openssl(folder, "x509", "-req", "-in", "server.csr", *signer, *extensions, "-out", "server.crt")
    return folder / "server.crt", folder / "server.key"


def _openssl(folder: Path, *arguments: str) -> None:
    configuration = folder / "openssl.cnf"
    configuration.write_text(_OPENSSL_CONFIG)
    openssl(folder, *arguments, configuration=configuration)


def openssl(folder: Path, *arguments: str, configuration: Path) -> None:
    """Run the program in a folder."""
    subprocess.run(
        ["openssl", *arguments],
        cwd=folder,
        env={**os.environ, "OPENSSL_CONF": str(configuration)},
        check=True,
        capture_output=True,
    )
