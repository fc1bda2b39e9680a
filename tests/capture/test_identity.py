"""A replay onto the captured database itself is refused; onto any copy of it, it is not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.base.errors import InputError
from pgdyno.kinds.replay.production import identity, is_same, require_other
from pgdyno.kinds.replay.selection import Place

from ..support.commands import pgdyno
from .counted import copy_of

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

HERE = {
    "system_identifier": "7",
    "timeline": "00000001",
    "started_us": 5,
    "address": "10.0.0.1:5432",
    "database_oid": 16384,
}


@pytest.mark.parametrize(
    ("what", "change", "same"),
    [
        ("itself", {}, True),
        ("started again", {"started_us": 6}, True),
        ("reached by its socket", {"address": None}, True),
        ("a base backup elsewhere", {"started_us": 6, "address": "10.0.0.2:5432"}, False),
        ("started again and reached by its socket", {"started_us": 6, "address": None}, False),
        ("set back in its place", {"started_us": 6, "timeline": "00000002"}, False),
        ("another database of the server", {"database_oid": 16385}, False),
        ("restored in its place", {"database_oid": 17000}, False),
        ("another cluster at the same address", {"system_identifier": "8", "started_us": 6}, False),
        ("a standby", {"timeline": None}, False),
    ],
)
def test_the_same_database_is_told_from_its_copies(what: str, change: dict[str, Any], same: bool) -> None:
    assert is_same(HERE, HERE | change) is same, what


def test_what_is_not_known_is_not_the_same() -> None:
    assert not is_same(None, HERE) and not is_same(HERE, None)


def test_counters_name_their_server_and_a_replay_there_is_refused(embedded_server: Cluster) -> None:
    copy = copy_of(embedded_server, "template1", "elsewhere")
    with embedded_server.connect() as admin:
        admin.execute("CREATE EXTENSION pg_stat_statements")
    try:
        known = json.loads(pgdyno("capture", "stats", embedded_server.dsn, code=0).out)["server"]
    finally:
        with embedded_server.connect() as admin:
            admin.execute("DROP EXTENSION pg_stat_statements")
    place = Place("app", "postgres", 1)
    with psycopg.connect(embedded_server.dsn, autocommit=True) as session:
        assert is_same(known, identity(session)), (known, identity(session))
        with pytest.raises(InputError) as caught:
            require_other(session, place, "", {}, known)
    assert caught.value.code == "replay.server.captured"
    with psycopg.connect(embedded_server.dsn, dbname=copy, autocommit=True) as session:
        require_other(session, place, "", {}, known)


def test_a_recordings_address_and_the_name_of_its_database_are_compared(embedded_server: Cluster) -> None:
    place = Place("app", "postgres", 1)
    with psycopg.connect(embedded_server.dsn, autocommit=True) as session:
        address = f"{session.info.host}/.s.PGSQL.{session.info.port}"
        with pytest.raises(InputError):
            require_other(session, place, address, {}, None)
        require_other(session, place, address, {"postgres": "postgres"}, None)
        require_other(session, Place("app", "shop", 1), address, {}, None)
        require_other(session, place, "10.0.0.1:5432", {}, None)
        require_other(session, place, "", {}, None)
