"""Whatever is killed, and whenever: after another run every row is in the table once."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
from typing import TYPE_CHECKING

import pytest

from ..support.servers import throwaway_cluster
from .loaded import LEDGER, Loaded, Target, ended, load, loading, order

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from pgdyno.server.cluster import Cluster

ROWS = 40_000
BAD_EVERY = 1000
KILLS = 6
"""In `make test`; more in `make bench`."""
BENCH_KILLS = int(os.environ.get("PGDYNO_LOAD_KILLS", "300"))
SECONDS = 1.5
"""A run that is not killed takes about this, by its rate."""
SERVER = {"shared_buffers": "64MB"}
SEED = 7


class Job:
    """A file that is loaded by runs which do not end well."""

    def __init__(self, target: Target, folder: Path, *, packed: bool) -> None:
        self.target = target
        target.run("CREATE TABLE t (id int, name text)")
        content = "".join(f'{"x" if n % BAD_EVERY == 5 else ""}{n},"a\n{n}"\n' for n in range(ROWS)).encode()
        self.bad = [f'x{n},"a\n{n}"\n' for n in range(5, ROWS, BAD_EVERY)]
        path = folder / "a.csv"
        path.write_bytes(gzip.compress(content, 1) if packed else content)
        self.rejected = folder / "rejected"
        self.asked = order(
            path,
            ledger=target.ledger(),
            chunk_bytes=8192,
            connections=3,
            interval_ms=5,
            settings={"synchronous_commit": "off"},
            rejects={"path": str(self.rejected), "max": ROWS},
        )
        self.slow = self.asked | {"rate_bytes_per_s": int(len(content) / SECONDS)}

    def check(self, done: Loaded) -> None:
        """Every row is where it belongs, once."""
        good = ROWS - len(self.bad)
        assert done.rows == (good, len(self.bad))
        assert self.target.rows("SELECT count(*), count(DISTINCT id) FROM t") == [(good, good)]
        assert self.rejected.read_text() == "".join(self.bad)
        chunks = self.target.rows("SELECT first_byte, end_byte FROM pgdyno_load.chunk ORDER BY chunk")
        assert all(before[1] == after[0] for before, after in itertools.pairwise(chunks))


def wait_for_lines(process: subprocess.Popen[bytes], lines: int) -> dict[str, Any]:
    """Read so many lines, or all that there are; returns the last one."""
    assert process.stdout is not None
    for_lines: dict[str, Any] = {}
    for _ in range(lines):
        line = process.stdout.readline()
        if not line:
            break
        for_lines = json.loads(line)
    return for_lines


def kill_loaders(job: Job, kills: int) -> int:
    """Kill loaders at random moments until one ends by itself or so many were; returns how many were."""
    random_ = random.Random(SEED)
    for kill in range(kills):
        with loading(job.target.dsn, job.slow) as process:
            # A line every 5 ms; so few that a run does not come to its end by this alone.
            document = wait_for_lines(process, random_.choice((0, 1, 5, 20, 60)))
            if document.get("event") == "end":
                return kill
            process.kill()
    return kills


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_killed_loader_is_gone_on_with(target: Target, tmp_path: Path, packed: bool) -> None:
    job = Job(target, tmp_path, packed=packed)
    assert kill_loaders(job, KILLS) > 1
    job.check(load(target.dsn, job.asked))


@pytest.mark.bench
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_loaders_killed_again_and_again_are_gone_on_with(target: Target, tmp_path: Path, packed: bool) -> None:
    killed = 0
    while killed < BENCH_KILLS // 2:
        folder = tmp_path / str(killed)
        folder.mkdir()
        target.run("DROP TABLE IF EXISTS t", "TRUNCATE pgdyno_load.chunk")
        job = Job(target, folder, packed=packed)
        killed += max(kill_loaders(job, 20), 1)
        job.check(load(target.dsn, job.asked))
    print(f"\n{killed} loaders were killed")


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A server that may be killed."""
    with throwaway_cluster() as started:
        yield started


def crash(server: Cluster) -> None:
    """What is not on disk is lost, and the server starts again."""
    server.stop("immediate")
    server.start(SERVER)


def test_a_server_that_crashes_is_waited_for(own: Cluster, tmp_path: Path) -> None:
    target = Target(own.dsn)
    target.run(LEDGER)
    job = Job(target, tmp_path, packed=False)
    target.run("CHECKPOINT")  # the tables themselves must not be lost
    with loading(own.dsn, job.slow | {"reconnect_s": 60}) as process:
        for _ in range(2):
            assert wait_for_lines(process, 40)["event"] != "end"
            crash(own)
        done = ended(process)
    assert isinstance(done, Loaded), done
    assert done.lost
    loaded = load(own.dsn, job.asked)
    assert loaded.begin["chunks_done"] == loaded.end["chunks"], "nothing was left to do"
    job.check(loaded)


def test_a_server_that_crashes_ends_the_load_and_another_run_goes_on(own: Cluster, tmp_path: Path) -> None:
    target = Target(own.dsn)
    target.run(LEDGER)
    job = Job(target, tmp_path, packed=True)
    target.run("CHECKPOINT")  # the tables themselves must not be lost
    for lines in (3, 40):
        with loading(own.dsn, job.slow | {"reconnect_s": 0}) as process:
            assert wait_for_lines(process, lines)["event"] != "end"
            crash(own)
            error = ended(process)
        assert isinstance(error, dict)
        assert error["remedy"]
    job.check(load(own.dsn, job.asked))
