"""Kills at random moments, by ``make bench ONLY=hosts``: of a worker, a driver, the one that asks, and a link. Never a number that should not be there."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.hosts import connection as file
from pgdyno.hosts import dask
from pgdyno.hosts.connection import Connection
from pgdyno.machine import paths
from pgdyno.machine.waiting import wait_until
from pgdyno.workload.clock import SECOND_NS, now_ns
from pgdyno.workload.fill import load
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tables import PgbenchTables
from pgdyno.world.client_endpoint import ReachedServer
from tests.support.servers import throwaway_cluster
from tools.hosts import page
from tools.hosts.record import Kill, Kills, Record

from . import there
from .apart import Apart
from .test_drive import TPCB, reached
from .test_spread import idle, with_state

pytestmark = pytest.mark.bench

SEED = 20261126
DURATION_S = 2.0
WITHIN_S = 5.0
"""Preparing takes a second or two, then the load, then what it said is merged."""
GONE_S = 60.0

ONCE = """
import sys
from tests.hosts import test_kills
test_kills.once(*sys.argv[1:])
"""


def once(hosts_file: str, dsn: str, password: str, folder: str, *names: str) -> None:
    """One run of another process, which says when it begins to prepare and what came of it."""
    from pgdyno.server.binaries import find_binaries

    dask.distributed()  # importing it is no part of preparing
    say({"at": "prepare"})
    try:
        with Connection(file.read(Path(hosts_file))) as connection:
            hosts = connection.drivers(names)
            request = RunRequest(DURATION_S, Path(folder), drivers=(1, 1), hosts=hosts)
            outcome = TPCB.runner()(ReachedServer(dsn, find_binaries(), password), request)
    except PgdynoError as error:
        say({"error": error.message})
        return
    failed = [check.name for check in outcome.checks if not check.ok]
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


def left(state: Path, place: there.Place, *killed_pids: int) -> list[str]:
    """What `pgdyno doctor --clean` removes on a host, but for the directories in memory of processes that were killed, which could not."""
    command = [*place.prefix, sys.executable, "-m", "pgdyno", "doctor", "--clean"]
    environment = os.environ | {"PGDYNO_STATE_DIR": str(state)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=GONE_S)
    if done.returncode != 0:
        return [done.stderr.strip()]
    return [line for line in done.stdout.splitlines() if not any(f"-{pid}-" in line for pid in killed_pids)]


def gone(pids: list[int]) -> bool:
    return wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), GONE_S)


def without_drivers(*workers: there.Server) -> bool:
    alive = [worker for worker in workers if worker.process.poll() is None]
    return wait_until(lambda: all(map(idle, alive)), GONE_S)


def test_whatever_is_killed_there_is_no_number_that_should_not_be(
    two: there.Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    way = two.apart[1] if two.apart else None
    where = there.Place("127.0.0.4") if way is None else way.place
    victims = ["worker", "engine", "coordinator"] + ["link"] * (way is not None)
    record = Record.kept()
    if record.kills is None or len(record.kills.kills) >= page.KILLS:
        record.kills = Kills.now()
    kills = record.kills
    with throwaway_cluster(tcp=two.here) as server:
        load(server, PgbenchTables(2))
        while len(kills.kills) < page.KILLS:
            what, number = victims[kills.tried % len(victims)], kills.tried
            kills.tried += 1
            kill = kill_one(two, reached(server), where, way, what, number, tmp_path / f"delta{number}")
            kills.look()
            if kill is not None:
                kills.kills.append(kill)
                with capsys.disabled():
                    print(f"hosts: kill {len(kills.kills)}: {kill}", flush=True)
            page.keep(record)
    claims = page.kills(record)
    with capsys.disabled():
        print("", *claims, sep="\nhosts: ")
    assert [str(claim) for claim in claims if not claim.holds] == []


def kill_one(
    two: there.Hosts, server: ReachedServer, where: there.Place, way: Apart | None, what: str, number: int, folder: Path
) -> Kill | None:
    """One run on two hosts, of which something is killed; None where there was nothing to kill."""
    draw, name, state = random.Random(f"{SEED} {number}"), folder.name, folder / "state"
    folder.mkdir()
    hosts_file = two.file(folder, f"alpha = 1\n{name} = 1")
    words = (str(hosts_file), server.dsn, str(server.password), str(folder), "alpha", name)
    command = [sys.executable, "-c", ONCE, *words]
    own = with_state(where, state)
    with two.worker(name, own) as victim, subprocess.Popen(command, stdout=subprocess.PIPE) as asker:
        try:
            assert asker.stdout is not None and b"prepare" in asker.stdout.readline()
            with contextlib.suppress(subprocess.TimeoutExpired):
                asker.wait(draw.uniform(0, WITHIN_S))
            drivers, at_ns = there.children(victim.process.pid), now_ns()
            was_there = killed(what, victim, asker, way)
            asker.wait(GONE_S)
            ended_ns = now_ns()
            results = [json.loads(line) for line in asker.stdout.read().splitlines()]
            assert gone(drivers), f"{what}: a driver was left"
            assert without_drivers(two.workers["alpha"], victim), f"{what}: a driver was left"
            took_s = ((now_ns() if what == "coordinator" else ended_ns) - at_ns) / SECOND_NS
        finally:
            asker.kill()
            if way is not None:
                way.link("up")
        dead = [victim.process.pid] if what == "worker" else []
        texts = left(paths.state_dir(), there.Place(two.here)) + left(state, where, *dead)
    if not was_there:
        return None
    became = judged(results, at_ns)
    took_s = took_s if became in (*page.ENDED, page.NOTHING) else 0.0
    return Kill(what=what, became=became, took_s=round(took_s, 2), said=str(results[:1])[:300], left=texts)


def judged(documents: list[dict[str, Any]], at_ns: int) -> str:
    """What became of a run; a number is right only where the load had ended before the kill."""
    if not documents:
        return page.NOTHING
    if "error" in documents[0]:
        return page.ENDED[0]
    if documents[0]["failed"]:
        return page.ENDED[1]
    return "a run whose load had ended" if documents[0]["end_ns"] <= at_ns else page.NUMBER
