"""SIGKILL at hundreds of random moments, of whatever takes part. Run by ``make bench ONLY=loader``."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..support.servers import throwaway_cluster
from .database import RICH, Database
from .test_killed import ROWS, check, finish, loading, rich_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

pytestmark = pytest.mark.bench

KILLS = int(os.environ.get("PGDYNO_LOAD_KILLS", "300"))
RUNS_MAX = 40
"""A load that does not come to its end in so many runs is not killed any more."""
SEED = 7
VICTIMS = {"all": 5, "the command": 3, "the engine": 2, "the server": 2}
"""Who is killed -> how often, beside the others."""
RESTORES = 0.15
"""The part of runs that are ``--restore``."""
EVENTS_MAX = 14
"""A run that comes to its end says about so many lines."""
PAUSES_S_MAX = (0.06, 0.6)
"""How long after a line at most: the steps between two lines take about the first, copying about the second."""
SETTINGS = {"shared_buffers": "64MB"}
"""Commits wait for the disk: a server that is killed has lost none of what a test has made."""
TIMEOUT_S = 120.0


class Kills:
    """Kills, drawn from a seed, and counts them by victim and by what was going on."""

    def __init__(self, server: Cluster) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._server = server
        self._random = random.Random(SEED)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def words(self) -> tuple[str, ...] | None:
        """What the next run is asked: options of a load; None: to restore."""
        if self._random.random() < RESTORES:
            return None
        return ("--rate", f"{self._random.choice((512, 1024, 4096))}KiB")

    def kill(self, process: subprocess.Popen[bytes]) -> bool:
        """Kill somebody a while after a line. False when the command came to its end before that."""
        victim = self._random.choices(list(VICTIMS), list(VICTIMS.values()))[0]
        text = "nothing was said"
        assert process.stdout is not None
        for _ in range(self._random.randrange(EVENTS_MAX)):
            line = process.stdout.readline()
            if not line:
                break
            event = json.loads(line)
            text = str(event.get("text") or event["event"]).split(":")[0]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self._random.uniform(0.0, self._random.choice(PAUSES_S_MAX)))
            return False
        self.counts[victim, text] += self._kill(victim, process.pid)
        return True

    def _kill(self, victim: str, pid: int) -> bool:
        """Whether there was somebody to be killed: the engine runs for a part of the time."""
        if victim == "the server":
            self._server.kill()
            self._server.start(SETTINGS)
            return True
        pids = {"all": [pid, *children(pid)], "the command": [pid], "the engine": children(pid)}[victim]
        for other in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
        return bool(pids)


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for text in lists for child in text.split()]


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A server that may be killed."""
    with throwaway_cluster() as started:
        started.stop()
        started.start(SETTINGS)
        yield started


def test_hundreds_of_kills_lose_nothing_and_double_nothing(
    own: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load is begun, killed and begun again, with restores between, until it gets through or was killed often enough."""
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(tmp_path / "state"))
    file, database, kills, rounds = rich_file(tmp_path), Database(own.dsn), Kills(own), 0
    while kills.total < KILLS:
        database.run("DROP TABLE IF EXISTS rich, other; DROP SCHEMA IF EXISTS pgdyno_load CASCADE;" + RICH)
        before = database.shape("rich")
        for _ in range(RUNS_MAX):
            if run(database, file, kills):
                break
        rounds += 1
        check(database, before, finish(database, file))
    print(f"\n{kills.total} kills in {rounds} loads of {ROWS:,} rows")
    for (victim, item), count in sorted(kills.counts.items()):
        print(f"  {count:4d} {victim}, after: {item}")
    met = {victim for (victim, _), count in kills.counts.items() if count}
    assert met == set(VICTIMS) or len(VICTIMS) * 10 > KILLS


def run(database: Database, file: Path, kills: Kills) -> bool:
    """One run, killed or not. Whether a load came to its end, the one that was not killed or in spite of it."""
    words = kills.words()
    with loading(database, file, *(words or ()), restore=words is None) as process:
        killed = kills.kill(process)
        # Whoever is left of it ends by itself: the command without its engine, the engine without its command.
        _, err = process.communicate(timeout=TIMEOUT_S)
    ended_well = process.returncode == 0
    assert ended_well or killed, err.decode()
    return ended_well and words is not None
