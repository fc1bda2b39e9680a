"""Streams of queries, in the JSON that ``run`` and ``report`` print: a part of :mod:`pgdyno.report.document`."""

from __future__ import annotations

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.queries import queries_of
from pgdyno.report.part import DocumentPart

from ..analysis.statistics import Estimate


class QueriesOf(DocumentPart):
    """The queries of an arm, of workload kind `tpch`, derived from TPC-H: no TPC result."""

    query_s: dict[str, Estimate]
    """Number of a query -> its seconds in a run, the geometric mean over streams and sets; with the interval over replicates."""
    ratios: dict[str, Estimate]
    """Number of a query -> ratio of its seconds to those of the first arm, paired by replicate; empty for the first."""
    slowest_stream_s: float
    """Seconds of a run's slowest stream, mean of the replicates."""
    temp_bytes: dict[str, float] | None
    """Number of a query -> bytes of temporary files of a run, all of its executions together; null where not counted."""
    refresh_s: dict[str, float]
    """Refresh function (`insert`, `delete`) -> its seconds, mean of sets and replicates; empty without. No other figure has them."""


def queries_document(arm: ArmSummary, first: ArmSummary) -> QueriesOf | None:
    """The document of an arm's queries."""
    queries, base = queries_of(arm), queries_of(first)
    if queries is None:
        return None
    ratios = {} if base is None or arm is first else queries.ratios(base)
    temp = queries.temp_bytes
    return QueriesOf(
        query_s={str(query): estimate for query, estimate in queries.query_s.items()},
        ratios={str(query): ratio for query, ratio in ratios.items()},
        slowest_stream_s=queries.slowest_stream_s,
        temp_bytes=None if temp is None else {str(query): count for query, count in temp.items()},
        refresh_s=queries.refresh_s,
    )
