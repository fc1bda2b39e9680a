"""What a role of few rights can put in a load's way: each leaves a mark when it runs with the rights of whoever loads."""

from __future__ import annotations

from pgdyno.loader import trust

FEW = "few"
MARK = "ALTER ROLE few SUPERUSER"
ROLE = f"DROP ROLE IF EXISTS {FEW}; CREATE ROLE {FEW} LOGIN"
BODY = f"""
CREATE TABLE IF NOT EXISTS public.ran (by text);
GRANT ALL ON public.ran TO PUBLIC;
CREATE OR REPLACE FUNCTION public.act() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        INSERT INTO public.ran VALUES (current_user);
        EXECUTE '{MARK}';
    END IF;
END $$;
CREATE OR REPLACE FUNCTION public.fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN NEW; END $$;
CREATE OR REPLACE FUNCTION public.number() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 0; END $$;
CREATE OR REPLACE FUNCTION public.same(anyelement) RETURNS anyelement IMMUTABLE LANGUAGE plpgsql
AS $$ BEGIN PERFORM public.act(); RETURN $1; END $$;
"""
"""Made by the role of few rights: what acts when a superuser runs it."""


def ledger(more: str = "") -> str:
    """The ledger, as the role of few rights makes it by hand: the tables are as pgdyno makes them."""
    tables = [
        f"CREATE TABLE {trust.SCHEMA}.{name} ({', '.join([*map(str, columns), *constraints])})"
        for name, (columns, constraints) in trust.TABLES.items()
    ]
    return f"CREATE SCHEMA {trust.SCHEMA}; {'; '.join(tables)}; {more}"


_FACT = """{"name": "t_planted", "method": "btree", "unique": false, "nulls_not_distinct": false, "include": [], "predicate": null,
"keys": [{"column": null, "expression": "public.same(a)", "collation": null, "operator_class": ["pg_catalog", "int4_ops"],
"parameters": [], "descending": null, "nulls_first": null, "operator": null}], "parameters": [], "tablespace": null,
"clustered": false, "comment": null, "definition": "", "constraint": null, "deferrable": false, "deferred": false,
"constraint_comment": null}"""
ROW = f"""
INSERT INTO pgdyno_load.undo (token, job, target, table_oid, kind, fact)
VALUES ('00112233aabbccdd', 1, 'public.t', 'public.t'::regclass, 'index', '{_FACT}')
"""

TAKEN_OVER = """
DO $$
DECLARE one record;
BEGIN
    FOR one IN SELECT format('ALTER SCHEMA %I OWNER TO postgres', nspname) AS act FROM pg_namespace WHERE nspname = 'pgdyno_load'
        UNION ALL SELECT format('ALTER TABLE %s OWNER TO postgres', oid::regclass) FROM pg_class
        WHERE relnamespace = to_regnamespace('pgdyno_load') AND relkind IN ('r', 'v')
    LOOP EXECUTE one.act; END LOOP;
END $$
"""
"""An administrator makes the ledger the superuser's, with all that is in it."""

BY_HAND = {
    "the schema": ledger(),
    "a row": ledger(ROW),
    "a trigger": ledger(
        "CREATE TRIGGER x BEFORE INSERT ON pgdyno_load.job FOR EACH ROW EXECUTE FUNCTION public.fires()"
    ),
    "a trigger of chunks": ledger(
        "CREATE TRIGGER x AFTER INSERT ON pgdyno_load.chunk FOR EACH ROW EXECUTE FUNCTION public.fires()"
    ),
    "a rule": ledger("CREATE RULE x AS ON INSERT TO pgdyno_load.job DO ALSO SELECT public.act()"),
    "a default": ledger("ALTER TABLE pgdyno_load.chunk ADD more bigint DEFAULT public.number()"),
    "a generated column": ledger(
        "CREATE FUNCTION public.fixed(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql"
        " AS $$ BEGIN PERFORM public.act(); RETURN 0; END $$;"
        "ALTER TABLE pgdyno_load.job ADD more bigint GENERATED ALWAYS AS (public.fixed(job)) STORED"
    ),
    "a policy": ledger(
        "ALTER TABLE pgdyno_load.undo ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;"
        "CREATE POLICY x ON pgdyno_load.undo USING (public.number() = 0)"
    ),
    "a child": ledger("CREATE TABLE pgdyno_load.more () INHERITS (pgdyno_load.undo)"),
    "an index": ledger("CREATE INDEX ON pgdyno_load.job (public.same(job))"),
    "a check": ledger("ALTER TABLE pgdyno_load.job ADD CHECK (public.number() = 0)"),
    "a view": "CREATE SCHEMA pgdyno_load; CREATE VIEW pgdyno_load.undo AS SELECT public.number() AS entry",
    "a staging table": ledger("CREATE TABLE pgdyno_load.staging_1 (a int DEFAULT public.number())"),
    "a function of the schema": ledger("CREATE FUNCTION pgdyno_load.f() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
}
"""Ledgers that the role of few rights made before the first load."""

INTO_OURS = {
    "a row": ("GRANT INSERT ON pgdyno_load.undo TO few", ROW),
    "a trigger": (
        "GRANT TRIGGER ON pgdyno_load.job TO few",
        "CREATE TRIGGER x BEFORE INSERT ON pgdyno_load.job FOR EACH ROW EXECUTE FUNCTION public.fires()",
    ),
    "a trigger, and the right was taken back": (
        "GRANT TRIGGER ON pgdyno_load.chunk TO few",
        "CREATE TRIGGER x AFTER INSERT ON pgdyno_load.chunk FOR EACH ROW EXECUTE FUNCTION public.fires()",
    ),
    "a foreign key": (
        "GRANT REFERENCES ON pgdyno_load.job TO few",
        "CREATE TABLE public.mine (job bigint REFERENCES pgdyno_load.job ON DELETE CASCADE)",
    ),
    "a table": ("GRANT CREATE ON SCHEMA pgdyno_load TO few", "CREATE TABLE pgdyno_load.staging_7 (a int)"),
    "a function": (
        "GRANT CREATE ON SCHEMA pgdyno_load TO few",
        "CREATE FUNCTION pgdyno_load.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ),
    "a column's right": ("GRANT UPDATE (fact) ON pgdyno_load.undo TO few", "SELECT 1"),
}
"""What somebody once granted on the superuser's own ledger, and what the role of few rights made of it."""

NAMES = """
CREATE FUNCTION public.hashtextextended(text, integer) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 0; END $$;
CREATE FUNCTION public.pg_try_advisory_lock(integer, bigint) RETURNS boolean LANGUAGE plpgsql
    AS $$ BEGIN PERFORM public.act(); RETURN true; END $$;
CREATE FUNCTION public.pg_logical_emit_message(boolean, text, text) RETURNS pg_lsn LANGUAGE plpgsql
    AS $$ BEGIN PERFORM public.act(); RETURN '0/0'; END $$;
CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN ''; END $$;
CREATE FUNCTION public.quote_ident(name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 'x'; END $$;
CREATE FUNCTION public.format(text, name, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 'x'; END $$;
CREATE FUNCTION public.greatest_of(real) RETURNS real LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 0; END $$;
CREATE FUNCTION public.to_regclass(varchar) RETURNS regclass LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN NULL; END $$;
CREATE FUNCTION public.has_table_privilege(oid, varchar) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN true; END $$;
CREATE FUNCTION public.equal(name, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN true; END $$;
CREATE FUNCTION public.equal(bigint, smallint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN true; END $$;
CREATE FUNCTION public.equal(oid, integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN true; END $$;
CREATE FUNCTION public.equal(oid, smallint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN true; END $$;
CREATE FUNCTION public.equal("char", text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN true; END $$;
CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.equal);
CREATE OPERATOR public.= (LEFTARG = bigint, RIGHTARG = smallint, FUNCTION = public.equal);
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = integer, FUNCTION = public.equal);
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = smallint, FUNCTION = public.equal);
CREATE OPERATOR public.= (LEFTARG = "char", RIGHTARG = text, FUNCTION = public.equal);
CREATE FUNCTION public.joined(text, regclass) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN 'x'; END $$;
CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = regclass, FUNCTION = public.joined);
CREATE TYPE public.weird AS (a int);
CREATE FUNCTION public.to_weird(bigint) RETURNS public.weird LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); RETURN ROW(1); END $$;
CREATE CAST (bigint AS public.weird) WITH FUNCTION public.to_weird(bigint) AS IMPLICIT;
CREATE TABLE public.pg_settings (name text, setting text);
CREATE VIEW public.pg_class AS SELECT public.number() AS oid;
"""
"""Functions, operators, casts and tables in a schema of everybody's ``search_path`` that suit our statements' types better than
the server's own."""
