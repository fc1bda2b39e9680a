"""A load that does not stop, a watch beside it that runs and stands still in turns, and what both did meanwhile."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.machine.waiting import wait_until
from pgdyno.probe.sampler import APPLICATION_NAME
from pgdyno.probe.sql import INTERVAL_S, WATCHED_LOOKS
from pgdyno.server.cluster import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

QUARTET = (True, False, False, True)
"""Whether the watch runs in each of four turns; half of the quartets, by lot, are the other way round."""
SEED = 20_261_126
PROBES = ("counters", "looks")
"""Sessions of a watch that ask, in the order in which they begin: of counters, and of what sessions wait for."""
GAP_S = 0.02
"""The shortest time between turns, which counts for neither. In it a watch that runs on catches up what was due while it stood still,
so that in its turns it asks what any watch asks. It is up to twice as long, by lot: turns do not keep step with the questions."""
WARM_S = 20
"""Long enough that a second told a tenth of a second late does not matter."""
START_S = 30.0
SETTLED_S = WATCHED_LOOKS * INTERVAL_S + 2
"""After its first looks, and two seconds of counters, a watch does in each second what it does in every other."""
RESTS_WITHIN_S = 5.0
"""A watch's questions are answered within milliseconds."""
SAME_MAX = 0.02
"""Difference of the bytes of a transaction in the first seconds and over all: pgbench tells of each some milliseconds late."""
_PROGRESS = re.compile(r"progress: ([\d.]+) s, ([\d.]+) tps")
_LOOPBACK = Path("/proc/net/dev")
_SLEPT = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Told:
    """What pgbench and the loopback device say by the end of one of its seconds."""

    transactions: float
    moved_bytes: int


class Load:
    """A select-only pgbench over TCP, in all of whose transactions as many bytes go through the loopback device."""

    def __init__(self, progress: Path) -> None:
        self._progress = progress
        self.warm = [self.told() for _ in range(WARM_S)]
        """What was said of its first seconds."""

    def told(self) -> Told:
        """Wait until pgbench tells of its next second."""
        before = len(self._seconds())
        assert wait_until(lambda: len(self._seconds()) > before, WARM_S, interval_s=0.002), "pgbench tells nothing more"
        moved = moved_bytes()
        seconds = [(0.0, 0.0), *self._seconds()]
        return Told(sum((end - begin) * tps for (begin, _), (end, tps) in itertools.pairwise(seconds)), moved)

    def _seconds(self) -> list[tuple[float, float]]:
        return [(float(end), float(tps)) for end, tps in _PROGRESS.findall(self._progress.read_text())]


def moved_bytes() -> int:
    """Through the loopback device, ever."""
    (line,) = (line for line in _LOOPBACK.read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split()[1])


@contextlib.contextmanager
def loaded(cluster: Cluster, longest_s: float, folder: Path) -> Iterator[Load]:
    """A pgbench that has been running for some seconds, and runs until the end of the ``with`` block."""
    where = f"host={LOOPBACK} port={cluster.port} user={cluster.role} dbname={cluster.database}"
    command = [str(cluster.binaries.program("pgbench")), "-n", "-S", "-c", "4", "-j", "1", "-T", f"{longest_s:.0f}", "-P", "1",
               where]  # fmt: skip
    environment = {**(cluster.binaries.environment or os.environ), "PGPASSWORD": cluster.password or ""}
    progress = folder / "progress"
    with (
        progress.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment) as process,
    ):
        try:
            yield Load(progress)
        finally:
            process.terminate()


class Watch:
    """The command ``pgdyno diagnose`` with all that it starts, as a user runs it."""

    def __init__(self, process: subprocess.Popen[bytes], sessions: list[int]) -> None:
        self._process, self._runs = process, True
        self._sessions = dict(zip(PROBES, sessions, strict=False))
        self._parts = {
            "client": [process.pid],
            "host probe": sorted(_of_session(process.pid) - {process.pid}),
            "server": sessions,
        }

    def runs(self, on: bool) -> None:
        """Let it run on, or stand still: between two questions, as one that waits so long for an answer would ask less often."""
        assert self._process.poll() is None, "the watch ended"
        if on == self._runs:
            return
        assert on or wait_until(self._rests, RESTS_WITHIN_S)
        os.killpg(self._process.pid, signal.SIGCONT if on else signal.SIGSTOP)
        self._runs = on

    def _rests(self) -> bool:
        """Whether all of its threads wait for an instant, none of them for the server."""
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        return all("futex" in (task / "wchan").read_text() for task in tasks)

    def cpu_ns(self) -> Counter[str]:
        """What its parts have used: ``client``, ``host probe``, and ``server`` for its sessions there."""
        return Counter({name: sum(map(_cpu_ns, pids)) for name, pids in self._parts.items()})

    def asked(self) -> Counter[str]:
        """How often each of its sessions in the server went to sleep, which each does once after a question."""
        return Counter({name: _slept(pid) for name, pid in self._sessions.items()})


@contextlib.contextmanager
def watching(cluster: Cluster, dsn: str) -> Iterator[Watch]:
    """A watch whose first looks are over; it ends with the ``with`` block."""
    command = [sys.executable, "-m", "pgdyno", "diagnose", dsn, "--for", "1h", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            assert wait_until(lambda: len(_asking(cluster)) >= len(PROBES), START_S)
            threading.Event().wait(SETTLED_S)
            yield Watch(process, _asking(cluster))
        finally:
            os.killpg(process.pid, signal.SIGCONT)
            # Not SIGINT, which a command that a shell started in the background may ignore.
            os.killpg(process.pid, signal.SIGTERM)


@dataclass
class Turns:
    """What was done in some turns together."""

    seconds: float = 0.0
    moved_bytes: int = 0
    cpu_ns: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    def add(self, watch: Watch, seconds: float) -> float:
        """One more turn, which begins now. The load's bytes a second in it."""
        cpu_ns, result = watch.cpu_ns(), watch.asked()
        then_s, then = time.monotonic(), moved_bytes()
        threading.Event().wait(seconds)
        now_s, now = time.monotonic(), moved_bytes()
        self.asked += watch.asked() - result
        self.cpu_ns += watch.cpu_ns() - cpu_ns
        self.seconds += now_s - then_s
        self.moved_bytes += now - then
        return (now - then) / (now_s - then_s)

    def asked_per_s(self, probe: str) -> float:
        """Questions of one of the :data:`PROBES`."""
        return self.asked[probe] / self.seconds

    def cpu_ms_per_s(self) -> float:
        """The watch's CPU time, the server's part of it included."""
        return self.cpu_ns.total() / self.seconds / 1e6

    def __str__(self) -> str:
        """In a second: the watch's questions, and its CPU time."""
        text = ", ".join(f"{self.asked_per_s(name):.2f} questions for {name}" for name in PROBES)
        used = ", ".join(f"{name} {used_ns / self.seconds / 1e6:.2f}" for name, used_ns in self.cpu_ns.items())
        return f"{text}; {self.cpu_ms_per_s():.2f} ms of CPU ({used})"


def quartets(watch: Watch, count: int, turn_s: float) -> tuple[list[float], dict[bool, Turns]]:
    """Log of the transactions with the watch over those without, in each of so many quartets of turns; and the turns with
    and without it."""
    draw, results = random.Random(SEED), []
    turns = {True: Turns(), False: Turns()}
    for _ in range(count):
        turned = draw.random() < 0.5
        rates = {True: 0.0, False: 0.0}
        for first_half in QUARTET:
            on = first_half != turned
            watch.runs(on)
            threading.Event().wait(GAP_S * (1 + draw.random()))
            rates[on] += turns[on].add(watch, turn_s)
        results.append(math.log(rates[True] / rates[False]))
    watch.runs(True)
    return results, turns


def hodges_lehmann(values: list[float]) -> tuple[float, float, float]:
    """The median of all pairs' means with its 95 % interval, by the normal approximation of Wilcoxon's signed ranks."""
    means = sorted((a + b) / 2 for place, a in enumerate(values) for b in values[place:])
    n = len(values)
    lowest = int(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    return means[lowest], statistics.median(means), means[-1 - lowest]


def _asking(cluster: Cluster) -> list[int]:
    """Sessions of a watch that wait for their next question, the oldest first."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND state = 'idle' ORDER BY backend_start"
    with cluster.connect() as connection:
        return [int(str(row[0])) for row in connection.execute(query, (APPLICATION_NAME,)).fetchall()]


def _of_session(leader: int) -> set[int]:
    """The processes of a process's session."""
    session = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                session.add(int(path.parent.name))
    return session


def _cpu_ns(pid: int) -> int:
    """Of all threads, as the kernel counts (sched-stats.rst)."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def _slept(pid: int) -> int:
    """How often a process with one thread waited for something (proc_pid_status(5))."""
    (line,) = _SLEPT.findall(Path(f"/proc/{pid}/status").read_text())
    return int(line)
