"""How much more than its round trip the relay takes, beside a connection without it: ``make bench ONLY=relay``."""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import time
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine.relay import HOST, relaying

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("engine")]

ROUNDS = 5
"""Each distance is measured so often, in turn with all others, so that what the machine does meets all of them."""
QUESTIONS = 400
MESSAGE = b"x" * 64
"""About a prepared statement's execution."""
RTTS_MS = (0.0, 0.2, 0.5, 1.0, 5.0)
LATE_MAX = 0.10
"""Of a round trip of 5 ms, by the relay's own clock: far more than its two wake-ups take, and a defect would double the delay."""


def serve(listener: socket.socket) -> None:
    """Answer one connection after the other with what it says."""
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            while recv := connection.recv(len(MESSAGE)):
                connection.sendall(recv)


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server in a process of its own."""
    with socket.create_server((HOST, 0)) as listener:
        process = multiprocessing.get_context("fork").Process(target=serve, args=(listener,), daemon=True)
        process.start()
        try:
            yield listener.getsockname()[1]
        finally:
            process.kill()
            process.join()


def round_trip_us(port: int) -> float:
    """The middle one of many."""
    took = []
    with socket.create_connection((HOST, port), timeout=30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(QUESTIONS):
            begin = time.perf_counter_ns()
            client.sendall(MESSAGE)
            left = len(MESSAGE)
            while left:
                left -= len(client.recv(left))
            took.append(time.perf_counter_ns() - begin)
    return statistics.median(took) / 1000


def test_a_round_trip_is_what_was_asked_for(echo: int, tmp_path: Path) -> None:
    here: list[float] = []
    values: dict[float, list[float]] = {}
    cpu_us: dict[float, list[float]] = {}
    late_us: dict[float, list[float]] = {}
    for _ in range(ROUNDS):
        here.append(round_trip_us(echo))
        for rtt_ms in RTTS_MS:
            with relaying(echo, rtt_ms, log=tmp_path / "relay.log") as relay:
                values.setdefault(rtt_ms, []).append(round_trip_us(relay.port))
                document = relay.stop()
            cpu_us.setdefault(rtt_ms, []).append(document["cpu_ns"] / 1000 / document["to_server"]["chunks"])
            late = document["to_server"]["late_ns_p50"] + document["to_client"]["late_ns_p50"]
            late_us.setdefault(rtt_ms, []).append(late / 1000)
    direct = statistics.median(here)
    print(f"\ndirect: {direct:.0f} us a round trip")
    for rtt_ms, took in values.items():
        more = statistics.median(took) - direct
        excess_us = more - rtt_ms * 1000
        late, cpu = statistics.median(late_us[rtt_ms]), statistics.median(cpu_us[rtt_ms])
        print(
            f"{rtt_ms:g} ms: {more:.0f} us more than direct, {excess_us:+.0f} us than asked"
            f" ({late:.0f} us by its own clock), {cpu:.0f} us of CPU"
        )
        assert excess_us >= 0, "the distance is never shorter than asked"
        if rtt_ms == max(RTTS_MS):
            assert late <= LATE_MAX * rtt_ms * 1000
