"""HammerDB's lines of TPROC-H: what is read of them, and whose they are."""

from __future__ import annotations

import pytest

from pgdyno.kinds.hammerdb.output import Mean, QueriesOutput
from pgdyno.kinds.hammerdb.record import stream_of
from pgdyno.kinds.tpch.queries import Streams
from pgdyno.kinds.tpch.refresh import Refresh

LINES = """\
HammerDB CLI v4.12
Vuser 1:RUNNING
Vuser 2:RUNNING
Vuser 1:New Sales refresh
Vuser 2:Verifying the scale factor of the existing schema...
Vuser 2:Executing Query 21 (1 of 22)
Vuser 1:New Sales refresh complete in 0.002 seconds
Vuser 1:Old Sales refresh
Vuser 2:query 21 completed in 0.003 seconds
Vuser 2:Executing Query 3 (2 of 22)
Vuser 2:Query Failed : select 1 from orders : ERROR:  canceling statement due to sw0rdfish
LINE 1: select
Vuser 2:query 3 completed in 0.0 seconds
Vuser 2:Executing Query 15 (3 of 22)
Vuser 2:Query 15 view error set RAISEERROR for Details
Vuser 1:Old Sales refresh complete in 0.001 seconds
Vuser 1:Completed update set(s) 1 in 0.003 seconds
Vuser 2:query 15 completed in 0.0 seconds
Vuser 2:Query 15 view error set RAISEERROR for Details
Vuser 2:Completed 1 query set(s) in 0 seconds
Vuser 2:Geometric mean of query times returning rows (1) is {mean}
Vuser 2:Executing Query 21 (1 of 22)
Vuser 1:FINISHED SUCCESS
Error in Virtual User 2: lost sw0rdfish
Vuser 2:FINISHED FAILED
"""
MS = 1_000_000


@pytest.mark.parametrize("mean", ['"0.00300"', "0.00300"])
def test_what_a_run_says(mean: str) -> None:
    output = QueriesOutput(lambda line: line.replace("sw0rdfish", "***"), planned=44, users=2)
    assert output.words == ""
    for number, line in enumerate(LINES.format(mean=mean).splitlines()):
        output.take(line, number * 10 * MS)
    assert output.version == "4.12"
    assert (output.begin_ns, output.end_ns) == (30 * MS, 240 * MS), "from the first work to the last user"
    first, second, third, last = output.queries
    # A time is the printed one, before the moment at which its line was heard.
    assert (first.query, first.begin_ns, first.end_ns, first.error) == (21, 77 * MS, 80 * MS, "")
    assert second.error == "ERROR:  canceling statement due to ***"
    assert second.end_ns - second.begin_ns == MS // 2, "less than it can print is half of that"
    assert third.error == "Query 15 view error"
    assert (last.query_set, last.place, last.end_ns) == (2, 1, 0)
    assert output.means == [Mean(2, 1, 1, 0.003)]
    assert [(timing.function, timing.begin_ns, timing.end_ns) for timing in output.refreshed] == [
        ("insert", 58 * MS, 60 * MS), ("delete", 149 * MS, 150 * MS),
    ]  # fmt: skip
    assert output.wrong == ["user 2: Query 15 view error", "Error in Virtual User 2: lost ***"]
    assert output.finished == {"SUCCESS": 1, "FAILED": 1}
    assert output.words == "3 of 44 queries, Q15 took 0.00 s"
    assert output.share(0) == pytest.approx(3 / 44)


@pytest.mark.parametrize(
    ("clients", "refresh", "streams"),
    [(1, "none", {1: 0}), (1, "power", {1: 0}), (3, "none", {1: 1, 3: 3}), (2, "stream", {2: 1, 3: 2})],
)
def test_whose_stream_a_user_asks(clients: int, refresh: Refresh, streams: dict[int, int]) -> None:
    result = Streams("hammerdb", 1.0, clients, 1, tuple(range(1, 23)), 2, 1, refresh=refresh)
    assert {user: stream_of(result, user) for user in streams} == streams
