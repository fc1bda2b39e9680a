"""`kind = "replay"`: a capture as the workload of an experiment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.replay import KEPT_UP_S
from pgdyno.base.errors import InputError
from pgdyno.experiment import read_experiment
from pgdyno.kinds.replay.kind import ReplayKind
from pgdyno.kinds.replay.outside import rehearse
from pgdyno.kinds.replay.run import ReplayRunner
from pgdyno.kinds.replay.selection import ReplaySelection
from pgdyno.results import open_experiment
from pgdyno.results.tables import SubjectClock
from pgdyno.workload.outcome import RunRequest
from pgdyno.world.client_endpoint import ReachedServer
from tools.captured.logged import dumped

from ..support.commands import pgdyno
from .shop import FAILING, TEXTS, Shop

if TYPE_CHECKING:
    from pgdyno.workload.outcome import Outcome


LOG_IN_S = 2


@dataclass
class Heard:
    """What the runner told of a run."""

    pids: tuple[int, ...] = ()
    edges: int = 0
    public: str = ""
    """What others see of its process."""

    def started(self, *pids: int) -> None:
        """It has begun."""
        self.pids = pids
        self.public = "".join((Path(f"/proc/{pids[0]}") / name).read_text() for name in ("cmdline", "environ"))

    def edge(self) -> None:
        """Measuring begins or ends."""
        self.edges += 1


def replayed(
    shop: Shop, name: str, folder: Path, dilation: int = 1, options: str = "", **keys: Any
) -> tuple[Outcome, Heard]:
    """A run against a new copy of the shop."""
    dsn = shop.cluster.dsn_of("postgres", shop.copy(name))
    server = ReachedServer(f"{dsn} options='{options}'", shop.cluster.binaries, None)
    result = Heard()
    request = RunRequest(
        duration_s=300,
        out_dir=folder / "driver",
        clock=SubjectClock(0, dilation),
        on_start=result.started,
        on_measure_begin=result.edge,
        on_measure_end=result.edge,
    )
    return ReplayRunner(ReplaySelection(str(shop.capture), **keys))(server, request), result


def texts_of(path: Path) -> str:
    """A file as text, a table by its cells."""
    if path.suffix == ".parquet":
        return str(pq.read_table(path).to_pydict())
    return path.read_text(errors="replace")


def shown(shop: Shop) -> dict[str, Any]:
    """What `capture show` says."""
    shown: dict[str, Any] = json.loads(pgdyno("capture", "show", shop.capture, "--json", code=0).out)
    return shown


def test_a_run_leaves_the_rows_of_production_and_counts_each_statement_once(shop: Shop, tmp_path: Path) -> None:
    outcome, result = replayed(shop, "kind", tmp_path, users=("app",))
    record, account = outcome.replay, outcome.account
    assert record is not None
    assert shop.rows("kind") == shop.rows("shop") != shop.rows("before")
    assert (record.newly_failed, record.errors, record.connections_lost) == (0, (), 0)
    assert (account.rolled_back, account.failed, account.skipped) == (FAILING, 0, 0)
    assert account.succeeded == record.executed == account.scheduled - FAILING
    assert record.statements + record.not_asked == shown(shop)["calls"]
    assert record.not_asked > 0, "the session that ends the log is another user's"
    assert all(check.ok for check in outcome.checks), outcome.checks
    assert len(result.pids) == 1
    assert "capture" in result.public
    assert not any(secret in result.public for secret in ("it's", "UPDATE", str(shop.capture), *TEXTS))
    assert result.edges == 2
    # The seconds add up to the whole.
    assert sum(outcome.throughput["transactions"].to_pylist()) == account.succeeded + account.rolled_back
    assert outcome.replay_seconds is not None
    assert sum(outcome.replay_seconds["failed_as_recorded"].to_pylist()) == FAILING
    assert sum(outcome.latency["count"].to_pylist()) == account.succeeded + account.rolled_back
    # A shape has all its statements, without their values.
    (insert,) = (
        statement
        for statement in record.by_statement
        if statement.statement.startswith("INSERT INTO orders VALUES ($1, $2, $3)")
    )
    assert insert.calls == FAILING
    assert insert.recorded_ms is not None and insert.service_ms is not None
    assert insert.response_ms >= insert.service_ms > 0


def test_a_slower_world_has_the_same_figures_in_its_own_time(shop: Shop, tmp_path: Path) -> None:
    outcome, _ = replayed(shop, "slow", tmp_path, dilation=2, users=("app",))
    record = outcome.replay
    assert record is not None
    assert record.newly_failed == 0
    # It is to take the captured time by a clock that is twice as slow, and a machine that keeps up takes no less.
    assert record.took_s >= 0.95 * record.due_s
    assert outcome.phases[0].seconds == pytest.approx(record.took_s, abs=0.01)


def test_a_part_of_the_time_is_whole_transactions_and_two_parts_are_the_whole(shop: Shop, tmp_path: Path) -> None:
    whole = ReplaySelection(str(shop.capture), users=("app",)).planned()
    half = whole.part_s / 2
    first, _ = replayed(shop, "first", tmp_path / "1", users=("app",), until_s=half)
    server = ReachedServer(shop.cluster.dsn_of("postgres", "first"), shop.cluster.binaries, None)
    request = RunRequest(duration_s=300, out_dir=tmp_path / "2")
    rest = ReplayRunner(ReplaySelection(str(shop.capture), users=("app",), from_s=half))(server, request)
    assert first.replay is not None and rest.replay is not None
    assert 0 < first.replay.executed < rest.replay.executed + first.replay.executed
    assert first.replay.newly_failed == rest.replay.newly_failed == 0
    assert shop.rows("first") == shop.rows("shop")


def test_what_a_session_has_set_before_the_part_holds_in_it(shop: Shop, tmp_path: Path) -> None:
    # Its only use of a table is found by the search_path that it set at its begin.
    outcome, _ = replayed(shop, "part", tmp_path, users=("setter",), from_s=shop.after_setting_s)
    assert outcome.replay is not None
    assert (outcome.replay.executed, outcome.replay.newly_failed) == (1, 0)


def test_the_first_statement_is_due_when_the_sessions_that_were_open_have_logged_in(shop: Shop, tmp_path: Path) -> None:
    slow = {"options": f"-c post_auth_delay={LOG_IN_S}", "users": ("setter",), "from_s": shop.after_setting_s}
    outcome, _ = replayed(shop, "slow_log_ins", tmp_path, **slow)
    assert outcome.replay is not None
    assert outcome.replay.executed == 1
    assert outcome.replay.behind.max_ms < LOG_IN_S * 500


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"users": ("nobody",)}, "has no statement of the user nobody"),
        ({"databases": ("nowhere",)}, "has no statement of the database nowhere"),
        ({"from_s": 86_400.0}, "no session matches the selection"),
        ({"capture": "/nowhere.capture"}, "/nowhere.capture"),
    ],
)
def test_a_part_that_is_nothing_is_refused(shop: Shop, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        ReplaySelection(**({"capture": str(shop.capture)} | keys)).planned()
    assert said in caught.value.message


def test_roles_that_cannot_log_in_are_named_before_the_first_run(shop: Shop) -> None:
    server = ReachedServer(shop.cluster.dsn_of("postgres", "before"), shop.cluster.binaries, None)
    rehearse(ReplaySelection(str(shop.capture), users=("app",)), server)
    with pytest.raises(InputError, match='missing in before: role "missing" does not exist'):
        rehearse(ReplaySelection(str(shop.capture), users=("app=missing",)), server)


FILE = """
schema_version = 1
[world]
volume = "gp3"
[workload]
kind = "replay"
capture = "shop.capture"
[workload.database]
from = "shop.sql"
"""
KEYS: dict[str, tuple[str, str, str]] = {
    "clients": ('kind = "replay"', 'kind = "replay"\nclients = 3', "and ends with it; omit the key"),
    "no capture": ('capture = "shop.capture"', "", 'needs capture = "FILE"'),
    "no database": ('[workload.database]\nfrom = "shop.sql"', "", "needs [workload.database]"),
    "time": ('kind = "replay"', 'kind = "replay"\nfrom = "5s"\nuntil = "5s"', "until: it is not after from"),
    "stats": ('kind = "replay"', 'kind = "replay"\nstats = ["a.json"]', "stats"),
    "copy": ('kind = "replay"', 'kind = "replay"\ncopy = "made"', 'copy = "made" needs stats'),
    "names": ('kind = "replay"', 'kind = "replay"\nusers = ["a", "a=b"]', "each name stands once"),
    "speed": ('kind = "replay"', 'kind = "replay"\nspeed = 0', "speed"),
    "connections": ('kind = "replay"', 'kind = "replay"\nload.connections = 3', "restored by database.jobs sessions"),
    "real": ('volume = "gp3"', 'kind = "real"\ndsn = "service=x"', "an existing server has its own"),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_that_do_not_go_with_a_replay_are_refused(tmp_path: Path, name: str) -> None:
    old, new, message = KEYS[name]
    path = tmp_path / "experiment.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_experiment(path)
    assert message in f"{caught.value.message}; {caught.value.remedy}"


def test_the_capture_and_the_counters_are_beside_the_experiment_file(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    with_stats = FILE.replace("[workload.database]", 'stats = ["a.json", "b.json"]\n[workload.database]')
    path.write_text(
        with_stats.replace("[workload.database]", '[factors]\n"workload.speed" = [1, 2]\n[workload.database]')
    )
    workloads = [arm.workload for arm in read_experiment(path).arms if isinstance(arm.workload, ReplayKind)]
    assert {workload.stats for workload in workloads} == {(str(tmp_path / "a.json"), str(tmp_path / "b.json"))}
    assert [(workload.capture, workload.speed) for workload in workloads] == [
        (str(tmp_path / "shop.capture"), speed) for speed in (1, 2)
    ]


def test_a_run_is_expected_to_take_as_long_as_its_capture(shop: Shop, tmp_path: Path) -> None:
    dumped(shop.cluster, "before", tmp_path)
    file = tmp_path / "experiment.toml"
    text = FILE.replace("shop.capture", str(shop.capture)).replace("shop.sql", "before.dump")
    for volume in ("null", "gp3"):
        file.write_text(text.replace("gp3", volume))
        (run, *_) = json.loads(pgdyno("run", file, "--dry-run", "--json", code=0).out)["runs"]
        assert run["seconds"] < 60 < 3600 < run["seconds_max"], volume


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
def test_a_capture_is_replayed_on_volumes_and_reported(
    shop: Shop, tmp_path: Path, state_dir: Path, image_dir: Path
) -> None:
    del state_dir, image_dir
    dump, roles = dumped(shop.cluster, "before", tmp_path)
    results: list[str | Path] = [
        "--restore",
        dump,
        "--globals",
        roles,
        "--capture",
        shop.capture,
        "--stats",
        *shop.stats,
        "--copy",
        "made",
        "-n",
        "1",
        "--memory",
        "384MiB",
    ]
    more: list[str | Path] = [
        "--set",
        'workload.users=["app"]',
        "--set",
        'workload.recorded_on="gp3"',
        "--results",
        tmp_path / "results",
        "--keep-invalid",
        "--json",
    ]
    ended = pgdyno("compare", "null", "gp3", *results, *more, code=0)
    document = json.loads(ended.out)
    assert [arm["replay"]["trust"] is not None for arm in document["arms"]] == [False, True]
    for arm in document["arms"]:
        (account,) = arm["replay"]["accounts"]
        # A busy machine may be late by itself; what is said of it is what was measured.
        assert (arm["metric"], arm["replay"]["kept_up"]) == (
            "response_ms",
            arm["replay"]["late_s"]["mean"] <= KEPT_UP_S,
        )
        assert (account["failed_as_recorded"], account["newly_failed"], account["left_out"]) == (FAILING, 0, {})
        assert arm["replay"]["statements"][0]["recorded_ms"] > 0
        assert not [item for item in arm["replay"]["unlike"] if {"calls", "rows"} & item["ratios"].keys()]
    (directory,) = (path for path in (tmp_path / "results").iterdir() if (path / "experiment.json").is_file())
    page = pgdyno("report", directory, "--format", "md", code=0).out
    assert "## Replay" in page
    assert "| failed as recorded |" in page
    assert "emulates your production volume: the closer" in page
    runs = open_experiment(directory).runs
    assert {run.record.replay is not None and run.record.driver is not None for run in runs} == {True}
    assert {run.record.workload["copy"] for run in runs} == {"made"}
    assert all("every_statement" in {check.name for check in run.record.checks} for run in runs)
    for run in runs:
        assert run.record.replay is not None and run.record.replay.likeness is not None
        each = {statement.statement: statement for statement in run.record.replay.likeness.statements}
        update = each["UPDATE customers SET visits = visits + ? WHERE id = ?"]
        assert (
            (update.here.calls, update.here.rows)
            == (update.production.calls, update.production.rows)
            == (FAILING, FAILING)
        )
    # What customers sent is nowhere in what is kept: not in the server's log of errors either.
    kept = {path: texts_of(path) for path in directory.rglob("*") if path.is_file()}
    assert any("database system is ready" in text for text in kept.values()), "the server's log is kept"
    sent = ("it's ", "Key (id)=", *TEXTS)
    assert [(path, other) for path, text in kept.items() for other in sent if other in text] == []
    assert summarise(directory).arms[0].unit.many == "statements"
