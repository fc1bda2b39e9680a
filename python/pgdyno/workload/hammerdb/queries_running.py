"""Runs an installed HammerDB with TPROC-H and hears it: it ends with its queries, in real time."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.workload.hammerdb.listening import START_OF_USER_S, START_S, HammerdbMonitor, scripted, started
from pgdyno.workload.hammerdb.queries_heard import QueriesOutput
from pgdyno.workload.hammerdb.queries_recorded import tpch_outcome
from pgdyno.workload.hammerdb.query_script import tpch_script, users_of
from pgdyno.workload.hammerdb.script import Login
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server
from pgdyno.workload.tpch.streams import Streams
from pgdyno.workload.clock import SECOND_NS, now_ns

from ...base.errors import PgdynoError


@dataclass(frozen=True)
class HammerdbQueriesRunner:
    """Runs streams of queries by HammerDB; it is a :class:`pgdyno.workload.outcome.Runner`."""

    streams: Streams

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Ask all queries, for ``request.duration_s`` at most; then HammerDB is ended, and its sessions too.

        :class:`PgdynoError` when not a single query brought its rows. ``request.out_dir`` receives ``hammerdb.log``, what it printed.
        """
        streams, login = self.streams, Login.of(server)
        if streams.functions is not None and not streams.functions.are_fresh(server):
            raise PgdynoError(
                "the tables were refreshed before: their orders are not those of the load",
                remedy="build them with HammerDB again",
            )
        users = users_of(streams)
        output = QueriesOutput(login.hidden, streams.planned, users)
        with scripted(request, tpch_script(streams, login)) as path:
            listening, begun_ns = HammerdbMonitor(request, login, output), now_ns()
            start_ns = int((START_S + START_OF_USER_S * users) * SECOND_NS)
            limit_ns = int(request.duration_s * SECOND_NS)

            def give_up_ns() -> int:
                return output.begin_ns + limit_ns if output.begin_ns else begun_ns + start_ns

            with started(server, request, path) as process:
                request.on_start(process.pid)
                ended = listening.until_the_end(process, give_up_ns)
        if not any(query.end_ns and not query.error for query in output.queries):
            failed = next((f"query {query.query}: {query.error}" for query in output.queries if query.error), "")
            raise PgdynoError(
                f"HammerDB ended before a query brought its rows: {failed or listening.last_words}",
                remedy="hammerdb.log in the run's directory has all that it printed",
            )
        return tpch_outcome(streams, output, late=not ended)
