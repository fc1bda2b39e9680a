"""Script for HammerDB's command line, for TPROC-C and TPROC-H: settings, then the order to run.

It has the password, which HammerDB reads from nowhere else. So it is private, lies in a folder that is removed whatever happens,
and removes itself as soon as it has been read. Keys: ``config/postgresql.xml`` of HammerDB 4.12 and 6.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol, Self

from pgdyno.workload.server import Server

from ...base.endpoint import effective
from ...base.errors import InputError
from ..tpch.queries import Streams

MINUTE_S: Final = 60
"""HammerDB's ramp-up and its measured time are whole minutes."""
_COUNTER_S: Final = 1
"""How often its transaction counter looks, s; 10 by default."""
_DELAY_MS: Final = 500
"""From the start of a user to that of the next: its default."""
_SAYABLE = re.compile(r"""[^\s"'\\\[\]{}$;#]*""")
"""Characters that reach the server unchanged: HammerDB puts the words into Tcl, then into a list, and that into a connection string."""

_SETS_PASSWORD = re.compile(r"pg_(tpch_)?(superuser)?pass\b")


class ScriptOptions(Protocol):
    """Options of a `tpcc` workload that HammerDB takes."""

    @property
    def clients(self) -> int:
        """Its virtual users, beside the one that monitors them."""

    @property
    def warehouses(self) -> int:
        """Their number."""

    @property
    def routines(self) -> str:
        """``functions`` or ``procedures``."""

    @property
    def all_warehouses(self) -> bool:
        """True if each user draws a warehouse for each transaction."""

    @property
    def keying(self) -> bool:
        """True if users key in and think."""


@dataclass(frozen=True)
class Login:
    """Login of HammerDB's sessions."""

    host: str
    port: int
    user: str
    dbname: str
    sslmode: str
    password: str = field(repr=False)

    @classmethod
    def of(cls, server: Server) -> Self:
        """As libpq resolved it. :class:`InputError` for a word that HammerDB cannot pass on."""
        document = server.endpoint.document
        result = cls(
            host=str(document["host"]),
            port=int(document["port"]),
            user=str(document["user"]),
            dbname=str(document["dbname"]),
            sslmode=effective(server.dsn).get("sslmode", "prefer"),
            password=str(document["password"] or ""),
        )
        for name in ("host", "user", "dbname", "password"):
            if not _SAYABLE.fullmatch(getattr(result, name)):
                raise InputError(
                    f"HammerDB cannot pass on the {name} of this connection: it has a space, a quote, a bracket or another"
                    " character that Tcl reads",
                    remedy=f'use another {name}, or engine = "native", which takes any',
                )
        return result

    def hidden(self, line: str) -> str:
        """The line without the password; empty if it says what a password was set to."""
        if _SETS_PASSWORD.search(line):
            return ""
        return line.replace(self.password, "***") if self.password else line


def tpcc_script(options: ScriptOptions, login: Login, ramp_up_min: int, measured_min: int) -> str:
    """The script for a run of whole minutes."""
    return "".join(f"{line}\n" for line in _tpcc_lines(options, login, ramp_up_min, measured_min))


def opening(benchmark: str, login: Login) -> Iterator[str]:
    """Its first lines: it removes itself, and says what is run and where."""
    yield "file delete [info script]"
    yield "fconfigure stdout -buffering line"
    yield "dbset db pg"
    yield f"dbset bm {benchmark}"
    for key, value in (("pg_host", login.host), ("pg_port", login.port), ("pg_sslmode", login.sslmode)):
        yield f"diset connection {key} {{{value}}}"


def setting(dictionary: str, key: str, chosen: object) -> str:
    """A line that sets a key."""
    return f"diset {dictionary} {key} {str(chosen).lower() if isinstance(chosen, bool) else chosen}"


def virtual_users(count: int, delay_ms: int) -> Iterator[str]:
    """Its users and what they print; one begins so much after the other."""
    yield "loadscript"
    yield f"vuset vu {count}"
    for option in (f"delay {delay_ms}", "repeat 500", "iterations 1", "showoutput 1", "logtotemp 0"):
        yield f"vuset {option}"
    yield "vucreate"


def _tpcc_lines(options: ScriptOptions, login: Login, ramp_up_min: int, measured_min: int) -> Iterator[str]:
    yield from opening("TPC-C", login)
    # Its transaction counter logs in as the superuser, and only reads what every role may read.
    for user, password, database in (
        ("pg_user", "pg_pass", "pg_dbase"),
        ("pg_superuser", "pg_superuserpass", "pg_defaultdbase"),
    ):
        yield f"diset tpcc {user} {{{login.user}}}"
        yield f"diset tpcc {password} {{{login.password}}}"
        yield f"diset tpcc {database} {{{login.dbname}}}"
    settings: dict[str, object] = {
        "pg_count_ware": options.warehouses,
        "pg_storedprocs": options.routines == "procedures",
        "pg_driver": "timed",
        "pg_total_iterations": 1_000_000_000,
        "pg_rampup": ramp_up_min,
        "pg_duration": measured_min,
        "pg_allwarehouse": options.all_warehouses,
        "pg_keyandthink": options.keying,
        "pg_timeprofile": True,
        "pg_raiseerror": False,
        "pg_vacuum": False,
        "pg_dritasnap": False,
        "pg_oracompat": False,
        "pg_async_scale": False,
        "pg_connect_pool": False,
    }
    for key, chosen in settings.items():
        yield setting("tpcc", key, chosen)
    yield f"tcset refreshrate {_COUNTER_S}"
    yield "tcset logtotemp 0"
    yield from virtual_users(options.clients, _DELAY_MS)
    yield "tcstart"
    yield "vurun"
    yield "tcstop"
    yield "vudestroy"
    yield "exit"


def users_of(streams: Streams) -> int:
    """Its virtual users: one for each stream, and where rows are refreshed beside them the first one does that."""
    return streams.clients + (streams.refresh == "stream")


def tpch_script(streams: Streams, login: Login) -> str:
    """The script of a run."""
    return "".join(f"{line}\n" for line in _tpch_lines(streams, login))


def _tpch_lines(streams: Streams, login: Login) -> Iterator[str]:
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
