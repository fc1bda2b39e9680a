"""The leak check sees what it must see: a check that finds nothing anywhere would look the same."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgdyno.machine.waiting import wait_until
from tests import leaks


@pytest.fixture
def control_groups() -> Path:
    """Where pgdyno makes control groups."""
    trees = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
    tree = next((path for path in trees if path.is_dir()), None)
    if tree is None:
        pytest.skip("no control groups here")
    return tree / "pgdyno"


@pytest.fixture
def run_dir() -> Path:
    return Path(os.environ[leaks.MARK])


def children_of(server: subprocess.Popen[bytes]) -> list[int]:
    """Processes that it has started, once there is one; who misses it waits for it ten minutes."""
    file = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    assert wait_until(lambda: file.read_text() != "", 60.0)
    return [int(pid) for pid in file.read_text().split()]


def test_a_process_left_behind_is_found_and_ended(run_dir: Path) -> None:
    before = leaks.look(run_dir)
    process = subprocess.Popen(["sleep", "600"])
    (left,) = leaks.leaked(run_dir, before, 0.3)
    assert f"{process.pid} (sleep)" in left
    assert process.wait() != 0
    assert leaks.leaked(run_dir, before, 0.3) == []


def server_that_forks_later(run_dir: Path, script: str, environment: dict[str, str] | None) -> list[str]:
    """What is taken for a leak of a server that was there before and starts a child after that."""
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, env=environment) as server:
        before = leaks.look(run_dir)
        assert server.stdin is not None
        server.stdin.write(b"go\n")
        server.stdin.flush()
        (child,) = children_of(server)
        try:
            return leaks.leaked(run_dir, before, 0.3)
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.fixture(scope="session")
def companion() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the whole session, which begins after other tests."""
    with subprocess.Popen(["sleep", "600"]) as started:
        yield started
        started.kill()


def test_a_process_of_the_whole_session_that_begins_with_a_test_is_not_its_own(
    companion: subprocess.Popen[bytes],
) -> None:
    assert companion.poll() is None


def test_a_process_of_the_whole_session_outlives_the_test_it_began_with(companion: subprocess.Popen[bytes]) -> None:
    assert companion.poll() is None


def test_children_of_a_server_that_was_there_before_are_not_blamed_on_a_test(run_dir: Path) -> None:
    assert server_that_forks_later(run_dir, "read line; sleep 600 & wait", None) == []


def test_a_process_without_an_environment_is_found_and_ended(run_dir: Path) -> None:
    before = leaks.look(run_dir)
    process = subprocess.Popen(["sleep", "600"], env={})
    (left,) = leaks.leaked(run_dir, before, 0.3)
    assert f"{process.pid} (sleep)" in left
    assert process.wait() != 0


def test_a_process_that_executes_another_program_is_waited_for(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent has ended, and the kernel has not read the program yet: it has neither command nor environment."""
    before = leaks.look(run_dir)
    subprocess.run(["sh", "-c", f"sleep 600 >/dev/null & echo $! > {tmp_path}/pid"], check=True)
    pid = int((tmp_path / "pid").read_text())
    read, results = leaks._read, []

    def too_early(path: str) -> bytes:
        if path in {f"/proc/{pid}/cmdline", f"/proc/{pid}/environ"} and len(results) < 6:
            results.append(path)
            return b""
        return read(path)

    monkeypatch.setattr(leaks, "_read", too_early)
    (left,) = leaks.leaked(run_dir, before, 0.3)
    assert f"{pid} (sleep)" in left
    assert len(results) == 6


def test_a_server_without_an_environment_is_known(run_dir: Path) -> None:
    """As one has none for a moment while it executes another program; its children are marked again later."""
    script = f"read line; {leaks.MARK}={run_dir} sleep 600 & wait"
    assert server_that_forks_later(run_dir, script, {"PATH": os.environ["PATH"]}) == []


@pytest.mark.needs_root
def test_a_mount_at_a_path_with_the_end_of_a_line_in_it_is_one(run_dir: Path, tmp_path: Path) -> None:
    before, place = leaks.look(run_dir), tmp_path / "a\x85b\x1cc"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    assert list(leaks.look(run_dir).mounts.keys() - before.mounts.keys()) == [str(place)]
    assert len(leaks.leaked(run_dir, before, 0.1)) == 1
    assert leaks.leaked(run_dir, before, 0.1) == []


@pytest.mark.needs_root
def test_a_mount_and_a_loop_device_left_behind_are_found_and_removed(run_dir: Path, tmp_path: Path) -> None:
    before = leaks.look(run_dir)
    mount = tmp_path / "mounted"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", mount], check=True)
    image = tmp_path / "image"
    image.write_bytes(b"\0" * 4096)
    device = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True).stdout
    left = "\n".join(leaks.leaked(run_dir, before, 0.3))
    assert str(mount) in left
    assert f"device {Path(device.strip()).name} with {image}" in left
    assert leaks.leaked(run_dir, before, 0.3) == []


@pytest.mark.needs_root
def test_a_control_group_left_behind_is_found_and_removed(run_dir: Path, control_groups: Path) -> None:
    before = leaks.look(run_dir)
    group = control_groups / f"leak-{os.getpid()}"
    group.mkdir(parents=True)
    left = leaks.leaked(run_dir, before, 0.3)
    assert left == [f"cgroup {group} with 0 processes"]
    assert not group.exists()


@pytest.mark.needs_root
def test_a_control_group_of_somebody_who_is_there_is_no_leak(run_dir: Path, control_groups: Path) -> None:
    before = leaks.look(run_dir)
    group = control_groups / "leak-1"
    group.mkdir(parents=True)
    try:
        assert leaks.leaked(run_dir, before, 0.3) == []
    finally:
        group.rmdir()


@pytest.mark.needs_root
def test_a_control_group_that_goes_while_one_looks_is_no_error(
    run_dir: Path, control_groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run's parent of groups goes with its last group, at any moment."""
    scandir = os.scandir

    def gone(path: str | Path) -> Any:
        if Path(path) == control_groups:
            raise FileNotFoundError(path)
        return scandir(path)

    group = control_groups / f"leak-{os.getpid()}"
    group.mkdir(parents=True)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "scandir", gone)
            assert str(group) not in leaks.look(run_dir).cgroups
    finally:
        group.rmdir()


def test_what_a_whole_run_of_tests_leaves_makes_it_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert leaks.around(["true"]) == 0
    assert leaks.around(["sh", "-c", "sleep 600 >/dev/null & exit 0"]) == 1
    assert "sh left on the machine (now removed): process" in capsys.readouterr().err
