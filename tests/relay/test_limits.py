"""A relay without descriptors: clients wait, nothing spins, nobody who is in is cut."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.machine.relay import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("engine")

PATIENCE_S = 30.0
CLIENTS = 20
LIMIT = 24
"""Descriptors: of its own the relay has about eight, and each client takes two."""
QUESTIONS = 2000
"""Asked while there are no descriptors."""
ASKS_S = 0.1
"""So often the relay asks the machine again, beside each time that a connection ends."""


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that answers with what it is told."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection:
                while recv := connection.recv(100):
                    connection.sendall(recv)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def asks(client: socket.socket) -> bytes:
    client.sendall(b"x")
    return client.recv(1)


def test_clients_wait_for_descriptors_and_are_let_in_when_others_leave(echo: int) -> None:
    process = subprocess.Popen([engine.checked(), "relay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    clients: list[socket.socket] = []
    try:
        order = {"to": f"{HOST}:{echo}", "rtt_ns": 0, "ends_with_stdin": True}
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        port = json.loads(process.stdout.readline())["ready"]["port"]
        begin_s = time.monotonic()
        clients = [socket.create_connection((HOST, port), timeout=PATIENCE_S) for _ in range(CLIENTS)]
        served = [client for client in clients[:4] if asks(client) == b"x"]
        assert len(served) == 4
        assert all(asks(served[0]) == b"x" for _ in range(QUESTIONS))
        # As those who are in leave, the others get in, each of them.
        for client in clients:
            assert asks(client) == b"x"
            client.close()
        process.stdin.close()
        summary = json.loads(process.stdout.readline())["summary"]
        assert process.wait(PATIENCE_S) == 0
        assert (summary["connections"], summary["unreachable"]) == (CLIENTS, 0)
        # It waits between two times, and does not spin.
        assert 1 <= summary["short"] <= (time.monotonic() - begin_s) / ASKS_S + 2 * CLIENTS + 2
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        for client in clients:
            client.close()
