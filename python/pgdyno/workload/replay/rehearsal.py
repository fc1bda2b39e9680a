"""Roles and databases of a capture, tried once before the first run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.errors import InputError

if TYPE_CHECKING:
    from pgdyno.workload.replay.asked import Asked
    from pgdyno.workload.server import Server


def rehearse(asked: Asked, server: Server) -> None:
    """Open a session of every role in its database. :class:`InputError` lists those that the server refuses."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    own = conninfo_to_dict(server.dsn)
    wrong = {}
    for _, user, database in asked.destinations(str(own["user"]), str(own["dbname"])):
        try:
            psycopg.connect(make_conninfo(server.dsn, user=user, dbname=database)).close()
        except psycopg.Error as error:
            wrong[user, database] = str(error).strip().rpartition("FATAL:")[2].strip().partition("\n")[0]
    if wrong:
        named = "; ".join(f"{user} in {database}: {why}" for (user, database), why in wrong.items())
        raise InputError(
            f"the database refuses sessions of the capture: {named}",
            remedy="restore it with its roles (workload.database.globals, --globals), or name others in workload.users and"
            " workload.databases",
        )
