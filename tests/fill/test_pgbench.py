"""pgbench's tables: schema, rows and their places are those of ``pgbench -i``."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drive.driven import environment

from .filled import Database, fill, pgbench

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")
SCALE = 2


def original(database: Database, *options: str) -> Database:
    """The same by pgbench itself."""
    program = Path(database.binaries.bin_dir) / "pgbench"
    command = [program, "-i", "-q", "-s", str(SCALE), *options]
    subprocess.run(command, env=environment(database.dsn), capture_output=True, check=True)
    return database


def test_schema_and_rows_are_those_of_pgbench(database: Callable[[], Database]) -> None:
    theirs = original(database(), "-I", "dtGvpf")
    ours = database()
    filled = fill(ours, pgbench(SCALE, foreign_keys=True))
    assert ours.schema() == theirs.schema()
    assert {table: ours.digest(table) for table in TABLES} == {table: theirs.digest(table) for table in TABLES}
    assert filled.summary["rows"]["pgbench_accounts"] == 100_000 * SCALE


def test_fill_factor_and_pages_are_those_of_pgbench(database: Callable[[], Database]) -> None:
    theirs = original(database(), "-F", "70")
    ours = database()
    fill(ours, pgbench(SCALE, fillfactor=70))
    assert ours.schema() == theirs.schema()
    pages = "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relname LIKE 'pgbench%' ORDER BY 1"
    assert ours.rows(pages) == theirs.rows(pages)


@pytest.mark.parametrize("split", [False, True])
def test_every_page_is_frozen_whoever_wrote_it(database: Callable[[], Database], split: bool) -> None:
    ours = database()
    fill(ours, pgbench(SCALE, connections=3, split=split))
    assert [ours.unfrozen_pages(table) for table in TABLES] == [0, 0, 0, 0]
    assert ours.rows("SELECT count(*) FROM pg_stats WHERE tablename = 'pgbench_accounts'")[0][0] == 4, "analysed"


def test_a_split_table_has_the_same_rows_in_other_places(database: Callable[[], Database]) -> None:
    whole, split = database(), database()
    fill(whole, pgbench(SCALE, connections=1))
    filled = fill(split, pgbench(SCALE, connections=2, split=True))
    writers = {step["session"] for step in filled.steps if step["what"] == "copy"}
    assert writers == {0, 1}
    assert split.digest("pgbench_accounts", "aid") == whole.digest("pgbench_accounts", "aid")
    assert split.schema() == whole.schema()


def test_tables_that_are_there_are_replaced_only_where_they_may_be(database: Callable[[], Database]) -> None:
    ours = database()
    fill(ours, pgbench(SCALE, foreign_keys=True))
    ours.run("DELETE FROM pgbench_tellers")
    fill(ours, pgbench(1, foreign_keys=True))
    counts = [ours.rows(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]
    assert counts == [100_000, 1, 0, 10]
    fill(ours, pgbench(1, action="drop"))
    assert ours.tables() == []
