"""Autovacuum, kept from a table while it is loaded: it would read what is being written, and is done at the end anyway."""

from __future__ import annotations

from pgdyno.loader.facts import AUTOVACUUM, Quiet
from pgdyno.loader.sql import qualified
from pgdyno.loader.table import TargetTable
from pgdyno.loader.undo import TargetChange


def off(table: TargetTable) -> TargetChange | None:
    """The change, whose undoing leaves the storage parameters as they were, also in their order; None if not needed."""
    if not table.owned or table.kind != "r":
        return None
    options = [option.partition("=") for option in table.options]
    before = tuple((name, value) for name, _, value in options)
    now = dict(before).get(AUTOVACUUM)
    if now is not None and now.lower() in ("false", "off", "no", "0", "f"):
        return None
    doing = f"ALTER TABLE {qualified(table.schema, table.name)} SET ({AUTOVACUUM} = false)"
    return TargetChange("autovacuum", Quiet(before), (doing,))
