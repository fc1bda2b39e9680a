"""Runs in the virtual machine: takes requests from the host, one JSON line each, and answers each with a JSON line.

``python3 agent.py PORT``. It has nothing but Python's own library, and works the same on any file that can be read and
written, so that its test needs no machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

GROUPS = Path("/sys/fs/cgroup/pgdyno")
"""Where an instance has its group with version 2."""
LOOK_S = 0.2
"""A command that is watched is looked at so often."""
OUTPUT_BYTES_MAX = 4 << 20
_PROC = Path("/proc")


def main(port: str) -> None:
    """Serve the port until it ends, or until the machine does."""
    handle = os.open(port, os.O_RDWR | os.O_CLOEXEC)
    with os.fdopen(handle, "r+b", buffering=0) as stream:
        serve(stream, stream)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Say hello, then answer each request."""
    say(answers, {"hello": facts()})
    pending = b""
    while True:
        while b"\n" not in pending:
            read = requests.read(65536)
            if not read:
                return
            pending += read
        line, _, pending = pending.partition(b"\n")
        say(answers, answer(json.loads(line)))


def say(answers: IO[bytes], document: dict[str, Any]) -> None:
    """Write one line whole: a raw port takes a part of a long one."""
    left = json.dumps(document).encode() + b"\n"
    while left:
        left = left[answers.write(left) or 0 :]


def facts() -> dict[str, str]:
    """What this machine is."""
    names = dict(line.split("=", 1) for line in read(Path("/etc/os-release")).splitlines() if "=" in line)
    return {
        "system": names.get("PRETTY_NAME", "unknown").strip('"'),
        "version": read(Path("/etc/debian_version")).strip(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "init": read(_PROC / "1" / "comm").strip(),
    }


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run the command of a request as its user, in a login session; its output, code (None: not in time) and time."""
    user, watched, kill_at = request["user"], request.get("watch", False), request.get("kill_at")
    argv = ["/bin/sh", "-c", request["command"]]
    if user is not None:
        argv = ["su", "--login", user, "--command", request["command"]]
    began = time.monotonic()
    seen: dict[str, dict[str, Any]] = {}
    killed: list[int] = []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=error, start_new_session=True)
        late = False
        while not ended(process, LOOK_S if watched or kill_at else request["timeout_s"]):
            if time.monotonic() - began > request["timeout_s"]:
                late = True
                end(process)
                break
            look(seen)
            if kill_at and not killed and servers(seen) >= kill_at:
                killed = kill(request["kill"])
        return {
            "id": request["id"],
            "code": None if late else process.returncode,
            "stdout": text(out),
            "stderr": text(error),
            "seconds": round(time.monotonic() - began, 3),
            "groups": seen,
            "killed": killed,
        }


def ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Whether a process ends in that time."""
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def end(process: subprocess.Popen[bytes]) -> None:
    """End a command that took too long, with what it started in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def text(file: IO[bytes]) -> str:
    """What a command wrote."""
    file.seek(0)
    return file.read(OUTPUT_BYTES_MAX).decode(errors="replace")


def look(seen: dict[str, dict[str, Any]], groups: Path = GROUPS) -> None:
    """Note the limits and members of each instance's group, and the most memory that it had."""
    for group in sorted(path for path in groups.glob("*") if path.is_dir()):
        noted = seen.setdefault(group.name, {"memory_current_max": 0, "members": {}, "engines": []})
        for name in ("memory.max", "memory.swap.max", "cpuset.cpus.effective", "cgroup.controllers"):
            noted[name] = read(group / name).strip() or noted.get(name, "")
        noted["cpu.weight of the parent"] = read(groups / "cpu.weight").strip()
        noted["memory_current_max"] = max(noted["memory_current_max"], int(read(group / "memory.current") or 0))
        names = [read(_PROC / pid / "comm").strip() for pid in read(group / "cgroup.procs").split()]
        for name in {name for name in names if name}:
            noted["members"][name] = max(noted["members"].get(name, 0), names.count(name))
        noted["engines"] = sorted({*noted["engines"], *engines()})


def engines() -> set[str]:
    """The groups of the engine's processes: of volumes, the driver, the probe."""
    return {
        read(process / "cgroup").strip().rpartition(":")[2]
        for process in _PROC.glob("[0-9]*")
        if read(process / "comm").startswith("pgdyno-engine")
    } - {""}


def servers(seen: dict[str, dict[str, Any]]) -> int:
    """The most processes of PostgreSQL that a group had."""
    return max((noted["members"].get("postgres", 0) for noted in seen.values()), default=0)


def kill(words: list[str]) -> list[int]:
    """Kill the Python process whose command line has all of the words; its children stay."""
    kill = []
    for process in _PROC.glob("[0-9]*"):
        argv = read(process / "cmdline").split("\0")
        if "python" in Path(argv[0]).name and all(word in argv for word in words):
            kill.append(int(process.name))
    for pid in kill:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return kill


def read(path: Path) -> str:
    """A small file's text; nothing where there is none (any more)."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    main(sys.argv[1])
