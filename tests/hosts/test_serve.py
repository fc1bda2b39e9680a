"""The scheduler and the workers: who gets in, what is open, what is examined."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.base.errors import EXIT_HOST, EXIT_OK, EXIT_USAGE, HostError
from pgdyno.hosts import connection as file
from pgdyno.hosts.certificates import Identity
from pgdyno.hosts.connection import Connection
from tests.support.commands import pgdyno

from . import there
from .conftest import OTHER_HASH


def server_of(hosts: there.Hosts, name: str) -> there.Server:
    return hosts.scheduler if name == "scheduler" else hosts.workers[name]


def greeted(server: there.Server, identity: Identity | None) -> bool:
    """Whether a server of Dask sends its greeting to someone with this certificate, or without TLS for ``None``."""
    host, _, port = server.url.removeprefix("tls://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as plain:
        try:
            if identity is None:
                plain.sendall(b"GET /status HTTP/1.0\r\n\r\n")
                return bool(plain.recv(1000))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if identity.name:
                context.load_cert_chain(identity.certificate, identity.key)
            with context.wrap_socket(plain) as stream:
                return b"compression" in stream.recv(1000)
        except (OSError, ssl.SSLError):
            return False


@pytest.mark.parametrize("name", ["scheduler", "alpha"])
def test_only_a_certificate_of_the_authority_gets_in(two: there.Hosts, other_keys: Path, name: str) -> None:
    server = server_of(two, name)
    assert greeted(server, Identity(two.folder, "coordinator"))
    assert not greeted(server, Identity(other_keys, "coordinator")), "of another authority"
    assert not greeted(server, Identity(two.folder, "")), "without a certificate"
    assert not greeted(server, None), "without TLS"


def test_one_port_each_is_open_and_none_speaks_http(two: there.Hosts) -> None:
    for server in (two.scheduler, *two.workers.values()):
        host = server.url.removeprefix("tls://").partition(":")[0]
        assert there.listening(server.process.pid) == {(host, server.port)}


def test_hosts_are_examined_and_another_engine_is_refused(two: there.Hosts, tmp_path: Path) -> None:
    ended = pgdyno("doctor", "--hosts", two.file(tmp_path, "alpha = 1"), "--json", code=EXIT_OK)
    checks = {check["name"]: check for check in json.loads(ended.out)["checks"]}
    assert {check["status"] for name, check in checks.items() if "steal" not in name} == {"ok"}
    assert "known to" in checks["alpha clock"]["found"]
    assert checks["alpha ports"]["found"] == two.workers["alpha"].url

    ended = pgdyno("doctor", "--hosts", two.file(tmp_path, "alpha = 1\nbeta = 1\ndelta = 1"), code=EXIT_HOST)
    lines = ended.out.splitlines()
    assert lines[-1] == "In the way of a load from several hosts: beta engine, delta."
    assert any(line.startswith("fail") and f"{OTHER_HASH}; here " in line for line in lines)
    assert any("delta is not connected" in line for line in lines)


def test_a_coordinator_of_another_authority_is_refused(two: there.Hosts, other_keys: Path, tmp_path: Path) -> None:
    ended = pgdyno("doctor", "--hosts", two.file(tmp_path, "alpha = 1", other_keys), code=EXIT_HOST)
    assert "certificate" in ended.err and "remedy:" in ended.err and "Traceback" not in ended.err


def test_a_worker_of_another_authority_is_refused(two: there.Hosts, other_keys: Path) -> None:
    words = ("hosts", "worker", two.scheduler.url, "--keys", other_keys, "--name", "alpha", "--listen", "127.0.0.9:0")
    ended = pgdyno(*words, code=EXIT_HOST)
    assert "certificate" in ended.err and "Traceback" not in ended.err


def test_what_would_be_open_to_others_is_refused(two: there.Hosts) -> None:
    for words in (
        ("worker", "tcp://10.0.0.5:8786", "--keys", two.folder, "--name", "alpha", "--listen", "127.0.0.9"),
        ("worker", two.scheduler.url, "--keys", two.folder, "--name", "alpha", "--listen", "0.0.0.0"),
        ("scheduler", "--keys", two.folder, "--listen", "0.0.0.0"),
    ):
        assert "Traceback" not in pgdyno("hosts", *words, code=EXIT_USAGE).err


STOCK = """
import asyncio, sys
from pathlib import Path
from pgdyno.hosts import dask
from pgdyno.hosts.certificates import Identity

async def serve(keys: str, scheduler: str, folder: str) -> None:
    distributed, security = dask.distributed(), Identity(Path(keys), "scheduler").security()
    more = {"protocol": "tls", "security": security, "host": "127.0.0.9", "dashboard": False, "dashboard_address": "127.0.0.9:0"}
    worker = distributed.Worker(scheduler, name="stock", nthreads=1, local_directory=folder, **more)
    async with distributed.Scheduler(port=0, **more) as other, worker:
        print(other.address, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(serve(*sys.argv[1:]))
"""


def test_dask_as_it_comes_serves_http_without_certificates_and_is_refused(two: there.Hosts, tmp_path: Path) -> None:
    """Its TLS is that of the same authority; its dashboard is off, which closes no port (distributed#6407)."""
    command = [sys.executable, "-c", STOCK, str(two.folder), two.scheduler.url, str(tmp_path / "dask")]
    hosts = two.file(tmp_path, "stock = 1")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        scheduler = process.stdout.readline().strip()
        ended = pgdyno("doctor", "--hosts", hosts, code=EXIT_HOST)
        assert ended.out.splitlines()[-1] == "In the way of a load from several hosts: stock ports."
        with Connection(file.read(hosts)) as connection, pytest.raises(HostError, match="the worker stock serves HTTP"):
            connection.drivers(["stock"])
        hosts.write_text(hosts.read_text().replace(two.scheduler.url, scheduler))
        ended = pgdyno("doctor", "--hosts", hosts, code=EXIT_HOST)
        assert "scheduler" in ended.out.splitlines()[-1]
        with Connection(file.read(hosts)) as connection, pytest.raises(HostError, match=f"{scheduler} serves HTTP"):
            connection.drivers(["stock"])


def test_a_signal_ends_a_server_and_the_end_of_the_scheduler_a_worker(tmp_path: Path) -> None:
    with there.hosts(tmp_path, "127.0.0.1", {"alpha": there.Place("127.0.0.5")}) as hosts:
        assert hosts.scheduler.end() == EXIT_OK
        assert hosts.workers["alpha"].process.wait(there.START_S) == EXIT_HOST
        assert "the connection ended" in hosts.workers["alpha"].log.read_text()
