"""The script that HammerDB's command line gets for TPROC-H. Keys: ``config/postgresql.xml`` of HammerDB 4.12 and 6.0."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.workload.hammerdb.script import Login, opening, setting, virtual_users
from pgdyno.workload.tpch.streams import Streams


def users_of(streams: Streams) -> int:
    """Its virtual users: one for each stream, and where rows are refreshed beside them the first one does that."""
    return streams.clients + (streams.refresh == "stream")


def tpch_script(streams: Streams, login: Login) -> str:
    """The script of a run."""
    return "".join(f"{line}\n" for line in _lines(streams, login))


def _lines(streams: Streams, login: Login) -> Iterator[str]:
    yield from opening("TPC-H", login)
    for key, value in (
        ("pg_tpch_user", login.user),
        ("pg_tpch_pass", login.password),
        ("pg_tpch_dbase", login.dbname),
    ):
        yield f"diset tpch {key} {{{value}}}"
    functions = streams.functions
    settings: dict[str, object] = {
        "pg_scale_fact": round(streams.scale_factor),
        "pg_total_querysets": streams.query_sets,
        "pg_degree_of_parallel": streams.degree,
        "pg_raise_query_error": False,
        "pg_verbose": False,
        "pg_refresh_on": functions is not None,
        "pg_update_sets": 1 if functions is None else functions.sets,
        "pg_trickle_refresh": 0,
        "pg_refresh_verbose": False,
        "pg_cloud_query": False,
        "pg_rs_compat": False,
    }
    for key, chosen in settings.items():
        yield setting("tpch", key, chosen)
    # All streams begin at once.
    yield from virtual_users(users_of(streams), 0)
    yield "vurun"
    yield "vudestroy"
    yield "exit"
