"""A server that takes some connections by TLS alone, some in clear alone and some either way, and certificates of every kind for it."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from pgdyno.machine.waiting import wait_until
from tests.drive import secured

if TYPE_CHECKING:
    from collections.abc import Iterator

DATABASES = ("only_tls", "only_clear", "either")
ROLE, HOLDER = "lab", "holder"
"""One who logs in by SCRAM, and one who does by a client certificate."""
SECRET = "s3cret"
CERTIFICATES = ("good", "self_signed", "expired", "other_host", "version_1", "authority", "wildcard")
"""Of the server; all but `self_signed` are issued by one root."""
_CONFIG = """
[req]
distinguished_name = subject
prompt = no
[subject]
CN = x
[leaf]
basicConstraints = critical,CA:FALSE
subjectAltName = {names}
[ca]
default_ca = old
[old]
database = index.txt
unique_subject = no
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
crlnumber = crlnumber
crl_extensions = crl
[crl]
authorityKeyIdentifier = keyid:always
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
subjectAltName = {names}
"""
_PATIENCE_S = 20.0


@dataclass(frozen=True)
class Site:
    """The server, and the folder with certificates."""

    encrypted: secured.Encrypted
    folder: Path

    @property
    def root(self) -> Path:
        """What issued the certificates."""
        return self.encrypted.root

    @property
    def port(self) -> int:
        """The server's."""
        return self.encrypted.cluster.port

    def dsn(self, database: str = "either", **more: str) -> str:
        """A connection string of :data:`ROLE`."""
        given = {"host": "localhost", "port": str(self.port), "user": ROLE, "dbname": database} | more
        return psycopg.conninfo.make_conninfo(**given)

    def show(self, certificate: str) -> None:
        """Let the server show another certificate from the next session on."""
        with self.encrypted.cluster.connect() as connection:
            for setting, suffix in (("ssl_cert_file", "crt"), ("ssl_key_file", "key")):
                value = sql.Literal(str(self.folder / f"{certificate}.{suffix}"))
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(setting), value))
            before = connection.execute("SELECT pg_conf_load_time()").fetchone()
            connection.execute("SELECT pg_reload_conf()")
        assert wait_until(lambda: self._loaded() != before, _PATIENCE_S), "it has read its settings"

    def _loaded(self) -> tuple[object, ...] | None:
        with self.encrypted.cluster.connect() as connection:
            return connection.execute("SELECT pg_conf_load_time()").fetchone()


@contextlib.contextmanager
def site(pg_bin: Path) -> Iterator[Site]:
    """Yield a started one, gone afterwards."""
    with secured.encrypted_server(pg_bin) as encrypted:
        folder = encrypted.root.parent
        _make_certificates(folder)
        for path in folder.glob("*.key"):
            path.chmod(0o600)
            if encrypted.cluster.user is not None and path.stem != HOLDER:
                shutil.chown(path, encrypted.cluster.user.uid, encrypted.cluster.user.gid)
        _arrange(encrypted)
        yield Site(encrypted, folder)


def _arrange(encrypted: secured.Encrypted) -> None:
    cluster = encrypted.cluster
    with cluster.connect() as connection:
        connection.execute("SET password_encryption = 'scram-sha-256'")
        for role in (ROLE, HOLDER):
            statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            connection.execute(statement.format(sql.Identifier(role), sql.Literal(SECRET)))
        for database in DATABASES:
            statement = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(database), sql.Identifier(ROLE))
            connection.execute(statement)
        ca = sql.Literal(str(encrypted.root))
        connection.execute(sql.SQL("ALTER SYSTEM SET ssl_ca_file = {}").format(ca))
        rules = cluster.data_dir / "pg_hba.conf"
        ways = {"only_tls": "hostssl", "only_clear": "hostnossl", "either": "host"}
        result = f"hostssl all {HOLDER} all cert\n"
        result += "".join(f"{way} {name} {ROLE} all scram-sha-256\n" for name, way in ways.items())
        result += f"host all {ROLE} all reject\n"
        rules.write_text(result + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")

    def is_ready() -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            where = {"host": "localhost", "port": str(cluster.port), "user": ROLE, "password": SECRET}
            psycopg.connect(psycopg.conninfo.make_conninfo(**where, dbname="only_tls")).close()
            return True
        return False

    assert wait_until(is_ready, _PATIENCE_S), "it has read its rules"


def _make_certificates(folder: Path) -> None:
    shutil.copyfile(folder / "server.crt", folder / "good.crt")  # readable by the server's user
    shutil.copy(folder / "server.key", folder / "good.key")
    _expired(folder)
    _signed(folder, "other_host", names="DNS:db.example", common_name="db.example")
    _signed(folder, "wildcard", names="DNS:*.localhost,DNS:localhost")
    _signed(folder, "version_1", extensions=None)
    _signed(folder, "authority", extensions="authority")
    _signed(folder, HOLDER, common_name=HOLDER, names=f"DNS:{HOLDER}")
    _revocation_lists(folder)
    _run(folder, "req", "-x509", *secured.EC_KEY, "-subj", "/CN=localhost", "-extensions", "authority", "-days", "2",
         "-keyout", "self_signed.key", "-out", "self_signed.crt")  # fmt: skip


def _signed(
    folder: Path,
    name: str,
    *,
    common_name: str = "localhost",
    names: str = "DNS:localhost",
    extensions: str | None = "leaf",
) -> None:
    subject = ("-subj", f"/CN={common_name}")
    _run(folder, "req", *secured.EC_KEY, *subject, "-keyout", f"{name}.key", "-out", f"{name}.csr", names=names)
    chosen = () if extensions is None else ("-extfile", "site.cnf", "-extensions", extensions)
    signer = ("-CA", "root.crt", "-CAkey", "root.key", "-CAcreateserial", "-days", "2")
    _run(folder, "x509", "-req", "-in", f"{name}.csr", *signer, *chosen, "-out", f"{name}.crt", names=names)


def _expired(folder: Path) -> None:
    _run(folder, "req", *secured.EC_KEY, "-subj", "/CN=localhost", "-keyout", "expired.key", "-out", "expired.csr")
    (folder / "index.txt").write_text("")
    of_old = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z", "-extensions", "leaf")
    signer = ("-cert", "root.crt", "-keyfile", "root.key", "-batch", "-notext")
    _run(folder, "ca", *signer, *of_old, "-in", "expired.csr", "-out", "expired.crt")


def _revocation_lists(folder: Path) -> None:
    """`none.crl` revokes nothing, `good.crl` the good certificate; the authority issued both."""
    (folder / "crlnumber").write_text("01\n")
    signer = ("-cert", "root.crt", "-keyfile", "root.key", "-crldays", "2")
    _run(folder, "ca", *signer, "-gencrl", "-out", "none.crl")
    _run(folder, "ca", *signer[:4], "-revoke", "good.crt")
    _run(folder, "ca", *signer, "-gencrl", "-out", "good.crl")


def _run(folder: Path, *arguments: str, names: str = "DNS:localhost") -> None:
    (folder / "site.cnf").write_text(_CONFIG.format(names=names))
    secured.openssl(folder, *arguments, configuration=folder / "site.cnf")
