"""Statements of the user's scripts, each prepared once before the first run, by the role that will send it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pgdyno.workload import native
from pgdyno.workload.kind.clients import Clients
from pgdyno.workload.server import Server

from ..base import engine
from ..base.errors import InputError

if TYPE_CHECKING:
    import psycopg

_SHOWN = 10
"""Statements that an error lists; the first ones say enough."""
_QUOTED_CHARACTERS = 80
_TABLE_MADE = re.compile(r"\bcreate\s+(?:\w+\s+)*?table\s+(?:if\s+not\s+exists\s+)?\"?(\w+)", re.IGNORECASE)
_UNKNOWN_TABLE = "42P01"
_UNTYPED = frozenset({"42P18", "42725", "42804", "42883", "22P02", "42601"})
"""What a parameter without a value may lead to, where the simple protocol sends the value itself: no type, no single function,
and a syntax error at a place that takes a constant alone."""


def rehearse(spec: Clients, server: Server) -> None:
    """Prepare every statement of ``spec`` on ``server``. :class:`InputError` lists those that fail: script, line, reason.

    A table that a script itself creates is not missing.
    """
    import psycopg

    sent = engine.run_json(["drive", "--check"], native.document(spec, 0, 1000))["sent"]
    made: dict[str, set[str]] = {}
    for item in sent:
        made.setdefault(item["script"], set()).update(name.lower() for name in _TABLE_MADE.findall(item["text"]))
    try:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            wrong = [text for item in sent if (text := _refused(connection, item, spec, made[item["script"]]))]
    except psycopg.Error as error:
        raise InputError(
            f"the scripts' role cannot connect to the restored database: {str(error).strip().partition(chr(10))[0]}",
            remedy="name a role that may log in (workload.database.user, --user), with its globals",
        ) from None
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise InputError(
            f"the restored database refuses {len(wrong)} of {len(sent)} statements: {'; '.join(wrong[:_SHOWN])}{more}",
            remedy="correct the scripts; a table that is not found may need the role's search_path, which is in the globals",
        )


def _refused(
    connection: psycopg.Connection[Any], document: dict[str, Any], spec: Clients, made: set[str]
) -> str | None:
    """What the server says against a statement; None where it takes it."""
    from psycopg import pq

    result = connection.pgconn.prepare(b"", document["text"].encode())
    if result.status != pq.ExecStatus.FATAL_ERROR:
        return None
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode(errors="replace")
    if spec.protocol == "simple" and state in _UNTYPED:
        return None
    if state == _UNKNOWN_TABLE and any(name in message.lower() for name in made):
        return None
    text = " ".join(document["text"].split())
    shown = text if len(text) <= _QUOTED_CHARACTERS else f"{text[: _QUOTED_CHARACTERS - 1]}…"
    return f"{document['script']}:{document['line']}: {message} ({shown})"
