"""What the driver counts is what the server did, and nothing that was scheduled is missing."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import psycopg
import pytest

from pgdyno.base import engine
from pgdyno.workload import histogram

from .driven import PAUSED, TIMEOUT_S, drive, driving, environment, own_script, refused, settled, spec, told

_LEDGER = """
SELECT (SELECT count(*) FROM pgbench_history), (SELECT coalesce(sum(delta), 0) FROM pgbench_history),
       (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),
       (SELECT sum(bbalance) FROM pgbench_branches)
"""
POISSON_SIGMAS = 5.0
"""A correct count is outside of so many standard deviations once in 1.7 million."""


def ledger(dsn: str) -> list[int]:
    """Rows of history, and the sums of its changes and of the balances."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(_LEDGER).fetchone()
    assert row is not None
    return [int(value) for value in row]


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_the_server_did_what_was_counted(dsn: str, protocol: str) -> None:
    before = ledger(dsn)
    result = drive(dsn, spec("tpcb-like", protocol=protocol, threads=2, transactions_max=200))
    rows, *sums = [after - old for after, old in zip(ledger(dsn), before, strict=True)]
    assert rows == result.summary["succeeded"] > 0
    assert len(set(sums)) == 1, "history, accounts, tellers and branches changed alike"
    assert result.summary["failed"] == 0
    assert result.summary["scheduled_with_warmup"] == settled(result.summary)


def test_seconds_add_up_and_the_warm_up_is_not_in_the_whole(dsn: str) -> None:
    result = drive(dsn, spec("select-only,simple-update", warmup_ms=1000, duration_ms=2000, arrivals=PAUSED))
    assert [second["warmup"] for second in result.seconds[:3]] == [True, False, False]
    measured = [second for second in result.seconds if not second["warmup"]]
    rest = result.summary["succeeded"] - sum(second["succeeded"] for second in measured)
    assert 0 <= rest <= 4, "what ended after the last second was under way: at most one for each client"
    whole = result.summary["scheduled_with_warmup"]
    assert whole == settled(result.summary) + result.summary["settled_in_warmup"]
    for number, script in enumerate(result.summary["scripts"]):
        assert histogram.decode(script["response_us"]).get_total_count() == script["succeeded"] > 0
        parts = [histogram.decode(second["scripts"][number]["service_us"]) for second in measured]
        assert 0 <= script["succeeded"] - sum(part.get_total_count() for part in parts) <= 4
    counts = [statement["count"] for statement in result.summary["statements"] if statement["count"]]
    assert len(counts) == 1 + 5, "statements of each script are counted apart"


def test_a_poisson_schedule_has_its_rate_and_none_of_it_is_missing(dsn: str) -> None:
    rate, seconds = 2000, 2
    result = drive(dsn, spec(arrivals={"poisson": {"rate_per_s": rate}}, duration_ms=seconds * 1000))
    assert abs(settled(result.summary) - rate * seconds) < POISSON_SIGMAS * (rate * seconds) ** 0.5
    assert settled(result.summary) == result.summary["scheduled_with_warmup"]


def test_a_fixed_schedule_is_exact(dsn: str) -> None:
    result = drive(dsn, spec(arrivals={"fixed": {"rate_per_s": 500}}))
    assert abs(settled(result.summary) - 500) <= 1


def test_a_schedule_whose_last_transaction_is_done_is_driven_until_its_time_is_over(dsn: str) -> None:
    """The last transaction is due half a second before the end, on each of two threads."""
    answer = spec(arrivals={"fixed": {"rate_per_s": 0.8}}, threads=2, duration_ms=3000)
    result = drive(dsn, answer)
    assert result.summary["succeeded"] == settled(result.summary) == 2
    assert (result.summary["end_ns"] - result.summary["begin_ns"]) / 1e9 >= 3.0
    assert len(result.seconds) >= 3


def test_a_stalled_server_shows_in_the_response_and_not_in_the_service_time(dsn: str) -> None:
    """A lock holds the one client that met it; the others' places in the schedule wait."""
    result = spec("simple-update", clients=1, arrivals={"fixed": {"rate_per_s": 200}}, duration_ms=3000)
    with psycopg.connect(dsn) as blocker, driving(dsn, result) as process:
        assert process.stdout is not None
        process.stdout.readline()
        blocker.execute("LOCK TABLE pgbench_history IN ACCESS EXCLUSIVE MODE")
        process.stdout.readline()
        process.stdout.readline()
        blocker.rollback()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    summary = json.loads(out.splitlines()[-1])["summary"]
    script = summary["scripts"][0]
    response = histogram.decode(script["response_us"])
    service = histogram.decode(script["service_us"])
    assert response.get_value_at_percentile(90) > 1_000_000 > 500_000 > service.get_value_at_percentile(90)
    assert settled(summary) == summary["scheduled_with_warmup"]


def test_what_is_too_late_is_skipped_and_counted(dsn: str) -> None:
    answer = spec(clients=1, arrivals={"fixed": {"rate_per_s": 200_000}}, late_max_ms=5, duration_ms=300)
    result = drive(dsn, answer)
    assert result.summary["skipped_late"] > 0
    assert result.summary["skipped_late"] + result.summary["skipped_ended"] + result.summary["succeeded"] == settled(
        result.summary
    )
    assert abs(settled(result.summary) - 60_000) <= 1


def test_one_seed_asks_for_the_same(dsn: str) -> None:
    def first(seed: int) -> list[tuple[Any, ...]]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("TRUNCATE pgbench_history")
            drive(dsn, spec("simple-update", clients=1, seed=seed, duration_ms=300))
            return connection.execute("SELECT tid, bid, aid, delta FROM pgbench_history LIMIT 20").fetchall()

    result = first(1)
    assert len(result) == 20
    assert first(1) == result != first(2)


def test_terminated_sessions_are_made_anew_and_counted(dsn: str) -> None:
    with driving(dsn, spec("select-only", duration_ms=2000)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with psycopg.connect(dsn, autocommit=True) as connection:
            killed = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgdyno drive'"
            ).fetchall()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    summary = lines[-1]["summary"]
    assert summary["connections_lost"] == len(killed) == 4
    assert summary["errors"] == {"connection": summary["failed"]}
    assert summary["down_ns"] > 0
    assert lines[1]["second"]["succeeded"] > 0, "it went on"
    assert settled(summary) == summary["scheduled_with_warmup"]


def test_a_missing_table_is_one_sentence(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE empty")
    error = refused(dsn, spec(server={"dbname": "empty"}), code=1)
    assert 'relation "pgbench_accounts" does not exist' in error["message"]
    assert "load" in error["remedy"]


def test_too_few_connections_and_an_absent_server_are_said(dsn: str) -> None:
    assert "53300" in refused(dsn, spec(clients=500))["message"]
    error = refused("", spec(server={"host": "/nowhere", "user": "u"}))
    assert "/nowhere" in error["message"]


def test_idle_clients_keep_their_schedule_without_a_server() -> None:
    document = {"workload": "idle", "clients": 8, "duration_ms": 1000, "arrivals": {"fixed": {"rate_per_s": 50_000}}}
    result = drive("", document)
    assert abs(settled(result.summary) - 50_000) <= 1
    assert result.summary["lag_us"]["count"] == result.summary["succeeded"]


def test_a_script_of_the_users_runs_with_its_variables_and_answers(dsn: str) -> None:
    text = (
        "\\set aid random(1, 100000 * :scale)\n"
        "SELECT abalance AS balance FROM pgbench_accounts WHERE aid = :aid \\gset\n"
        "\\startpipeline\nSELECT :balance + 1;\nSELECT 2;\n\\endpipeline\n"
    )
    workload = {"pgbench": {"scripts": [{"text": text, "name": "own.sql", "weight": 1}], "scale": 2}}
    result = drive(dsn, spec(workload=workload, transactions_max=50))
    assert result.summary["succeeded"] == 4 * 50
    assert result.summary["scripts"][0]["name"] == "own.sql"


def test_a_statement_behind_the_sync_of_a_pipeline_is_prepared_once(dsn: str) -> None:
    text = "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\n"
    result = drive(dsn, spec(workload=own_script(text), transactions_max=3))
    assert (result.summary["succeeded"], result.summary["failed"]) == (4 * 3, 0)


def test_a_copy_that_wants_rows_ends_the_run_and_not_each_connection(dsn: str) -> None:
    result = spec(workload=own_script("COPY pgbench_history FROM STDIN;"))
    assert "COPY wants rows" in refused(dsn, result, code=1)["message"]


def test_a_malformed_script_names_line_and_column(dsn: str) -> None:
    workload = {"pgbench": {"scripts": [{"text": "SELECT 1;\n\\set x 1 +\n", "name": "own.sql"}], "scale": 1}}
    assert "own.sql:2:" in refused(dsn, spec(workload=workload))["message"]


def test_the_last_thought_of_a_client_is_not_in_the_time_of_the_whole(dsn: str) -> None:
    summary = drive(dsn, spec("select-only", arrivals={"think": {"ms": 30_000}})).summary
    assert summary["succeeded"] == 4, "each client thinks longer than the run lasts"
    assert (summary["end_ns"] - summary["begin_ns"]) / 1e9 < 20, (
        "with the last thought it would be 30 s; 1 s was asked for"
    )


def test_that_clients_begin_together_is_no_lateness_of_the_driver(dsn: str) -> None:
    """Validity is judged by what it was late for: in a closed loop it waits for nothing but answers."""
    result = drive(dsn, spec("select-only", clients=20, duration_ms=300))
    assert result.summary["wake_us"]["count"] == 0


def test_more_clients_than_the_usual_limit_of_open_files_are_connected(dsn: str) -> None:
    """The limit that a shell has of its own is lowered here, below what these clients need."""
    result = spec("select-only", clients=30, transactions_max=1)
    done = subprocess.run(
        ["sh", "-c", 'ulimit -S -n 24; exec "$0" drive', str(engine.checked())],
        input=json.dumps(told(dsn, result)).encode() + b"\n",
        env=environment(),
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["succeeded"] == 30
