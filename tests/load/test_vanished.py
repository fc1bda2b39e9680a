"""A server that vanishes: its machine is switched off or the network is cut, so that nobody says that it is gone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.machine.waiting import wait_until

from .loaded import Loaded, Target, ended, loading, order
from .test_load import ROWS, TABLE, wait_for_chunks, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

SO_ATTACH_FILTER = 26
"""Of socket(7): a program that says how much of each packet the socket gets. One that says 0 makes a peer of which nothing is
heard any more, not even an acknowledgement."""
_NOTHING = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF_RET | BPF_K, 0 bytes
IMPATIENT = {"keepalives_idle": "1", "keepalives_interval": "1", "keepalives_count": "2", "tcp_user_timeout": "2000"}


class Network:
    """A way to the server by TCP, which can be cut."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def where(self) -> dict[str, str]:
        """What a client says to come this way."""
        return {"host": "127.0.0.1", "port": str(self._listener.getsockname()[1])}

    def cut(self) -> None:
        """Nothing of the connections that there are arrives any more; the server thinks that its clients have ended."""
        with self._lock:
            for near, far in self._pairs:
                near.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(_NOTHING)))
                with contextlib.suppress(OSError):
                    far.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """All of it."""
        with self._lock:
            for item in (self._listener, *(item for pair in self._pairs for item in pair)):
                with contextlib.suppress(OSError):
                    item.shutdown(socket.SHUT_RDWR)  # who waits at it is woken, which closing alone does not do
                item.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._server)
                with self._lock:
                    self._pairs.append((near, far))
                for ways in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ways, daemon=True).start()

    @staticmethod
    def _carry(one: socket.socket, other: socket.socket) -> None:
        # Where one has ended the other is left open: who vanishes does not say so.
        with contextlib.suppress(OSError):
            while part := one.recv(65_536):
                other.sendall(part)


@pytest.fixture
def network(cluster: Cluster) -> Iterator[Network]:
    """A way to the shared server."""
    made = Network(os.fspath(cluster.socket_dir / f".s.PGSQL.{cluster.port}"))
    yield made
    made.close()


def asked_of(network: Network, target: Target, path: Path, **more: Any) -> dict[str, Any]:
    """A load by that way, of a client that does not wait for long."""
    where = {key: str(value) for key, value in conninfo_to_dict(target.dsn).items() if key in ("user", "dbname")}
    server = where | network.where | IMPATIENT
    return order(path, server=server, ledger=target.ledger(), chunk_bytes=20_000, interval_ms=20) | more


def test_a_load_that_sends_into_nothing_notices_and_goes_on_when_the_server_is_back(
    target: Target, network: Network, tmp_path: Path
) -> None:
    target.run(TABLE)
    path = written(tmp_path / "a.csv")
    rate = path.stat().st_size // 3
    document = asked_of(network, target, path, rate_bytes_per_s=rate, reconnect_s=60)
    with loading(target.dsn, document) as process:
        wait_for_chunks(process, 1)
        network.cut()
        done = ended(process)
    assert isinstance(done, Loaded), done
    assert (done.lost, done.rows) == (1, (ROWS, 0))
    assert target.one("SELECT count(DISTINCT id) FROM t") == target.one("SELECT count(*) FROM t") == ROWS


def test_a_load_that_waits_for_an_answer_notices_too(target: Target, network: Network, tmp_path: Path) -> None:
    target.run(TABLE)
    document = asked_of(network, target, written(tmp_path / "a.csv", 100), reconnect_s=0)
    with psycopg.connect(target.dsn) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        with loading(target.dsn, document) as process:
            waits_for_lock(target)
            network.cut()
            error = ended(process)
    assert isinstance(error, dict), error
    assert "has vanished" in error["message"]
    assert "can be reached" in error["remedy"]


def waits_for_lock(target: Target) -> None:
    """Wait until a session of the load does."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno load' AND wait_event_type = 'Lock'"
    )
    assert wait_until(lambda: target.one(waiting) > 0, 30.0)
