"""What pgdyno starts can be ended: no signal is blocked in it, and it ends with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import EXIT_INTERRUPTED, HostError, InputError
from pgdyno.cli.main import run
from pgdyno.machine import mounts, paths, volume
from pgdyno.machine.clean import clean, left_in
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.launch import launch
from pgdyno.machine.process import end_all, identity, writing_to
from pgdyno.machine.unfinished import unfinished

from .needs import expect, needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCKED = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
signal.signal(signal.SIGINT, signal.SIG_IGN)
"""
STATUS = (
    BLOCKED
    + """
import subprocess
from pgdyno.base import engine
subprocess.run(engine.child(["cat", "/proc/self/status"]))
"""
)
ORPHAN = """
import subprocess, sys, time
from pgdyno.base import engine
print(subprocess.Popen(engine.child(["sleep", "600"])).pid, flush=True)
sys.stdin.read()
"""
OUTLIVING = (
    BLOCKED
    + """
import os
os.set_inheritable(os.open(sys.argv[1], os.O_RDWR), True)
os.execv(sys.argv[2], ["mkfs.ext4", "600"])
"""
)
HANGING_MKFS = """\
#!/bin/sh
for device; do :; done
exec 3<> "$device"
echo $$ > "{mark}"
exec sleep 600
"""
"""A mkfs that takes ten minutes over its device, as that of a huge array does."""


def masks(status: str) -> tuple[int, int]:
    """Blocked and ignored signals in a /proc/PID/status."""
    fields = dict(line.split(":", 1) for line in status.splitlines())
    of_the_c_library = 0b11 << 31  # signals 32 and 33, which nobody else may change (nptl(7))
    return int(fields["SigBlk"], 16) & ~of_the_c_library, int(fields["SigIgn"], 16) & ~of_the_c_library


def test_a_child_begins_with_no_signal_blocked_or_ignored() -> None:
    stdout = subprocess.run([sys.executable, "-c", STATUS], capture_output=True, text=True, check=True).stdout
    assert masks(stdout) == (0, 0)


def test_under_nohup_a_hangup_stays_ignored() -> None:
    ignoring = f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{STATUS}"
    stdout = subprocess.run([sys.executable, "-c", ignoring], capture_output=True, text=True, check=True).stdout
    assert masks(stdout) == (0, 1 << (signal.SIGHUP - 1))


def test_a_child_ends_with_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = identity(int(parent.stdout.readline()))
        assert child is not None
        assert child.alive()
        parent.kill()
        parent.wait()
        try:
            expect(lambda: not child.alive(), "the child of a killed process ends")
        finally:
            end_all([child])


def test_a_program_that_is_not_there_is_said() -> None:
    done = subprocess.run(engine.child(["/no/such/program"]), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "cannot start /no/such/program" in done.stderr


def test_a_launched_server_blocks_no_signal(state: Path, tmp_path: Path) -> None:
    """Launched by a process that blocks them, as a thread of a larger program may."""
    log = tmp_path / "log"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    try:
        launched = launch(["cat", "/proc/self/status"], journal=HostJournal(state), name="cat", log=log, env=os.environ)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    launched.process.wait(10)
    HostJournal(state).done(launched.entry_id)
    assert masks(log.read_text())[0] == 0


@pytest.fixture
def hanging(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file in which a mkfs that hangs writes its process id; this mkfs is first on the path."""
    tools, mark = state.parent / "tools", state.parent / "mkfs.pid"
    tools.mkdir()
    (tools / "mkfs.ext4").write_text(HANGING_MKFS.format(mark=mark))
    (tools / "mkfs.ext4").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    yield mark
    if mark.exists() and (left := identity(int(mark.read_text()))) is not None:
        end_all([left])


def attaching(state: Path) -> subprocess.Popen[str]:
    command = [Path(sys.executable).parent / "pgdyno", "volume", "attach", "gp3", "--name", "v"]
    return subprocess.Popen([*command, "--mount", state.parent / "a" / "b"], stderr=subprocess.PIPE, text=True)


@needs_fuse
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_attach_leaves_nothing(state: Path, hanging: Path, number: signal.Signals) -> None:
    with attaching(state) as command:
        expect(lambda: hanging.exists() and hanging.read_text() != "", "it formats", 60)
        mkfs = identity(int(hanging.read_text()))
        assert mkfs is not None
        assert masks(Path(f"/proc/{mkfs.pid}/status").read_text())[0] == 0
        command.send_signal(number)
        assert command.wait(60) == EXIT_INTERRUPTED
    assert not mkfs.alive()
    assert left_in(state) == []
    assert unfinished(state) == []
    assert [loop for loop in mounts.loops() if paths.is_below(loop.backing_file, state)] == []
    assert not (state.parent / "a").exists(), "directories that it made go too"


@needs_fuse
def test_what_a_killed_attach_left_can_be_detached_by_its_name(
    state: Path, hanging: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attach, list and detach agree on whether the name is taken."""
    with attaching(state) as command:
        expect(lambda: hanging.exists() and hanging.read_text() != "", "it formats", 60)
        assert run(["volume", "list"]) == 0
        assert f"being attached (process {command.pid})" in capsys.readouterr().out
        assert run(["volume", "detach", "v"]) == 2
        assert f"is being attached by process {command.pid}" in capsys.readouterr().err
        command.kill()
        command.wait(10)
    log = paths.claims_dir(state) / "v" / "daemon.log"
    assert len(writing_to(log)) >= 1, "the daemon outlives the command, and goes on to format"
    monkeypatch.setenv("PATH", os.environ["PATH"].partition(":")[2])
    assert run(["volume", "list"]) == 0
    assert "attach interrupted (pgdyno volume detach v)" in capsys.readouterr().out
    with pytest.raises(InputError, match="was interrupted") as refused:
        volume.attach("gp3", mount=None, name="v", state_dir=state)
    assert "pgdyno volume detach v" in refused.value.remedy
    assert run(["volume", "detach", "v"]) == 0
    assert "the remains of an interrupted attach are removed" in capsys.readouterr().out
    assert run(["volume", "list"]) == 0
    assert "no volume is attached" in capsys.readouterr().err
    with volume.attached("gp3", mount=None, name="v", state_dir=state):
        pass


@needs_fuse
def test_a_tool_that_outlived_its_daemon_is_ended_by_the_clean_up(state: Path) -> None:
    """As those of earlier versions did: it holds the device, and no signal but SIGKILL reaches it."""
    attached = volume.attach("gp3", mount=None, name="v", state_dir=state)
    attached.keep()
    copy = state.parent / "mkfs.ext4"
    copy.symlink_to("/bin/sleep")
    tool = subprocess.Popen([sys.executable, "-c", OUTLIVING, attached.block_device, copy])
    expect(lambda: Path(f"/proc/{tool.pid}/comm").read_text().strip() == "mkfs.ext4", "it became the tool")
    os.kill(attached.daemon.pid, signal.SIGKILL)
    expect(lambda: not attached.alive, "the daemon ends")
    assert any(f"ended mkfs.ext4 (process {tool.pid})" in line for line in clean(state))
    assert tool.wait(10) == -signal.SIGKILL
    assert left_in(state) == []


@needs_fuse
def test_a_program_that_keeps_a_device_busy_is_named(state: Path) -> None:
    attached = volume.attach("gp3", mount=None, name="v", state_dir=state)
    attached.keep()
    with Path(attached.block_device).open("rb") as device:
        user = subprocess.Popen(["sleep", "600"], stdin=device)
    os.kill(attached.daemon.pid, signal.SIGKILL)
    expect(lambda: not attached.alive, "the daemon ends")
    try:
        with pytest.raises(HostError, match="could not be removed completely") as busy:
            attached.detach()
        assert f"sleep (process {user.pid})" in busy.value.remedy
        with pytest.raises(HostError, match="could not be removed") as stuck:
            clean(state)
        assert f"end sleep (process {user.pid})" in stuck.value.remedy
    finally:
        user.kill()
        user.wait()
    clean(state)
