"""Runs an installed HammerDB with TPROC-H and hears it: it ends with its queries, in real time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.errors import PgdynoError
from pgdyno.workload.hammerdb import queries_recorded, query_script
from pgdyno.workload.hammerdb.listening import START_OF_USER_S, START_S, Listening, scripted, started
from pgdyno.workload.hammerdb.queries_heard import QueriesHeard
from pgdyno.workload.hammerdb.script import Login
from pgdyno.workload.watch import SECOND_NS, now_ns

if TYPE_CHECKING:
    from pgdyno.workload.outcome import Outcome, RunRequest
    from pgdyno.workload.server import Server
    from pgdyno.workload.tpch.streams import Streams


@dataclass(frozen=True)
class QueriesRunning:
    """Runs streams of queries by HammerDB; it is a :class:`pgdyno.workload.outcome.Runner`."""

    streams: Streams

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Ask all queries, for ``request.duration_s`` at most; then HammerDB is ended, and its sessions too.

        :class:`PgdynoError` when not a single query brought its rows. ``request.out_dir`` receives ``hammerdb.log``, what it printed.
        """
        asked, login = self.streams, Login.of(server)
        if asked.functions is not None and not asked.functions.are_fresh(server):
            raise PgdynoError(
                "the tables were refreshed before: their orders are not those of the load",
                remedy="build them with HammerDB again",
            )
        users = query_script.users_of(asked)
        heard = QueriesHeard(login.hidden, asked.planned, users)
        with scripted(request, query_script.text(asked, login)) as path:
            listening, begun_ns = Listening(request, login, heard), now_ns()
            start_ns = int((START_S + START_OF_USER_S * users) * SECOND_NS)
            limit_ns = int(request.duration_s * SECOND_NS)

            def give_up_ns() -> int:
                return heard.begin_ns + limit_ns if heard.begin_ns else begun_ns + start_ns

            with started(server, request, path) as process:
                request.on_start(process.pid)
                ended = listening.until_the_end(process, give_up_ns)
        if not any(one.end_ns and not one.error for one in heard.queries):
            failed = next((f"query {one.query}: {one.error}" for one in heard.queries if one.error), "")
            raise PgdynoError(
                f"HammerDB ended before a query brought its rows: {failed or listening.last_words}",
                remedy="hammerdb.log in the run's directory has all that it printed",
            )
        return queries_recorded.outcome(asked, heard, late=not ended)
