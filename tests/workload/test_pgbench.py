"""pgbench against a server: what it counts is what the tables hold, and a loss is noticed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import HostError, PgdynoError
from pgdyno.kinds.registry import workload_of
from pgdyno.results import RunWriter
from pgdyno.results.record import Account
from pgdyno.results.tables import SubjectClock
from pgdyno.workload import histogram, pgbench
from pgdyno.workload.clock import now_ns
from pgdyno.workload.fill import load
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import environment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.kind import Workload

SPEC = workload_of(scale=2, clients=4, seed=11)
PACED = workload_of(scale=2, clients=4, seed=11, rate_per_s=400)
"""For what does not depend on the loop: the machine has other tests to run."""


@dataclass(frozen=True)
class Elsewhere:
    """A server that is somewhere else than its programs say, or the other way round."""

    dsn: str
    binaries: Any


def run(server: Any, spec: Any, seconds: float, folder: Path, **more: Any) -> Outcome:
    return pgbench.run(server, RunRequest(seconds, folder, **more), spec)


def loaded(cluster: Cluster, spec: Workload = SPEC) -> Cluster:
    load(cluster, spec.data_set())
    return cluster


@pytest.fixture(scope="module")
def tpcb(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A second of warm-up and two of measuring, on tables just loaded."""
    directory = tmp_path_factory.mktemp("tpcb")
    return run(loaded(cluster), SPEC, 2.0, directory, warmup_s=1.0)


def test_loading_reports_progress_and_counts_rows(cluster: Cluster, tmp_path: Path) -> None:
    shown: list[float] = []
    outcome = load(cluster, SPEC.data_set(), lambda share, _text: shown.append(share), log=tmp_path / "load.log")
    assert outcome.rows == {
        "pgbench_branches": 2,
        "pgbench_tellers": 20,
        "pgbench_accounts": 200_000,
        "pgbench_history": 0,
    }
    assert {"client-side generate", "vacuum", "primary keys", "checkpoint"} <= set(outcome.seconds)
    assert shown == sorted(shown)
    assert shown[-1] == 1.0
    assert "primary keys" in (tmp_path / "load.log").read_text()


def test_the_server_agrees_with_the_account(cluster: Cluster, tpcb: Outcome) -> None:
    checks = (*tpcb.checks, *SPEC.proofs(cluster, tpcb, full=True))
    assert [check for check in checks if not check.ok] == []
    assert {"history_rows", "balances", "accounts_balance", "transaction_log_complete"} <= {c.name for c in checks}


def test_the_phases_follow_each_other_and_the_tables_cover_them(tpcb: Outcome) -> None:
    warmup, measure = tpcb.phases
    assert (warmup.name, measure.name) == ("warmup", "measure")
    assert warmup.end_ns == measure.begin_ns
    assert measure.seconds == pytest.approx(2.0, abs=1e-3)
    assert warmup.seconds >= 1.0
    rows = [row for row in tpcb.throughput.to_pylist() if row["t_begin_ns"] >= measure.begin_ns]
    assert rows[0]["t_begin_ns"] == measure.begin_ns
    assert rows[-1]["t_end_ns"] == measure.end_ns
    assert sum(row["transactions"] for row in rows) == tpcb.account.succeeded
    assert tpcb.tps == pytest.approx(tpcb.account.succeeded / 2.0, rel=1e-3)


def test_what_ended_outside_the_measure_phase_is_not_in_its_account(tpcb: Outcome) -> None:
    assert 0 < tpcb.account.succeeded < tpcb.account_total.succeeded == tpcb.writes_total
    assert histogram.decode(tpcb.histograms["histograms"]["all"]).get_total_count() == tpcb.account.succeeded


def test_a_change_by_somebody_else_is_noticed(cluster: Cluster, tmp_path: Path) -> None:
    outcome = run(loaded(cluster), PACED, 1.0, tmp_path)
    with cluster.connect() as connection:
        connection.execute("UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1")
        connection.execute("UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1")
        connection.execute("DELETE FROM pgbench_history WHERE ctid = (SELECT min(ctid) FROM pgbench_history)")
        connection.execute("DELETE FROM pgbench_branches WHERE bid = 2")
    failed = {proof.name for proof in PACED.proofs(cluster, outcome, full=True) if not proof.ok}
    assert failed == {"balances", "accounts_balance", "history_rows", "pgbench_branches_rows"}


def test_a_baseline_lets_tables_be_used_again(cluster: Cluster, tmp_path: Path) -> None:
    run(loaded(cluster), PACED, 1.0, tmp_path)
    baseline = PACED.baseline(cluster, full=True)
    outcome = run(cluster, PACED, 1.0, tmp_path)
    assert all(proof.ok for proof in PACED.proofs(cluster, outcome, baseline=baseline, full=True))
    assert not all(proof.ok for proof in PACED.proofs(cluster, outcome))


def test_a_mix_in_an_open_loop(cluster: Cluster, tmp_path: Path) -> None:
    spec = workload_of(
        script="select-only@3,simple-update@1",
        scale=2,
        clients=4,
        threads=2,
        protocol="extended",
        rate_per_s=400,
        late_max_ms=200,
        tries_max=3,
    )
    begun: list[str] = []
    outcome = run(
        loaded(cluster, spec),
        spec,
        2.0,
        tmp_path,
        on_start=lambda pid: begun.append(f"pid {pid > 0}"),
        on_measure_begin=lambda: begun.append("begin"),
        on_measure_end=lambda: begun.append("end"),
        prefix=("nice", "-n", "0"),
    )
    assert begun == ["pid True", "begin", "end"]
    assert [check for check in (*outcome.checks, *spec.proofs(cluster, outcome, full=True)) if not check.ok] == []
    assert outcome.account.scheduled / 2.0 == pytest.approx(400, rel=0.25)  # Poisson: 800 +- 28; some may be skipped
    assert 0 < outcome.writes_total < outcome.account_total.succeeded
    writer = RunWriter(tmp_path, "e", "r")
    outcome.write(writer)
    assert {path.name for path in (writer.path / "workload").iterdir()} == {
        "latency.parquet",
        "latency.hdr.json",
        "service.parquet",
        "throughput.parquet",
    }
    document = json.loads((writer.path / "workload/latency.hdr.json").read_text())
    assert set(document["histograms"]) == {"select-only", "simple-update", "all"}
    assert document["unit"] == "us"


def test_a_dilated_run_is_told_in_the_subjects_time(cluster: Cluster, tmp_path: Path) -> None:
    """400 transactions for each of the subject's seconds are 200 for each of the host's, and it lasts twice as long."""
    spec = workload_of(script="select-only", scale=2, clients=4, rate_per_s=400, late_max_ms=200)
    shown: list[str] = []
    clock = SubjectClock(now_ns(), 2)
    outcome = run(
        loaded(cluster, spec), spec, 1.5, tmp_path, progress=lambda _share, text: shown.append(text), clock=clock
    )
    assert [check for check in outcome.checks if not check.ok] == []
    assert outcome.phases[-1].seconds == pytest.approx(1.5, abs=0.01)
    assert outcome.account.scheduled / 1.5 == pytest.approx(400, rel=0.25)
    assert "-R 200" in " ".join(outcome.command)
    assert "-L 400" in " ".join(outcome.command)
    # Bins are the subject's seconds.
    widths = {
        end - begin
        for begin, end in zip(
            *(outcome.throughput[f"t_{edge}_ns"].to_pylist() for edge in ("begin", "end")), strict=True
        )
    }
    assert max(widths) == 1_000_000_000


@pytest.mark.parametrize("script", ["tpcb-like", "select-only,simple-update"])
def test_other_versions_of_pgbench(older_server: Cluster, tmp_path: Path, script: str) -> None:
    spec = workload_of(scale=1, script=script, clients=2, rate_per_s=200, late_max_ms=500, tries_max=2)
    outcome = run(loaded(older_server, spec), spec, 1.0, tmp_path)
    assert [check for check in (*outcome.checks, *spec.proofs(older_server, outcome, full=True)) if not check.ok] == []


def test_clients_that_are_lost_make_a_check_fail(cluster: Cluster, tmp_path: Path) -> None:
    def shoot() -> None:
        with cluster.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'pgdyno pgbench' ORDER BY pid LIMIT 1"
            )

    outcome = run(loaded(cluster), PACED, 1.0, tmp_path, on_measure_begin=shoot)
    failed = [check for check in outcome.checks if not check.ok]
    assert [item.name for item in failed] == ["clients_lasted"]
    assert outcome.uncounted_max == PACED.clients
    assert all(proof.ok for proof in PACED.proofs(cluster, outcome)), "no committed transaction may be lost"


def test_a_server_that_dies_shortens_the_phase_and_says_so(cluster: Cluster, tmp_path: Path) -> None:
    def shoot() -> None:
        with cluster.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgdyno pgbench'"
            )

    outcome = run(loaded(cluster), PACED, 30.0, tmp_path, on_measure_begin=shoot)
    assert outcome.phases[-1].seconds < 10
    assert {check.name for check in outcome.checks if not check.ok} >= {"clients_lasted", "measured_under_load"}


def test_tables_that_are_missing_are_an_error(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")
    with pytest.raises(PgdynoError, match="pgbench failed") as caught:
        run(cluster, SPEC, 1.0, tmp_path)
    assert "pgbench_branches" in caught.value.message
    assert "pgbench_branches" in (tmp_path / "pgbench.err").read_text()


def test_a_callback_that_fails_ends_pgbench(cluster: Cluster, tmp_path: Path) -> None:
    seen: list[int] = []

    def fail() -> None:
        raise PgdynoError("the volume is gone", remedy="")

    with pytest.raises(PgdynoError, match="the volume is gone"):
        run(loaded(cluster), PACED, 30.0, tmp_path, on_start=seen.append, on_measure_begin=fail)
    with pytest.raises(ProcessLookupError):
        os.kill(seen[0], 0)


def test_a_directory_without_pgbench_is_the_hosts_fault(cluster: Cluster, tmp_path: Path) -> None:
    elsewhere = Elsewhere(cluster.dsn, replace(cluster.binaries, bin_dir=tmp_path))
    with pytest.raises(HostError, match="no pgbench"):
        run(elsewhere, SPEC, 1.0, tmp_path)
    with pytest.raises(HostError, match="no pgbench"):
        load(elsewhere, SPEC.data_set())


def test_a_server_that_is_not_there_is_an_error(cluster: Cluster, tmp_path: Path) -> None:
    elsewhere = Elsewhere(f"host={tmp_path} user=x dbname=y", cluster.binaries)
    with pytest.raises(PgdynoError, match="could not load"):
        load(elsewhere, SPEC.data_set())
    with pytest.raises(PgdynoError, match="pgbench failed"):
        run(elsewhere, SPEC, 1.0, tmp_path)


def test_a_password_goes_by_the_environment(tpcb: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=1")
    made = environment(Elsewhere("host=h user=u password=secret dbname=d", None), {"EXTRA": "1"})
    assert made["PGPASSWORD"] == "secret"
    assert (made["PGHOST"], made["PGUSER"], made["PGDATABASE"], made["EXTRA"]) == ("h", "u", "d", "1")
    assert "PGOPTIONS" not in made
    assert not any("dbname" in part or "host" in part for part in tpcb.command)


def test_an_account_is_whole(tpcb: Outcome) -> None:
    assert tpcb.account_total == Account(
        scheduled=tpcb.account_total.scheduled,
        skipped=0,
        succeeded=tpcb.account_total.scheduled,
        failed=0,
    )


def test_so_many_transactions_are_measured_from_the_first_to_the_last(cluster: Cluster, tmp_path: Path) -> None:
    spec = workload_of(scale=2, clients=4, seed=11, transactions=50)
    called: list[str] = []
    outcome = run(
        loaded(cluster, spec), spec, 30.0, tmp_path,
        on_measure_begin=lambda: called.append("begin"), on_measure_end=lambda: called.append("end"),
    )  # fmt: skip
    assert called == ["begin", "end"]
    assert outcome.account.succeeded == outcome.account_total.succeeded == 200
    warmup, measure = outcome.phases
    assert warmup.seconds == 0
    assert 0 < measure.seconds < 30
    assert sum(row["count"] for row in outcome.latency.to_pylist()) == 200
    assert sum(row["transactions"] for row in outcome.throughput.to_pylist()) == 200
    assert [check.name for check in outcome.checks if not check.ok] == []
    assert "all_transactions_made" in {check.name for check in outcome.checks}
    # Four clients that never wait: their times add up to the phase.
    busy_s = sum(row["latency_us"] * row["count"] for row in outcome.latency.to_pylist()) / 1e6
    assert 0.5 < busy_s / (4 * measure.seconds) <= 1.05, "a client that is not scheduled adds to the phase alone"
