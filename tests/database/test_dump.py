"""What a dump says about itself, and what a PostgreSQL lacks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.server.binaries import find_binaries
from pgdyno.server.dump import DumpFacts, facts_of
from pgdyno.server.dump_script import DatabaseScript, globals_script, knows_restrict
from pgdyno.server.lacking import available_extensions, has_icu, has_locale, lacking

DUMP = r"""
--
-- PostgreSQL database dump
--

\restrict abc

-- Dumped from database version 17.2 (Debian 17.2-1)
-- Dumped by pg_dump version 18.1

CREATE DATABASE "My Shop" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'xx_XX.UTF-8';
\connect "My Shop"
ALTER DATABASE "My Shop" SET session_preload_libraries TO 'auto_explain', 'nowhere';
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
CREATE EXTENSION IF NOT EXISTS timescaledb WITH SCHEMA public;
CREATE COLLATION public.german (provider = icu, locale = 'de');
SET default_tablespace = '';
SET default_tablespace = fast;
CREATE TABLE public.t (
    a text COLLATE pg_catalog."sv_SE.utf8"
);
ALTER TABLE public.t OWNER TO "the owner";
COPY public.t (a) FROM stdin;
ALTER TABLE public.t OWNER TO nobody_in_rows;
\.
GRANT SELECT ON TABLE public.t TO PUBLIC;
GRANT SELECT ON TABLE public.t TO reader WITH GRANT OPTION;
REVOKE ALL ON SCHEMA public FROM revoked;
ALTER DEFAULT PRIVILEGES FOR ROLE maker IN SCHEMA public GRANT SELECT ON TABLES TO taker;
CREATE POLICY p ON public.t TO one, "two three" USING (true);
ALTER ROLE setter IN DATABASE "My Shop" SET work_mem TO '1MB';
SELECT * FROM pg_catalog.pg_restore_relation_stats(
--
-- PostgreSQL database dump complete
--
"""


def facts() -> DumpFacts:
    return facts_of(DUMP.encode().splitlines(keepends=True))


def test_what_a_dump_needs_is_read_and_its_rows_are_not() -> None:
    dump_facts = facts()
    assert (dump_facts.version, dump_facts.major, dump_facts.database, dump_facts.encoding) == (
        "17.2",
        17,
        "My Shop",
        "UTF8",
    )
    assert dump_facts.extensions == {"pg_trgm", "timescaledb"}
    assert dump_facts.roles == {"the owner", "reader", "revoked", "maker", "taker", "one", "two three", "setter"}
    assert dump_facts.tablespaces == {"fast"}
    assert dump_facts.locales == {"xx_XX.UTF-8", "sv_SE.utf8"}
    assert dump_facts.preloaded == {"auto_explain", "nowhere"}
    assert dump_facts.icu
    assert dump_facts.statistics
    assert dump_facts.complete


def test_all_that_is_lacking_is_listed() -> None:
    binaries = find_binaries()
    dump_facts = facts()
    dump_facts.version = "99.1"
    wrong = lacking(binaries, dump_facts)
    text = "; ".join(wrong)
    assert f"it is of PostgreSQL 99.1, newer than {binaries.version}" in text
    assert "extension timescaledb not installed" in text
    assert "no locale xx_XX.UTF-8" in text
    assert "the library nowhere" in text
    assert "auto_explain" not in text
    assert ("ICU" in text) == (not has_icu(binaries))
    assert lacking(binaries, DumpFacts(version="14.1", extensions={"pg_trgm"}, locales={"C"})) == []


def test_extensions_are_those_that_the_server_finds() -> None:
    assert {"plpgsql", "pg_trgm", "citext"} <= available_extensions(find_binaries())


@pytest.mark.needs_system_postgres
def test_extensions_of_an_installed_postgresql_are_found(system_postgres: Path) -> None:
    assert "plpgsql" in available_extensions(find_binaries(system_postgres))


def test_a_locale_is_there_or_not() -> None:
    assert has_locale("C")
    assert not has_locale("xx_XX.UTF-8")


def test_globals_lose_passwords_and_leave_the_superuser_alone() -> None:
    text = (
        "CREATE ROLE postgres;\nALTER ROLE postgres WITH NOSUPERUSER PASSWORD 'x';\nCREATE ROLE app;\n"
        "ALTER ROLE app WITH LOGIN PASSWORD 'SCRAM-SHA-256$it''s';\nALTER ROLE postgres SET work_mem TO '8MB';\n"
        "CREATE TABLESPACE fast OWNER app LOCATION '/ssd';\nCREATE TABLESPACE own OWNER app LOCATION '/own';\n"
    )
    script = b"".join(globals_script(text.encode().splitlines(keepends=True), ["own"])).decode()
    assert "CREATE ROLE postgres" not in script
    assert "NOSUPERUSER" not in script
    assert "PASSWORD" not in script
    assert "ALTER ROLE app WITH LOGIN;\n" in script
    assert "ALTER ROLE postgres SET work_mem" in script
    assert "CREATE TABLESPACE fast LOCATION ''" in script
    assert "/ssd" not in script
    assert "own" not in script


@pytest.mark.parametrize(
    ("version", "knows"),
    [("18.0", True), ("18beta3", True), ("17.5", False), ("17.6", True), ("14.18", False), ("15.14", True)],
)
def test_psql_knows_the_fence_of_dumps_since_august_2025(version: str, knows: bool) -> None:
    assert knows_restrict(version) == knows


def script_for(version: str, text: bytes) -> bytes:
    return b"".join(DatabaseScript(version).pieces(text.splitlines(keepends=True)))


def test_the_fence_is_taken_away_for_an_old_psql_and_only_where_it_is_one() -> None:
    text = b"\\restrict aB1\nSELECT 1;\nINSERT INTO t VALUES ('\n\\restrict no\n\\unrestrict no\n');\n\\unrestrict aB1\nlast"
    whole = b"SELECT 1;\nINSERT INTO t VALUES ('\n\\restrict no\n\\unrestrict no\n');\nlast"
    assert script_for("15.13", text) == whole
    assert script_for("15.14", text) == text


def test_an_older_server_gets_no_setting_or_option_of_a_newer_pg_dump() -> None:
    setting = b"SET transaction_timeout = 0;\n"
    create = b"CREATE DATABASE d WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';\n"
    rows = b"CREATE TABLE t (t text);\nCOPY t (t) FROM stdin;\nSET transaction_timeout = 0;\n\\.\n"
    text = b"SET lock_timeout = 0;\n" + setting + create + b"\\connect d\n" + setting + rows
    assert script_for("17.0", text) == text
    without = b"SET lock_timeout = 0;\n" + create + b"\\connect d\n" + rows
    assert script_for("16.1", text) == without
    assert script_for("14.1", text) == without.replace(b" LOCALE_PROVIDER = libc", b"")
    older = b" LC_COLLATE = 'C' LC_CTYPE = 'C'"
    assert script_for("12.9", text) == without.replace(b" LOCALE_PROVIDER = libc LOCALE = 'C'", older)
