"""What spreading runs over hosts consists of: the stream, the choice of blocks, what is refused, what is compared."""

from __future__ import annotations

import asyncio
import random
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from pgdyno.analysis import ratio
from pgdyno.base.errors import EXIT_HOST, EXIT_USAGE, HostError, InputError
from pgdyno.experiment import Experiment
from pgdyno.flow import remote_worker
from pgdyno.flow.plan import plan
from pgdyno.flow.remote_runs import Blocks, Came, RemoteResults
from pgdyno.flow.remote_worker import serve
from pgdyno.flow.run import execute
from pgdyno.hosts import dask, examine
from pgdyno.hosts.connection import DriverHost
from pgdyno.hosts.examine import SpreadOptions, require_alike
from pgdyno.hosts.facts import HostFacts
from pgdyno.hosts.remote_process import Seat
from pgdyno.results import open_experiment, reader
from pgdyno.results.record import LoadRecord
from pgdyno.workload.clock import Offset
from tests.experiment.documents import FAKE, experiment
from tests.support.commands import pgdyno

if TYPE_CHECKING:
    from pgdyno.analysis.run import RunFigures
    from pgdyno.experiment import Cell
    from pgdyno.hosts.connection import Connection
    from pgdyno.hosts.remote_process import RemoteSeat
    from pgdyno.results.record import RunRecord


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> reader.StoredExperiment:
    """An experiment that was made here, on the fake world."""
    folder = tmp_path_factory.mktemp("written")
    trial = folder / "trial.toml"
    trial.write_text(FAKE)
    return open_experiment(execute(plan(experiment_of(trial)), root=folder / "results", command=()))


SPREAD = SpreadOptions(dask.HostAddress("10.0.0.5", 8786), Path("keys"))


def test_a_stream_that_comes_in_pieces_is_what_was_sent(tmp_path: Path) -> None:
    draw = random.Random(7)
    (tmp_path / "logs").mkdir()
    sent = {
        "a": b"",
        "logs/b.parquet": draw.randbytes(2 * remote_worker.PART_BYTES + 5),
        "logs/c": b'{"run": "no frame"}\n',
    }
    for name, content in sent.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "run.json").write_text("{}")
    text = b"".join(remote_worker.files(tmp_path, but="run.json")) + remote_worker.packed(b"{}", run="00-gp3-r1")
    frames, result, came = remote_worker.Frames(), list[remote_worker.Frame](), dict[str, bytes]()
    while text:
        size = draw.choice([1, 3, 100, 70_000, 2_000_000])
        result += frames.feed(text[:size])
        text = text[size:]
    for frame in result[:-1]:
        came[frame.head["file"]] = came.get(frame.head["file"], b"") + frame.body
    assert came == sent
    assert (result[-1].head["run"], result[-1].body) == ("00-gp3-r1", b"{}")


def made(cell: Cell, host: str) -> RunRecord:
    label = SimpleNamespace(host=SimpleNamespace(label=host))
    return cast("RunRecord", SimpleNamespace(block=cell.block, position=cell.position, world=label))


@pytest.mark.parametrize("seed", range(60))
def test_hosts_that_come_and_go_make_whole_blocks_each_of_one_host(seed: int) -> None:
    """Hosts are lost at random and the coordinator is started again at random, until all is there; one host always lives."""
    draw = random.Random(seed)
    result = experiment(replicates=draw.randint(1, 5), factors={"world.volume": ["gp3", "io2bx", "gp2"]})
    runs: list[RunRecord] = []
    for _ in range(1000):
        names = ["a", *draw.sample(["b", "c", "d"], draw.randint(0, 3))]
        blocks = Blocks(result, runs, names)
        at_work: dict[str, list[Cell]] = {name: list(blocks.next_for(name)) for name in names}
        while any(at_work.values()) and draw.random() > 0.02:
            name = draw.choice([text for text, cells in at_work.items() if cells])
            if name != "a" and draw.random() < 0.1:
                del at_work[name]
                blocks.lose(name)
            else:
                cell = at_work[name].pop(0)
                runs.append(made(cell, name))
                blocks.keep(cell)
            for text, cells in at_work.items():
                at_work[text] = cells or list(blocks.next_for(text))
        if blocks.whole >= result.replicates:
            break
    assert blocks.whole >= result.replicates
    positions = [run.position for run in runs]
    assert len(set(positions)) == len(positions), "no run is made twice"
    for block in {run.block for run in runs}:
        assert len({run.world.host.label for run in runs if run.block == block}) == 1


def test_an_error_of_a_run_keeps_its_logs_here_and_names_the_host(written: reader.StoredExperiment) -> None:
    host = cast("DriverHost", SimpleNamespace(name="beta", facts=None))
    brought = RemoteResults(written.path, written.record, host, {})
    name = "07-gp3-r4"
    for head, body in (({"begin": name}, b""), ({"file": "logs/postgres.log"}, b"PANIC"), ({"file": "logs/x"}, b"")):
        assert brought.take(remote_worker.Frame(head, body)) is None
    error = brought.failed({"message": "the server ended", "remedy": "read its log", "exit_code": EXIT_HOST})
    assert (error.message, error.exit_code) == ("beta: the server ended", EXIT_HOST)
    kept = written.path / "failed" / name
    assert (kept / "postgres.log").read_bytes() == b"PANIC"
    assert f"the logs are kept in {kept}" in error.remedy
    assert not list((written.path / "runs").glob("*.partial"))


def test_a_data_set_that_is_not_the_same_on_all_hosts_is_refused(written: reader.StoredExperiment) -> None:
    filled: dict[str, tuple[str, Came]] = {}

    def bring(name: str, **more: object) -> None:
        host = cast("DriverHost", SimpleNamespace(name=name, facts=None))
        brought = RemoteResults(written.path, written.record, host, filled)
        record = load_record(written.record.experiment_id, **more)
        assert brought.take(remote_worker.Frame({"load": record.load_id})) is None
        try:
            brought.take(remote_worker.Frame({"loaded": record.load_id}, record.model_dump_json().encode()))
        finally:
            brought.abandon()

    bring("alpha")
    bring("beta")
    bring("gamma", tables={"pgbench": {"scale": 3}}, rows={"pgbench_accounts": 300_000})
    names = sorted(path.name for path in (written.path / "loads").iterdir())
    assert names == ["00-alpha-pgbench-scale-2", "01-beta-pgbench-scale-2", "02-gamma-pgbench-scale-2"]
    for other in (
        {"rows": {"pgbench_accounts": 199_999}},
        {"digests": {"pgbench_accounts": "5c0ffee"}},
        {"rows": {}},
    ):
        with pytest.raises(HostError, match="delta has filled other rows than alpha, in pgbench_accounts"):
            bring("delta", **other)
    assert sorted(path.name for path in (written.path / "loads").iterdir()) == names


def load_record(experiment_id: str, **more: object) -> LoadRecord:
    """Of pgbench's tables at scale 2."""
    document: dict[str, object] = {
        "load_id": "00-pgbench-scale-2",
        "experiment_id": experiment_id,
        "title": "pgbench, scale 2",
        "tables": {"pgbench": {"scale": 2}},
        "loader": "native",
        "sessions": 2,
        "anchor": {"unix_ns": 1, "monotonic_ns": 1},
        "begin_ns": 1,
        "end_ns": 2,
        "rows": {"pgbench_accounts": 200_000},
        "digests": {"pgbench_accounts": "decaf"},
        "postgres": {"version": "18.6", "source": "a test"},
    }
    return LoadRecord.model_validate(document | more)


@pytest.mark.parametrize("name", ["PostgreSQL", "engine", "database shop.dump"])
def test_a_host_with_other_programs_or_another_database_makes_no_runs(
    written: reader.StoredExperiment, name: str
) -> None:
    record = written.record
    model_copy = record.model_copy(update={"versions": dict(record.versions) | {name: "another"}})
    datas: list[bytes] = []
    orders = SimpleNamespace(next=lambda: {"experiment": model_copy.model_dump(mode="json")})
    with pytest.raises(HostError) as refused:
        serve(cast("Any", orders), cast("Any", SimpleNamespace(note=datas.append, frame=datas.append)))
    is_there = repr(record.versions[name]) if name in record.versions else "not there"
    where = f'"{name}"' if " " in name else name
    assert refused.value.message == (
        f"this host differs from the one that started the experiment: {where} is {is_there}, not 'another'"
    ), "no directory: that of the host is gone when this is read"
    assert "--resume" not in refused.value.remedy
    assert datas == []


def experiment_of(path: Path) -> Experiment:
    from pgdyno.experiment import read_experiment

    return read_experiment(path)


ONE = HostFacts("1", "e", "18", 8, "6.1.0", 32 << 30, "Xeon", 0.0)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(ONE, cores=4), "cores of alpha: 8; of beta: 4"),
        (replace(ONE, kernel="6.2.0"), "kernel of alpha: 6.1.0; of beta: 6.2.0"),
        (replace(ONE, cpu="EPYC"), "CPU of alpha: Xeon; of beta: EPYC"),
        (replace(ONE, memory_bytes=31 << 30), "memory of alpha: 32.0 GiB; of beta: 31.0 GiB"),
    ],
)
def test_hosts_that_differ_are_refused(other: HostFacts, said: str) -> None:
    with pytest.raises(HostError, match=said) as raises:
        require_alike({"alpha": ONE, "beta": other})
    assert "--mixed" in raises.value.remedy


def test_the_examination_of_hosts_finds_another_postgresql_and_a_clock_that_is_not_known() -> None:
    seat = SimpleNamespace(
        name="beta", facts=lambda: replace(ONE, postgres="17.5"), clock=lambda: Offset(10**12, 6_000_000)
    )
    checks = {check.name: check for check in examine.of_host(cast("RemoteSeat", seat), ONE)}
    assert checks["beta PostgreSQL"].status == "fail" and checks["beta PostgreSQL"].found == "17.5; here 18"
    assert checks["beta clock"].status == "fail" and "known to 6.000 ms" in checks["beta clock"].found
    assert {name for name, check in checks.items() if check.status == "fail"} == {"beta PostgreSQL", "beta clock"}


def test_a_driver_whose_host_is_lost_is_waited_for_once() -> None:
    """Six seconds for an answer, twice in a row, would be longer than a run may take to end."""
    texts: list[str] = []

    def seat(name: str) -> NoReturn:
        texts.append(name)
        raise HostError("the worker beta does not answer", remedy="look at the network")

    beta = DriverHost(cast("Connection", SimpleNamespace(seat=seat)), "beta")
    beta.__dict__["facts"] = ONE
    with pytest.raises(HostError, match="does not answer"):
        beta.record({"host": "10.0.0.1", "port": 5432})
    assert texts == ["beta"]


def test_a_server_that_cannot_be_reached_has_no_round_trip() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        assert asyncio.run(Seat().round_trip_ns("127.0.0.1", taken.getsockname()[1])) is None


def test_hosts_of_one_kind_are_not_refused_for_what_their_kernels_reserve() -> None:
    require_alike({"alpha": ONE, "beta": replace(ONE, memory_bytes=ONE.memory_bytes - (100 << 20), steal_share=0.5)})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--spread", "tcp://10.0.0.5", "--keys", "keys"), "not encrypted"),
        (("--spread", "tls://10.0.0.5"), "--spread needs --keys"),
        (("--keys", "keys"), "--keys and --mixed say more about --spread"),
        (("--mixed",), "--keys and --mixed say more about --spread"),
        (("--spread", "tls://10.0.0.5", "--keys", "keys", "--budget", "5min"), "--spread and --budget exclude"),
        (("--spread", "tls://10.0.0.5", "--keys", "keys", "--only", "1"), "hosts make whole replicates"),
        (("--spread", "tls://10.0.0.5", "--keys", "keys", "--set", "budget=5min"), "a budget chooses further runs"),
    ],
)
def test_what_cannot_be_spread_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    trial = tmp_path / "trial.toml"
    trial.write_text(FAKE)
    assert said in pgdyno("run", trial, "--results", tmp_path / "results", *words, code=EXIT_USAGE).err
    assert not (tmp_path / "results").exists()


def test_what_was_made_here_is_not_continued_elsewhere(tmp_path: Path) -> None:
    trial = tmp_path / "trial.toml"
    trial.write_text(FAKE)
    directory = execute(plan(experiment_of(trial), only=[0]), root=tmp_path / "r", command=())
    with pytest.raises(InputError, match="were made without --spread"):
        plan(experiment_of(trial), resume=directory, spread=SPREAD)


def run_of(host: str | None, block: int, arm: int) -> RunFigures:
    world = SimpleNamespace(host=SimpleNamespace(label=host))
    record = SimpleNamespace(experiment_id="e", block=block, arm_index=arm, world=world)
    return cast("RunFigures", SimpleNamespace(record=record))


def test_only_whole_blocks_of_hosts_are_compared() -> None:
    runs = [run_of("alpha", 1, 0), run_of("alpha", 1, 1), run_of("beta", 2, 0), run_of(None, 3, 0)]
    compared, left = ratio.whole_blocks(runs, 2)
    assert compared == [*runs[:2], runs[3]], "a block that was made here may lack a run, as always"
    assert left == (ratio.UnpairedRuns("beta", 2, 1, 2),)
