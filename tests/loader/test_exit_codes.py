"""Exit code 2 says that nothing was changed: what corrects the command and runs it again must not double rows."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_FAILURE, EXIT_OK, EXIT_USAGE, InputError, PgdynoError
from pgdyno.cli.main import run
from pgdyno.loader import flow, ledger, restore, table, undo

from .database import Database
from .test_load import load, people

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 30_000


def numbers(folder: Path, name: str = "t.csv", last: str = "x") -> Path:
    """Rows of which the last one is bad."""
    file = folder / name
    text = "".join(f"{number}\n" for number in range(ROWS)) + f"{last}\n"
    file.write_bytes(gzip.compress(text.encode(), 1) if name.endswith(".gz") else text.encode())
    return file


def command(database: Database, file: Path, *words: str) -> int:
    return run(["load", str(file), "--into", database.dsn, "--table", "t", "--no-header", "--chunk", "4KiB", *words])


@pytest.mark.parametrize("damage", ["a bad row", "a damaged file"])
@pytest.mark.parametrize("words", [["--no-ledger"], []])
def test_an_error_after_rows_came_in_is_no_refusal(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str, words: list[str]
) -> None:
    database.run("CREATE TABLE t (id int)")
    if damage == "a bad row":
        file = numbers(tmp_path)
    else:
        file = numbers(tmp_path, "t.csv.gz", last="7")
        stored = file.read_bytes()
        file.write_bytes(stored[:-5000] + bytes(255 - byte for byte in stored[-5000:-4990]) + stored[-4990:])
    assert command(database, file, "--connections", "1", *words) == EXIT_FAILURE
    err = capsys.readouterr().err
    rows = database.one("SELECT count(*) FROM t")
    assert 0 < rows <= ROWS
    if words:
        assert f"{rows:,} rows are in the table; without a ledger the load cannot resume" in err
    else:
        assert "committed rows stay in the table" in err


def test_what_is_refused_before_a_row_is_sent_is_a_refusal(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database.run("CREATE TABLE t (id int); INSERT INTO t VALUES (0)")
    assert command(database, numbers(tmp_path), "--no-ledger", "--truncate", "--delimiter", "\\n") == EXIT_USAGE
    assert command(database, tmp_path / "absent.csv", "--no-ledger", "--truncate") == EXIT_USAGE
    assert database.one("SELECT count(*) FROM t") == 1
    # It is emptied first: then even the first row's error is more than a refusal.
    (tmp_path / "bad.csv").write_text("x\n")
    assert command(database, tmp_path / "bad.csv", "--no-ledger", "--truncate") == EXIT_FAILURE
    assert "no row is known to be in the table" in capsys.readouterr().err
    assert database.one("SELECT count(*) FROM t") == 0


def test_a_table_is_not_made_for_a_load_that_is_refused(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = people(tmp_path, rows=10)
    (tmp_path / "bad.csv").write_text("in the way\n")
    words = ["load", str(file), "--into", database.dsn, "--create"]
    assert run([*words, "--reject", str(tmp_path / "bad.csv")]) == EXIT_USAGE
    assert "already exists" in capsys.readouterr().err
    assert database.one("SELECT to_regclass('people')") is None
    assert run(words) == EXIT_OK


def test_a_table_that_does_not_fit_when_it_was_made_is_not_made(database: Database, tmp_path: Path) -> None:
    """An index method, a rule or a trigger of the database may make of CREATE TABLE something that cannot be loaded."""
    database.run(
        """
        CREATE FUNCTION narrow() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF to_regclass('public.people') IS NOT NULL THEN ALTER TABLE public.people RENAME points TO score; END IF;
        END $$;
        CREATE EVENT TRIGGER narrow ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION narrow()
        """
    )
    with pytest.raises(InputError, match="no column 'points'"):
        load(people(tmp_path, rows=10), database, create=True)
    assert database.one("SELECT to_regclass('people')") is None


def test_restoring_one_table_and_not_the_other_is_no_refusal(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "LOCK_WAIT_S", 0.1)
    monkeypatch.setattr(undo, "LOCK_TIMEOUT_S", 1)
    for name in ("a", "b"):
        database.run(f"CREATE TABLE {name} (id int); CREATE INDEX {name}_id ON {name} (id)")
        (tmp_path / f"{name}.csv").write_text("1\n")

    def fails(*_: object, **__: object) -> None:
        raise PgdynoError("no", remedy="none")

    with monkeypatch.context() as patched:
        patched.setattr(flow, "put_back", fails)
        for name in ("a", "b"):
            with pytest.raises(PgdynoError):
                load(tmp_path / f"{name}.csv", database, header=False, indexes="rebuild")
    with database.session() as connection:
        result = table.find(connection, "b")
        assert result is not None
        ledger.lock(connection, result.oid, result.quoted)
        with pytest.raises(PgdynoError, match=r"another pgdyno load works on public\.b") as error:
            restore(database.dsn)
    assert error.value.exit_code == EXIT_FAILURE, "the other one is put back"
    assert database.one("SELECT to_regclass('a_id') IS NOT NULL")
    assert len(restore(database.dsn)) == 1 + 1, "its index and its autovacuum"


def made(database: Database) -> list[tuple[str, str]]:
    """All tables and schemas that are not the server's."""
    return [
        (row[0], row[1])
        for row in database.rows(
            "SELECT nspname, coalesce(relname, '') FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND relkind = 'r'"
            " WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' OR nspname = 'pgdyno_load' ORDER BY 1, 2"
        )
    ]


@pytest.mark.parametrize(
    "words", [{"create": True}, {}, {"ledger": False}, {"ledger": False, "truncate": True}], ids=str
)
def test_a_reject_file_that_exists_is_refused_before_anything_is_made_or_emptied(
    database: Database, tmp_path: Path, words: dict[str, bool]
) -> None:
    """Its content would be replaced, also by a load without a ledger."""
    if "create" not in words:
        database.run("CREATE TABLE people (id int, name text, points int); INSERT INTO people VALUES (0, 'before', 0)")
    kept = tmp_path / "kept.csv"
    kept.write_text("of another load\n")
    before = made(database)
    with pytest.raises(InputError) as caught:
        load(people(tmp_path, rows=10), database, reject=kept, **words)
    assert (caught.value.code, caught.value.data) == ("load.reject.exists", {"path": str(kept)})
    assert (made(database), kept.read_text()) == (before, "of another load\n")
    if "create" not in words:
        assert database.one("SELECT count(*) FROM people") == 1


@pytest.mark.parametrize("ledger_of", ["another role", "nobody who may"])
def test_no_table_is_made_where_the_ledger_cannot_be_kept(database: Database, tmp_path: Path, ledger_of: str) -> None:
    database.run("DROP ROLE IF EXISTS maker; CREATE ROLE maker LOGIN; CREATE SCHEMA app AUTHORIZATION maker")
    if ledger_of == "another role":
        database.run("CREATE ROLE keeper; CREATE SCHEMA pgdyno_load AUTHORIZATION keeper")
    try:
        before = made(database)
        dsn = database.dsn.replace("user=postgres", "user=maker")
        with pytest.raises(InputError):
            load(people(tmp_path, rows=10), Database(dsn), table="app.people", create=True)
        assert made(database) == before
    finally:
        database.run(
            "DROP SCHEMA app CASCADE; DROP SCHEMA IF EXISTS pgdyno_load CASCADE; DROP ROLE IF EXISTS maker, keeper"
        )


def test_a_name_that_the_server_would_cut_is_refused_with_the_option_that_helps(
    database: Database, tmp_path: Path
) -> None:
    long = "ü" * 32
    (tmp_path / "t.csv").write_text(f"id,{long}\n1,x\n2,y\n")
    before = made(database)
    with pytest.raises(InputError) as caught:
        load(tmp_path / "t.csv", database, create=True)
    assert caught.value.code == "load.column.name_too_long"
    assert caught.value.data == {"column": long, "bytes": 64, "bytes_max": 63}
    assert f"--rename '{long}=" in caught.value.remedy
    assert made(database) == before
    result = load(tmp_path / "t.csv", database, create=True, rename={long: "short"})
    assert (result.rows_loaded, database.one("SELECT count(short) FROM t")) == (2, 2)
