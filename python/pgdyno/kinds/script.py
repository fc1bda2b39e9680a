"""Kind `script`: files of the user's in pgbench's language. What they do is not known, so nothing of it is proven."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from pgdyno.workload import native
from pgdyno.workload.database import DatabaseTable
from pgdyno.workload.server import Server

from ..base import engine
from ..base.errors import InputError
from ..workload.clients import Clients
from ..workload.database import DataSet
from ..workload.kind import OnOwnDatabase, Refusal
from .pgbench import OnPgbenchTables, ScriptFile

if TYPE_CHECKING:
    import psycopg


_OF_PGBENCH = ("scale", "fillfactor", "tablespace", "index_tablespace")
"""Keys of pgbench's tables."""
_SLEEP = re.compile(r"^\s*\\sleep\b", re.MULTILINE | re.IGNORECASE)


class Script(OnOwnDatabase, OnPgbenchTables):
    """`script`: your files in pgbench's language."""

    blamed: ClassVar[str] = "files"

    kind: Literal["script"] = "script"
    """Your script files."""
    files: Annotated[
        tuple[ScriptFile, ...], WithJsonSchema({"type": "array", "items": {"type": ["string", "object"]}})
    ] = ()
    """Files in pgbench's language, `FILE.sql@WEIGHT`, beside the experiment file."""
    variables: dict[
        Annotated[str, Field(pattern=r"^[^\W]\w{0,62}$")],
        Annotated[str, Field(coerce_numbers_to_str=True, max_length=1024)],
    ] = Field(default_factory=dict)
    """Values of the files' variables, as `rows = 1000`: what `-D` gives to pgbench."""
    database: DatabaseTable | None = Field(None)
    """Your own database, on which the files run, instead of pgbench's tables."""

    @property
    def own_database(self) -> DatabaseTable | None:
        return self.database

    def data_set(self) -> DataSet:
        """The user's database, else pgbench's tables."""
        return super().data_set() if self.database is None else self.database.data_set()

    def rehearse(self, server: Server) -> None:
        """Prepare each statement once, on a server with the user's database. :class:`InputError` names those that fail."""
        if self.database is not None:
            rehearse(self, server)

    @property
    def mix(self) -> tuple[tuple[str, int], ...]:
        """The files."""
        return tuple((file.name, file.weight) for file in self.files)

    @property
    def writes(self) -> bool:
        """Unknown, so assume that scripts write."""
        return True

    @property
    def sleeps(self) -> bool:
        """True if a script waits by itself."""
        return any(_SLEEP.search(file.text) for file in self.files)

    def native(self) -> dict[str, Any]:
        scripts = [{"name": file.name, "text": file.text, "weight": file.weight} for file in self.files]
        return {"pgbench": {"scripts": scripts, "scale": self._scale, "variables": self.variables}}

    def pgbench_words(self, folder: Path) -> list[str]:
        """From the record and not from where it lay, so that a file that has changed meanwhile changes nothing."""
        words = []
        for number, file in enumerate(self.files):
            path = folder / f"{number}.sql"
            path.write_text(file.text, encoding="utf-8")
            words += ["-f", f"{path}@{file.weight}"]
        words += [word for name, value in self.variables.items() for word in ("-D", f"{name}={value}")]
        return [*words, "-s", str(self._scale)]

    def refusals_in_time(self, dilation: int) -> Iterator[Refusal]:
        """Pgbench has its own time."""
        if dilation > 1 and self.driver == "pgbench" and self.sleeps:
            why = "pgbench does not slow the \\sleep of a script, as a dilated world needs it"
            yield Refusal("files", why, 'use engine = "native", which does')
        yield from super().refusals_in_time(dilation)

    @property
    def _scale(self) -> int:
        """Value of ``:scale``; 1 without pgbench's tables, as in pgbench."""
        return self.scale if self.database is None else 1

    def _own_record(self) -> dict[str, Any]:
        own = super()._own_record() | {"script": ",".join(f"{name}@{weight}" for name, weight in self.mix)}
        del own["database"]
        if not self.variables:
            del own["variables"]
        if self.database is None:
            return own
        return {key: own[key] for key in own if key not in _OF_PGBENCH} | {"database": self.database.record()}

    def refusals_on_existing(self) -> Iterator[Refusal]:
        """An existing server has its databases."""
        yield from super().refusals_on_existing()
        if self.database is not None:
            yield self.database.refusal_on_existing()

    def _of_kind(self) -> Iterator[Refusal]:
        names = [file.name for file in self.files]
        if not names:
            yield Refusal("files", 'kind = "script" needs files = ["FILE.sql"]')
        if len(set(names)) < len(names):
            yield Refusal("files", f"{max(names, key=names.count)} appears twice; give it one weight")
        if self.database is None:
            yield from super()._of_kind()
        else:
            yield from self._of_database(self.database)

    def _of_database(self, database: DatabaseTable) -> Iterator[Refusal]:
        for key in _OF_PGBENCH:
            if key in self.model_fields_set:
                yield Refusal(
                    key, "it is for pgbench's tables, and this workload has a database of its own; omit the key"
                )
        yield from self._of_restored(database)


_SHOWN = 10
"""Statements that an error lists; the first ones say enough."""
_QUOTED_CHARACTERS = 80
_TABLE_MADE = re.compile(r"\bcreate\s+(?:\w+\s+)*?table\s+(?:if\s+not\s+exists\s+)?\"?(\w+)", re.IGNORECASE)
_UNKNOWN_TABLE = "42P01"
_UNTYPED = frozenset({"42P18", "42725", "42804", "42883", "22P02", "42601"})
"""Errors that a parameter without a value may cause, where the simple protocol sends the value itself: no type, no single function,
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
    """Error of the server about a statement; None if it accepts it."""
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
