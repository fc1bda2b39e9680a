"""Makes the outcome of a run of TPROC-H of what HammerDB said: the rows of ``workload/query``, as of any streams of queries.

It tells when it asked which query, and its seconds. It tells no parameters, no rows, no plans and no temporary files; these are NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pgdyno.store.record import Check, DriverRecord, Phase
from pgdyno.store.work_record import RefreshRecord
from pgdyno.workload.hammerdb.queries_heard import TICK_S
from pgdyno.workload.hammerdb.query_script import users_of
from pgdyno.workload.tpch import recorded
from pgdyno.workload.tpch.refresh import orders_of_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgdyno.workload.hammerdb.queries_heard import Asked, Mean, QueriesHeard
    from pgdyno.workload.outcome import Outcome
    from pgdyno.workload.tpch.streams import Streams

UNSEEN: Final = "HammerDB's sessions are its own"
"""Why temporary files are not counted."""
_QUERIES: Final = 22
_PRINTED_S: Final = 0.5e-5
"""Its geometric mean has five decimals."""
CANCELLED: Final = "cancelled"


def outcome(asked: Streams, heard: QueriesHeard, *, late: bool) -> Outcome:
    """The run. One query at least brought its rows."""
    end_ns = heard.end_ns or heard.closed_ns
    rows = [_row(asked, one, end_ns, late=late) for one in heard.queries]
    return recorded.outcome(
        Phase(name="measure", begin_ns=heard.begin_ns, end_ns=end_ns),
        rows,
        asked.planned,
        checks=(
            *recorded.checks_of(rows, asked.planned, _streams(asked), late=late),
            _users(asked, heard),
            _result(asked, heard),
        ),
        driver=DriverRecord(engine="hammerdb", version=heard.version, threads=users_of(asked)),
        spill=UNSEEN,
        refresh=_refresh(asked, heard, end_ns),
    )


def stream_of(asked: Streams, user: int) -> int:
    """The stream of a user: one alone has the power run's; where another one refreshes, that is the first."""
    if asked.refresh == "stream":
        return user - 1
    return 0 if asked.clients == 1 else user


def _streams(asked: Streams) -> list[int]:
    """Their numbers."""
    first = 1 + (asked.refresh == "stream")
    return [stream_of(asked, user) for user in range(first, first + asked.clients)]


def _row(asked: Streams, one: Asked, end_ns: int, *, late: bool) -> dict[str, Any]:
    error = one.error
    if not one.end_ns:
        error = CANCELLED if late else error or "its user ended before it"
    return {
        "stream": stream_of(asked, one.user),
        "query_set": one.query_set,
        "place": one.place,
        "query": one.query,
        "parameters": None,
        "t_begin_ns": one.begin_ns,
        "t_end_ns": one.end_ns or end_ns,
        "rows": None,
        "rows_hash": None,
        "temp_bytes": None,
        "plan": None,
        "error": error,
    }


def _refresh(asked: Streams, heard: QueriesHeard, end_ns: int) -> list[RefreshRecord]:
    return [
        RefreshRecord(
            function=one.function,
            refresh_set=one.refresh_set,
            begin_ns=one.begin_ns,
            end_ns=one.end_ns or end_ns,
            orders=orders_of_set(asked.scale_factor),
            lines=None,
            transactions=None,
            error="" if one.end_ns else "it did not end",
        )
        for one in heard.refreshed
    ]


def _users(asked: Streams, heard: QueriesHeard) -> Check:
    """All of them worked to the end at what they were asked for."""
    wrong, users, lasted = list(heard.wrong), users_of(asked), heard.finished["SUCCESS"]
    if lasted != users:
        wrong.append(f"{lasted} of {users} users ended well")
    return Check(name="clients_lasted", ok=not wrong, detail="; ".join(wrong) or f"all {users} users worked to the end")


def _result(asked: Streams, heard: QueriesHeard) -> Check:
    """Each set has its geometric mean, and those that can be computed from what was printed are as printed."""
    wrong = list(_differences(heard))
    sets = asked.clients * asked.query_sets
    if len(heard.means) != sets:
        wrong.insert(0, f"HammerDB printed the geometric mean of {len(heard.means)} of {sets} sets")
    known = [one for one in heard.means if one.seconds > 0]
    figures = {"hammerdb_geomean_s": recorded.geometric_mean([one.seconds for one in known])} if known else {}
    said = "; ".join(_words(asked, one) for one in heard.means[:3]) + (" and others" if len(heard.means) > 3 else "")
    return Check(name="hammerdb_result", ok=not wrong, detail="; ".join(wrong) or said, figures=figures)


def _words(asked: Streams, one: Mean) -> str:
    return (
        f"HammerDB printed {one.seconds:.5f} s for set {one.query_set} of stream {stream_of(asked, one.user)}, the geometric mean of"
        f" {one.returning} times"
    )


def _differences(heard: QueriesHeard) -> Iterator[str]:
    """Means that are not those of the times that were printed. Where a query returned no rows, it is not known which one."""
    times: Mapping[tuple[int, int], list[float]] = _times(heard)
    for one in heard.means:
        seconds = times.get((one.user, one.query_set), [])
        if one.returning != _QUERIES or len(seconds) != _QUERIES or min(seconds) < TICK_S:
            continue
        found = recorded.geometric_mean(seconds)
        if abs(found - one.seconds) > _PRINTED_S:
            yield f"the times of set {one.query_set} of user {one.user} have the geometric mean {found:.5f} s, not {one.seconds:.5f}"


def _times(heard: QueriesHeard) -> dict[tuple[int, int], list[float]]:
    found: dict[tuple[int, int], list[float]] = {}
    for one in heard.queries:
        if one.end_ns and not one.error:
            found.setdefault((one.user, one.query_set), []).append(one.seconds)
    return found
