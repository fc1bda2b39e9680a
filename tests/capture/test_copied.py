"""Rows of COPY that no log has are made by what the table's columns have, as many as production's server counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.base.errors import EXIT_INVALID, EXIT_USAGE

from ..support.commands import pgdyno
from .counted import copy_of, counted
from .logged import AS_SUPERUSER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

COPIES, ROWS = 6, 40
SCHEMA = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE shops (name text PRIMARY KEY);
INSERT INTO shops SELECT 'shop ' || n FROM generate_series(1, 50) n;
CREATE TABLE visits (
  id bigserial PRIMARY KEY, shop text NOT NULL REFERENCES shops, ref uuid NOT NULL UNIQUE, note text, doc json,
  day date NOT NULL, number int NOT NULL, UNIQUE (day, number)
);
INSERT INTO visits (shop, ref, note, doc, day, number)
  SELECT 'shop ' || 1 + n % 50, gen_random_uuid(), nullif('tab' || chr(9) || n % 3, 'tab' || chr(9) || '0'), '{"a": 1}',
         DATE '2026-01-01' + n % 30, n
  FROM generate_series(1, 3000) n;
CREATE TABLE codes (code text PRIMARY KEY);
INSERT INTO codes VALUES ('a');
"""
COPY = 'COPY public.visits (shop, "ref", note, doc, day, number) FROM STDIN'
ANY = "COPY visits FROM STDIN WITH (FORMAT csv)"
CODES = "COPY codes FROM STDIN"


def copying(dsn: str) -> None:
    """An application that copies: what can be made, a format that cannot, and a column of which no new value can be."""
    with psycopg.connect(dsn, autocommit=True) as session, session.cursor() as cursor:
        for number in range(COPIES):
            with cursor.copy(COPY.encode()) as copy:
                for row in range(ROWS):
                    ref = f"00000000-0000-0000-0000-{number:06}{row:06}"
                    copy.write_row(("shop 7", ref, None, "{}", "2027-01-01", 10_000 + number * ROWS + row))
        with cursor.copy(CODES) as copy:
            copy.write_row(("b",))
        with cursor.copy(ANY) as copy:
            copy.write(b"9000001,shop 7,10000000-0000-0000-0000-000000000000,,{},2027-01-02,1\n")


@pytest.fixture(scope="module")
def replayed(
    embedded_server: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., tuple[dict[str, Any], Any]]:
    """Replay on a new copy: what was printed, and what the table has then."""
    folder = tmp_path_factory.mktemp("copied")
    with embedded_server.connect() as admin:
        admin.execute("CREATE DATABASE copying")
        with embedded_server.connect(dbname="copying") as owner:
            owner.execute(SCHEMA.encode())
            owner.execute("VACUUM ANALYZE visits")
        admin.execute("CREATE DATABASE copying_before TEMPLATE copying")
    made = counted(embedded_server, "copying", folder, lambda server: copying(server.dsn_of("postgres", "copying")))

    def replay(*options: str) -> tuple[dict[str, Any], Any]:
        copy_of(embedded_server, "copying_before", "copied")
        where = ("--dsn", embedded_server.dsn, "--database", "copying=copied", "--yes-write", *AS_SUPERUSER, "--json")
        ended = pgdyno("capture", "replay", made.capture, *where, *options, "--stats", *made.stats, code=EXIT_INVALID)
        with embedded_server.connect(dbname="copied") as session:
            rows = session.execute(
                "SELECT count(*), count(DISTINCT shop), count(note), min(number), max(id) FROM visits WHERE id > 3000"
            )
            return json.loads(ended.out), rows.fetchone()

    return replay


def test_as_many_rows_are_made_as_production_counted(
    replayed: Callable[..., tuple[dict[str, Any], Any]],
) -> None:
    result, (count, shops, notes, first, last) = replayed("--copy", "made")
    assert result["copies_made"] == COPIES
    assert (result["newly_failed"], result["left_out"]) == (0, {"rows of COPY are in no log": 2}), result["errors"]
    # Its id is the sequence's business; a number of several columns is new, and refers to nothing.
    assert (count, first, last) == (COPIES * ROWS, 3001, 3000 + COPIES * ROWS)
    # 240 draws of 50 shops leave 0.4 of them out on average; two of three notes are not NULL, to six standard deviations.
    assert shops > 39 and abs(notes - count * 2 / 3) < 44


def test_without_being_asked_for_none_is_made(replayed: Callable[..., tuple[dict[str, Any], Any]]) -> None:
    result, (count, *_) = replayed()
    assert (result["copies_made"], result["left_out"], count) == (0, {"rows of COPY are in no log": COPIES + 2}, 0)


def test_counters_are_needed(tmp_path: Path) -> None:
    where = ("--dsn", "port=1", "--yes-write", *AS_SUPERUSER, "--copy", "made")
    ended = pgdyno("capture", "replay", tmp_path / "none.capture", *where, code=EXIT_USAGE)
    assert "--copy made needs --stats" in ended.err


def test_compare_takes_it_too(tmp_path: Path) -> None:
    texts = ("--restore", tmp_path / "none.dump", "--capture", tmp_path / "none.capture", "--copy", "made")
    ended = pgdyno("compare", "gp3", "null", *texts, code=EXIT_USAGE)
    assert "--copy" in ended.err and "needs stats" in ended.err
