"""Transactions that the server could not put into an order: real ones, tried again, and their whole time counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.machine.waiting import wait_until
from pgdyno.workload import histogram

from .driven import drive, driving, line, own_script, settled, spec, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SERIALIZABLE = """
\\set id random(1, 4)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT sum(value) FROM counters;
UPDATE counters SET value = value + 1 WHERE id = :id;
END;
"""
CROSSING = """
\\set first random(1, 2)
BEGIN;
UPDATE counters SET value = value + 1 WHERE id = :first;
\\sleep 1 ms
UPDATE counters SET value = value + 1 WHERE id = 3 - :first;
END;
"""
QUICK_DETECTION = {"options": "-c deadlock_timeout=5ms"}
"""The server looks for a deadlock after a second else."""
HELD_US = 900_000
"""A second of the driver's own, less what its ends may be late by."""
PATIENCE_S = 20.0


@pytest.fixture
def counters(dsn: str) -> Iterator[str]:
    """Four rows that transactions fight for."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE counters (id integer PRIMARY KEY, value bigint NOT NULL)")
        connection.execute("INSERT INTO counters SELECT id, 0 FROM generate_series(1, 4) AS id")
        yield dsn
        connection.execute("DROP TABLE counters")


def total(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT sum(value) FROM counters").fetchone()
    assert row is not None
    return int(row[0])


def fighting(script: str, **more: Any) -> dict[str, Any]:
    result = spec(workload=own_script(script), server=QUICK_DETECTION, clients=4, transactions_max=50)
    return result | {"duration_ms": 50_000} | more


@pytest.mark.parametrize(
    ("script", "error", "changes"), [(SERIALIZABLE, "serialization", 1), (CROSSING, "deadlock", 2)]
)
def test_conflicts_are_counted_by_their_class(counters: str, script: str, error: str, changes: int) -> None:
    summary = drive(counters, fighting(script)).summary
    assert summary["failed"] > 0
    assert summary["errors"] == {error: summary["failed"]}
    assert summary["retries"] == 0
    assert settled(summary) == summary["scheduled_with_warmup"] == 4 * 50
    assert total(counters) == changes * summary["succeeded"], "what failed changed nothing"


@pytest.mark.parametrize(("script", "changes"), [(SERIALIZABLE, 1), (CROSSING, 2)])
def test_conflicts_are_tried_again_until_they_succeed(counters: str, script: str, changes: int) -> None:
    summary = drive(counters, fighting(script, tries_max=0)).summary
    assert summary["retries"] > 0
    assert (summary["failed"], summary["errors"], summary["succeeded"]) == (0, {}, 4 * 50)
    assert total(counters) == changes * 4 * 50, "each succeeded once"


def test_the_time_of_a_failed_try_is_in_the_latency(counters: str) -> None:
    """The first try waits for a row until somebody else changes it, and fails; the second is quick."""
    script = (
        "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT sum(value) FROM counters;\n"
        "UPDATE counters SET value = value + 1 WHERE id = 1;\nEND;\n"
    )
    document = fighting(script, clients=1, transactions_max=1, tries_max=2)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno drive' AND wait_event_type = 'Lock'"
    with psycopg.connect(counters) as blocker, psycopg.connect(counters, autocommit=True) as observer:
        blocker.execute("UPDATE counters SET value = value + 1 WHERE id = 1")
        with driving(counters, document) as process:
            assert "ready" in line(process)
            assert wait_until(lambda: observer.execute(waits).fetchone() == (1,), PATIENCE_S), "it waits"
            line(process)  # until a second is over
            blocker.commit()
            _, result = summary_of(process)
    assert (result["succeeded"], result["retries"], result["failed"]) == (1, 1, 0)
    script_time = histogram.decode(result["scripts"][0]["service_us"])
    assert script_time.get_min_value() >= HELD_US, "the lock was held for the driver's first second"
    ends = next(statement for statement in result["statements"] if statement["name"] == "END")
    assert ends["count"] == 1, "the first try ended otherwise"
    assert histogram.decode(ends["service_us"]).get_max_value() < HELD_US
    assert total(counters) == 2
