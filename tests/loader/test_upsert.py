"""``--upsert``: rows take the place of those with the same keys, once, whole or not at all, whatever is killed."""

from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

import pgdyno
from pgdyno.base.errors import EXIT_OK, InputError, PgdynoError
from pgdyno.cli.main import run
from pgdyno.loader import columns, preflight, restore, staging, table
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.server import one
from pgdyno.loader.table import TableColumn

from .database import Database

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.loader.server import Connection

SMALL = 1024
"""Chunks so short that a small file has many."""
BEFORE, ROWS = 500, 30_000
OLD = f"""
CREATE TABLE t (id int PRIMARY KEY, name text, kept text DEFAULT 'new');
INSERT INTO t SELECT n, 'old', 'old' FROM generate_series(1, {BEFORE}) AS n;
"""

Event = dict[str, Any]


def load(file: Path | list[Path], database: Database, **options: Any) -> Any:
    return pgdyno.load(file, database.dsn, **({"chunk_bytes": SMALL, "table": "t", "upsert": ("id",)} | options))


def staged(database: Database) -> list[str]:
    """Staging tables and their sequences."""
    rows = database.rows(
        "SELECT relname FROM pg_class WHERE relname ~ '^staging_' AND relkind IN ('r', 'S') ORDER BY 1"
    )
    return [name for (name,) in rows]


def written(folder: Path, text: str, name: str = "t.csv") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_rows_take_the_place_of_those_with_the_same_key(each: Database, tmp_path: Path) -> None:
    each.run("CREATE TABLE t (id int PRIMARY KEY, name text, points int DEFAULT 7, kept text DEFAULT 'new')")
    each.run("INSERT INTO t VALUES (1, 'a', 1, 'old'), (2, 'b', 2, 'old')")
    shape = each.shape("t")
    file = written(tmp_path, "id,name\n2,B\n3,C\n2,BB\n")
    result = load(file, each)
    assert (result.rows_loaded, result.rows_rejected, result.rows_merged, result.rows_replaced) == (3, 0, 2, 1)
    assert each.rows("SELECT * FROM t ORDER BY id") == [(1, "a", 1, "old"), (2, "BB", 2, "old"), (3, "C", 7, "new")]
    assert set(result.steps_s) == {"transfer", "merge", "put_back", "vacuum", "checkpoint"}
    assert staged(each) == []
    assert each.left_to_undo() == 0
    assert each.shape("t") == shape
    each.run("UPDATE t SET name = 'mine' WHERE id = 2")
    again = load(file, each)
    assert (again.already, again.rows_merged, again.rows_replaced) == (True, 2, 1)
    assert each.one("SELECT name FROM t WHERE id = 2") == "mine"
    load(file, each, again=True)
    assert each.one("SELECT name FROM t WHERE id = 2") == "BB"


@pytest.mark.parametrize("taken", [("pgdyno_row",), ("pgdyno_xact", "pgdyno_row_")])
def test_a_table_may_have_columns_of_the_names_that_staging_takes(
    database: Database, tmp_path: Path, taken: tuple[str, ...]
) -> None:
    listed = ", ".join(f"{name} text" for name in taken)
    database.run(f"CREATE TABLE t (id int PRIMARY KEY, {listed}); INSERT INTO t VALUES (1)")
    rows = [(1, *("a" for _ in taken)), (2, *("b" for _ in taken))]
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    result = load(written(tmp_path, f"id,{','.join(taken)}\n1{',z' * len(taken)}\n{text}"), database)
    assert (result.rows_merged, result.rows_replaced) == (2, 1)
    assert database.rows("SELECT * FROM t ORDER BY id") == rows


def test_a_key_is_named_as_in_sql(database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database.run('CREATE TABLE t ("I,d" int, "say ""x""" int, v text, PRIMARY KEY ("I,d", "say ""x"""))')
    file = written(tmp_path, '"I,d","say ""x""",v\n1,2,a\n1,2,b\n')
    keys = '"I,d", "say ""x"""'
    assert run(["load", str(file), "--into", database.dsn, "--table", "t", "--upsert", keys]) == EXIT_OK
    assert database.rows("SELECT * FROM t") == [(1, 2, "b")]
    file = written(tmp_path, "3,4,c\n", "more.csv")
    words = ["--table", "t", "--columns", f"{keys},v", "--no-header"]
    assert run(["load", str(file), "--into", database.dsn, *words]) == EXIT_OK
    assert database.one("SELECT count(*) FROM t") == 2
    capsys.readouterr()


@pytest.mark.parametrize("sessions", [1, 4])
def test_the_last_row_of_the_last_file_counts_however_many_sessions_there_are(
    database: Database, tmp_path: Path, sessions: int
) -> None:
    database.run("CREATE TABLE t (a int, b text, c int, UNIQUE (b, a))")
    chance = random.Random(11)
    rows = [(chance.randrange(40), f"k{chance.randrange(20)}", number) for number in range(9000)]
    texts = ["".join(f"{a},{b},{c}\n" for a, b, c in rows[part::3]) for part in range(3)]
    files = [tmp_path / f"{part}.csv" for part in range(3)]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(gzip.compress(text.encode()) if file.name == "1.csv" else text.encode())
    expected = {(a, b): c for part in range(3) for a, b, c in rows[part::3]}
    result = load(files, database, upsert=("a", "b"), header=False, connections=sessions)
    assert (result.rows_loaded, result.rows_merged, result.rows_replaced) == (9000, len(expected), 0)
    assert {(a, b): c for a, b, c in database.rows("SELECT a, b, c FROM t")} == expected


def wal_of_copying(connection: Connection, name: str) -> int:
    """Bytes of WAL that some rows into a table make."""
    lines = "".join(f"{number},n\n" for number in range(20_000))
    where = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
    (before,) = one(connection, where)
    with connection.cursor().copy(f"COPY {name} (id, name) FROM STDIN (FORMAT csv)".encode()) as copy:
        copy.write(lines)
    (after,) = one(connection, where)
    return int(after - before)


def test_rows_are_staged_many_at_a_time(each: Database) -> None:
    """The defaults of a staging table must not be what makes COPY insert row by row, and log each row by itself.

    A row of 40 bytes alone takes a record of about 90 bytes, together they take about their own: three quarters are between.
    """
    each.run(OLD)
    with each.session() as connection:
        target = table.find(connection, "t")
        assert target is not None
        made = staging.ensure(connection, target, target.columns[:2], target.columns[:1], job=1)
        each.run(f"CREATE TABLE public.slow AS SELECT * FROM {made.quoted}")
        each.run("ALTER TABLE slow ALTER pgdyno_row SET DEFAULT extract(second FROM clock_timestamp())")
        assert wal_of_copying(connection, made.quoted) < 0.75 * wal_of_copying(connection, "public.slow")


BAD_KEYS = {
    "no index": ("CREATE TABLE t (id int, name text)", ("id",), "no unique index of public.t is on"),
    "more columns": ("CREATE TABLE t (id int, name text, UNIQUE (id, name))", ("id",), "no unique index"),
    "fewer columns": ("CREATE TABLE t (id int PRIMARY KEY, name text)", ("id", "name"), "no unique index"),
    "some rows": (
        "CREATE TABLE t (id int, name text); CREATE UNIQUE INDEX ON t (id) WHERE id > 0",
        ("id",),
        "no unique index",
    ),
    "an expression": (
        "CREATE TABLE t (id int, name text); CREATE UNIQUE INDEX ON t (lower(name))",
        ("name",),
        "no unique index",
    ),
    "checked later": (
        "CREATE TABLE t (id int UNIQUE DEFERRABLE, name text)",
        ("id",),
        "no unique index",
    ),
    "another order": (
        'CREATE TABLE t (id int, name text COLLATE "C"); CREATE UNIQUE INDEX ON t (name COLLATE "POSIX")',
        ("name",),
        "no unique index",
    ),
    "not in the file": ("CREATE TABLE t (id int, name text, more int UNIQUE)", ("more",), "not columns of the files"),
    "generated": (
        "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, name text UNIQUE)",
        ("name",),
        "does not take it",
    ),
    "a rule": (
        "CREATE TABLE t (id int UNIQUE, name text); CREATE RULE r AS ON UPDATE TO t DO ALSO NOTHING",
        ("id",),
        "does not take it",
    ),
}


@pytest.mark.parametrize("case", BAD_KEYS.values(), ids=BAD_KEYS)
def test_keys_that_do_not_say_which_row_is_meant_are_refused(
    database: Database, tmp_path: Path, case: tuple[str, tuple[str, ...], str]
) -> None:
    definition, keys, text = case
    database.run(definition)
    with pytest.raises(InputError, match=text) as error:
        load(written(tmp_path, "id,name\n1,a\n"), database, upsert=keys)
    assert error.value.remedy
    assert staged(database) == []
    assert database.one("SELECT to_regclass('pgdyno_load.job') IS NULL"), "nothing was changed"


def test_an_index_that_the_remedy_makes_is_enough(database: Database, tmp_path: Path) -> None:
    database.run('CREATE TABLE t ("Id" int, name text)')
    file = written(tmp_path, "id,name\n1,a\n1,b\n")
    with pytest.raises(InputError) as error:
        load(file, database, upsert=("ID",))
    made = error.value.remedy.split("`")[1]
    assert made == 'CREATE UNIQUE INDEX ON public.t ("Id")'
    database.run(made)
    assert load(file, database, upsert=("ID",)).rows_merged == 1
    assert database.rows("SELECT * FROM t") == [(1, "b")]


def test_a_role_needs_the_rights_to_replace(database: Database, tmp_path: Path) -> None:
    database.run("DROP ROLE IF EXISTS writer; CREATE ROLE writer LOGIN; CREATE TABLE t (id int PRIMARY KEY)")
    database.run("GRANT INSERT ON t TO writer")
    dsn = database.dsn.replace("user=postgres", "user=writer")
    with pytest.raises(InputError, match="may not SELECT") as error:
        pgdyno.load(written(tmp_path, "1\n"), dsn, header=False, upsert=("id",))
    assert "GRANT SELECT ON" in error.value.remedy
    database.run("DROP OWNED BY writer; DROP ROLE writer")


def test_bad_rows_are_rejected_as_they_were(each: Database, tmp_path: Path) -> None:
    each.run("CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL CHECK (name <> 'no'), low int DEFAULT 1)")
    each.run("ALTER TABLE t ADD CHECK (low < 5)")
    file, bad = written(tmp_path, "id,name\n1,a\n2,no\n,b\nx,c\n3,\n1,d\n"), tmp_path / "bad.csv"
    result = load(file, each, reject=bad)
    assert (result.rows_loaded, result.rows_rejected, result.rows_merged) == (2, 4, 1)
    assert bad.read_text() == "id,name\n2,no\n,b\nx,c\n3,\n"
    reasons = [json.loads(line) for line in (tmp_path / "bad.csv.jsonl").read_text().splitlines()]
    assert [reason["sqlstate"] for reason in reasons] == ["23514", "23502", "22P02", "23502"]
    assert each.rows("SELECT * FROM t") == [(1, "d", 1)]


def test_a_merge_that_the_table_refuses_changes_nothing_and_is_done_later(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    file = written(tmp_path, "id,name\n1,x\n3,b\n")
    with pytest.raises(PgdynoError, match=r"\(name\)=\(b\) already exists") as error:
        load(file, database)
    assert "--abandon" in error.value.remedy
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "b")]
    before = database.rows("SELECT chunk, xact::text FROM pgdyno_load.chunk")
    database.run("UPDATE t SET name = 'c' WHERE id = 2")
    result = load(file, database)
    assert (result.rows_merged, result.rows_replaced) == (2, 1)
    assert database.rows("SELECT chunk, xact::text FROM pgdyno_load.chunk") == before, "nothing was staged again"
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "x"), (2, "c"), (3, "b")]
    assert staged(database) == []


def test_what_is_staged_is_dropped_by_restore_or_abandon_and_loaded_anew(database: Database, tmp_path: Path) -> None:
    database.run(OLD)
    lines = "".join(f"{number},n\n" for number in range(1, 1000))
    file = written(tmp_path, f"id,name\n{lines}x,n\n")
    for step in ("restore", "abandon"):
        with pytest.raises(PgdynoError, match='"x"') as error:
            load(file, database, connections=1)
        assert "no row is merged yet" in error.value.remedy
        assert database.one("SELECT count(*) FROM pgdyno_load.chunk") > 0
        assert len(staged(database)) == 2, "a table and its sequence"
        assert database.left_to_undo() == 1
        if step == "restore":
            assert restore(database.dsn) == [f"staging: {staging.name(1)} created, to be dropped"]
            assert database.one("SELECT count(*) FROM pgdyno_load.chunk") == 0, "nothing counts as loaded"
            assert staged(database) == []
    file.write_text(f"id,name\n{lines}1000,n\n")
    with pytest.raises(InputError, match="a different plan"):
        load(file, database)
    result = load(file, database, abandon=True)
    assert (result.rows_merged, result.rows_replaced) == (1000, BEFORE)
    assert staged(database) == []
    assert database.left_to_undo() == 0


def test_a_staging_table_that_somebody_changed_is_not_merged(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE); INSERT INTO t VALUES (9, 'b')")
    file = written(tmp_path, "id,name\n1,a\n2,b\n")
    with pytest.raises(PgdynoError, match="cannot be merged"):
        load(file, database)
    database.run("DELETE FROM pgdyno_load.staging_1 WHERE name = 'b'")
    with pytest.raises(PgdynoError, match="has 1 rows, 1 of them in the ledger, which has 2"):
        load(file, database)
    database.run("DROP TABLE pgdyno_load.staging_1; DELETE FROM t")
    assert load(file, database).rows_merged == 2, "without one the job begins anew"


def test_triggers_may_mend_rows_and_may_not_keep_them_out(database: Database, tmp_path: Path) -> None:
    database.run(
        """
        CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL);
        CREATE FUNCTION mend() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF NEW.id = 3 THEN RETURN NULL; END IF; NEW.name := coalesce(NEW.name, 'none'); RETURN NEW; END $$;
        CREATE TRIGGER mend BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION mend()
        """
    )
    file = written(tmp_path, "id,name\n1,\n2,b\n3,c\n")
    with pytest.raises(PgdynoError, match=r"3 rows were to be merged into public\.t, and a trigger kept 1 out"):
        load(file, database)
    assert database.one("SELECT count(*) FROM t") == 0
    file.write_text("id,name\n1,\n2,b\n4,c\n")
    assert load(file, database, abandon=True).rows_merged == 3
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "none"), (2, "b"), (4, "c")]


def test_a_partitioned_table_takes_them_too(each: Database, tmp_path: Path) -> None:
    each.run(
        """
        CREATE TABLE t (id int PRIMARY KEY, name text, kept int DEFAULT 1) PARTITION BY RANGE (id);
        CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10);
        CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20);
        INSERT INTO t VALUES (1, 'a', 5), (11, 'b', 6)
        """
    )
    result = load(written(tmp_path, "id,name\n1,A\n12,C\n11,B\n"), each)
    assert (result.rows_merged, result.rows_replaced) == (3, 2)
    assert each.rows("SELECT * FROM t ORDER BY id") == [(1, "A", 5), (11, "B", 6), (12, "C", 1)]


def test_a_table_of_keys_alone_only_grows(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    result = load(written(tmp_path, "1\n2\n2\n"), database, header=False)
    assert (result.rows_loaded, result.rows_merged, result.rows_replaced) == (3, 1, 0)


def test_the_command_makes_a_table_with_that_key_and_says_what_was_merged(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--into", database.dsn, "--upsert", "id", "--create", "--table", "prices"]
    assert run(["load", str(written(tmp_path, "id,price\n1,10\n2,20\n1,11\n")), *words]) == EXIT_OK
    shown = capsys.readouterr()
    assert 'PRIMARY KEY ("id")' in shown.err
    assert "merged: 2 rows, 0 of them replaced existing rows; 1 changed nothing" in shown.out
    assert run(["load", str(written(tmp_path, "id,price\n2,25\n3,30\n", "news.csv")), *words, "--json"]) == EXIT_OK
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["rows_merged"], last["rows_replaced"]) == (2, 1)
    assert database.rows("SELECT * FROM prices ORDER BY id") == [(1, 11), (2, 25), (3, 30)]
    with pytest.raises(InputError, match="the files have no column 'nr'"):
        pgdyno.load(tmp_path / "news.csv", database.dsn, table="other", create=True, upsert=("nr",))


@pytest.mark.parametrize("there", [True, False])
def test_a_dry_run_says_what_an_upsert_is(database: Database, tmp_path: Path, there: bool) -> None:
    if there:
        database.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
    file = written(tmp_path, "id,name\n1,a\n1,b\n")
    result = preflight(LoadOptions((str(file),), database.dsn, upsert=("id",), create=not there))
    assert result.measured is not None, result.notes
    assert result.measured.rows == 2, "a key may come twice"
    assert any("written twice" in note for note in result.notes)
    assert result.indexes == "kept: rows are merged by unique indexes"
    assert result.space is not None
    assert result.space.needed >= 3 * result.measured.heap_bytes, "staged, sorted, merged"
    with pytest.raises(InputError, match="needs the ledger"):
        LoadOptions((str(file),), database.dsn, upsert=("id",), ledger=False)


def test_definitions_have_the_key_that_was_asked_for() -> None:
    made = columns.definition("t", ["a", 'b"c'], ["bigint", "text"], keys=['b"c', "a"])
    assert made == 'CREATE TABLE t (\n    "a" bigint,\n    "b""c" text,\n    PRIMARY KEY ("b""c", "a")\n)'
    assert columns.definition("t", ["a"], ["bigint"]) == 'CREATE TABLE t (\n    "a" bigint\n)'
    assert columns.named(["B"], [TableColumn("a", "a", "int"), TableColumn("b", "b", "int")]) == [
        TableColumn("b", "b", "int")
    ]
