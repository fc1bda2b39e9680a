"""What a load says, and what is left of one that did not come to its end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from .filled import Database, error_of, fill, filling, pgbench, refused, sysbench, wait_for_rows

LONG = 200
"""A scale that takes many seconds on any machine."""


def overlap(document: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two steps were under way at the same time."""
    return bool(document["begin_ns"] < other["end_ns"] and other["begin_ns"] < document["end_ns"])


def test_progress_only_grows_and_ends_with_everything(database: Callable[[], Database]) -> None:
    filled = fill(database(), pgbench(3, interval_ms=50))
    assert len(filled.progress) > 3
    for key in ("t_ns", "rows", "bytes", "share"):
        values = [line[key] for line in filled.progress]
        assert values == sorted(values), key
    last = filled.progress[-1]
    assert (last["rows"], last["share"], last["under_way"]) == (filled.ready["rows_all"], 1.0, {})
    assert last["left_s"] == pytest.approx(0.0)
    assert any("copy" in line["under_way"] and line["left_s"] for line in filled.progress)
    assert filled.summary["bytes"] == last["bytes"] > 10 * filled.summary["rows_all"]


def test_the_digest_of_rows_depends_on_them_and_not_on_how_they_are_sent(database: Callable[[], Database]) -> None:
    made = database()
    alone, shared = (
        fill(made, sysbench(2, 5_000, **how)).summary["digests"]
        for how in ({"connections": 1, "split": False}, {"connections": 3, "split": True})
    )
    assert alone == shared
    assert len(set(alone.values())) == len(alone) == 2, "each table has rows of its own"
    other = fill(made, sysbench(2, 5_000, seed=2)).summary["digests"]
    assert not set(other.values()) & set(alone.values())


def test_steps_are_told_and_their_time_is_the_whole(database: Callable[[], Database]) -> None:
    filled = fill(database(), pgbench(1, foreign_keys=True))
    whats = [step["what"] for step in filled.steps if step["table"] == "pgbench_accounts"]
    assert whats == ["copy", "vacuum", "primary key", "foreign key"]
    assert filled.steps[0]["what"] == "drop"
    begin, end = filled.summary["begin_ns"], filled.summary["end_ns"]
    assert all(begin <= step["begin_ns"] <= step["end_ns"] <= end for step in filled.steps)
    assert sum(filled.summary["ns"].values()) <= end - begin, "one session does one thing at a time"


def test_tables_are_loaded_at_the_same_time(database: Callable[[], Database]) -> None:
    filled = fill(database(), sysbench(2, 50_000, connections=2))
    copies = [step for step in filled.steps if step["what"] == "copy"]
    assert {step["session"] for step in copies} == {0, 1}
    assert overlap(*copies)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_load_leaves_nothing(
    database: Callable[[], Database], number: signal.Signals, split: bool
) -> None:
    made = database()
    with filling(made, pgbench(LONG, connections=2, split=split, interval_ms=50)) as process:
        wait_for_rows(process)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert error_of(process, err)["message"] == "interrupted"
    assert made.tables() == []
    made.wait_for_no_session_of("pgdyno fill")


def test_sessions_that_the_server_ends_are_one_sentence_and_leave_nothing(database: Callable[[], Database]) -> None:
    made = database()
    with filling(made, pgbench(LONG, connections=2, split=True, interval_ms=50)) as process:
        wait_for_rows(process)
        made.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgdyno fill'")
        _, err = process.communicate(timeout=60)
    message = error_of(process, err)["message"]
    assert "57P01" in message or "hung up" in message or "lost" in message
    assert made.tables() == []


def test_rows_that_the_server_refuses_end_the_load(database: Callable[[], Database]) -> None:
    made = database()
    error = refused(made, pgbench(LONG, server={"options": "-c statement_timeout=300"}))
    assert "statement timeout" in error["message"]
    assert made.tables() == []


def test_a_table_of_somebody_else_is_refused_and_stays(database: Callable[[], Database]) -> None:
    made = database()
    made.run("CREATE TABLE pgbench_tellers AS SELECT 42 AS mine")
    error = refused(made, pgbench(1, replace=False, connections=4))
    assert '"pgbench_tellers" already exists' in error["message"]
    assert "drop" in error["remedy"]
    assert made.tables() == ["pgbench_tellers"]
    assert made.rows("SELECT mine FROM pgbench_tellers") == [(42,)]


def test_what_cannot_be_made_is_refused_before_anything_is_done(database: Callable[[], Database]) -> None:
    made = database()
    assert "fill factor" in refused(made, pgbench(1, fillfactor=5))["message"]
    assert "rows do not fit" in refused(made, sysbench(1, 2**31))["message"]
    assert "cannot read" in refused(made, {"tables": {"tpcd": {}}})["message"]
    assert "53300" in refused(made, sysbench(500, 1, connections=500))["message"]
    assert made.tables() == []
