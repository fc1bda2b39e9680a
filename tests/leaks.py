"""What a test may leave on the machine without noticing: mounts, loop devices, control groups, processes.

Only what belongs to this run of the tests counts, so that two runs on one machine do not blame each other: what lies
below the run's own directory, and processes that carry its mark in their environment.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.machine.mounts import mounts_below
from pgdyno.machine.waiting import wait_until

MARK = "PGDYNO_TEST_RUN"
"""Environment variable that names the run; children inherit it. Its value is the run's directory."""
PATIENCE_S = 20.0
"""What a test ended may take this long to be gone."""
KERNEL_THREAD = 0x200000
"""``PF_KTHREAD`` of Linux's ``include/linux/sched.h``, in the flags of /proc/PID/stat."""
FOLLOWERS = {"chrome_crashpad"}
"""Processes that leave their parent and end with it all the same; the parent is looked at."""


@dataclass(frozen=True)
class Snapshot:
    """What is there now. Keys identify, values describe."""

    mounts: dict[str, str] = field(default_factory=dict)
    loops: dict[str, str] = field(default_factory=dict)
    cgroups: dict[str, str] = field(default_factory=dict)
    processes: dict[str, str] = field(default_factory=dict)

    def since(self, before: Snapshot) -> list[str]:
        """What is here and was not before, a line each."""
        return [
            f"{kind[:-1]} {description}"
            for kind in ("mounts", "loops", "cgroups", "processes")
            for key, description in getattr(self, kind).items()
            if key not in getattr(before, kind)
        ]


def look(run_dir: Path, known: Snapshot | None = None) -> Snapshot:
    """The machine as far as this run is concerned; descendants of ``known`` processes are not looked at."""
    return Snapshot(_mounts(run_dir), _loops(run_dir), _cgroups(), _processes(run_dir, known))


def leaked(run_dir: Path, before: Snapshot, patience_s: float = PATIENCE_S) -> list[str]:
    """What a test left, after some patience for what is still ending; it is removed, and described a line each."""
    if wait_until(lambda: not look(run_dir, before).since(before), patience_s):
        return []
    after = look(run_dir, before)
    for key in after.processes.keys() - before.processes.keys():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(key.split("@")[0]), signal.SIGKILL)
    for target in sorted(after.mounts.keys() - before.mounts.keys(), reverse=True):
        subprocess.run(["umount", "--lazy", target], stderr=subprocess.DEVNULL, check=False)
    for device in after.loops.keys() - before.loops.keys():
        subprocess.run(["losetup", "-d", f"/dev/{device}"], stderr=subprocess.DEVNULL, check=False)
    for group in after.cgroups.keys() - before.cgroups.keys():
        wait_until(lambda group=group: _remove_directory(group), PATIENCE_S)
    return after.since(before)


def _remove_directory(path: str) -> bool:
    with contextlib.suppress(OSError):
        Path(path).rmdir()
    return not Path(path).exists()


def _mounts(run_dir: Path) -> dict[str, str]:
    mounts = mounts_below(run_dir)
    return {str(mount.target): f"of {mount.source} at {mount.target}" for mount in mounts if mount.target != run_dir}


def _loops(run_dir: Path) -> dict[str, str]:
    loops = {}
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            file = entry.read_text(errors="replace").strip()
            if file.startswith(f"{run_dir}/"):
                loops[entry.parts[3]] = f"device {entry.parts[3]} with {file}"
    return loops


def _cgroups() -> dict[str, str]:
    """Groups below any ``pgdyno*`` group, except those that belong to another run or command."""
    cgroups = {}
    top = Path("/sys/fs/cgroup")
    trees = (top, *_folders(top))
    parents = [folder for tree in trees for folder in _folders(tree) if folder.name.startswith("pgdyno")]
    for group in (group for parent in parents for group in _folders(parent)):
        try:
            members = (group / "cgroup.procs").read_text().split()
        except OSError:
            continue
        if any(_marked(int(pid)) for pid in members) or not (members or _is_of_others(group)):
            cgroups[str(group)] = f"{group} with {len(members)} processes"
    return cgroups


def _folders(path: Path) -> list[Path]:
    """The directories in a directory; none when it is gone, where `Path.glob` would raise before Python 3.13."""
    with contextlib.suppress(OSError), os.scandir(path) as entries:
        return [path / entry.name for entry in entries if entry.is_dir()]
    return []


def _is_of_others(group: Path) -> bool:
    """Whether a group without members may be that of somebody else: its name ends in the process that made it.

    Who made a group and is gone cannot be asked; beside another run of tests it may have been a process of that one.
    """
    maker = re.search(r"-(\d+)$", group.name)
    if maker is None or int(maker.group(1)) == os.getpid():
        return False
    if Path("/proc", maker.group(1)).exists():
        return not _marked(int(maker.group(1)))
    return any(_is_of_another_run(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _is_of_another_run(process: Path) -> bool:
    mark = f"{MARK}=".encode()
    try:
        texts = [part for part in (process / "environ").read_bytes().split(b"\0") if part.startswith(mark)]
    except OSError:
        return False
    return bool(texts) and texts[0] != mark + os.environ.get(MARK, "").encode()


_of_others: set[tuple[int, int]] = set()
"""Processes, with their starts, that were seen to belong to another run: they need not be read again."""


def _processes(run_dir: Path, known: Snapshot | None) -> dict[str, str]:
    """Processes of this run by pid and start, except this one and the children of those known.

    A child of this process is the run's whatever it has in its environment.
    """
    parents: dict[int, int] = {}
    alive: dict[int, tuple[str, str]] = {}
    marked: set[int] = set()
    unmarked: set[tuple[int, int]] = set()
    mark = f"{MARK}={run_dir}".encode()
    began = _started(os.getpid())
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or (pid := int(entry)) == os.getpid():
            continue
        try:
            name, fields = _stat(pid)
            start = int(fields[19])
            parents[pid] = int(fields[1])
            # What began before this process is not of this run, nor is a thread of the kernel.
            if start < began or fields[0] in "ZX" or int(fields[6]) & KERNEL_THREAD:
                continue
            if name in FOLLOWERS or (pid, start) in _of_others:
                continue
            command, environment = _command_and_environment(pid)
        except OSError:
            continue
        alive[pid] = (f"{pid}@{start}", f"{pid} ({name}): {command[:120]}")
        if mark in environment.split(b"\0") or f"{run_dir}/" in command:
            marked.add(pid)
        elif environment:
            unmarked.add((pid, start))
    old = {int(key.split("@")[0]) for key in known.processes} if known is not None else set()
    here = {os.getpid()}
    _of_others.update(item for item in unmarked if not _descends(item[0], here, parents))
    return {
        key: text
        for pid, (key, text) in alive.items()
        if (pid in marked or _descends(pid, here, parents)) and not _descends(pid, old, parents)
    }


def _stat(pid: int) -> tuple[str, list[str]]:
    """A process's name, and what its line of /proc has after that."""
    stat = _read(f"/proc/{pid}/stat").decode(errors="replace")
    return stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()


def _command_and_environment(pid: int) -> tuple[str, bytes]:
    """Of a process that executes another program, those of that one.

    Meanwhile it has neither, longer where the disk is slow: a process whose parent had ended was not seen as left behind.
    """
    command, environment = b"", b""

    def told() -> bool:
        nonlocal command, environment
        command, environment = _read(f"/proc/{pid}/cmdline"), _read(f"/proc/{pid}/environ")
        return bool(command or environment) or _stat(pid)[1][0] in "ZX"

    if not told():
        wait_until(told, PATIENCE_S)
    return command.replace(b"\0", b" ").decode(errors="replace"), environment


def _read(path: str) -> bytes:
    """A file of /proc: there are hundreds for each test, and opened as a `Path` each takes three times as long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        result = b""
        while part := os.read(descriptor, 1 << 16):
            result += part
        return result
    finally:
        os.close(descriptor)


@functools.cache
def _started(pid: int) -> int:
    return int(_stat(pid)[1][19])


def _descends(pid: int, ancestors: set[int], parents: dict[int, int]) -> bool:
    parent = parents.get(pid, 0)
    while parent:
        if parent in ancestors:
            return True
        parent = parents.get(parent, 0)
    return False


def _marked(pid: int, run_dir: Path | None = None) -> bool:
    value = os.environ.get(MARK, "") if run_dir is None else str(run_dir)
    try:
        return f"{MARK}={value}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def around(command: list[str]) -> int:
    """Run a command that is a whole run of tests (``cargo test``); what it left is removed, and makes it fail."""
    run_dir = Path(tempfile.mkdtemp(prefix="pgdt-")).resolve()
    run_dir.chmod(0o755)
    before = look(run_dir)
    code = subprocess.run(
        command, env=os.environ | {MARK: str(run_dir), "TMPDIR": str(run_dir)}, check=False
    ).returncode
    left = leaked(run_dir, before)
    for line in left:
        print(f"{command[0]} left on the machine (now removed): {line}", file=sys.stderr)
    if f" {run_dir}/" not in Path("/proc/mounts").read_text(errors="replace"):
        shutil.rmtree(run_dir, ignore_errors=True)
    return code or bool(left)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: None)  # it reaches the command as well, which ends in its time
    sys.exit(around(sys.argv[1:]))
