"""The statements of a capture, sent to a copy of the database as it was, do what they did."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.replay import reasons
from pgdyno.machine.waiting import wait_until
from pgdyno.results.work_record import DoubtfulPlace, ReplayedKeys, ReplayRecord, TimeDistribution
from tools.captured.logged import log_of

from ..support.commands import pgdyno
from .logged import AS_SUPERUSER, captured, connected
from .shop import FAILING, Shop

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster


@pytest.mark.parametrize("pace", ["due", "gaps"])
def test_a_replay_leaves_the_rows_that_production_left(shop: Shop, pace: str) -> None:
    copy = shop.copy("replayed")
    ended = shop.replay(copy, "--yes-write", "--json", "--pace", pace)
    document = json.loads(ended.out)
    assert (document["newly_failed"], document["errors"]) == (0, []), document["errors"]
    assert document["failed_as_recorded"] == FAILING
    assert (document["no_longer_failed"], document["not_begun"], document["connections_lost"]) == (0, 0, 0)
    assert shop.rows(copy) == shop.rows("shop") != shop.rows("before")
    assert ended.code == 0, ended.err
    assert document["statements"] == json.loads(pgdyno("capture", "show", shop.capture, "--json", code=0).out)["calls"]


def test_there_are_never_more_places_than_the_application_had(shop: Shop) -> None:
    document = json.loads(shop.replay(shop.copy("faster"), "--yes-write", "--json", "--speed", "3").out)
    shown = json.loads(pgdyno("capture", "show", shop.capture, "--json", code=0).out)
    assert document["lanes"] < shown["sessions"]
    assert document["sessions"] == shown["sessions"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP TABLE shop.orders", "failed that had not failed so in production"),
        ("UPDATE shop.customers SET id = -id", "failed that had not failed so in production"),
    ],
)
def test_another_database_makes_a_replay_invalid_and_no_value_is_printed(shop: Shop, change: str, said: str) -> None:
    ended = shop.replay(shop.copy("other", change=change), "--yes-write")
    assert ended.code == 4
    assert said in ended.err
    assert "INSERT INTO orders VALUES" in ended.out
    assert "it's" not in ended.out + ended.err


def test_errors_that_do_not_come_again_are_counted(shop: Shop) -> None:
    copy = shop.copy("lax", change="ALTER TABLE shop.orders DROP CONSTRAINT orders_pkey")
    ended = shop.replay(copy, "--yes-write", "--json")
    assert json.loads(ended.out)["no_longer_failed"] == FAILING
    assert ended.code == 4
    assert "did not fail as they had in production" in ended.err


def test_nothing_is_sent_without_the_flag_or_to_what_cannot_be_reached(shop: Shop) -> None:
    copy = shop.copy("untouched")
    assert "add --yes-write" in shop.replay(copy).err
    assert shop.replay("nowhere", "--yes-write").code == 3
    assert "no statement of the user" in shop.replay(copy, "--yes-write", "--user", "nobody=app").err
    assert "is not a pair" in shop.replay(copy, "--yes-write", "--user", "app").err
    assert shop.rows(copy) == shop.rows("before")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_replay_leaves_no_session(shop: Shop, sign: signal.Signals) -> None:
    copy = shop.copy("interrupted")
    where = ("--dsn", shop.cluster.dsn, "--database", f"shop={copy}", "--yes-write", *AS_SUPERUSER, "--speed", "0.01")
    command = [sys.executable, "-m", "pgdyno", "capture", "replay", str(shop.capture), *where]
    with shop.cluster.connect() as watcher:

        def connected_to_it() -> bool:
            count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state = 'idle'"
            return watcher.execute(count, [copy]).fetchone() != (0,)

        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert wait_until(connected_to_it, PATIENCE_S)
            process.send_signal(sign)
            _, err = process.communicate(timeout=PATIENCE_S)
            assert wait_until(lambda: not connected_to_it(), PATIENCE_S)
        finally:
            process.kill()
    assert "Traceback" not in err
    if sign == signal.SIGINT:
        assert (process.returncode, "interrupted" in err) == (130, True), err


NO_TIMES = TimeDistribution(count=0, mean_ms=0, p50_ms=0, p99_ms=0, max_ms=0)
RECORD = ReplayRecord(
    statements=1000,
    executed=970,
    failed_as_recorded=0,
    newly_failed=10,
    no_longer_failed=10,
    left_out={"a": 5, "b": 5},
    not_begun=0,
    not_asked=0,
    recorded_s=10.0,
    left_out_s=0.1,
    captured_s=60.0,
    due_s=60.0,
    took_s=60.0,
    sessions=1,
    lanes=1,
    connections_lost=0,
    response=NO_TIMES,
    service=NO_TIMES,
    recorded=NO_TIMES,
    behind=NO_TIMES,
)


def test_a_replay_that_loses_no_more_than_one_in_a_hundred_is_valid() -> None:
    assert list(reasons(RECORD)) == []
    for change in (
        {"newly_failed": 11},
        {"no_longer_failed": 11},
        {"left_out": {"a": 11}},
        {"left_out_s": 0.11},
        {"not_begun": 1},
        {"ended_by": "x"},
        {"log_entries": 10_000, "log_lost": 6},
    ):
        assert len(list(reasons(RECORD.model_copy(update=change)))) == 1, change


def test_a_replay_is_invalid_in_which_more_than_one_in_a_hundred_values_may_be_keys() -> None:
    place = DoubtfulPlace(statement="SELECT place($1)", place="$1", why="it is an argument of a function", count=10)
    keys = ReplayedKeys(
        learned=5,
        exchanged=990,
        doubtful=10,
        doubtful_places=(place,),
        ties=0,
        not_known=0,
        several_rows=0,
        waited=0,
        waited_s=0,
        given_up=0,
    )
    assert list(reasons(RECORD.model_copy(update={"keys": keys}))) == []
    (reason,) = reasons(RECORD.model_copy(update={"keys": keys.model_copy(update={"exchanged": 989})}))
    assert "$1 of SELECT place($1)" in reason


LOCK = 77


def test_an_advisory_lock_that_is_not_given_is_given_up(embedded_server: Cluster, tmp_path: Path) -> None:
    def use(server: Cluster) -> None:
        with connected(server) as session:
            session.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            session.execute("SELECT 'behind it'")

    capture, _ = captured(tmp_path, log_of(embedded_server, "locks", use).files["csv"])
    with connected(embedded_server, "who keeps it") as keeper:
        keeper.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        where = ("--dsn", embedded_server.dsn, "--yes-write", *AS_SUPERUSER, "--wait-max", "0.5", "--json")
        document = json.loads(pgdyno("capture", "replay", capture, *where).out)
    # Without an end to its patience it would last until the replay's limit.
    assert [(error["sqlstate"], error["count"]) for error in document["errors"]] == [("57014", 1)], document["errors"]
    assert (document["newly_failed"], document["not_begun"]) == (1, 0)


PATIENCE_S = 60.0
IDLE = "who has asked all that it will"
LATE_S = 2.0
"""A busy machine may be as late as that with one of two sessions, and each is still before the other."""


def test_a_session_stays_until_the_application_ended_it(embedded_server: Cluster, tmp_path: Path) -> None:
    def use(server: Cluster) -> None:
        count = "INSERT INTO seen SELECT %s, count(*) FROM pg_stat_activity WHERE application_name = %s"
        with connected(server) as session:
            session.execute("CREATE TABLE IF NOT EXISTS seen (place int, sessions int)")
            session.execute("TRUNCATE seen")
            with connected(server, IDLE) as idle:
                idle.execute("SELECT 'nothing more'")
                session.execute("SELECT pg_sleep(%s)", [LATE_S])
                session.execute(count, [1, IDLE])
                session.execute("SELECT pg_sleep(%s)", [LATE_S])
            session.execute("SELECT pg_sleep(%s)", [LATE_S])
            session.execute(count, [2, IDLE])

    def seen() -> list[Any]:
        with connected(embedded_server) as session:
            return session.execute("SELECT * FROM seen ORDER BY place").fetchall()

    capture, _ = captured(tmp_path, log_of(embedded_server, "idle", use).files["csv"])
    assert seen() == [(1, 1), (2, 0)]
    pgdyno("capture", "replay", capture, "--dsn", embedded_server.dsn, "--yes-write", *AS_SUPERUSER, code=0)
    assert seen() == [(1, 1), (2, 0)]
