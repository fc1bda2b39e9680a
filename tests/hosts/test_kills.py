"""Kills at random moments, by ``make bench ONLY=hosts``: of a worker, a driver, the one that asks, and a link. Never a number that should not be there."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pgdyno.errors import PgdynoError
from pgdyno.experiment import read_experiment
from pgdyno.flow.plan import plan
from pgdyno.flow.run import execute
from pgdyno.host import paths
from pgdyno.host.clean import leftovers
from pgdyno.host.scratch import remove_scratch
from pgdyno.host.waiting import wait_until
from pgdyno.hosts import file, library
from pgdyno.hosts.connection import Connection
from pgdyno.store import open_experiment
from pgdyno.workload.load import load
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tables import PgbenchTables
from pgdyno.workload.watch import SECOND_NS, now_ns
from pgdyno.world.reached import ReachedServer
from tests.support.servers import throwaway_cluster

from . import there
from .apart import Apart
from .test_drive import TPCB, reached
from .test_spread import TWELVE, flags, idle, place, succeeded

pytestmark = pytest.mark.bench

KILLS = 60
SEED = 20261126
DURATION_S = 2.0
WITHIN_S = 5.0
"""Preparing takes a second or two, then the load, then what it said is merged."""
ENDS_S = 10.0
GONE_S = 60.0

ONCE = """
import sys
from tests.hosts import test_kills
test_kills.once(*sys.argv[1:])
"""


def once(hosts_file: str, dsn: str, password: str, folder: str, *names: str) -> None:
    """One run of another process, which says when it begins to prepare and what came of it."""
    from pgdyno.postgres.binaries import find_binaries

    library.distributed()  # importing it is no part of preparing
    say({"at": "prepare"})
    try:
        with Connection(file.read(Path(hosts_file))) as connection:
            hosts = connection.drivers(names)
            request = RunRequest(DURATION_S, Path(folder), drivers=(1, 1), hosts=hosts)
            outcome = TPCB.runner()(ReachedServer(dsn, find_binaries(), password), request)
    except PgdynoError as error:
        say({"error": error.message})
        return
    failed = [one.name for one in outcome.checks if not one.ok]
    say({"failed": failed, "end_ns": outcome.phases[-1].end_ns, "succeeded": outcome.account.succeeded})


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def killed(what: str, victim: there.Server, asker: subprocess.Popen[bytes], way: Apart | None) -> bool:
    """Kill it; whether there was something to kill."""
    drivers = there.children(victim.process.pid)
    if what == "worker":
        victim.process.kill()
    elif what == "coordinator":
        asker.kill()
    elif what == "link":
        assert way is not None
        way.link("down")
    else:
        for pid in drivers:
            os.kill(pid, signal.SIGKILL)
    return what != "engine" or bool(drivers)


def cleaned(state: Path) -> None:
    """Nothing is left of a host but what Dask had in workers that could not remove it; then nothing at all."""
    remove_scratch(state)
    assert leftovers(state) == []


def gone(pids: list[int]) -> bool:
    return wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), GONE_S)


def without_drivers(*workers: there.Server) -> bool:
    alive = [one for one in workers if one.process.poll() is None]
    return wait_until(lambda: all(map(idle, alive)), GONE_S)


def test_whatever_is_killed_there_is_no_number_that_should_not_be(
    two: there.Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, became, ends = random.Random(SEED), Counter[str](), [(0.0, "", "")]
    way = two.apart[1] if two.apart else None
    where = there.Place("127.0.0.4") if way is None else way.place
    victims = ["worker", "engine", "coordinator"] + ["link"] * (way is not None)
    with throwaway_cluster(tcp=two.here) as server:
        load(server, PgbenchTables(2))
        found = reached(server)
        for number in range(KILLS):
            what, name = victims[number % len(victims)], f"delta{number}"
            folder = tmp_path / name
            folder.mkdir()
            hosts_file = two.file(folder, f"alpha = 1\n{name} = 1")
            words = (str(hosts_file), found.dsn, str(found.password), str(folder), "alpha", name)
            command = [sys.executable, "-c", ONCE, *words]
            with two.worker(name, where) as victim, subprocess.Popen(command, stdout=subprocess.PIPE) as asker:
                try:
                    assert asker.stdout is not None and b"prepare" in asker.stdout.readline()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        asker.wait(draw.uniform(0, WITHIN_S))
                    drivers, at_ns = there.children(victim.process.pid), now_ns()
                    was_there = killed(what, victim, asker, way)
                    asker.wait(GONE_S)
                    took_s = (now_ns() - at_ns) / SECOND_NS
                    said = [json.loads(line) for line in asker.stdout.read().splitlines()]
                    assert gone(drivers), f"{what}: a driver was left"
                    assert without_drivers(two.workers["alpha"], victim), f"{what}: a driver was left"
                finally:
                    asker.kill()
                    if way is not None:
                        way.link("up")
            result = judged(said, at_ns) if was_there else "nothing was there to kill"
            became[result] += 1
            if result in ("an error", "an invalid run"):
                ends.append((took_s, what, str(said[0])))
            cleaned(paths.state_dir())
    with capsys.disabled():
        print(f"\nhosts: {KILLS} kills: {dict(became)}; the slowest end took {max(ends)[0]:.1f} s")
    assert became["a number"] == 0
    assert max(ends)[0] <= ENDS_S, max(ends)


def judged(said: list[dict[str, Any]], at_ns: int) -> str:
    """What became of a run; a number is right only where the load had ended before the kill."""
    if not said:
        return "nothing"
    if "error" in said[0]:
        return "an error"
    if said[0]["failed"]:
        return "an invalid run"
    return "a run whose load had ended" if said[0]["end_ns"] <= at_ns else "a number"


def test_runs_that_are_spread_survive_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workers, what they run and the coordinator are killed while one experiment is made and resumed; in the end it is that of one host."""
    draw, names = random.Random(SEED), ("alpha", "beta", "gamma")
    trial, results = tmp_path / "trial.toml", tmp_path / "results"
    trial.write_text(TWELVE.replace("replicates = 3", "replicates = 30"))
    places = {name: place(tmp_path, name, number) for number, name in enumerate(names, 11)}
    kills, resumed = Counter[str](), list[str]()
    with there.hosts(tmp_path, "127.0.0.1", {}) as hosts, contextlib.ExitStack() as stack:
        for name in names:
            hosts.workers[name] = stack.enter_context(hosts.worker(name, places[name]))
        while True:
            command = [sys.executable, "-m", "pgdyno", "run", str(trial), *flags(hosts), "--results", str(results)]
            with subprocess.Popen([*command, *resumed], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                while kills.total() < KILLS // 3:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(draw.uniform(0.5, 4))
                    if process.poll() is not None:
                        break
                    what = draw.choice(["worker", "runs", "coordinator"])
                    kills[what] += 1
                    if what == "coordinator":
                        process.kill()
                        break
                    name = draw.choice(names)
                    worker = hosts.workers[name]
                    if what == "worker":
                        worker.process.kill()
                        worker.process.wait()
                        hosts.workers[name] = stack.enter_context(hosts.worker(name, places[name]))
                    else:
                        for pid in there.children(worker.process.pid):
                            os.kill(pid, signal.SIGKILL)
                _, err = process.communicate(timeout=300)
            assert wait_until(lambda: all(map(idle, hosts.workers.values())), GONE_S)
            found = sorted(path for path in results.glob("*") if (path / "experiment.json").exists())
            resumed = ["--resume", str(found[0])] if found else []
            if process.returncode == 0:
                break
            assert process.returncode in (-signal.SIGKILL, 3), err.decode()
    directory = found[0]
    blocks = Counter(run.record.block for run in open_experiment(directory).runs)
    as_many = read_experiment(trial, [f"replicates={max(blocks)}"])
    alone = execute(plan(as_many), root=tmp_path / "alone", command=())
    assert succeeded(directory).items() <= succeeded(alone).items()
    assert sum(runs == 12 for runs in blocks.values()) == 30
    for name in names:
        cleaned(tmp_path / f"state-{name}")
    with capsys.disabled():
        print(f"\nhosts: {kills.total()} kills of {dict(kills)}: 30 whole replicates, {len(blocks) - 30} that are not")
