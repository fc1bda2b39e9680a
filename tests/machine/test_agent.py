"""The agent answers by lines: on a socket here, on the machine's port there."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tools.machine import agent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Line:
    """The host's end of the line."""

    def __init__(self, end: socket.socket) -> None:
        self._file = end.makefile("rwb")
        self._asked = 0

    def read(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._file.readline())
        return document

    def ask(self, command: str, timeout_s: float = 60.0, **more: object) -> dict[str, Any]:
        self._asked += 1
        request = {"id": self._asked, "command": command, "user": None, "timeout_s": timeout_s} | more
        self._file.write(json.dumps(request).encode() + b"\n")
        self._file.flush()
        document = self.read()
        assert document["id"] == self._asked
        return document


@pytest.fixture
def line() -> Iterator[Line]:
    here, there = socket.socketpair()
    here.settimeout(60.0)

    def work() -> None:
        with there.makefile("rwb", buffering=0) as stream:
            agent.serve(stream, stream)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        with here:
            yield Line(here)
            here.shutdown(socket.SHUT_RDWR)
    finally:
        worker.join(60.0)
        there.close()
    assert not worker.is_alive(), "the agent ends with the line"


def test_it_says_where_it_is_and_answers_with_output_and_code(line: Line) -> None:
    assert line.read()["hello"]["kernel"]
    document = line.ask("echo out; echo wrong >&2; exit 7")
    assert (document["code"], document["stdout"], document["stderr"]) == (7, "out\n", "wrong\n")
    assert len(line.ask("head -c 300000 /dev/zero | tr '\\0' x")["stdout"]) == 300_000, "longer than one write"


def test_a_command_that_does_not_end_is_killed_with_its_children(line: Line) -> None:
    line.read()
    document = line.ask(
        f"{sys.executable} -c 'import signal; print(1, flush=True); signal.pause()' & wait", timeout_s=0.5
    )
    assert document["code"] is None


def test_a_group_is_looked_at_and_its_members_are_named(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        group = tmp_path / "data"
        group.mkdir()
        (tmp_path / "cpu.weight").write_text("1\n")
        (group / "memory.max").write_text("134217728\n")
        (group / "cgroup.procs").write_text(f"{child.pid}\n")
        seen: dict[str, dict[str, Any]] = {}
        for current in (7, 9, 8):
            (group / "memory.current").write_text(f"{current}\n")
            agent.look(seen, tmp_path)
        [noted] = seen.values()
        assert noted["memory_current_max"] == 9
        assert noted["memory.max"] == "134217728"
        assert list(noted["members"].values()) == [1]
        assert noted["cpu.weight of the parent"] == "1"
        assert agent.servers(seen) == 0
        assert agent.servers({"a": {"members": {"postgres": 5}}}) == 5
    finally:
        child.kill()
        child.wait()


def test_the_named_python_process_is_killed_and_no_other() -> None:
    script = "import signal; signal.pause()"
    named, other = (
        subprocess.Popen([sys.executable, "-c", script, "compare", word]) for word in ("killed-by-name", "other")
    )
    try:
        assert agent.kill(["compare", "killed-by-name"]) == [named.pid]
        assert named.wait(60.0) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
