"""What is asked of a capture: sessions of which roles and databases, which part of its time, how fast; and where they go."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pgdyno.workload.replay import copied
from pgdyno.workload.replay.catalogue import catalogue, joined
from pgdyno.workload.replay.counted import Counts
from pgdyno.workload.server import Server

from ...base import engine
from ...base.errors import InputError
from ...results.work_record import ReadingRecord

if TYPE_CHECKING:
    import psycopg

Keys = Literal["learned", "captured"]
"""Whether this run's keys are sent in the places of those that the server gave in production."""
Clock = Literal["capture", "now"]
"""What time the server has: that of production when the captured part began, and on from there, or the host's."""
Pace = Literal["due", "gaps"]
"""A statement is sent at its time, or so long after the answer before it as the application waited."""
LIMIT_TIMES = 10.0
"""A replay may take this multiple of its time, and :data:`LIMIT_BESIDE_S`; then it is ended: a server that is ten times too slow
has given its answer."""
LIMIT_BESIDE_S = 60.0
WAIT_MAX_S = 10.0
"""How long a statement waits for the transaction that makes its key (issue 21, point 8)."""
NEWER = {"share": 0.01, "ahead": 32}
"""Keys of the capture that a database may have already, as the verdict on a replay allows (:mod:`pgdyno.analysis.replay`)."""
_DIGEST_SHOWN = 16


@dataclass(frozen=True)
class Place:
    """Sessions of a role in a database."""

    user: str
    database: str
    calls: int


@dataclass(frozen=True)
class ReplayPlan:
    """What a replay would be, by the index of its capture."""

    captured_s: float
    """Time of the whole capture."""
    part_s: float
    """Time of the part that is asked for."""
    begin_unix_us: int
    """When that part began in production, microseconds since 1970."""
    sessions: int
    lanes: int
    """The most sessions that are open at a time."""
    places: tuple[Place, ...]
    reading: ReadingRecord
    """What the capture lacks of its source."""
    recorded_at: str
    """Address of the server that a recording is of; empty of a log, which does not say it."""


@dataclass(frozen=True)
class ReplaySelection:
    """A part of a capture, and how it is sent. Its names are ``NAME``, or ``NAME=HERE`` for another one in its place."""

    capture: str
    speed: float = 1.0
    pace: Pace = "due"
    users: tuple[str, ...] = ()
    """Empty: all."""
    databases: tuple[str, ...] = ()
    from_s: float | None = None
    until_s: float | None = None
    keys: Keys = "learned"
    wait_max_s: float = WAIT_MAX_S
    """How long a statement waits for the transaction of another session that makes its key; 0: not at all."""
    made: Mapping[str, Counts] | None = None
    """What production counted of each statement, where rows of COPY that are not in the capture are made; None: such a COPY is left out."""
    accept_losses: bool = False
    """Whether what the capture lacks is no reason against its replay."""

    def planned(self) -> ReplayPlan:
        """What it would be. :class:`InputError` when the capture cannot be read, or nothing in it is asked for."""
        every = _planned(self.capture, file_stamp(self.capture), None, None, None)
        users, databases = names_of(self.users), names_of(self.databases)
        require_known(users, {place.user for place in every.places}, "user")
        require_known(databases, {place.database for place in every.places}, "database")
        chosen = tuple(
            (place.user, place.database)
            for place in every.places
            if (not users or place.user in users) and (not databases or place.database in databases)
        )
        plan = _planned(self.capture, file_stamp(self.capture), chosen, self.from_s, self.until_s)
        if not plan.places:
            raise InputError(
                f"{self.capture}: no session of it is asked for",
                remedy="choose other users, databases or another time; `pgdyno capture show` lists them",
            )
        return plan

    @property
    def reading(self) -> ReadingRecord:
        """What the capture lacks of its source, and whether that is accepted."""
        return self.planned().reading.model_copy(update={"accepted": self.accept_losses})

    @property
    def due_s(self) -> float:
        """How long it takes if nothing is late."""
        return self.planned().part_s / self.speed

    @property
    def limit_s(self) -> float:
        """When it is ended."""
        return self.due_s * LIMIT_TIMES + LIMIT_BESIDE_S

    def endpoints(self, server: Server) -> list[dict[str, Any]]:
        """Where the engine sends each role's sessions."""
        own = server.endpoint
        return [
            {
                "user": place.user,
                "database": place.database,
                "server": own.of(user, database).order("pgdyno replay"),
            }
            for place, user, database in self.destinations(own.document["user"], own.document["dbname"])
        ]

    def destinations(self, user: str, database: str) -> list[tuple[Place, str, str]]:
        """Each place with its role and database here.

        A role that the log does not name is ``user``. The only database of a capture is ``database``, unless another is named.
        """
        users, databases = names_of(self.users), names_of(self.databases)
        places = self.planned().places
        alone = len({place.database for place in places}) == 1
        return [
            (
                place,
                users.get(place.user) or place.user or user,
                databases.get(place.database) or (database if alone else place.database) or database,
            )
            for place in places
        ]

    def digest(self) -> str:
        """Digest of the capture's content."""
        return _digest(self.capture, file_stamp(self.capture))[:_DIGEST_SHOWN]

    def document(self) -> dict[str, Any]:
        """The part of the engine's input that does not depend on a server."""
        return {"capture": self.capture, "pace": self.pace, "from_s": self.from_s, "until_s": self.until_s}

    def keys_on(self, server: Server, dilation: int = 1) -> dict[str, Any] | None:
        """What the databases of ``server`` say of their keys, asked by the role of its connection string."""
        import psycopg
        from psycopg.conninfo import make_conninfo

        order = server.endpoint.order("pgdyno replay")
        names = {name for _, _, name in self.destinations(order["user"], order["dbname"])}
        with contextlib.ExitStack() as ending:
            return self.keys_document(
                (
                    ending.enter_context(
                        psycopg.connect(make_conninfo(server.dsn, dbname=name, password=order["password"] or ""))
                    )
                    for name in sorted(names)
                ),
                dilation,
            )

    def copies_on(self, server: Server) -> list[dict[str, Any]]:
        """Of which COPYs rows are made, and of what: by the tables of the databases of ``server``."""
        import psycopg
        from psycopg.conninfo import make_conninfo

        order = server.endpoint.order("pgdyno replay")
        names = {name for _, _, name in self.destinations(order["user"], order["dbname"])}
        with contextlib.ExitStack() as ending:
            return self.copies_document(
                ending.enter_context(
                    psycopg.connect(make_conninfo(server.dsn, dbname=name, password=order["password"] or ""))
                )
                for name in sorted(names)
            )

    def copies_document(self, connections: Iterable[psycopg.Connection[Any]]) -> list[dict[str, Any]]:
        """The same, by these connections. A COPY is of the first database that has its table."""
        if self.made is None:
            return []
        left = copied.texts_of(self.capture, file_stamp(self.capture))
        copies_document: list[dict[str, Any]] = []
        for connection in connections:
            copies_document += copied.made(connection, left, self.made)
            left = {
                shape: text
                for shape, text in left.items()
                if shape not in {document["shape"] for document in copies_document}
            }
        return copies_document

    def keys_document(self, connections: Iterable[psycopg.Connection[Any]], dilation: int = 1) -> dict[str, Any] | None:
        """The part about keys, by what the databases say; None where they are sent as captured."""
        if self.keys == "captured":
            return None
        sessions = self.planned().lanes
        result = joined([catalogue(connection, sessions) for connection in connections])
        return {"catalogue": result, "wait_max_ms": round(self.wait_max_s * 1000 * dilation)}


def names_of(written: Sequence[str]) -> dict[str, str]:
    """``NAME`` or ``NAME=HERE`` -> the name here; empty for the same."""
    return {name: here for name, _, here in (text.partition("=") for text in written)}


def require_known(named: Mapping[str, str], there: set[str], what: str) -> None:
    """Refuse a name that the capture has no statement of."""
    for name in named:
        if name not in there:
            raise InputError(
                f"the capture has no statement of the {what} {name}",
                remedy=f"it has those of {', '.join(sorted(text or '(not logged)' for text in there)) or 'none'}",
            )


def file_stamp(path: str) -> tuple[int, int]:
    """What changes when the file is another one. A file that is not there is reported by who reads it."""
    try:
        stat = Path(path).stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


@functools.lru_cache(maxsize=64)
def _planned(
    path: str,
    stamp: tuple[int, int],
    places: tuple[tuple[str, str], ...] | None,
    from_s: float | None,
    until_s: float | None,
) -> ReplayPlan:
    del stamp
    json = engine.run_json(
        ["capture", "replay", "--check"],
        {"capture": path, "places": places, "from_s": from_s, "until_s": until_s},
    )
    return ReplayPlan(
        captured_s=json["captured_s"],
        part_s=json["part_s"],
        begin_unix_us=json["begin_unix_us"],
        sessions=json["sessions"],
        lanes=json["lanes"],
        places=tuple(Place(**place) for place in json["places"]),
        reading=ReadingRecord(**json["reading"]),
        recorded_at=json["recorded_at"],
    )


@functools.lru_cache(maxsize=16)
def _digest(path: str, stamp: tuple[int, int]) -> str:
    del stamp
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
