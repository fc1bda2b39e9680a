"""The outcome of a run of streams of queries, from the rows of ``workload/query``: the same for each driver."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pgdyno.workload import histogram
from pgdyno.workload.outcome import Outcome
from pgdyno.workload.clock import SECOND_NS

from ...results import record, tables
from ...results.work_record import RefreshRecord, StreamsRecord

Row = dict[str, Any]
"""A row of ``workload/query``."""


def outcome(
    phase: record.RunPhase,
    rows: Sequence[Row],
    planned: int,
    *,
    checks: Sequence[record.Check],
    driver: record.DriverRecord,
    spill: str,
    refresh: Sequence[RefreshRecord],
) -> Outcome:
    """All of it is measured. ``rows`` are the queries that were asked, one at least of which brought its rows; ``planned`` is how many
    there were to be. ``spill`` is why temporary bytes were not counted; empty if they were.
    """
    good = [row for row in rows if not row["error"]]
    account = record.Account(
        scheduled=planned, skipped=planned - len(rows), succeeded=len(good), failed=len(rows) - len(good)
    )
    latency = tables.from_rows("workload/latency", _latency(good))
    return Outcome(
        phases=(phase,),
        account=account,
        account_total=account,
        writes_total=0,
        uncounted_max=0,
        latency=latency,
        throughput=tables.from_rows("workload/throughput", _throughput(rows, phase)),
        service=None,
        statement=None,
        histograms=histogram.document(latency, phase.begin_ns, phase.end_ns + SECOND_NS),
        checks=tuple(checks),
        driver=driver,
        streams=_streams(good, rows, spill, refresh),
        query_rows=tables.from_rows("workload/query", list(rows)),
    )


def checks_of(rows: Sequence[Row], planned: int, streams: Sequence[int], *, late: bool) -> Iterator[record.Check]:
    """That all queries brought their rows, and in time; and what each stream came to."""
    wrong = [f"query {row['query']} of stream {row['stream']}: {row['error']}" for row in rows if row["error"]]
    missing = planned - len(rows)
    if missing:
        wrong.append(f"{missing:,} of {planned:,} queries were not asked")
    if late:
        wrong.append("the run took longer than workload.duration allows")
    detail = "; ".join(wrong) or f"all {planned:,} queries brought their rows"
    yield record.Check(name="queries", ok=not wrong, detail=detail)
    done = Counter(row["stream"] for row in rows if not row["error"])
    lost = [number for number in streams if not done[number]]
    if lost:
        names = ", ".join(map(str, lost))
        yield record.Check(name="streams", ok=False, detail=f"no query of stream {names} brought its rows")


def geometric_mean(seconds: Sequence[float]) -> float:
    """Of durations, none of which is zero: the clock's resolution is a nanosecond."""
    return math.exp(math.fsum(math.log(max(value, 1e-9)) for value in seconds) / len(seconds))


def seconds_of(row: Mapping[str, Any]) -> float:
    """How long a query took."""
    return float(row["t_end_ns"] - row["t_begin_ns"]) / 1e9


def _streams(good: Sequence[Row], rows: Sequence[Row], spill: str, refresh: Sequence[RefreshRecord]) -> StreamsRecord:
    of_query: dict[int, list[float]] = {}
    temp: dict[int, int] = {}
    for row in sorted(good, key=lambda row: int(row["query"])):
        of_query.setdefault(row["query"], []).append(seconds_of(row))
        if row["temp_bytes"] is not None:
            temp[row["query"]] = temp.get(row["query"], 0) + int(row["temp_bytes"])
    ends: dict[int, list[int]] = {}
    for row in rows:
        ends.setdefault(row["stream"], []).extend((row["t_begin_ns"], row["t_end_ns"]))
    return StreamsRecord(
        geometric_mean_s=geometric_mean([value for each in of_query.values() for value in each]),
        query_s={str(query): geometric_mean(each) for query, each in of_query.items()},
        stream_s={str(stream): (max(each) - min(each)) / 1e9 for stream, each in sorted(ends.items())},
        temp_bytes={str(query): count for query, count in temp.items()},
        temp_unseen=spill,
        refresh=tuple(refresh),
    )


def _latency(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Each query in a bin of its own, as long as the query."""
    import numpy as np

    buckets = histogram.bucket_us(np.array([round(seconds_of(row) * 1e6) for row in rows], dtype=np.int64))
    return [
        {
            "t_begin_ns": row["t_begin_ns"],
            "t_end_ns": row["t_end_ns"],
            "script": f"Q{row['query']}",
            "latency_us": int(bucket),
            "count": 1,
        }
        for row, bucket in zip(rows, buckets.tolist(), strict=True)
    ]


def _throughput(rows: Sequence[Row], phase: record.RunPhase) -> list[dict[str, Any]]:
    """Queries that ended in each second of the run."""
    seconds = -((phase.begin_ns - phase.end_ns) // SECOND_NS)
    ended, failed = Counter[int](), Counter[int]()
    for row in rows:
        (failed if row["error"] else ended)[(row["t_end_ns"] - phase.begin_ns) // SECOND_NS] += 1
    return [
        {
            "t_begin_ns": phase.begin_ns + second * SECOND_NS,
            "t_end_ns": min(phase.end_ns, phase.begin_ns + (second + 1) * SECOND_NS),
            "script": "queries",
            "transactions": ended[second],
            "failed": failed[second],
            "skipped": 0,
        }
        for second in range(seconds)
    ]
