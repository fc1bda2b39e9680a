"""Autovacuum, kept from a table while it is loaded: it would read what is being written, and is done at the end anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.loader.undo import Change

if TYPE_CHECKING:
    from pgdyno.loader.table import Table

OPTION = "autovacuum_enabled"


def off(table: Table) -> Change | None:
    """The change, whose undoing leaves the storage parameters as they were, also in their order; None if not needed.

    What was not set is reset and not set to its default. A parameter that is set anew goes to the end, so that all are
    set anew where this one was among them.
    """
    if not table.owned or table.kind != "r":
        return None
    options = [option.split("=", 1) for option in table.options]
    before = dict(options).get(OPTION)
    if before is not None and before.lower() in ("false", "off", "no", "0", "f"):
        return None
    if before is None:
        undo = [f"ALTER TABLE {table.quoted} RESET ({OPTION})"]
    else:
        names = ", ".join(name for name, _ in options)
        values = ", ".join(f"{name} = {_literal(value)}" for name, value in options)
        undo = [f"ALTER TABLE {table.quoted} RESET ({names})", f"ALTER TABLE {table.quoted} SET ({values})"]
    doing = (f"ALTER TABLE {table.quoted} SET ({OPTION} = false)",)
    return Change("autovacuum", f"kept from {table.quoted}", doing, ((), (), tuple(undo)))


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
