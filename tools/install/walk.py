"""What is done with pgdyno in a bare root: installed, used by an ordinary user and by root, killed, cleaned up, removed."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from pgdyno.machine.waiting import wait_until
from tools.install.record import Done, Installed, Step, Verdict, load_average
from tools.install.root import USER, Root, add_user, machine_held

GIVEN = "/opt/given"
"""Where the root has the wheel and a file of measured load."""
HELP_RUNS = 5
"""The least CPU of so many runs is taken: what else runs on the machine only adds to it."""
SHORT = "-n 2 -s 5 --warmup 2s --duration 3s --keep-invalid"
"""It ends with 0 where the machine is too busy for its numbers: what is shown is that it runs."""
LONG = "-n 2 -s 5 --warmup 2s --duration 10min"
"""A run that is killed before it ends."""
_SAID = 400
"""Characters that are kept of why it could not be installed."""
_BEGUN = {"process", "volume", "cgroup"}
"""What the journal of a run has (:mod:`pgdyno.machine.journal`) once it measures."""
_SUDO = re.compile(r"run `(sudo [^`]+)`")
_SIZES = """\
import importlib.metadata as m, json
def size(d): return sum(f.locate().lstat().st_size for f in d.files or [] if f.locate().is_file())
print(json.dumps({d.metadata["Name"]: size(d) for d in m.distributions()}))
"""
SERVER = """\
B=$({python} -c 'from pgdyno.server.binaries import find_binaries; print(find_binaries(None).bin_dir)')
$B/initdb -D server -A trust >/dev/null && $B/pg_ctl -D server -o '-k /tmp -c listen_addresses=' -l server.log -w start >/dev/null
printf 'id,name\\n1,Ann\\n2,Bo\\n' >people.csv
"""
"""Starts a server of the user's own below the current directory, and writes a file to load."""
LOAD = "pgdyno load people.csv --into 'host=/tmp dbname=postgres' --create"


@dataclass(frozen=True)
class Way:
    """An installer: what the root needs for it, and the commands of the ordinary user."""

    packages: str
    prepare: str
    install: str
    forget: str = ""
    """Empties its cache, which is not the installation's."""


WAYS = {
    "pipx": Way("pipx", "true", "pipx install {wheel}"),
    "uv": Way(
        "python3 python3-venv",
        "python3 -m venv /opt/uv && /opt/uv/bin/pip --quiet install uv && ln -s /opt/uv/bin/uv /usr/local/bin",
        "uv tool install {wheel}",
        "uv cache clean",
    ),
}


class Walk:
    """Commands in one root, and what came of them."""

    def __init__(self, root: Root, installed: Installed, wheel: str) -> None:
        self.root, self.found, self.wheel = root, installed, f"{GIVEN}/{wheel}"
        self.way = WAYS[installed.way]

    def whole(self, *, demo: bool) -> None:
        """All of it."""
        before, began = load_average(), time.monotonic()
        if not self.install():
            self.engine_alone()
            return
        install_s = time.monotonic() - began
        try:
            if demo:
                demo_s = self.demo()
                load = f"{before} to {load_average()}"
                self.found.verdict = Verdict(install_s=round(install_s, 1), demo_s=round(demo_s, 1), load=load)
            self.measure()
            self.ordinary()
            self.own_server()
            self.volumes()
            with machine_held():
                self.killed()
        except BaseException:  # control groups and the kernel's settings are the machine's, and outlive the root
            self.root.kill()
            self.root.shell(f"{self.program()} doctor --clean")
            raise
        self.leave()

    def demo(self) -> float:
        """The demonstration; how long it took."""
        with machine_held():
            began = time.monotonic()
            self.as_root("the demonstration", "pgdyno demo", has="times the transactions")
            return time.monotonic() - began

    def install(self) -> bool:
        """The system's packages, the installer, the wheel, and what `doctor` says is missing. False if it cannot be had."""
        self.root.must(f"apt-get -qq update && apt-get -qq install -y --no-install-recommends sudo {self.way.packages}")
        self.root.must(self.way.prepare)
        add_user(self.root)
        done = self.root.shell(self.way.install.format(wheel=self.wheel), user=USER)
        if done.code != 0 or self.root.shell("pgdyno --version", user=USER).code != 0:
            self.found.not_had = _end(done)
            return False
        root = self.as_root("doctor", "pgdyno doctor", codes=(0, 3), has="root")
        if missing := re.search(r"package manager: (.+)", root):
            packages = missing[1].replace(",", "")
            self.step(
                "the packages that doctor names", f"sudo apt-get -qq install -y --no-install-recommends {packages}"
            )
            self.as_root("doctor afterwards", "pgdyno doctor", has="Everything needed is here")
        return True

    def measure(self) -> None:
        """What it weighs, and what its help costs."""
        python = self.python()
        sizes = json.loads(self.root.must(f"{python} -c '{_SIZES}'", user=USER).out)
        self.found.sizes_mb = {
            name: round(size / 1e6, 1) for name, size in sorted(sizes.items(), key=lambda item: -item[1])
        }
        program = self.root.must("command -v pgdyno", user=USER).out.strip()
        self.root.must("pgdyno --help", user=USER)  # the first start compiles what is imported
        alone = min(self.root.cpu_s(python, "-c", "pass", user=USER) for _ in range(HELP_RUNS))
        self.found.help_cpu_s = min(self.root.cpu_s(program, "--help", user=USER) for _ in range(HELP_RUNS)) - alone

    def ordinary(self) -> None:
        """What needs no root."""
        self.step("version", "pgdyno --version", has=r"pgdyno \d")
        self.step("help", "pgdyno --help", has="compare")
        self.step("sizing", f"pgdyno size --iostat {GIVEN}/load.txt --size 350GiB", has="gp3")
        self.step("volume types", "pgdyno catalog volumes", has="io2bx")
        self.step("an experiment file", "pgdyno show examples wal-volume --copy . && test -f wal-volume.toml")
        if self.found.way == "uv":
            line = f"uv run --no-project --with {self.wheel} pgdyno catalog volumes"
            self.step("an overlay of uv run --with", line, has="io2bx")

    def own_server(self) -> None:
        """A load into a server that the ordinary user has, and what limits that server."""
        self.step("a server of the user's own", SERVER.format(python=self.python()))
        self.step("a load", LOAD, has="2 rows")
        self.step("the same load again", LOAD, has="nothing was done")
        self.step("a diagnosis", "pgdyno diagnose 'host=/tmp dbname=postgres' --for 5s", has=r"watched +PostgreSQL \d")
        self.root.must("kill -INT $(head -1 server/postmaster.pid)", user=USER)

    def volumes(self) -> None:
        """Real devices, and the report of what root has measured."""
        with machine_held():
            self.as_root("a comparison", f"pgdyno compare null null {SHORT}", has="null")
        self.step(
            "its report, without root",
            "pgdyno report $(ls -dt results/*-compare-* | head -n 1) --format md",
            has="null",
        )
        root = f"sudo {self.program()}"
        self.step("a volume", f"{root} volume attach gp3:size=5GiB --mount /mnt/v --name v", has="v")
        self.step("a file on it", "sudo sh -c 'echo x >/mnt/v/file && sync /mnt/v/file && grep -q x /mnt/v/file'")
        self.step(
            "while it is attached nothing is removed", f"{root} doctor --uninstall", codes=(3,), has="volume detach v"
        )
        self.step("its end", f"{root} volume detach v && ! grep -q /mnt/v /proc/mounts")

    def killed(self) -> None:
        """A run that is killed in its measured phase leaves what `doctor` names and `doctor --clean` removes."""
        root = f"sudo {self.program()}"
        journal = self.root.inside / "run/pgdyno/journal"
        with self.root.started("sh", "-c", f"exec {root} compare null null {LONG}", user=USER, quiet=True) as process:
            begun = wait_until(lambda: process.poll() is not None or _kinds(journal) >= _BEGUN, 120)
            victims = [pid for pid in self.root.processes() if _is_python_of(pid, "compare")]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
        self.judge("a run is killed", begun and process.returncode != 0 and len(victims) > 0, f"{begun} {victims}")
        self.step("doctor names what is left", f"{root} doctor", has=r"warn +leftovers .*(?s:.*)doctor --clean")
        self.step("the clean-up", f"{root} doctor --clean", has="ended|removed")
        self.step("nothing is left", f"{root} doctor", has="ok +leftovers +none")

    def leave(self) -> None:
        """Uninstalled by the commands that it names; nothing of it is found."""
        self.step(
            "the results are the user's",
            "rm -r results wal-volume.toml scripts people.csv server server.log 2>&1; test ! -e results",
        )
        step = self.step("leaving", f"sudo {self.program()} doctor --uninstall", has="to remove the package, run `")
        if last := re.search(r"to remove the package, run `([^`]+)`", step):
            self.step("the package", last[1])
        if self.way.forget:
            self.step("the installer's cache", self.way.forget)
        text = f"find / /run /dev/shm -xdev -iname '*pgdyno*' -not -path '{GIVEN}/*'"
        self.found.left = self.root.must(f"{text} | sort -u").out.splitlines()

    def engine_alone(self) -> None:
        """Where the package needs a Python that is not to be had, the engine runs all the same."""
        self.root.must(f"mkdir -p /opt/engine && python3 -m zipfile -e {self.wheel} /opt/engine")
        self.root.must("cp /opt/engine/*.data/scripts/pgdyno-engine /opt/engine/ && chmod +x /opt/engine/pgdyno-engine")
        self.step("the engine alone", "/opt/engine/pgdyno-engine version", user="root", has="build_hash")
        self.step("it mounts FUSE", "/opt/engine/pgdyno-engine volume check-host", user="root")

    def program(self) -> str:
        """The absolute path of the command."""
        return self.root.must("command -v pgdyno", user=USER).out.strip()

    def python(self) -> str:
        """The interpreter in the command's first line."""
        return self.root.must('head -1 "$(command -v pgdyno)"', user=USER).out.strip().removeprefix("#!")

    def as_root(self, name: str, line: str, *, codes: tuple[int, ...] = (0,), has: str) -> str:
        """What an ordinary user does: types the line, reads that it needs root, and copies the command that the remedy has."""
        root = self.root.shell(line, user=USER).said
        remedy = _SUDO.search(root)
        if remedy is None:
            self.judge(name, holds=False, text=f"`{line}` names no command with sudo: {root[-_SAID:]}")
            return root
        return self.step(name, remedy[1], codes=codes, has=has)

    def step(self, name: str, line: str, *, user: str = USER, codes: tuple[int, ...] = (0,), has: str = "") -> str:
        """Run a line; it holds if it ends with one of the codes and says what ``has`` matches. Returns what it said."""
        done = self.root.shell(line, user=user)
        self.found.steps.append(Step.of(name, line, done, codes=codes, has=(has,)))
        return done.said

    def judge(self, name: str, holds: bool, text: str) -> None:
        """A finding that is no command's exit code."""
        self.found.steps.append(Step.of(name, "", Done(0 if holds else 1, text, "", 0.0)))


def _end(done: Done) -> str:
    lines = [line.strip() for line in done.said.splitlines() if line.strip()]
    return " ".join(lines[-2:])[:_SAID]


def _kinds(journal: Path) -> set[str]:
    kinds = set()
    for file in journal.glob("[0-9]*"):
        try:
            kinds.add(json.loads(file.read_text(encoding="utf-8"))["kind"])
        except (OSError, ValueError):
            continue  # it was just forgotten
    return kinds


def _is_python_of(pid: int, command: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return "python" in words[0] and command in words
