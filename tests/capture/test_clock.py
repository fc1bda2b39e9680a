"""The clock of a replayed server: a dump and a log of long ago, and statements that ask for the time."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.analysis.replay import reasons
from pgdyno.base.errors import HostError
from pgdyno.experiment import read_experiment
from pgdyno.server.shifted import library

from ..support.commands import pgdyno
from .counted import counted
from .experiment import ran
from .logged import AS_SUPERUSER, logging_cluster
from .test_replay_kind import FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster
    from pgdyno.server.shifted import Shift

AGO = timedelta(days=400)
NEAR = timedelta(minutes=20)
"""Longer than the tests take. The rows of a window are the same for half an hour."""
ROUNDS = 60
A_DAY = 24
"""Orders of a day."""
SCHEMA = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE orders (id int PRIMARY KEY, placed_at timestamptz NOT NULL);
INSERT INTO orders SELECT n, now() - n * interval '1 hour' - interval '30 minutes' FROM generate_series(1, 2400) n;
CREATE INDEX ON orders (placed_at);
CREATE TABLE visits (at timestamptz NOT NULL DEFAULT now(), note text) PARTITION BY RANGE (at);
DO $$ BEGIN
  EXECUTE format('CREATE TABLE visits_of_now PARTITION OF visits FOR VALUES FROM (%L) TO (%L)', now() - interval '1 day', now() + interval '1 day');
END $$;
"""
WINDOW = "SELECT id FROM orders WHERE placed_at > now() - interval '60 days' AND placed_at < now() - interval '59 days'"
VISIT = "INSERT INTO visits (note) VALUES ('a visit')"
SHAPE = WINDOW.replace("'60 days'", "?").replace("'59 days'", "?")
FACTORS = '[factors]\n"workload.clock" = ["now", "capture"]'


@dataclass(frozen=True)
class Past:
    """What a server of 400 days ago logged, and what it counted before and after."""

    cluster: Cluster
    shift: Shift
    capture: Path
    stats: tuple[Path, Path]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """The server has the library that a replay's server has."""
    folder = tmp_path_factory.mktemp("past")
    then = datetime.now(UTC) - AGO
    shift = library(None if os.geteuid() == 0 else folder).to(int(then.timestamp() * 1e6))

    def use(server: Cluster) -> None:
        with psycopg.connect(server.dsn_of("postgres", "past"), autocommit=True) as connection:
            for _ in range(ROUNDS):
                connection.execute(WINDOW.encode())
                connection.execute(VISIT.encode())

    with logging_cluster(None, shared_preload_libraries="pg_stat_statements") as cluster:
        cluster.stop()
        cluster.start(environment=shift.environment)
        shift.require(cluster)
        with cluster.connect() as admin:
            admin.execute("CREATE DATABASE past")
            with cluster.connect(dbname="past") as owner:
                owner.execute(SCHEMA.encode())
                owner.execute("VACUUM ANALYZE")
            admin.execute("CREATE DATABASE past_before TEMPLATE past")
        result = counted(cluster, "past", folder, use)
        yield Past(cluster, shift, result.capture, result.stats)


def test_all_of_a_servers_clocks_are_shifted_and_its_timers_are_not(past: Past) -> None:
    then = datetime.now(UTC) - AGO
    with past.cluster.connect() as connection:
        # By gettimeofday, by time (the checkpointer's and the control file's), and what a session waits for.
        text = "SELECT now(), (SELECT checkpoint_time FROM pg_control_checkpoint()), pg_postmaster_start_time()"
        connection.execute("CHECKPOINT")
        row = connection.execute(text.encode()).fetchone()
        assert row is not None
        assert all(abs(item - then) < NEAR for item in row), row
        connection.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(30)")
    first_us = json.loads(pgdyno("capture", "show", past.capture, "--json", code=0).out)["first_us"]
    assert abs(datetime.fromtimestamp(first_us / 1e6, UTC) - then) < NEAR


def test_a_server_whose_clock_is_not_shifted_is_refused(past: Past, embedded_server: Cluster) -> None:
    with pytest.raises(HostError, match="could not be shifted"):
        past.shift.require(embedded_server)


def test_an_existing_servers_clock_is_told(past: Past, embedded_server: Cluster) -> None:
    where = ("--dsn", embedded_server.dsn, "--database", "past=postgres", "--yes-write", *AS_SUPERUSER)
    assert (
        "the server's clock is 400 d 00 h after the capture's" in pgdyno("capture", "replay", past.capture, *where).out
    )


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
def test_as_of_400_days_later_statements_find_what_they_found_then_by_a_clock_of_then_alone(
    past: Past, tmp_path: Path, state_dir: Path, image_dir: Path
) -> None:
    del state_dir, image_dir
    result = ran(
        past.cluster,
        "past_before",
        past.capture,
        tmp_path,
        'databases = ["past"]',
        kind="replay",
        stats=past.stats,
        factors=FACTORS,
    )
    runs = {run.record.workload["clock"]: run for run in result.runs}

    def rows(clock: str) -> tuple[int, int]:
        replay = runs[clock].record.replay
        assert replay is not None and replay.likeness is not None
        (statement,) = (statement for statement in replay.likeness.statements if statement.statement == SHAPE)
        return statement.here.rows, statement.production.rows

    then, now = runs["capture"].record, runs["now"].record
    assert then.replay is not None and now.replay is not None
    assert rows("capture") == (A_DAY * ROUNDS, A_DAY * ROUNDS)
    assert (then.replay.newly_failed, list(reasons(then.replay))) == (0, [])
    # There is no order of the last 60 days, and no partition for today.
    assert rows("now") == (0, A_DAY * ROUNDS)
    assert now.replay.newly_failed == ROUNDS
    assert any("0.00 times the rows" in reason for reason in reasons(now.replay))
    shift_s = then.postgres.clock_shift_s
    assert shift_s is not None and abs(shift_s + AGO.total_seconds()) < NEAR.total_seconds()
    assert now.postgres.clock_shift_s is None
    assert [arm["clock_shift_s"] for arm in result.document["arms"]] == [None, shift_s]
    # What people read has the day.
    began = datetime.fromtimestamp(then.anchor.unix_ns / 1e9 + shift_s, UTC)
    day = f"{began:%Y-%m-%d}"
    log = next(path for path in runs["capture"].path.rglob("*.log") if "database system is ready" in path.read_text())
    assert day in log.read_text() or f"{began + NEAR:%Y-%m-%d}" in log.read_text()
    assert day in pgdyno("report", result.directory, "--format", "md", code=0).out


def test_a_clock_is_the_captures_unless_another_is_asked_for(past: Past, tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    results = []
    for more in ("", 'clock = "now"\n', 'from = "0.001s"\n'):
        path.write_text(FILE.replace("shop.capture", str(past.capture)).replace("[workload.d", f"{more}[workload.d"))
        results.append(read_experiment(path).arms[0].workload.clock_unix_us)
    whole_us, no_us, part_us = results
    assert whole_us is not None and no_us is None
    assert part_us == whole_us + 1000
