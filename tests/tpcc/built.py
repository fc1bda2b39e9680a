"""A database as HammerDB leaves it: tables in ``public``, and routines with its arguments, which do what pgdyno's own do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.workload.tables import TPCC_COLUMNS, routine_arguments

if TYPE_CHECKING:
    from pgdyno.workload.tables import TpccRoutines

    from ..fill.filled import Database

_SEED = "(random() * 2147483647)::integer"
_LINE = """ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d, 1, 'a'::varchar, 'b'::varchar, 'c'::varchar,
    1.0::numeric, ol_o_id, now()::timestamp, 1"""
FUNCTIONS = f"""
CREATE FUNCTION neword(integer, integer, integer, integer, integer, integer) RETURNS numeric LANGUAGE plpgsql AS $body$
BEGIN PERFORM own_neword($1, $2, $3, $4, $5, {_SEED}); RETURN 1; END $body$;
CREATE FUNCTION payment(integer, integer, integer, integer, integer, integer, numeric, varchar, varchar, numeric)
RETURNS integer LANGUAGE plpgsql AS $body$
BEGIN PERFORM own_payment($1, $2, $3, $4, $5, $6, $7, $8); RETURN $5; END $body$;
CREATE FUNCTION delivery(integer, integer) RETURNS integer LANGUAGE plpgsql AS $body$
BEGIN PERFORM own_delivery($1, $2); RETURN 1; END $body$;
CREATE FUNCTION slev(integer, integer, integer) RETURNS integer LANGUAGE plpgsql AS $body$
BEGIN PERFORM own_slev($1, $2, $3); RETURN 1; END $body$;
CREATE FUNCTION ostat(integer, integer, integer, integer, varchar) RETURNS SETOF record LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM own_ostat($1, $2, $3, $4, $5);
    RETURN QUERY SELECT {_LINE} FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = 1;
END $body$;
"""
_BACK = ", ".join(f"INOUT back{number} varchar" for number in range(18))
PROCEDURES = f"""
CREATE PROCEDURE neword(a integer, b integer, c integer, d integer, e integer, INOUT f numeric, INOUT g varchar,
    INOUT h varchar, INOUT i numeric, INOUT j numeric, INOUT k integer, l timestamp) LANGUAGE plpgsql AS $body$
BEGIN PERFORM own_neword(a, b, c, d, e, {_SEED}); k := 1; END $body$;
CREATE PROCEDURE payment(a integer, b integer, c integer, d integer, by_name integer, amount numeric, INOUT credit char(2),
    INOUT last varchar(16), INOUT customer integer, {_BACK}, INOUT since timestamp, INOUT x numeric, INOUT y numeric,
    INOUT z numeric, INOUT data varchar, at timestamp) LANGUAGE plpgsql AS $body$
BEGIN
    -- HammerDB's computes with what it was given where it finds no customer of a name.
    IF num_nulls(credit, last, since, x, y, z, data) > 0 THEN RAISE EXCEPTION 'an argument is NULL'; END IF;
    PERFORM own_payment(a, b, c, d, customer, by_name, amount, last);
END $body$;
CREATE PROCEDURE delivery(a integer, b integer, at timestamp) LANGUAGE plpgsql AS $body$
BEGIN PERFORM own_delivery(a, b); END $body$;
CREATE PROCEDURE slev(a integer, b integer, c integer, INOUT d integer) LANGUAGE plpgsql AS $body$
BEGIN PERFORM own_slev(a, b, c); d := 1; END $body$;
CREATE PROCEDURE ostat(a integer, b integer, INOUT c integer, d integer, INOUT e varchar, INOUT f varchar, INOUT g varchar,
    INOUT h numeric, INOUT i integer, INOUT j timestamp, INOUT k integer, INOUT l text) LANGUAGE plpgsql AS $body$
BEGIN PERFORM own_ostat(a, b, c, d, e); END $body$;
"""


def as_hammerdb(database: Database, routines: TpccRoutines = "functions") -> None:
    """Make it of a database that pgdyno has filled; nothing is left of pgdyno's schema."""
    for name in routine_arguments(routines):
        ((text,),) = database.rows(f"SELECT pg_get_functiondef('pgdyno_tpcc.{name}'::regproc)")
        own = text.replace(f"pgdyno_tpcc.{name}(", f"public.own_{name}(")
        database.run(own.replace("pgdyno_tpcc.", "public."))
    for table in TPCC_COLUMNS:
        database.run(f"ALTER TABLE pgdyno_tpcc.{table} SET SCHEMA public")
    database.run("DROP SCHEMA pgdyno_tpcc CASCADE")
    database.run(FUNCTIONS if routines == "functions" else PROCEDURES)


def relations(database: Database) -> list[tuple[str, str]]:
    """Everything in schemas of users: what is there, and of which kind."""
    return [
        (str(name), str(kind))
        for name, kind in database.rows(
            "SELECT c.oid::regclass::text, relkind::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace"
            " WHERE nspname !~ '^pg_|^information_schema$' UNION ALL SELECT oid::regprocedure::text, prokind::text"
            " FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
            " UNION ALL SELECT nspname::text, 'n' FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1, 2"
        )
    ]
