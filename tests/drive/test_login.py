"""The engine's own log-in: TLS and passwords; and that no secret is said on the way."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .driven import drive, driving, line, outcome, own_script, refused, spec
from .secured import SECRET, WAYS, Encrypted

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

WRONG = "incorrect horse"
ENCRYPTED = "SELECT 1 / CAST(ssl AS integer), repeat('x', 100000) FROM pg_stat_ssl WHERE pid = pg_backend_pid();"
"""Fails where the session is not encrypted. Its answer is longer than what TLS sends at a time."""


def short(**more: Any) -> dict[str, Any]:
    """A run of a few queries on each of four connections."""
    return spec(workload=own_script("SELECT 1;"), transactions_max=5, duration_ms=20_000) | more


@pytest.mark.parametrize("mode", ["require", "verify-full"])
@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_sessions_are_encrypted(encrypted: Encrypted, mode: str, protocol: str) -> None:
    server = encrypted.server | {"sslmode": mode}
    if mode == "verify-full":
        server["sslrootcert"] = str(encrypted.root)
    document = short(server=server, workload=own_script(ENCRYPTED), protocol=protocol)
    result = drive("", document, encrypted.password)
    assert result.summary["succeeded"] == 4 * 5
    assert result.ready["server_version"].startswith(encrypted.cluster.version.split(".")[0])


def test_without_tls_the_same_query_says_so(encrypted: Encrypted) -> None:
    document = short(server=encrypted.server, workload=own_script(ENCRYPTED))
    code, _, err = outcome("", document, encrypted.password)
    assert code != 0
    assert "division by zero" in err


def verified(encrypted: Encrypted, **changed: str) -> dict[str, Any]:
    """A run that wants to know whom it talks to."""
    server = encrypted.server | {"sslmode": "verify-full", "sslrootcert": str(encrypted.root)} | changed
    return short(server=server)


def test_a_certificate_of_another_host_is_refused(encrypted: Encrypted) -> None:
    error = refused("", verified(encrypted, host="127.0.0.1"), encrypted.password)
    assert "no TLS with 127.0.0.1" in error["message"]
    assert "it is not of the host 127.0.0.1" in error["message"]


def test_a_certificate_of_another_authority_is_refused(encrypted: Encrypted) -> None:
    error = refused("", verified(encrypted, sslrootcert=str(encrypted.stranger)), encrypted.password)
    assert "no TLS with localhost" in error["message"]
    assert "sslrootcert" in error["remedy"]


def test_a_root_certificate_that_is_not_there_is_said(encrypted: Encrypted, tmp_path: Path) -> None:
    missing = tmp_path / "none.crt"
    error = refused("", verified(encrypted, sslrootcert=str(missing)), encrypted.password)
    assert str(missing) in error["message"]


def to(cluster: Cluster, **more: str) -> dict[str, str]:
    """A connection without the superuser's name, which a service file would have to give way to."""
    return {"host": str(cluster.socket_dir), "port": str(cluster.port)} | more


@pytest.mark.parametrize("role", WAYS)
def test_a_password_logs_in_by_every_way_of_the_servers(guarded: Cluster, role: str) -> None:
    server = to(guarded, user=role, dbname="postgres")
    result = drive("", short(server=server), {"PGPASSWORD": SECRET})
    assert result.summary["succeeded"] == 4 * 5


@pytest.mark.parametrize("role", WAYS)
def test_a_wrong_password_is_one_sentence_without_it(guarded: Cluster, role: str) -> None:
    document = short(server=to(guarded, user=role, dbname="postgres"))
    code, lines, err = outcome("", document, {"PGPASSWORD": WRONG})
    assert (code, lines) == (2, [])
    assert err.count("\n") == 1
    assert f'(28P01): password authentication failed for user \\"{role}\\"' in err
    assert "PGPASSFILE" in err
    assert WRONG not in err


def test_a_missing_password_is_said(guarded: Cluster) -> None:
    document = short(server=to(guarded, user="scrammer", dbname="postgres"))
    error = refused("", document)
    assert "asks for a password of scrammer" in error["message"]


def test_no_secret_is_in_the_process_list_or_in_the_output(guarded: Cluster) -> None:
    result = spec(
        workload=own_script("SELECT 1;"),
        server=to(guarded, user="scrammer", dbname="postgres"),
        arrivals={"fixed": {"rate_per_s": 50}},
    )
    with driving("", result, {"PGPASSWORD": SECRET}) as process:
        results = [line(process)]
        seen = [Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert results[0]["ready"]["clients"] == 4
    for text in (*seen, out, err):
        assert os.fsencode(SECRET) not in text


def test_a_server_without_tls_is_not_talked_to_in_clear() -> None:
    """It says so in one byte; a user name or a password must not follow."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        listener.settimeout(20)

        def answer() -> bytes:
            with listener.accept()[0] as connection:
                request = connection.recv(1024)
                connection.sendall(b"N")
                return request + connection.recv(1024)

        submit = pool.submit(answer)
        server = {"host": "127.0.0.1", "port": str(listener.getsockname()[1]), "user": "u", "sslmode": "require"}
        error = refused("", short(server=server), {"PGPASSWORD": SECRET})
        assert submit.result(20) == b"\x00\x00\x00\x08\x04\xd2\x16\x2f", "nothing but the request for TLS"
    assert "does not offer TLS" in error["message"]
