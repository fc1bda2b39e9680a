"""Production's statements beside a replay's: which of both servers' counters are of the same sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.workload.replay.asked import Place
from pgdyno.workload.replay.counted import Counts, counted, grown
from pgdyno.workload.replay.production import production
from pgdyno.workload.replay.result import likeness_of
from pgdyno.workload.server import Server

from ...base.errors import InputError
from ...results.work_record import LikenessRecord

_EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"


@dataclass(frozen=True)
class ProductionWork:
    """What production's statements are compared with."""

    production: Mapping[str, Counts]
    """Shape -> what the statements of the roles that are replayed did."""
    database: str
    """Here."""
    roles: frozenset[str]
    """Here; empty: all."""
    whole: bool
    """Whether all of the capture is sent."""

    def with_rows(
        self, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]], left_out: Iterable[str]
    ) -> LikenessRecord:
        """Beside two readings of the server that was replayed on."""
        here = grown(before, after, self.roles)
        return likeness_of(self.production, here, left_out, whole=self.whole)


def compared(stats: tuple[str, str], destinations: Sequence[tuple[Place, str, str]], *, whole: bool) -> ProductionWork:
    """What the two documents of ``capture stats`` say of sessions that go to ``destinations``: places, roles here, databases here.

    :class:`InputError` when they are of another database than those.
    """
    result = production(stats)
    own = [destination for destination in destinations if destination[0].database in (result.database, "")]
    if not own:
        names = sorted({place.database for place, _, _ in destinations})
        raise InputError(
            f"{stats[0]} is of the database {result.database}, and sessions of {', '.join(names)} are replayed",
            remedy="name `pgdyno capture stats` of the database that was captured",
        )
    captured = {place.user for place, _, _ in own}
    return ProductionWork(
        # A log that does not name roles is of all.
        production=result.work(set() if "" in captured else captured),
        database=own[0][2],
        roles=frozenset(user for _, user, _ in own),
        whole=whole,
    )


def of_server(work: ProductionWork, server: Server, left_out: Iterable[str]) -> LikenessRecord:
    """Beside what ``server`` has counted since it was started. Its superuser reads it, once the load is over."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    with psycopg.connect(make_conninfo(server.dsn, dbname=work.database), autocommit=True) as connection:
        connection.execute(_EXTENSION)
        return work.with_rows((), counted(connection), left_out)
