"""``pgdyno run --spread``: whole blocks on hosts, one lost in the middle, the coordinator killed; on the fake world."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import EXIT_HOST, EXIT_OK, InputError
from pgdyno.experiment import read_experiment
from pgdyno.flow.cell import Listener
from pgdyno.flow.plan import plan
from pgdyno.flow.run import execute
from pgdyno.hosts import dask
from pgdyno.hosts.examine import SpreadOptions
from pgdyno.machine.clean import left_in
from pgdyno.machine.scratch import remove_scratch
from pgdyno.machine.waiting import wait_until
from pgdyno.report.terminal import table
from pgdyno.results import open_experiment, open_run
from tests.size import formats
from tests.support.commands import pgdyno

from . import there
from .apart import apart
from .conftest import DAY_S

TWELVE = """\
schema_version = 1
replicates = 3

[world]
kind = "fake"

[workload]
scale = 2
warmup = "1s"
duration = "5s"

[factors]
"world.volume" = ["gp3", "io2bx:iops=6000", "gp3:iops=4000"]
"workload.clients" = [4, 8, 16, 32]
"""
ARMS = 12
KILLED_AFTER = 5
GONE_S = 60.0
"""Ten seconds of silence, and what a busy machine takes to end a Python process."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, there.Place]]:
    """Where ``alpha``, ``beta`` and ``delta`` are: networks and clocks of their own where that is allowed, and each a state directory."""
    folder, names = tmp_path_factory.mktemp("states"), ("alpha", "beta", "delta")
    with apart((DAY_S, 0, 3_600), first=5) as made:
        where = [apart.place for apart in made] if made else [there.Place(f"127.0.0.{number}") for number in (6, 7, 8)]
        yield {name: with_state(item, folder / f"state-{name}") for name, item in zip(names, where, strict=True)}


@pytest.fixture(scope="module")
def hosts(places: dict[str, there.Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[there.Hosts]:
    """Workers ``alpha`` and ``beta``."""
    folder = tmp_path_factory.mktemp("spread")
    with there.hosts(folder, places["alpha"].here, {name: places[name] for name in ("alpha", "beta")}) as started:
        yield started


def with_state(where: there.Place, state: Path) -> there.Place:
    return replace(where, environment={"PGDYNO_STATE_DIR": str(state)})


def state_of(where: there.Place) -> Path:
    return Path(where.environment["PGDYNO_STATE_DIR"])


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    path = tmp_path / "trial.toml"
    path.write_text(TWELVE)
    return path


def spread_over(hosts: there.Hosts) -> SpreadOptions:
    return SpreadOptions(dask.of_scheduler(hosts.scheduler.url, "scheduler"), hosts.folder)


def flags(hosts: there.Hosts) -> tuple[str, ...]:
    return "--spread", hosts.scheduler.url, "--keys", str(hosts.folder)


def idle(worker: there.Server) -> bool:
    return not there.children(worker.process.pid)


def succeeded(directory: Path) -> dict[tuple[int, int], int]:
    """(block, arm) -> transactions; the made-up figures follow from the seed, wherever they are made up."""
    runs = open_experiment(directory).runs
    return {(run.record.block, run.record.arm_index): run.record.account.succeeded for run in runs}


COORDINATOR = """
import sys
from tests.hosts import test_spread
test_spread.coordinate(*sys.argv[1:])
"""


def coordinate(trial: str, url: str, keys: str, results: str) -> None:
    """A coordinator in a process of its own, which is killed while its fifth run is kept and the hosts do not know it."""
    paths: list[Path] = []

    def kill(_cell: object, path: Path) -> None:
        paths.append(path)
        if len(paths) == KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    spread = SpreadOptions(dask.of_scheduler(url, "scheduler"), Path(keys))
    planned = plan(read_experiment(Path(trial)), spread=spread)
    execute(planned, root=Path(results), command=("pgdyno",), tell=Listener(run=kill))


def test_a_host_and_the_coordinator_are_killed_and_all_blocks_become_whole(
    hosts: there.Hosts, places: dict[str, there.Place], trial: Path, tmp_path: Path
) -> None:
    results, experiment = tmp_path / "results", read_experiment(trial)
    words = (str(trial), hosts.scheduler.url, str(hosts.folder), str(results))
    with hosts.worker("delta", places["delta"]) as delta:
        workers = [*hosts.workers.values(), delta]
        done = subprocess.run([sys.executable, "-c", COORDINATOR, *words], check=False, capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert wait_until(lambda: all(map(idle, workers)), GONE_S), "a host went on without its coordinator"
        [directory] = results.iterdir()
        before = {run.path.name: run.record.anchor for run in open_experiment(directory).runs}
        assert len(before) == KILLED_AFTER
        with pytest.raises(InputError, match="were made on other hosts: "):
            plan(experiment, resume=directory)

        orphans: list[int] = []
        notes: list[str] = []

        def kill(_cell: object, path: Path) -> None:
            if not orphans and open_run(path).record.world.host.label == "delta":
                orphans.extend(there.children(delta.process.pid))
                delta.process.kill()
                delta.process.wait()

        planned = plan(experiment, resume=directory, spread=spread_over(hosts))
        execute(planned, root=results, command=(), tell=Listener(run=kill, note=notes.append))
        assert orphans
        assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in orphans), GONE_S)

    assert any(note.startswith("delta is lost: the worker delta does not answer") for note in notes), notes
    made = open_experiment(directory)
    assert before.items() <= {run.path.name: run.record.anchor for run in made.runs}.items(), "what was there stays"
    of_block: dict[int, list[str | None]] = {}
    for run in made.runs:
        of_block.setdefault(run.record.block, []).append(run.record.world.host.label)
    assert all(len(set(labels)) == 1 for labels in of_block.values()), "a block is of one host"
    assert sorted(len(labels) == ARMS for labels in of_block.values()) == [False, True, True, True]
    [broken] = [block for block, labels in of_block.items() if len(labels) < ARMS]
    assert of_block[broken][0] == "delta"

    alone = execute(plan(read_experiment(trial, ["replicates=1"])), root=tmp_path / "alone", command=())
    assert succeeded(alone).items() <= succeeded(directory).items(), "as on one host"

    comparison = summarise(directory)
    assert comparison.valid
    assert [len(arm.replicates) for arm in comparison.arms] == [3] * ARMS
    assert [host.name for host in comparison.hosts] == ["alpha", "beta"]
    [unpaired] = comparison.unpaired
    assert (unpaired.host, unpaired.block, unpaired.runs) == ("delta", broken, len(of_block[broken]))
    ratio = comparison.hosts[1].ratio
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    assert 0.98 < ratio.low < ratio.high < 1.02, "the noise of a made-up run is 1 %"
    text = table(comparison)
    assert "beta does" in text
    assert f"replicate {broken} of delta is not whole" in text
    of_worker = remove_scratch(state_of(places["delta"]))
    assert [f"-{delta.process.pid}-" in line for line in of_worker] == [True], "its own, which it could not remove"
    for where in places.values():
        assert left_in(state_of(where)) == []


def test_the_command_divides_the_replicates_and_says_the_hosts(hosts: there.Hosts, trial: Path, tmp_path: Path) -> None:
    trial.write_text(
        TWELVE.replace('"workload.clients"', '# "workload.clients"').replace("replicates = 3", "replicates = 2")
    )
    ended = pgdyno("run", trial, *flags(hosts), "--results", tmp_path / "results", "--json", code=EXIT_OK)
    document = json.loads(ended.out)
    assert [(host["name"], host["replicates"]) for host in document["hosts"]] == [("alpha", 1), ("beta", 1)]
    assert document["hosts"][1]["ratio"]["low"] < document["hosts"][1]["ratio"]["high"]
    assert document["unpaired"] == []
    assert {arm["tps"]["n"] for arm in document["arms"]} == {2}
    [directory] = (tmp_path / "results").iterdir()
    assert "over that of alpha" in (directory / "report.html").read_text()
    again = pgdyno("run", "--resume", directory, *flags(hosts), code=EXIT_OK)
    assert "run 1 of" not in again.err, "nothing is left"


def test_hosts_that_differ_make_runs_only_if_that_is_allowed(
    hosts: there.Hosts, places: dict[str, there.Place], trial: Path, tmp_path: Path
) -> None:
    """One has a core less to use; the report says what each is, and how far they are apart."""
    if len(os.sched_getaffinity(0)) < 2 or shutil.which("taskset") is None:
        pytest.skip("needs two cores, and taskset")
    one_core = ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))
    small = with_state(replace(places["delta"], prefix=(*places["delta"].prefix, *one_core)), tmp_path / "state")
    trial.write_text(
        TWELVE.replace('"workload.clients"', '# "workload.clients"').replace("replicates = 3", "replicates = 6")
    )
    run = ("run", trial, *flags(hosts), "--results")
    with hosts.worker("small", small):
        refused = pgdyno(*run, tmp_path / "refused", code=EXIT_HOST).err
        assert "hosts differ: cores of alpha" in refused and "of small: 1" in refused and "--mixed" in refused
        assert not list(tmp_path.glob("refused/*/runs/*"))
        ended = pgdyno(*run, tmp_path / "results", "--mixed", "--json", code=EXIT_OK)
    remove_scratch(state_of(small))  # it was killed
    of = {host["name"]: host for host in json.loads(ended.out)["hosts"]}
    assert set(of) == {"alpha", "beta", "small"}
    assert (of["small"]["cores"], of["alpha"]["cores"]) == (1, len(os.sched_getaffinity(0)))
    assert of["small"]["ratio"]["low"] < of["small"]["ratio"]["high"]
    assert all(host["replicates"] > 0 for host in of.values())


def test_workers_size_many_files_as_this_machine_does(hosts: there.Hosts, tmp_path: Path) -> None:
    for number in range(1, 5):
        load = [formats.Interval(700 * number, 300, 8000 * number, 2400)] * 30
        (tmp_path / f"{number}.txt").write_text(formats.iostat_12_7(load, 1))
    texts = ("size", "--iostat", tmp_path / "*.txt", "--size", "100GiB", "--type", "gp3", "--json")
    here, there_too = (json.loads(pgdyno(*texts, *more, code=EXIT_OK).out) for more in ((), flags(hosts)))
    assert len(here["files"]) == 4
    assert there_too == here
