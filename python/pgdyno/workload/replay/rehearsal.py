"""Roles and databases of a capture, tried once before the first run, and what their statements could reach."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from pgdyno.workload.replay.asked import ReplaySelection, names_of
from pgdyno.workload.replay.identity import require_other
from pgdyno.workload.replay.outside import require_inside
from pgdyno.workload.server import Server

from ...base.errors import InputError

if TYPE_CHECKING:
    import psycopg


def rehearse(selection: ReplaySelection, server: Server, allowed: Collection[str] = ()) -> None:
    """Open a session of every role in its database. :class:`InputError` lists those that the server refuses, or what their statements could reach."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    own = conninfo_to_dict(server.dsn)
    wrong = {}
    recorded_at = selection.planned().recorded_at
    elsewhere = {name: here for name, here in names_of(selection.databases).items() if here}

    def sessions() -> Iterator[tuple[str, psycopg.Connection[Any]]]:
        """One after the other: a capture may have more roles than the server takes sessions."""
        for place, user, database in selection.destinations(str(own["user"]), str(own["dbname"])):
            try:
                opened = psycopg.connect(make_conninfo(server.dsn, user=user, dbname=database), autocommit=True)
            except psycopg.Error as error:
                wrong[user, database] = str(error).strip().rpartition("FATAL:")[2].strip().partition("\n")[0]
                continue
            with opened:
                require_other(opened, place, recorded_at, elsewhere, None)
                yield user, opened

    outside = None
    try:
        require_inside(sessions(), allowed)
    except InputError as error:
        if error.code == "replay.server.captured":
            raise
        outside = error
    if wrong:
        named = "; ".join(f"{user} in {database}: {why}" for (user, database), why in wrong.items())
        raise InputError(
            f"the database refuses sessions of the capture: {named}",
            remedy="restore it with its roles (workload.database.globals, --globals), or name others in workload.users and"
            " workload.databases",
        )
    if outside is not None:
        raise outside
