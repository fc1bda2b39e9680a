"""The relay between real clients and servers: everything passes, later, and nothing of it stays."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.base.errors import EngineError, HostError
from pgdyno.machine import preflight
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.process import identity
from pgdyno.machine.relay import HOST, Relay, relaying
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import DATABASE, SUPERUSER, Cluster

from .needs import expect

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("engine")

RTT_MS = 3.0
HOLD_AND_DIE = """
import os, signal, sys
from pathlib import Path
from pgdyno.machine.relay import relaying
with relaying(1, 1.0, log=Path(sys.argv[1])) as relay:
    print(relay.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """A server with a port and a password."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        journal = HostJournal(folder / "state")
        made = Cluster(find_binaries(), folder / "data", port=preflight.free_port(), tcp="127.0.0.1", journal=journal)
        try:
            made.initdb()
            with made.running():
                yield made
        finally:
            made.close()


@pytest.fixture
def relay(server: Cluster, tmp_path: Path) -> Iterator[Relay]:
    with relaying(server.port, RTT_MS, log=tmp_path / "relay.log") as started:
        yield started


def connect(server: Cluster, relay: Relay) -> psycopg.Connection[tuple[object, ...]]:
    dsn = f"host={HOST} port={relay.port} user={SUPERUSER} dbname={DATABASE}"
    return psycopg.connect(dsn, password=server.password, autocommit=True)


def test_each_statement_takes_a_round_trip_and_all_is_counted(server: Cluster, relay: Relay) -> None:
    with connect(server, relay) as connection:
        begin = time.monotonic()
        for number in range(10):
            assert connection.execute("SELECT %s::int", (number,)).fetchone() == (number,)
        assert time.monotonic() - begin >= 10 * RTT_MS / 1000
    document = relay.stop()
    assert (document["connections"], document["unreachable"], document["rtt_ns"]) == (1, 0, RTT_MS * 1e6)
    for direction in (document["to_server"], document["to_client"]):
        assert direction["delay_ns_min"] >= RTT_MS / 2 * 1e6
        assert direction["chunks"] > 10
        assert 0 <= direction["late_ns_p50"] <= direction["late_ns_p99"] <= direction["late_ns_max"]
    assert relay.stop() == document, "what it said is kept"


def test_a_large_answer_and_a_large_question_are_whole(server: Cluster, relay: Relay) -> None:
    with connect(server, relay) as connection:
        row = connection.execute("SELECT length(%s::text)", ("x" * 5_000_000,)).fetchone()
        text = connection.execute("SELECT repeat('pgdyno', 1000000)").fetchone()
        assert row == (5_000_000,)
        assert text == ("pgdyno" * 1_000_000,)


def test_a_request_to_cancel_passes(server: Cluster, relay: Relay) -> None:
    with connect(server, relay) as connection, connect(server, relay) as other:
        failed: list[str | None] = []

        def wait_for_ever() -> None:
            try:
                connection.execute("SELECT pg_sleep(60)")
            except psycopg.errors.QueryCanceled as error:
                failed.append(error.sqlstate)

        waiting = threading.Thread(target=wait_for_ever)
        waiting.start()
        pid = connection.info.backend_pid
        asleep = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
        expect(lambda: other.execute(asleep, (pid,)).fetchone() == (1,), "the statement waits")
        connection.cancel()
        waiting.join(30)
        assert failed == ["57014"]


def test_a_wrong_password_is_refused_as_ever(server: Cluster, relay: Relay) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"host={HOST} port={relay.port} user={SUPERUSER} dbname={DATABASE}", password="wrong")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl, which makes the certificate")
def test_tls_passes_through_untouched(tmp_path: Path) -> None:
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=db.example"]
    words += ["-addext", "subjectAltName=DNS:db.example", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offered.load_cert_chain(certificate, key)
    with socket.create_server((HOST, 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as plain, offered.wrap_socket(plain, server_side=True) as secured:
                secured.sendall(secured.recv(100).upper())

        serving = threading.Thread(target=answer)
        serving.start()
        wanted = ssl.create_default_context(cafile=str(certificate))
        with (
            relaying(listener.getsockname()[1], RTT_MS, log=tmp_path / "relay.log") as relay,
            socket.create_connection((HOST, relay.port), timeout=30) as plain,
            wanted.wrap_socket(plain, server_hostname="db.example") as secured,
        ):
            secured.sendall(b"who is there?")
            assert secured.recv(100) == b"WHO IS THERE?"
        serving.join(30)


def test_it_uses_the_cpus_that_it_is_given(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with relaying(1, 0.0, log=tmp_path / "relay.log", cpus=str(cpu)) as relay:
        assert os.sched_getaffinity(relay.pid) == {cpu}
    with pytest.raises(HostError, match="no CPUs 4000"), relaying(1, 0.0, log=tmp_path / "log", cpus="4000"):
        pass


def test_one_that_died_is_said(tmp_path: Path) -> None:
    with relaying(1, 0.0, log=tmp_path / "relay.log") as relay:
        os.kill(relay.pid, signal.SIGKILL)
        with pytest.raises(EngineError, match="before it was stopped"):
            relay.stop()


def test_a_server_that_is_not_there_is_counted(tmp_path: Path) -> None:
    with relaying(preflight.free_port(), 0.0, log=tmp_path / "relay.log") as relay:
        # The reset may come before the caller has seen that it is connected.
        with (
            pytest.raises(ConnectionResetError),
            closing(socket.create_connection((HOST, relay.port), timeout=30)) as client,
        ):
            client.recv(1)
        assert relay.stop()["unreachable"] == 1


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD_AND_DIE, str(tmp_path / "relay.log")]
    killed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    left = identity(int(killed.stdout))
    expect(lambda: left is None or not left.alive(), "the relay has ended")
