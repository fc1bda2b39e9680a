"""pgdyno's own driver against a server: the same tables as pgbench, and the server agrees with them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base import engine as _engine
from pgdyno.base.endpoint import local
from pgdyno.base.errors import EXIT_FAILURE, InputError, PgdynoError
from pgdyno.kinds.pgbench import ScriptFile
from pgdyno.kinds.registry import workload_of
from pgdyno.results import RunWriter
from pgdyno.results.tables import SubjectClock
from pgdyno.workload import histogram, native
from pgdyno.workload.clock import now_ns
from pgdyno.workload.process import DriverProcess

from ..drive.driven import PAUSE_MS
from .conftest import run

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.base.endpoint import Endpoint
    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.kind import Workload

TPCB = workload_of(scale=2, clients=4, engine="native", seed=11, think_ms=PAUSE_MS)
OWN = """
\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""


@dataclass(frozen=True)
class Elsewhere:
    """A server that is not where it is said to be."""

    dsn: str
    binaries: Any

    @property
    def endpoint(self) -> Endpoint:
        return local(self.dsn)


def failed(*checks: Any) -> list[Any]:
    return [check for check in checks if not check.ok]


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_the_server_agrees_with_the_account(loaded: Cluster, tmp_path: Path, protocol: str) -> None:
    baseline = TPCB.baseline(loaded, full=True)
    spec = TPCB.model_copy(update={"protocol": protocol, "threads": 2})
    outcome = run(loaded, spec, tmp_path, warmup_s=1.0)
    assert failed(*outcome.checks, *TPCB.proofs(loaded, outcome, baseline=baseline, full=True)) == []
    assert 0 < outcome.account.succeeded < outcome.account_total.succeeded == outcome.writes_total


def test_the_phases_follow_each_other_and_the_tables_cover_them(loaded: Cluster, tmp_path: Path) -> None:
    begun: list[str] = []
    outcome = run(
        loaded,
        TPCB,
        tmp_path,
        2.0,
        warmup_s=1.5,
        on_start=lambda pid: begun.append(f"pid {pid > 0}"),
        on_measure_begin=lambda: begun.append("begin"),
        on_measure_end=lambda: begun.append("end"),
        prefix=("nice", "-n", "0"),
    )
    assert begun == ["pid True", "begin", "end"]
    warmup, measure = outcome.phases
    assert warmup.end_ns == measure.begin_ns
    assert (warmup.seconds, measure.seconds) == (pytest.approx(1.5), 2.0)
    rows = [row for row in outcome.throughput.to_pylist() if row["t_begin_ns"] >= measure.begin_ns]
    assert rows[0]["t_begin_ns"] == measure.begin_ns
    assert rows[-1]["t_end_ns"] == measure.end_ns
    assert sum(row["transactions"] for row in rows) == outcome.account.succeeded
    assert histogram.decode(outcome.histograms["histograms"]["all"]).get_total_count() == outcome.account.succeeded
    assert outcome.service is None, "in a closed loop it is the latency"
    assert outcome.statement is not None
    each = {row["statement"].split()[0] for row in outcome.statement.to_pylist()}
    assert each >= {"BEGIN", "UPDATE", "SELECT", "INSERT", "END"}


def test_an_open_loop_tells_both_times_and_is_written(loaded: Cluster, tmp_path: Path) -> None:
    spec = workload_of(
        script="select-only@3,simple-update@1",
        scale=2,
        clients=4,
        engine="native",
        rate_per_s=400,
        arrivals="fixed",
        late_max_ms=500,
    )
    outcome = run(loaded, spec, tmp_path, 2.0)
    assert failed(*outcome.checks) == []
    assert outcome.account.scheduled == pytest.approx(800, abs=40), "a busy machine may be a tenth of a second behind"
    writer = RunWriter(tmp_path, "e", "r")
    outcome.write(writer)
    assert {path.name for path in (writer.path / "workload").iterdir()} == {
        "latency.parquet",
        "latency.hdr.json",
        "service.parquet",
        "statement.parquet",
        "throughput.parquet",
    }
    document = json.loads((writer.path / "workload/latency.hdr.json").read_text())
    assert set(document["histograms"]) == {"select-only", "simple-update", "all"}
    driver = outcome.driver
    assert driver.wake is not None
    assert driver.lag is not None
    assert driver.lag.count >= outcome.account.succeeded
    assert driver.engine == "native"
    assert driver.cpu_ns
    assert (tmp_path / "drive.jsonl").read_text().count("\n") == 2


def test_a_dilated_run_is_told_in_the_subjects_time(loaded: Cluster, tmp_path: Path) -> None:
    """400 transactions for each of the subject's seconds are 200 for each of the host's, and it lasts twice as long."""
    spec = workload_of(
        script="select-only", scale=2, clients=4, engine="native", rate_per_s=400, arrivals="fixed", late_max_ms=500
    )
    shown: list[str] = []
    outcome = run(
        loaded,
        spec,
        tmp_path,
        1.5,
        progress=lambda _share, text: shown.append(text),
        clock=SubjectClock(now_ns(), 2),
    )
    assert failed(*outcome.checks) == []
    assert outcome.phases[-1].seconds == pytest.approx(1.5)
    assert outcome.account.scheduled == pytest.approx(600, abs=40)
    assert any(text.startswith("measure: ") for text in shown)


def test_a_script_of_the_users_runs_by_both_drivers(loaded: Cluster, tmp_path: Path) -> None:
    document = {
        "kind": "script",
        "files": ({"name": "own.sql", "text": OWN, "weight": 2}, {"name": "two.sql", "text": "SELECT 2;"}),
        "scale": 2,
        "clients": 2,
    }
    for engine in ("native", "pgbench"):
        spec = workload_of(**document, engine=engine)
        outcome = run(loaded, spec, tmp_path / engine)
        assert failed(*outcome.checks) == []
        assert spec.proofs(loaded, outcome) == ()
        names = set(outcome.throughput["script"].to_pylist())
        assert names == {"own.sql", "two.sql"}
        assert set(outcome.histograms["histograms"]) == {"own.sql", "two.sql", "all"}


def test_a_malformed_script_is_refused_before_anything_is_done() -> None:
    spec = workload_of(kind="script", engine="native", files=({"name": "own.sql", "text": "SELECT 1;\n\\set x 1 +\n"},))
    with pytest.raises(InputError, match=r"own\.sql:2:"):
        spec.require()


def test_a_sound_workload_is_not_refused() -> None:
    for entry in ({}, {"kind": "idle", "rate_per_s": 5}, {"script": "select-only", "rate_per_s": 5, "late_max_ms": 3}):
        workload_of(engine="native", **entry).require()


def test_idle_clients_need_no_tables_and_keep_their_schedule(cluster: Cluster, tmp_path: Path) -> None:
    spec = workload_of(kind="idle", rate_per_s=20_000, arrivals="fixed")
    outcome = run(cluster, spec, tmp_path)
    assert failed(*outcome.checks) == []
    assert outcome.account.scheduled == pytest.approx(20_000, rel=0.05)
    assert spec.proofs(cluster, outcome) == ()


def test_what_the_server_refuses_is_an_error(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE bare")
    bare = Elsewhere(cluster.dsn.replace("dbname=postgres", "dbname=bare"), cluster.binaries)
    with pytest.raises(PgdynoError, match="pgbench_accounts"):
        run(bare, TPCB, tmp_path)


def test_clients_that_are_lost_make_a_check_fail(loaded: Cluster, tmp_path: Path) -> None:
    def shoot() -> None:
        with loaded.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgdyno drive' LIMIT 1"
            )

    baseline = TPCB.baseline(loaded)
    outcome = run(loaded, TPCB, tmp_path, on_measure_begin=shoot)
    assert [item.name for item in failed(*outcome.checks)] == ["clients_lasted"]
    assert outcome.driver.connections_lost == 1
    assert failed(*TPCB.proofs(loaded, outcome, baseline=baseline)) == [], "no committed transaction may be lost"


def own(text: str, **more: Any) -> Workload:
    """One script of a user's."""
    file = ScriptFile(name="own.sql", text=text, weight=1)
    return workload_of(kind="script", engine="native", files=(file,), clients=2, **more)


def test_a_refused_statement_makes_a_check_fail_and_loses_no_figures(loaded: Cluster, tmp_path: Path) -> None:
    with loaded.connect() as connection:
        connection.execute("CREATE TABLE drawn (n int PRIMARY KEY)")
        try:
            outcome = run(loaded, own("\\set n random(1, 400)\nINSERT INTO drawn VALUES (:n);\n"), tmp_path, 30.0)
            row = connection.execute("SELECT count(*) FROM drawn").fetchone()
        finally:
            connection.execute("DROP TABLE drawn")
    assert row == (outcome.account_total.succeeded,)
    checks = {check.name: check for check in outcome.checks}
    assert not checks["clients_lasted"].ok
    assert "own.sql:2 (INSERT INTO drawn VALUES ($1))" in checks["clients_lasted"].detail
    assert checks["nothing_is_missing"].ok
    assert not checks["measured_under_load"].ok


def test_a_run_of_which_nothing_succeeds_is_an_error(loaded: Cluster, tmp_path: Path) -> None:
    with pytest.raises(PgdynoError, match=r"own\.sql:1 \(SELECT \* FROM nowhere\)") as raises:
        run(loaded, own("SELECT * FROM nowhere;\n"), tmp_path)
    assert raises.value.exit_code == EXIT_FAILURE, "statements before it may be committed"


def test_a_sleep_of_a_script_is_slowed_with_the_world(loaded: Cluster, tmp_path: Path) -> None:
    outcome = run(loaded, own("\\sleep 30 ms\nSELECT 1;\n"), tmp_path, 1.0, clock=SubjectClock(dilation=3))
    assert outcome.account.succeeded > 0
    assert min(outcome.latency["latency_us"].to_pylist()) >= 30_000 * 0.99


def test_a_callback_that_fails_ends_the_driver(loaded: Cluster, tmp_path: Path) -> None:
    seen: list[int] = []

    def fail() -> None:
        raise PgdynoError("the volume is gone", remedy="")

    with pytest.raises(PgdynoError, match="the volume is gone"):
        run(loaded, TPCB, tmp_path, 30.0, on_start=seen.append, on_measure_begin=fail)
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0], 0)


def test_a_driver_that_is_stopped_says_what_it_has(loaded: Cluster, tmp_path: Path) -> None:
    document = native.document(TPCB, 0, 60_000) | {"server": loaded.endpoint.named("pgdyno test")}
    with DriverProcess(document, tmp_path / "err") as driving:
        result = driving.follow(lambda _second: driving.stop())
    assert result.summary is not None
    assert result.summary["succeeded"] > 0
    assert result.summary["end_ns"] - result.summary["begin_ns"] < 30 * 10**9


def test_many_clients_at_a_long_distance_have_the_time_to_log_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[float] = []

    def spawn(*_asked: Any, timeout_s: float, **_more: Any) -> _engine.EngineProcess:
        given.append(timeout_s)
        raise PgdynoError("this is no driver", remedy="")

    monkeypatch.setattr(_engine, "spawn", spawn)
    for clients, dilation in ((1, 1), (800, 1), (800, 4)):
        document = native.document(TPCB.model_copy(update={"clients": clients}), 0, 1000)
        with pytest.raises(PgdynoError, match="no driver"):
            DriverProcess(document, tmp_path / "err", dilation=dilation)
    # They log in one after the other, each with five round trips without TLS, of a second at most.
    assert given[0] >= _engine.TIMEOUT_S
    assert given[1] >= 800 * 5
    assert given[2] >= 4 * 800 * 5
