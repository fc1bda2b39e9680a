"""A daemon that is stopped or does not answer: commands say so within seconds, and a detach that is taken back is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import EXIT_HOST, EXIT_INTERRUPTED, HostError
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean

from .needs import expect, needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_fuse

PATIENCE_S = 20.0
"""Twice what an answer may take."""


@pytest.fixture
def stopped(state: Path) -> Iterator[volume.AttachedVolume]:
    """A volume whose daemon is stopped."""
    mount = state.parent / "mnt"
    document = volume.attach("null:size=1GiB", mount=mount, name="v")
    (mount / "kept").write_text("kept")
    os.sync()
    os.kill(document.daemon.pid, signal.SIGSTOP)
    expect(lambda: _state(document.daemon.pid) == "T", "it is stopped")
    try:
        yield document
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(document.daemon.pid, signal.SIGCONT)
        clean(state)
        if document.alive:
            document.detach()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_closing_the_exported_file_needs_no_answer_of_the_daemon(state: Path) -> None:
    """A killed daemon closes its own file: if the kernel then asked it, it would never end."""
    with volume.attached("null:size=1GiB", mount=None, name="v") as result:
        exported = state / "volumes" / "v" / "fuse" / "volume"
        script = "import sys; file = open(sys.argv[1], 'r+b', buffering=0); print('open', flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", script, str(exported)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            reader.stdout.readline()
            os.kill(result.daemon.pid, signal.SIGSTOP)
            try:
                reader.stdin.close()
                expect(lambda: reader.poll() == 0, "it is closed")
            finally:
                os.kill(result.daemon.pid, signal.SIGCONT)


def test_a_stopped_daemon_is_said(stopped: volume.AttachedVolume, capsys: pytest.CaptureFixture[str]) -> None:
    pid = stopped.daemon.pid
    for command in (["stats", "v"], ["detach", "v"], ["modify", "v", "null:size=2GiB"]):
        begin = time.monotonic()
        assert run(["volume", *command]) == EXIT_HOST, command
        assert time.monotonic() - begin < PATIENCE_S
        err = capsys.readouterr().err
        assert f"the daemon of volume `v` (process {pid}) is stopped" in err
        assert f"kill -CONT {pid}" in err
    assert run(["volume", "list"]) == 0
    assert f"stopped (kill -CONT {pid})" in capsys.readouterr().out
    os.kill(pid, signal.SIGCONT)
    assert run(["volume", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["volumes"][0]["state"] == "serving"
    assert stopped.mount is not None
    assert (stopped.mount / "kept").read_text() == "kept"


def test_a_detach_that_is_interrupted_leaves_the_volume_and_its_content(stopped: volume.AttachedVolume) -> None:
    """Asked of the daemon while it is stopped, by a command that was killed before the daemon could hear it."""
    asking = socket.socket(socket.AF_UNIX)
    asking.connect(str(stopped.state_dir / "volumes" / "v" / "control.sock"))
    asking.sendall(b'{"command": "detach"}\n')
    asking.close()
    os.kill(stopped.daemon.pid, signal.SIGCONT)
    for _ in range(3):  # answers of a daemon that has heard the order
        assert "counters" in stopped.stats()
    assert stopped.alive
    assert stopped.mount is not None
    assert (stopped.mount / "kept").read_text() == "kept"


def test_an_interrupted_detach_says_what_became_of_the_volume(state: Path) -> None:
    """The daemon has heard the command and not answered yet when Ctrl-C comes."""
    mount = state.parent / "mnt"
    document = volume.attach("null:size=1GiB", mount=mount, name="v")
    document.keep()
    command = [Path(sys.executable).parent / "pgdyno", "volume", "detach", "v"]
    silent = _silent_instead_of(document)
    try:
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as detaching:
            assert silent.asked.wait(60)
            detaching.send_signal(signal.SIGINT)
            assert detaching.stderr is not None
            result = detaching.stderr.read()
            assert detaching.wait(30) == EXIT_INTERRUPTED
    finally:
        silent.close()
    assert "volume `v` is still attached, with its content" in result
    document.detach()


def test_a_daemon_that_does_not_answer_is_given_up(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = volume.attach("null:size=1GiB", mount=None, name="v")
    silent = _silent_instead_of(document)
    try:
        begin = time.monotonic()
        with pytest.raises(HostError, match=r"process \d+\) gave no answer within 10 s"):
            document.stats()
        with pytest.raises(HostError, match="gave no answer within 2 s"):
            document.detach()
        assert run(["volume", "list"]) == 0
        assert "silent (process" in capsys.readouterr().out
        assert time.monotonic() - begin < 2 * PATIENCE_S
    finally:
        silent.close()
    document.detach()


class _silent_instead_of:  # noqa: N801 - reads as a function
    """A socket in the place of the daemon's, which hears and does not answer, as that of a daemon that hangs."""

    def __init__(self, attached_volume: volume.AttachedVolume) -> None:
        self.asked = threading.Event()
        self._path = attached_volume.state_dir / "volumes" / attached_volume.name / "control.sock"
        self._own = self._path.with_suffix(".own")
        self._path.rename(self._own)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self._path))
        self._socket.listen()
        self._heard: list[socket.socket] = []
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def _hear(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._heard.append(self._socket.accept()[0])
                self.asked.set()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)
        for item in self._heard:
            item.close()
        self._own.replace(self._path)


def test_the_engine_lists_what_daemons_do(stopped: volume.AttachedVolume) -> None:
    listed = engine.run_json(["volume", "list", "--state-dir", str(stopped.state_dir)])["volumes"]
    assert [(item["name"], item["state"], item["alive"]) for item in listed] == [("v", "stopped", True)]
