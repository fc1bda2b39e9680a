"""Processes are named for good and ended in time."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from pgdyno.machine import process

from .needs import expect

if TYPE_CHECKING:
    from pathlib import Path

SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]
HALF_ENDED = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).pthread_exit(None)
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(SLEEPER)
    who = process.identity(child.pid)
    assert who is not None
    assert who.alive()
    child.kill()
    expect(lambda: not who.alive(), "the killed child is seen as dead before it is reaped")
    child.wait()


def test_a_process_with_a_thread_that_has_not_ended_is_alive_and_ending() -> None:
    """Its files are open until the last thread is gone, and those that it served notice before."""
    with subprocess.Popen([sys.executable, "-c", HALF_ENDED], stdin=subprocess.PIPE) as child:
        who = process.identity(child.pid)
        assert who is not None
        expect(who.ending, "its end has begun with its first thread")
        assert who.alive()
        child.kill()
        expect(lambda: not who.alive(), "it is gone with its last thread")
        assert who.ending()
    assert who.ending(), "what is gone has ended"
    assert not process.own_identity().ending()


def test_a_reused_pid_or_another_boot_is_another_process() -> None:
    mine = process.own_identity()
    assert mine.alive()
    assert not replace(mine, start_ticks=mine.start_ticks + 1).alive()
    assert not replace(mine, boot_id="another").alive()
    assert process.ProcessIdentity.from_json(mine.to_json()) == mine


def test_a_process_that_ignores_the_first_signal_gets_the_second() -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        who = process.identity(child.pid)
        assert who is not None
        texts: list[str] = []
        ending = ((signal.SIGTERM, 0.05), (signal.SIGKILL, 10.0))
        assert process.end(who, ending, between=lambda: texts.append("between"))
        assert texts == ["between"]
        assert child.wait() == -signal.SIGKILL


def test_ending_what_has_ended_is_done() -> None:
    child = subprocess.Popen(SLEEPER)
    who = process.identity(child.pid)
    assert who is not None
    child.kill()
    child.wait()
    assert process.end(who)
    assert process.end_all([who]) == []
    assert process.identity(child.pid) is None


def test_processes_are_found_by_where_they_work_and_what_they_write_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    inside = tmp_path / "inside"
    inside.mkdir()
    with log.open("wb") as file, subprocess.Popen(SLEEPER, cwd=inside, stderr=file) as child:
        try:
            assert [identity.pid for identity in process.working_below(tmp_path)] == [child.pid]
            assert [identity.pid for identity in process.writing_to(log)] == [child.pid]
            assert process.working_below(tmp_path / "ins") == [], "a prefix of a name is not its folder"
        finally:
            child.kill()
