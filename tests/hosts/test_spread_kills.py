"""Kills while one experiment is made on several hosts and resumed, by ``make bench ONLY=hosts``: in the end it is that of one host."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pgdyno.experiment import read_experiment
from pgdyno.flow.plan import plan
from pgdyno.flow.run import execute
from pgdyno.machine.waiting import wait_until
from pgdyno.results import open_experiment
from tools.hosts import page
from tools.hosts.record import Record, SpreadKills

from . import there
from .apart import Apart, apart
from .test_kills import SEED, left
from .test_spread import ARMS, GONE_S, TWELVE, flags, idle, succeeded, with_state

pytestmark = pytest.mark.bench

REPLICATES = 90
"""Enough to be at work until the last kill: a made-up run takes milliseconds."""
NAMES = ("alpha", "beta", "gamma")
LOOPBACK, NAMESPACES = "on loopback", "in network namespaces with clocks that are apart"
DOWN_S = (0.5, 14.0)
"""How long a link is down: a host is lost after ten seconds of silence, and not before."""
ERRORS = (-signal.SIGKILL, 3)
"""Exit codes of a command that was killed, and of one that has no host left."""


class Stand:
    """Three hosts, of which one at a time is hurt."""

    def __init__(self, hosts: there.Hosts, places: dict[str, there.Place], ways: dict[str, Apart]) -> None:
        self.hosts, self.places, self.ways = hosts, places, ways
        self.dead: list[int] = []
        """Processes that were killed, or ended by themselves."""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Stand:
        for name in self.places:
            self.start(name)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, name: str) -> None:
        """A worker; one whose place the scheduler does not know to be free yet is tried again."""

        def started() -> bool:
            with contextlib.suppress(AssertionError):
                worker = self._stack.enter_context(self.hosts.worker(name, self.places[name]))
                self.hosts.workers[name] = worker
                return True
            return False

        assert wait_until(started, 2 * GONE_S), f"{name} cannot be started again"

    def hurt(self, what: str, name: str, process: subprocess.Popen[bytes], down_s: float) -> None:
        """Kill a worker or what it runs, or cut its link; afterwards the worker is there again."""
        worker = self.hosts.workers[name]
        if what == "runs":
            for pid in there.children(worker.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                self.dead.append(pid)
        elif what == "worker":
            worker.process.kill()
            worker.process.wait()
        else:
            self.ways[name].link("down")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(down_s)
            self.ways[name].link("up")
        self.revive()

    def revive(self) -> None:
        """Start again the workers that have ended."""
        for name, worker in self.hosts.workers.items():
            if worker.process.poll() is not None:
                self.dead.append(worker.process.pid)
                self.start(name)


@pytest.mark.parametrize("where", [LOOPBACK, NAMESPACES])
def test_runs_that_are_spread_survive_kills(
    two: there.Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    with contextlib.ExitStack() as stack:
        ways, here = dict[str, Apart](), "127.0.0.1"
        places = {name: there.Place(f"127.0.0.{number}") for number, name in enumerate(NAMES, 11)}
        if where == NAMESPACES:
            more = stack.enter_context(apart((3_600,), first=3))
            if more is None or not two.apart:
                pytest.skip("network namespaces are not allowed")
            ways, here = dict(zip(NAMES, [*two.apart, *more], strict=True)), two.here
            places = {name: way.place for name, way in ways.items()}
        states = {name: tmp_path / f"state-{name}" for name in NAMES}
        places = {name: with_state(place, states[name]) for name, place in places.items()}
        stand = stack.enter_context(Stand(stack.enter_context(there.hosts(tmp_path, here, {})), places, ways))
        now = SpreadKills.now()
        directory = made(stand, tmp_path, now)
        stand.dead += [
            worker.process.pid for worker in stand.hosts.workers.values() if worker.process.poll() is not None
        ]
        now.left = [line for name in NAMES for line in left(states[name], places[name], *stand.dead)]
    blocks = Counter(run.record.block for run in open_experiment(directory).runs)
    as_many = read_experiment(tmp_path / "trial.toml", [f"replicates={max(blocks)}"])
    alone = execute(plan(as_many), root=tmp_path / "alone", command=())
    assert succeeded(directory).items() <= succeeded(alone).items(), "the figures are those of one host"
    now.replicates = sum(runs == ARMS for runs in blocks.values())
    now.broken = len(blocks) - now.replicates
    record = Record.kept()
    record.spread_kills[where] = now
    page.keep(record)
    with capsys.disabled():
        print(f"\nhosts: {where}: {now}")
    assert now.replicates == REPLICATES
    assert now.left == []


def made(stand: Stand, folder: Path, kills: SpreadKills) -> Path:
    """The directory of the experiment, when all of it is there."""
    draw, kinds = random.Random(SEED), ["worker", "runs", "coordinator"] + ["link"] * bool(stand.ways)
    trial, results, resumed = folder / "trial.toml", folder / "results", list[str]()
    trial.write_text(TWELVE.replace("replicates = 3", f"replicates = {REPLICATES}"))
    while True:
        command = [sys.executable, "-m", "pgdyno", "run", str(trial), *flags(stand.hosts), "--results", str(results)]
        with subprocess.Popen([*command, *resumed], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            while sum(kills.kills.values()) < page.SPREAD_KILLS:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(draw.uniform(0.5, 4))
                if process.poll() is not None:
                    break
                what, name = draw.choice(kinds), draw.choice(NAMES)
                kills.kills[what] = kills.kills.get(what, 0) + 1
                kills.look()
                if what == "coordinator":
                    process.kill()
                    break
                stand.hurt(what, name, process, draw.uniform(*DOWN_S))
            _, err = process.communicate(timeout=300)
        stand.revive()
        assert wait_until(lambda: all(map(idle, stand.hosts.workers.values())), GONE_S), "a host went on alone"
        directories = sorted(path for path in results.glob("*") if (path / "experiment.json").exists())
        resumed = ["--resume", str(directories[0])] if directories else []
        if process.returncode == 0:
            return directories[0]
        assert process.returncode in ERRORS, err.decode()
