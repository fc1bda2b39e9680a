"""sysbench's tables: the schema is that of its ``prepare``, the rows have its shape and its distributions."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable

import pytest
from psycopg.conninfo import conninfo_to_dict

from .filled import Database, fill, sysbench

ROWS = 2000


def prepared(database: Database, *options: str) -> Database:
    """The same by sysbench itself."""
    program = shutil.which("sysbench")
    if program is None:
        pytest.skip("no sysbench in PATH (apt install sysbench)")
    where = conninfo_to_dict(database.dsn)
    named = {"host": where["host"], "port": where["port"], "user": where["user"], "db": where["dbname"]}
    command = [program, "oltp_read_write", "--db-driver=pgsql", f"--table-size={ROWS}", "--tables=2", *options]
    command += [f"--pgsql-{key}={value}" for key, value in named.items()]
    done = subprocess.run([*command, "prepare"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return database


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ((), {}),
        (("--auto-inc=off",), {"auto_inc": False}),
        (("--create-secondary=off",), {"secondary_index": False}),
    ],
    ids=["defaults", "ids of its own", "no secondary index"],
)
def test_the_schema_is_that_of_sysbench(
    database: Callable[[], Database], theirs: tuple[str, ...], ours: dict[str, bool]
) -> None:
    original = prepared(database(), *theirs)
    made = database()
    fill(made, sysbench(2, ROWS, **ours))
    assert made.schema() == original.schema()


def test_the_sequence_stands_where_sysbench_leaves_it(database: Callable[[], Database]) -> None:
    query = "SELECT last_value, is_called FROM sbtest2_id_seq"
    made = database()
    fill(made, sysbench(2, ROWS))
    assert made.rows(query) == prepared(database()).rows(query) == [(ROWS, True)]


def test_rows_have_the_shape_of_sysbench(database: Callable[[], Database]) -> None:
    made = database()
    fill(made, sysbench(1, ROWS))
    shape = "SELECT c, pad FROM sbtest1 ORDER BY id LIMIT 100"
    for rows in (made.rows(shape), prepared(database()).rows(shape)):
        for c, pad in rows:
            assert re.fullmatch(r"(\d{11}-){9}\d{11} ", c), "CHAR(120) pads 119 characters"
            assert re.fullmatch(r"(\d{11}-){4}\d{11} ", pad)
    assert made.rows("SELECT min(id), max(id), count(DISTINCT id) FROM sbtest1") == [(1, ROWS, ROWS)]


def test_k_is_drawn_as_sysbench_draws_it(database: Callable[[], Database]) -> None:
    """Quantiles of two samples of 4,000: each has a standard error of at most 0.8 % of the draws."""
    query = (
        "SELECT avg((k BETWEEN {low} AND {high})::int)::float8 FROM"
        " (SELECT k FROM sbtest1 UNION ALL SELECT k FROM sbtest2) AS drawn"
    )
    made, original = database(), prepared(database())
    fill(made, sysbench(2, ROWS))
    for low, high in ((1, 0.45 * ROWS), (0.4975 * ROWS, 0.505 * ROWS + 1), (0.55 * ROWS, ROWS)):
        share = query.format(low=int(low), high=int(high))
        assert made.rows(share)[0][0] == pytest.approx(original.rows(share)[0][0], abs=5 * 2**0.5 * 0.008)


def test_one_seed_makes_one_data_set_however_many_write_it(database: Callable[[], Database]) -> None:
    result, many, other = database(), database(), database()
    fill(result, sysbench(3, ROWS, connections=1, seed=5))
    filled = fill(many, sysbench(3, ROWS, connections=3, seed=5))
    fill(other, sysbench(3, ROWS, seed=6))
    assert filled.summary["sessions"] == 3
    digests = [[made.digest(f"sbtest{number}") for number in (1, 2, 3)] for made in (result, many, other)]
    assert digests[0] == digests[1] != digests[2]
    assert len(set(digests[0])) == 3, "each table has rows of its own"


def test_clean_up_removes_what_was_prepared_and_nothing_else(database: Callable[[], Database]) -> None:
    made = prepared(database())
    made.run("CREATE TABLE mine AS SELECT 1 AS n")
    filled = fill(made, sysbench(2, ROWS, connections=64, action="drop"))
    assert made.tables() == ["mine"]
    assert {step["what"] for step in filled.steps} == {"drop"}
    assert filled.summary["sessions"] == 2, "no more sessions than there is work for"
