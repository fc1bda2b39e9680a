"""What a log does not have of prepared statements: the types of their parameters, and whether they were prepared although they failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psycopg
import pytest

from tools.captured.logged import log_of

from ..support.commands import pgdyno
from .logged import AS_SUPERUSER, captured, connected

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

AMBIGUOUS = {
    "SELECT %s + %s": [100_001, 100_002],
    "SELECT count(*) FROM generate_series(%s, %s)": [100_001, 100_003],
    "INSERT INTO typed SELECT DISTINCT %s, %s": [100_001, 5],
}
"""Statements with values of which a client says that they are integers."""


def test_statements_that_are_ambiguous_without_types_do_what_they_did(embedded_server: Cluster, tmp_path: Path) -> None:
    def use(server: Cluster) -> None:
        with connected(server) as session, session.transaction():
            for text, values in AMBIGUOUS.items():
                session.execute(text.encode(), values)

    with embedded_server.connect() as admin:
        admin.execute("CREATE TABLE typed (id bigint, quantity int)")
        for text in AMBIGUOUS:
            prepared = "PREPARE bare AS " + text.replace("%s", "$1", 1).replace("%s", "$2", 1)
            with pytest.raises((psycopg.errors.AmbiguousFunction, psycopg.errors.DatatypeMismatch)):
                admin.execute(prepared.encode())
    capture, _ = captured(tmp_path, log_of(embedded_server, "ambiguous", use).files["csv"])
    ended = pgdyno(
        "capture", "replay", capture, "--dsn", embedded_server.dsn, "--yes-write", *AS_SUPERUSER, "--json", code=0
    )
    document = json.loads(ended.out)
    assert (document["newly_failed"], document["errors"]) == (0, [])


def test_a_statement_stays_prepared_whose_first_execution_failed(embedded_server: Cluster, tmp_path: Path) -> None:
    def use(server: Cluster) -> None:
        with connected(server) as session:
            session.pgconn.prepare(b"divided", b"SELECT 6 / ($1::int * count(*)) FROM pg_class")
            # It divides when it is executed: an error while it is planned is logged without the name.
            for divisor in (b"0", b"2", b"3"):
                session.pgconn.exec_prepared(b"divided", [divisor])

    capture, _ = captured(tmp_path, log_of(embedded_server, "divided", use).files["csv"])
    ended = pgdyno(
        "capture", "replay", capture, "--dsn", embedded_server.dsn, "--yes-write", *AS_SUPERUSER, "--json", code=0
    )
    document = json.loads(ended.out)
    assert (document["failed_as_recorded"], document["newly_failed"], document["errors"]) == (1, 0, [])
