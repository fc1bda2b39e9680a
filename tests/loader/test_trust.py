"""No SQL of another role runs with the rights of the role that loads, whatever that other role has put in the way."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import psycopg
import pytest

import pgdyno
from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.loader import restore

from . import planted, stand_in
from .database import RICH, Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUNDS = int(os.environ.get("PGDYNO_PLANTED", "200"))
FILE_ROWS = 50


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Rows of the table ``t``."""
    made = tmp_path / "t.csv"
    made.write_text("a\n" + "".join(f"{number}\n" for number in range(FILE_ROWS)))
    return made


@pytest.fixture
def guarded(database: Database) -> Iterator[Database]:
    """A database of a superuser, in which another role may make schemas and, as before PostgreSQL 15, objects in ``public``."""
    database.run(planted.ROLE)
    name = database.one("SELECT current_database()")
    database.run(
        f"GRANT CREATE ON DATABASE {name} TO few; GRANT CREATE ON SCHEMA public TO PUBLIC; CREATE TABLE t (a int)"
    )
    as_few(database, planted.BODY)
    yield database
    database.run("DROP OWNED BY few CASCADE; DROP ROLE few")


def as_few(database: Database, text: str) -> None:
    """SQL of the role of few rights."""
    with psycopg.connect(database.dsn.replace("user=postgres", "user=few"), autocommit=True) as connection:
        connection.execute(text.encode())


def nothing_ran(database: Database) -> bool:
    """Whether nothing of the other role's was run by the superuser."""
    return database.rows("SELECT rolsuper, (SELECT count(*) FROM public.ran) FROM pg_roles WHERE rolname = 'few'") == [
        (False, 0)
    ]


def refused(database: Database, file: Path, match: str) -> None:
    """A load, a load that gives another one up and a restore are refused by name, and nothing is read or written."""
    for act in (
        lambda: pgdyno.load(file, database.dsn, table="t"),
        lambda: pgdyno.load(file, database.dsn, table="t", abandon=True, truncate=True),
        lambda: (
            pgdyno.load(file, database.dsn, table="t", upsert=("a",)) if database.one(_KEYED) else restore(database.dsn)
        ),
        lambda: restore(database.dsn),
    ):
        with pytest.raises(InputError, match=match) as error:
            act()
        assert error.value.remedy
    assert nothing_ran(database)
    assert database.one("SELECT count(*) FROM t") == 0


_KEYED = "SELECT EXISTS (SELECT FROM pg_index WHERE indrelid = 't'::regclass)"


@pytest.mark.parametrize("what", planted.BY_HAND)
def test_a_ledger_that_another_role_made_is_refused(guarded: Database, file: Path, what: str) -> None:
    as_few(guarded, planted.BY_HAND[what])
    refused(guarded, file, "the schema pgdyno_load belongs to the role few")
    # Nor does anything of it run when the database's administrator takes it over as it is.
    guarded.run(planted.TAKEN_OVER)
    if what == "the schema":
        assert pgdyno.load(file, guarded.dsn, table="t").rows_loaded == FILE_ROWS
    elif what == "a row":
        with pytest.raises(
            PgdynoError, match=r"it would run the function public.same\(anyelement\), which belongs to the role few"
        ):
            pgdyno.load(file, guarded.dsn, table="t")
    else:
        refused(guarded, file, "cannot be trusted")
    assert nothing_ran(guarded)


@pytest.mark.parametrize("what", planted.INTO_OURS)
def test_what_another_role_put_into_our_ledger_is_refused(guarded: Database, file: Path, what: str) -> None:
    granted, made = planted.INTO_OURS[what]
    assert pgdyno.load(file, guarded.dsn, table="t").rows_loaded == FILE_ROWS
    guarded.run(f"TRUNCATE t; GRANT USAGE ON SCHEMA pgdyno_load TO few; {granted}")
    as_few(guarded, made)
    if "taken back" in what:
        guarded.run("REVOKE ALL ON ALL TABLES IN SCHEMA pgdyno_load FROM few")
        refused(guarded, file, "trigger x on pgdyno_load.chunk")
    else:
        refused(guarded, file, "cannot be trusted")


def test_names_of_the_search_path_are_not_picked_up(guarded: Database, file: Path, tmp_path: Path) -> None:
    """With a path that looks into ``public`` before the server's own schema, which is the worst one."""
    as_few(guarded, planted.NAMES)
    guarded.run(f"ALTER DATABASE {guarded.one('SELECT current_database()')} SET search_path = public, pg_catalog")
    guarded.run("CREATE TABLE keyed (a int PRIMARY KEY, b text)")
    assert pgdyno.load(file, guarded.dsn, table="t", reject=tmp_path / "bad.csv").rows_loaded == FILE_ROWS
    assert pgdyno.load(file, guarded.dsn, table="keyed", upsert=("a",)).rows_merged == FILE_ROWS
    assert pgdyno.load(file, guarded.dsn, table="made", create=True).rows_loaded == FILE_ROWS
    guarded.run("CREATE TABLE public.slow (a int, CHECK (a < 40)); CREATE INDEX ON public.slow (a)")
    with pytest.raises(PgdynoError, match="check"):
        pgdyno.load(file, guarded.dsn, table="slow", indexes="rebuild")
    restore(guarded.dsn)
    assert nothing_ran(guarded)
    assert guarded.one("SELECT 'public.made'::regclass::text") == "made"


def test_a_ledger_without_rights_on_it_says_what_helps(guarded: Database, file: Path) -> None:
    pgdyno.load(file, guarded.dsn, table="t")
    few = guarded.dsn.replace("user=postgres", "user=few")
    guarded.run("GRANT ALL ON t TO few")
    with pytest.raises(InputError, match="the ledger cannot be kept") as error:
        pgdyno.load(file, few, table="t")
    assert "load as postgres" in error.value.remedy
    assert "--no-ledger" in error.value.remedy
    assert pgdyno.load(file, few, table="t", ledger=False).rows_loaded == FILE_ROWS


def test_the_remedy_for_a_role_that_may_make_no_schema_helps(guarded: Database, file: Path) -> None:
    few = guarded.dsn.replace("user=postgres", "user=few")
    guarded.run(f"REVOKE CREATE ON DATABASE {guarded.one('SELECT current_database()')} FROM few; GRANT ALL ON t TO few")
    with pytest.raises(InputError, match="the ledger cannot be kept") as error:
        pgdyno.load(file, few, table="t")
    guarded.run(error.value.remedy.split("`")[1])
    assert pgdyno.load(file, few, table="t").rows_loaded == FILE_ROWS
    refused_by_owner = "the schema pgdyno_load belongs to the role few"
    with pytest.raises(InputError, match=refused_by_owner):
        pgdyno.load(file, guarded.dsn, table="t")


def test_default_privileges_give_nobody_a_right_on_the_ledger(guarded: Database, file: Path) -> None:
    guarded.run(
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO few, PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO few"
    )
    guarded.run(
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO few; CREATE TABLE keyed (a int PRIMARY KEY CHECK (a < 40))"
    )
    assert pgdyno.load(file, guarded.dsn, table="t").rows_loaded == FILE_ROWS
    with pytest.raises(PgdynoError, match="check"):
        pgdyno.load(file, guarded.dsn, table="keyed", upsert=("a",))
    assert guarded.one("SELECT has_table_privilege('few', 'pgdyno_load.undo', 'SELECT')") is False
    guarded.run("ALTER TABLE keyed DROP CONSTRAINT keyed_a_check")
    assert pgdyno.load(file, guarded.dsn, table="keyed", upsert=("a",), abandon=True).rows_merged == FILE_ROWS
    guarded.run(
        "ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM few, PUBLIC; ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM few;"
        "ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM few"
    )


def test_an_extension_that_another_role_imitates_is_refused(guarded: Database, tmp_path: Path) -> None:
    as_few(guarded, stand_in.schemas(tmp_path).replace("DECLARE\n", "DECLARE\n    x bigint := public.number();\n"))
    options = {"via": "aws_s3", "s3_region": stand_in.REGION, "header": False, "format": "csv", "table": "t"}
    with pytest.raises(InputError, match="belongs to the role few"):
        pgdyno.load("s3://bucket/key.csv", guarded.dsn, **options)
    assert nothing_ran(guarded)


OLD = """
CREATE SCHEMA pgdyno_load;
CREATE TABLE pgdyno_load.job (job bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, target text NOT NULL, plan jsonb NOT NULL,
    begun timestamptz NOT NULL DEFAULT now(), ended timestamptz);
CREATE TABLE pgdyno_load.undo (entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, token text NOT NULL UNIQUE,
    job bigint NOT NULL, target text NOT NULL, kind text NOT NULL, what text NOT NULL, stages jsonb NOT NULL,
    search_path text NOT NULL, made timestamptz NOT NULL DEFAULT now());
INSERT INTO pgdyno_load.undo (token, job, target, kind, what, stages, search_path)
VALUES ('0', 1, 'public.t', 'index', 'x', '[["CREATE INDEX t_a ON public.t (a)"], [], []]', 'public')
"""


def test_a_ledger_of_an_earlier_version_is_refused_and_nothing_of_it_is_lost(guarded: Database, file: Path) -> None:
    guarded.run(OLD)
    refused(guarded, file, "earlier version")
    with pytest.raises(InputError) as error:
        pgdyno.load(file, guarded.dsn, table="t")
    guarded.run(error.value.remedy.split("`")[-2])
    assert pgdyno.load(file, guarded.dsn, table="t").rows_loaded == FILE_ROWS
    assert guarded.one("SELECT stages ->> 0 FROM pgdyno_load_old.undo") == '["CREATE INDEX t_a ON public.t (a)"]'


@pytest.mark.bench
def test_hundreds_of_loads_and_restores_run_nothing_of_another_role(guarded: Database, file: Path) -> None:
    """Drawn from a seed: what is planted, who takes it over, how the superuser loads."""
    drawn = random.Random(7)
    ways = [*planted.BY_HAND.values(), *planted.INTO_OURS.values(), planted.NAMES]
    guarded.run("DROP TABLE t;" + RICH)
    guarded.run("CREATE TABLE t (a int PRIMARY KEY)")
    ended = 0
    for _ in range(ROUNDS):
        guarded.run(
            "DROP SCHEMA IF EXISTS pgdyno_load CASCADE; DROP OWNED BY few CASCADE; TRUNCATE t; GRANT ALL ON SCHEMA public TO few"
        )
        guarded.run(f"GRANT CREATE ON DATABASE {guarded.one('SELECT current_database()')} TO few")
        as_few(guarded, planted.BODY)
        way = drawn.choice(ways)
        if isinstance(way, tuple):
            pgdyno.load(file, guarded.dsn, table="t")
            guarded.run(f"TRUNCATE t; GRANT USAGE ON SCHEMA pgdyno_load TO few; {way[0]}")
            as_few(guarded, way[1])
        else:
            as_few(guarded, way)
            if drawn.random() < 0.5:
                guarded.run(planted.TAKEN_OVER)
        options = {"upsert": ("a",)} if drawn.random() < 0.3 else {"indexes": "rebuild", "again": True}
        try:
            pgdyno.load(file, guarded.dsn, table="t", abandon=drawn.random() < 0.3, **options)
            ended += 1
            restore(guarded.dsn)
        except PgdynoError:
            with pytest.raises(PgdynoError):
                restore(guarded.dsn)
        assert nothing_ran(guarded)
    assert 0 < ended < ROUNDS, "some of it is in the way, and some is not"
