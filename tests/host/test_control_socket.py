"""The control socket of a volume: whatever is sent to it, and however few descriptors there are, the daemon answers and can be ended."""

from __future__ import annotations

import json
import os
import random
import resource
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine import volume
from pgdyno.machine.waiting import wait_until
from tests.support.control import answer_of, ask, connected

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.needs_fuse

IDLE_S = 0.5
BUSY_SHARE = 0.5
"""An accept loop that turns round takes a whole CPU."""
MEMORY_BYTES = 64 << 20
"""More than a few requests of the largest size take, less than the longest line that is sent."""
LONG_BYTES = 100 << 20
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def attached(state: Path) -> Iterator[volume.AttachedVolume]:
    with volume.attached("null:size=64MiB", mount=state.parent / "mount", name="v") as result:
        yield result


def cpu_s(pid: int) -> float:
    columns = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(columns[11]) + int(columns[12])) / TICKS_PER_S


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_daemon_without_descriptors_is_idle_answers_and_is_detached(attached: volume.AttachedVolume) -> None:
    pid = attached.daemon.pid
    with ExitStack() as stack:
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 6, used + 6))
        idle = [stack.enter_context(connected(attached)) for _ in range(12)]
        before = cpu_s(pid)
        wait_until(lambda: False, IDLE_S)
        assert cpu_s(pid) - before < BUSY_SHARE * IDLE_S
        for _ in range(5):
            assert ask(attached, {"command": "health"})["store_failure"] is None
        attached.detach()
        assert len(idle) == 12
    assert not attached.alive


def test_a_new_connection_ends_the_one_that_has_been_idle_for_longest(attached: volume.AttachedVolume) -> None:
    question = json.dumps({"command": "health"}).encode() + b"\n"
    with ExitStack() as stack:
        oldest = stack.enter_context(connected(attached))
        in_use = stack.enter_context(connected(attached))
        for _ in range(100):
            stack.enter_context(connected(attached))
            in_use.sendall(question)
            assert answer_of(in_use), "it is never the one that is idle for longest"
        assert oldest.recv(1) == b"", "closed"
        assert ask(attached, {"command": "health"})["faults"] == []


def garbage() -> Iterator[bytes]:
    draw = random.Random(4)
    words = [
        b'"command"',
        b'"stats"',
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b"1e999",
        b"null",
        b'"\\ud800"',
        b"\xff\xfe",
        b"\0",
    ]
    yield b" "
    yield b"[" * 1_000_000
    yield b'{"command":' * 10_000
    yield b'{"command": "detach", "save_image": {"a": 1}}'
    yield b'{"command": "credit", "level_ppm": -1}'
    yield b'{"command": "pending", "for_ns": 1e400}'
    yield b'{"command": "modify", "spec": "' + b"gp3:" * 100_000 + b'"}'
    for _ in range(60):
        yield draw.randbytes(draw.randrange(1, 3_000)).replace(b"\n", b" ")
        yield b" ".join(draw.choice(words) for _ in range(draw.randrange(1, 200)))


def test_garbage_is_answered_with_an_error(attached: volume.AttachedVolume) -> None:
    for line in garbage():
        with connected(attached) as connection:
            connection.sendall(line + b"\n")
            answer = answer_of(connection)
        error = json.loads(answer)["error"]
        assert len(answer) < 10_000, "it does not repeat what it was sent"
        assert error["message"]
    assert attached.stats()["counters"]["failed_ops"] == 0


def test_a_line_without_end_takes_bounded_memory_and_ends(attached: volume.AttachedVolume) -> None:
    pid = attached.daemon.pid
    before = resident_bytes(pid)
    with connected(attached) as connection:
        sent = 0
        with pytest.raises(OSError, match=r".*"):
            while sent < LONG_BYTES:
                connection.sendall(b"[" * (1 << 20))
                sent += 1 << 20
            raise AssertionError("all of it was taken in")
        assert resident_bytes(pid) - before < MEMORY_BYTES
    with connected(attached) as connection:
        connection.sendall(b"x" * (1 << 20))
        connection.shutdown(socket.SHUT_WR)
        assert json.loads(answer_of(connection))["error"]["code"] == "volume.request.too_long"
    assert ask(attached, {"command": "health"})["faults"] == []
