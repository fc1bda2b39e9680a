"""The probe's queries: files ``sql/<table>_from_<first version>.sql``, the newest that the server is new enough for."""

from __future__ import annotations

import re
from importlib import resources

_FILE = re.compile(r"([a-z_]+)_from_(\d{6})\.sql")


WATCHED = "watched_"
"""Begin of the names of queries about a server in use: all of its databases, clients that are not known."""


def choose_queries(server_version: int, *, watched: bool = False) -> dict[str, str]:
    """Table (``io``) -> query, for a server of that ``server_version_num``; a table it cannot have is left out. For a server that
    is ``watched``, some tables have queries of their own.
    """
    chosen: dict[str, tuple[int, str]] = {}
    for file in resources.files("pgdyno.probe").joinpath("sql").iterdir():
        if match := _FILE.fullmatch(file.name):
            table, first_version = match[1], int(match[2])
            if first_version <= server_version and first_version > chosen.get(table, (0, ""))[0]:
                chosen[table] = (first_version, file.read_text())
    own = {table: query for table, (_, query) in sorted(chosen.items()) if not table.startswith(WATCHED)}
    if not watched:
        return own
    return own | {
        table.removeprefix(WATCHED): query for table, (_, query) in chosen.items() if table.startswith(WATCHED)
    }
