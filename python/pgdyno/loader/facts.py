"""What a load has changed in a table, as facts, and the statements that bring it back, which only this module writes.

A fact is read from the server's catalogue and kept in the undo journal. It holds names and definitions, never a statement,
so that a journal cannot make a later run do anything but what is composed here: names are quoted, and each statement is
sent alone. Expressions of indexes are kept as the server writes them with all names qualified.

A fact is restored in :data:`STAGES` stages, because indexes can be built side by side and constraints cannot be added so:
0 builds, 1 alters the table, 2 checks foreign keys and sets storage parameters.
"""

from __future__ import annotations

import re
import types
import typing
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Protocol

from pgdyno.loader.sql import listed, literal, qualified, quoted

from ..base.errors import InputError

STAGES = 3
Stage = tuple[str, ...]
_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|`?]+")
_PARAMETER = re.compile(r"[a-z_][a-z0-9_]*")
_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_MATCHES = {"s": "SIMPLE", "f": "FULL", "p": "PARTIAL"}
_INDEX_NOW = """
SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %s AND c.relname = %s
"""
_FOREIGN_KEY_NOW = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s AND conname = %s"
AUTOVACUUM = "autovacuum_enabled"


class Fact(Protocol):
    """Something that was changed."""

    def stages(self, schema: str, table: str) -> tuple[Stage, Stage, Stage]:
        """Statements that restore it, for a table of that name."""

    def words(self) -> str:
        """What was changed, and what is to be done."""

    def expressions(self) -> tuple[str, ...]:
        """What of it may call functions."""

    def defined(self) -> tuple[str, str, str] | None:
        """How to see that it is back: a query of a table's oid and a name, the name, and the definition that it finds."""


@dataclass(frozen=True)
class IndexColumn:
    """A column of an index."""

    column: str | None
    expression: str | None
    """Where it is not a column."""
    collation: tuple[str, str] | None
    operator_class: tuple[str, str]
    parameters: tuple[tuple[str, str], ...]
    """Parameters of the operator class."""
    descending: bool | None
    """None where the access method has no order."""
    nulls_first: bool | None
    operator: tuple[str, str] | None
    """Operator of an exclusion constraint."""

    def __str__(self) -> str:
        result = quoted(self.column) if self.column is not None else f"({self.expression})"
        if self.collation is not None:
            result += f" COLLATE {qualified(*self.collation)}"
        result += f" {qualified(*self.operator_class)}"
        if self.parameters:
            result += f" ({_parameters(self.parameters)})"
        if self.descending is not None:
            result += f" {'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        if self.operator is not None:
            schema, name = self.operator
            if not _OPERATOR.fullmatch(name):
                raise _damaged()
            result += f" WITH OPERATOR({quoted(schema)}.{name})"
        return result


@dataclass(frozen=True)
class Index:
    """An index that was dropped, with the constraint that it belongs to."""

    name: str
    method: str
    unique: bool
    nulls_not_distinct: bool
    keys: tuple[IndexColumn, ...]
    include: tuple[str, ...]
    predicate: str | None
    parameters: tuple[tuple[str, str], ...]
    tablespace: str | None
    """None: the database's own."""
    clustered: bool
    comment: str | None
    definition: str
    """As the server writes it: to be compared with, never to be run."""
    constraint: Literal["p", "u", "x"] | None = None
    """A primary key, a unique constraint, an exclusion constraint."""
    deferrable: bool = False
    deferred: bool = False
    constraint_comment: str | None = None

    def words(self) -> str:
        """What was changed, and what is to be done."""
        return f"{self.name} dropped, to be rebuilt"

    def stages(self, schema: str, table: str) -> tuple[Stage, Stage, Stage]:
        """The index beside others, then its constraint. An exclusion constraint cannot be built apart from its index."""
        full = qualified(schema, table)
        building: Stage = ("SET LOCAL default_tablespace = ''",)
        after: list[str] = []
        if self.constraint == "x":
            after += [*building, self._adding(full, f"EXCLUDE {self._body('USING INDEX TABLESPACE')}{self._waits()}")]
            building = ()
        else:
            unique = "UNIQUE " if self.unique else ""
            building += (f"CREATE {unique}INDEX {quoted(self.name)} ON {full} {self._body('TABLESPACE')}",)
        if self.constraint in ("p", "u"):
            kind = "PRIMARY KEY" if self.constraint == "p" else "UNIQUE"
            after.append(self._adding(full, f"{kind} USING INDEX {quoted(self.name)}{self._waits()}"))
        if self.comment is not None:
            after.append(f"COMMENT ON INDEX {qualified(schema, self.name)} IS {literal(self.comment)}")
        if self.constraint_comment is not None:
            after.append(f"COMMENT ON CONSTRAINT {quoted(self.name)} ON {full} IS {literal(self.constraint_comment)}")
        if self.clustered:
            after.append(f"ALTER TABLE {full} CLUSTER ON {quoted(self.name)}")
        return building, tuple(after), ()

    def dropping(self, schema: str, table: str) -> str:
        """The statement that drops it."""
        if self.constraint is None:
            return f"DROP INDEX {qualified(schema, self.name)}"
        return f"ALTER TABLE {qualified(schema, table)} DROP CONSTRAINT {quoted(self.name)}"

    def expressions(self) -> tuple[str, ...]:
        """What of it may call functions."""
        written = (*(key.expression for key in self.keys), self.predicate)
        return tuple(text for text in written if text is not None)

    def defined(self) -> tuple[str, str, str]:
        """How to see that it is back."""
        return _INDEX_NOW, self.name, self.definition

    def _adding(self, full: str, what: str) -> str:
        return f"ALTER TABLE {full} ADD CONSTRAINT {quoted(self.name)} {what}"

    def _body(self, tablespace: str) -> str:
        """From USING on. In a constraint the predicate stands in parentheses, as an index takes it too."""
        body = f"USING {quoted(self.method)} ({', '.join(map(str, self.keys))})"
        if self.include:
            body += f" INCLUDE ({listed(self.include)})"
        if self.nulls_not_distinct:
            body += " NULLS NOT DISTINCT"
        if self.parameters:
            body += f" WITH ({_parameters(self.parameters)})"
        if self.tablespace is not None:
            body += f" {tablespace} {quoted(self.tablespace)}"
        if self.predicate is not None:
            body += f" WHERE ({self.predicate})"
        return body

    def _waits(self) -> str:
        return _deferrable(self.deferrable, self.deferred)


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key that was dropped."""

    name: str
    columns: tuple[str, ...]
    referenced: tuple[str, str]
    """Schema and name of the other table."""
    referenced_columns: tuple[str, ...]
    match: str
    on_update: str
    on_delete: str
    """These three in the letters of ``pg_constraint``."""
    delete_columns: tuple[str, ...]
    """Those that ON DELETE sets, where it does not set all."""
    deferrable: bool
    deferred: bool
    comment: str | None
    definition: str
    """As the server writes it: to be compared with, never to be run."""

    def words(self) -> str:
        """What was changed, and what is to be done."""
        return f"{self.name} dropped, to be checked again"

    def stages(self, schema: str, table: str) -> tuple[Stage, Stage, Stage]:
        """Added at the end, which checks all rows."""
        full = qualified(schema, table)
        if {self.on_update, self.on_delete} - set(_ACTIONS) or self.match not in _MATCHES:
            raise _damaged()
        some = f" ({listed(self.delete_columns)})" if self.delete_columns else ""
        adding = (
            f"ALTER TABLE {full} ADD CONSTRAINT {quoted(self.name)} FOREIGN KEY ({listed(self.columns)})"
            f" REFERENCES {qualified(*self.referenced)} ({listed(self.referenced_columns)}) MATCH {_MATCHES[self.match]}"
            f" ON UPDATE {_ACTIONS[self.on_update]} ON DELETE {_ACTIONS[self.on_delete]}{some}"
            f"{_deferrable(self.deferrable, self.deferred)}"
        )
        if self.comment is None:
            return (), (), (adding,)
        comment = f"COMMENT ON CONSTRAINT {quoted(self.name)} ON {full} IS {literal(self.comment)}"
        return (), (), (adding, comment)

    def dropping(self, schema: str, table: str) -> str:
        """The statement that drops it."""
        return f"ALTER TABLE {qualified(schema, table)} DROP CONSTRAINT {quoted(self.name)}"

    def expressions(self) -> tuple[str, ...]:
        """None."""
        return ()

    def defined(self) -> tuple[str, str, str]:
        """How to see that it is back."""
        return _FOREIGN_KEY_NOW, self.name, self.definition


@dataclass(frozen=True)
class Quiet:
    """Autovacuum, which was kept from the table."""

    before: tuple[tuple[str, str], ...]
    """All storage parameters as they were, in their order."""

    def words(self) -> str:
        """What was changed, and what is to be done."""
        return "turned off for the table, to be restored"

    def stages(self, schema: str, table: str) -> tuple[Stage, Stage, Stage]:
        """What was not set is reset. Else all are set again, since one that is set goes to the end."""
        full = qualified(schema, table)
        if AUTOVACUUM not in dict(self.before):
            return (), (), (f"ALTER TABLE {full} RESET ({AUTOVACUUM})",)
        values = _parameters(self.before)
        names = ", ".join(name for name, _ in self.before)
        return (), (), (f"ALTER TABLE {full} RESET ({names})", f"ALTER TABLE {full} SET ({values})")

    def expressions(self) -> tuple[str, ...]:
        """None."""
        return ()

    def defined(self) -> None:
        """The server keeps the parameters as they are set."""


@dataclass(frozen=True)
class StagingTable:
    """The table that an upsert's rows wait in."""

    job: int

    def words(self) -> str:
        """What was changed, and what is to be done."""
        return f"pgdyno_load.staging_{self.job} created, to be dropped"

    def stages(self, schema: str, table: str) -> tuple[Stage, Stage, Stage]:
        """With the lines of the chunks that were in it."""
        forgetting = f"DELETE FROM pgdyno_load.chunk WHERE job = {self.job:d}"
        return (), (), (forgetting, f"DROP TABLE IF EXISTS pgdyno_load.staging_{self.job:d}")

    def expressions(self) -> tuple[str, ...]:
        """None."""
        return ()

    def defined(self) -> None:
        """Nothing is left of it."""


KINDS: dict[str, type[Index] | type[ForeignKey] | type[Quiet] | type[StagingTable]] = {
    "index": Index,
    "foreign key": ForeignKey,
    "autovacuum": Quiet,
    "staging": StagingTable,
}
"""Kind of an entry of the journal -> what its fact is."""


def document(fact: Any) -> dict[str, Any]:
    """As JSON."""
    return asdict(fact)


def parsed(kind: str, result: object) -> Any:
    """The fact that a document holds. :class:`InputError` for one that holds none, with whatever is wrong in it."""
    if kind not in KINDS:
        raise _damaged()
    return _typed(KINDS[kind], result)


def _typed(expected: Any, value: object) -> Any:
    """A value of JSON as the type says, all the way down."""
    origin, inner = typing.get_origin(expected), typing.get_args(expected)
    if isinstance(expected, type) and hasattr(expected, "__dataclass_fields__"):
        hints = typing.get_type_hints(expected)
        if not isinstance(value, dict) or set(value) != {field.name for field in fields(expected)}:
            raise _damaged()
        return expected(**{name: _typed(hints[name], value[name]) for name in value})
    if origin is tuple and isinstance(value, (list, tuple)):
        kinds = [inner[0]] * len(value) if inner[-1] is ... else list(inner)
        if len(kinds) == len(value):
            return tuple(_typed(kind, item) for kind, item in zip(kinds, value, strict=True))
    elif origin in (types.UnionType, typing.Union):
        if value is None and type(None) in inner:
            return None
        return _typed(next(item for item in inner if item is not type(None)), value)
    elif origin is Literal and value in inner:
        return value
    if expected in (str, int, bool) and type(value) is expected and "\0" not in str(value):
        return value
    raise _damaged()


def _parameters(values: tuple[tuple[str, str], ...]) -> str:
    if not all(_PARAMETER.fullmatch(name) for name, _ in values):
        raise _damaged()
    return ", ".join(f"{name} = {literal(value)}" for name, value in values)


def _deferrable(deferrable: bool, deferred: bool) -> str:
    return (" DEFERRABLE" if deferrable else "") + (" INITIALLY DEFERRED" if deferred else "")


def _damaged() -> InputError:
    return InputError(
        "the undo journal has an entry that this version of pgdyno did not write",
        remedy="look at pgdyno_load.undo; unwanted entries can be deleted there",
    )
