"""Makes the outcome of a run of TPROC-H of what HammerDB said: the rows of ``workload/query``, as of any streams of queries.

It tells when it asked which query, and its seconds. It tells no parameters, no rows, no plans and no temporary files; these are NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pgdyno.workload.hammerdb.queries_heard import TICK_S, Mean, QueriesOutput, RunningQuery
from pgdyno.workload.hammerdb.query_script import users_of
from pgdyno.workload.outcome import Outcome
from pgdyno.workload.tpch import recorded as tpch_recorded
from pgdyno.workload.tpch.refresh import orders_of_set
from pgdyno.workload.tpch.streams import Streams

from ...results.record import Check, DriverRecord, RunPhase
from ...results.work_record import RefreshRecord

UNSEEN: Final = "HammerDB's sessions are its own"
"""Why temporary files are not counted."""
_QUERIES: Final = 22
_PRINTED_S: Final = 0.5e-5
"""Its geometric mean has five decimals."""
CANCELLED: Final = "cancelled"


def tpch_outcome(streams: Streams, output: QueriesOutput, *, late: bool) -> Outcome:
    """The run. One query at least brought its rows."""
    end_ns = output.end_ns or output.closed_ns
    rows = [_row(streams, query, end_ns, late=late) for query in output.queries]
    return tpch_recorded.outcome(
        RunPhase(name="measure", begin_ns=output.begin_ns, end_ns=end_ns),
        rows,
        streams.planned,
        checks=(
            *tpch_recorded.checks_of(rows, streams.planned, _streams(streams), late=late),
            _users(streams, output),
            _result(streams, output),
        ),
        driver=DriverRecord(engine="hammerdb", version=output.version, threads=users_of(streams)),
        spill=UNSEEN,
        refresh=_refresh(streams, output, end_ns),
    )


def stream_of(streams: Streams, user: int) -> int:
    """The stream of a user: one alone has the power run's; where another one refreshes, that is the first."""
    if streams.refresh == "stream":
        return user - 1
    return 0 if streams.clients == 1 else user


def _streams(streams: Streams) -> list[int]:
    """Their numbers."""
    first = 1 + (streams.refresh == "stream")
    return [stream_of(streams, user) for user in range(first, first + streams.clients)]


def _row(streams: Streams, query: RunningQuery, end_ns: int, *, late: bool) -> dict[str, Any]:
    error = query.error
    if not query.end_ns:
        error = CANCELLED if late else error or "its user ended before it"
    return {
        "stream": stream_of(streams, query.user),
        "query_set": query.query_set,
        "place": query.place,
        "query": query.query,
        "parameters": None,
        "t_begin_ns": query.begin_ns,
        "t_end_ns": query.end_ns or end_ns,
        "rows": None,
        "rows_hash": None,
        "temp_bytes": None,
        "plan": None,
        "error": error,
    }


def _refresh(streams: Streams, output: QueriesOutput, end_ns: int) -> list[RefreshRecord]:
    return [
        RefreshRecord(
            function=refreshed.function,
            refresh_set=refreshed.refresh_set,
            begin_ns=refreshed.begin_ns,
            end_ns=refreshed.end_ns or end_ns,
            orders=orders_of_set(streams.scale_factor),
            lines=None,
            transactions=None,
            error="" if refreshed.end_ns else "it did not end",
        )
        for refreshed in output.refreshed
    ]


def _users(streams: Streams, output: QueriesOutput) -> Check:
    """All of them worked to the end at what they were asked for."""
    wrong, users, lasted = list(output.wrong), users_of(streams), output.finished["SUCCESS"]
    if lasted != users:
        wrong.append(f"{lasted} of {users} users ended well")
    return Check(name="clients_lasted", ok=not wrong, detail="; ".join(wrong) or f"all {users} users worked to the end")


def _result(streams: Streams, output: QueriesOutput) -> Check:
    """Each set has its geometric mean, and those that can be computed from what was printed are as printed."""
    wrong = list(_differences(output))
    sets = streams.clients * streams.query_sets
    if len(output.means) != sets:
        wrong.insert(0, f"HammerDB printed the geometric mean of {len(output.means)} of {sets} sets")
    known = [mean for mean in output.means if mean.seconds > 0]
    figures = {"hammerdb_geomean_s": tpch_recorded.geometric_mean([mean.seconds for mean in known])} if known else {}
    text = "; ".join(_words(streams, mean) for mean in output.means[:3]) + (
        " and others" if len(output.means) > 3 else ""
    )
    return Check(name="hammerdb_result", ok=not wrong, detail="; ".join(wrong) or text, figures=figures)


def _words(streams: Streams, mean: Mean) -> str:
    return (
        f"HammerDB printed {mean.seconds:.5f} s for set {mean.query_set} of stream {stream_of(streams, mean.user)}, the geometric mean of"
        f" {mean.returning} times"
    )


def _differences(output: QueriesOutput) -> Iterator[str]:
    """Means that are not those of the times that were printed. Where a query returned no rows, it is not known which one."""
    times: Mapping[tuple[int, int], list[float]] = _times(output)
    for mean in output.means:
        seconds = times.get((mean.user, mean.query_set), [])
        if mean.returning != _QUERIES or len(seconds) != _QUERIES or min(seconds) < TICK_S:
            continue
        geometric_mean = tpch_recorded.geometric_mean(seconds)
        if abs(geometric_mean - mean.seconds) > _PRINTED_S:
            yield f"the times of set {mean.query_set} of user {mean.user} have the geometric mean {geometric_mean:.5f} s, not {mean.seconds:.5f}"


def _times(output: QueriesOutput) -> dict[tuple[int, int], list[float]]:
    times: dict[tuple[int, int], list[float]] = {}
    for query in output.queries:
        if query.end_ns and not query.error:
            times.setdefault((query.user, query.query_set), []).append(query.seconds)
    return times
