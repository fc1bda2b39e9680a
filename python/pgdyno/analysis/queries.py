"""Streams of queries: the time of each query, and whether all runs returned the same rows for the same queries.

The unit of inference is the run, as everywhere: a query's time in a run is the geometric mean over its streams and sets, and ratios
of arms are paired by replicate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.finding import CheckResult

from ..results.work_record import StreamsRecord
from .figures import growth_of
from .run import RunFigures
from .statistics import Estimate, ratio_interval, t_interval

SHOWN = 3
"""Queries that a finding names; it says how many there are."""
WORKERS = ("parallel_workers_to_launch", "parallel_workers_launched")
"""Counters of ``pg_stat_database``."""
SPILL_WAITS = {"BufFileRead": "temporary files read", "BufFileWrite": "temporary files written"}
"""Wait events of temporary files, in words."""

_UNTOLD = "HammerDB tells neither the parameters nor the rows of its queries, so that their answers were not compared"
PRINTED = "hammerdb_geomean_s"
"""Figure of a check: the geometric mean as HammerDB printed it; of several sets, the geometric mean of their means."""


@dataclass(frozen=True)
class ArmQueries:
    """The queries of an arm over its replicates."""

    by_block: Mapping[tuple[str, int], StreamsRecord]

    @cached_property
    def query_s(self) -> dict[int, Estimate]:
        """Query -> its seconds in a run, in the order of their numbers."""
        values: dict[int, list[float]] = defaultdict(list)
        for run in self.by_block.values():
            for query, seconds in run.query_s.items():
                values[int(query)].append(seconds)
        return {query: t_interval(values[query]) for query in sorted(values)}

    @property
    def slowest_stream_s(self) -> float:
        """Mean of the seconds of each run's slowest stream."""
        slowest = [max(run.stream_s.values()) for run in self.by_block.values()]
        return sum(slowest) / len(slowest)

    @property
    def refresh_s(self) -> dict[str, float]:
        """Refresh function (``insert``, ``delete``) -> mean of its seconds over sets and runs; empty without."""
        values: dict[str, list[float]] = defaultdict(list)
        for run in self.by_block.values():
            for record in run.refresh:
                values[record.function].append(record.seconds)
        return {function: sum(each) / len(each) for function, each in sorted(values.items(), reverse=True)}

    @property
    def temp_bytes(self) -> dict[int, float] | None:
        """Query -> bytes of temporary files of a run, all of its executions together; None where they were not counted."""
        if any(run.temp_unseen for run in self.by_block.values()):
            return None
        names = sorted({int(query) for run in self.by_block.values() for query in run.temp_bytes})
        runs = list(self.by_block.values())
        return {query: sum(run.temp_bytes.get(str(query), 0) for run in runs) / len(runs) for query in names}

    def ratios(self, base: ArmQueries) -> dict[int, Estimate]:
        """Query -> the ratio of its seconds to those of another arm, paired by replicate."""
        ratios = {}
        for query in self.query_s:
            pairs = [
                (run.query_s[str(query)], other.query_s[str(query)])
                for block, run in self.by_block.items()
                if (other := base.by_block.get(block)) is not None
                and str(query) in run.query_s
                and str(query) in other.query_s
            ]
            if pairs:
                ratios[query] = ratio_interval(pairs)
        return ratios


def queries_of(arm: ArmSummary) -> ArmQueries | None:
    """The queries of an arm; None of other workloads."""
    document = {
        replicate.block: streams
        for replicate in arm.replicates
        if (streams := replicate.figures.record.streams) is not None
    }
    return ArmQueries(document) if document else None


def workers_of(run: RunFigures) -> dict[str, float]:
    """Parallel workers of a run: those that plans had, and those that were launched; nothing before PostgreSQL 18."""
    return growth_of(run.run, "probe/database", WORKERS)


@dataclass(frozen=True)
class _QueryKey:
    """A query as it was asked: what makes two of them the same."""

    profile: str
    scale_factor: float
    query: int
    parameters: str


def agreement(runs: Sequence[RunFigures]) -> dict[str, list[CheckResult]]:
    """Directory of a run -> findings: whether its queries brought what those of the other runs brought, by the same plans.

    Nothing is found of runs whose rows were refreshed, and of those that HammerDB asked it is said that nothing can be. Rows are compared by their number and the sum of their hashes. Runs that disagree are invalid, all of them: which one is wrong
    is not known.
    """
    results = {
        str(run.run.path): [CheckResult("answers", "unknown", _UNTOLD)] for run in runs if asked_by_hammerdb(run)
    }
    rows = {str(run.run.path): _rows(run) for run in runs if _is_fixed(run)}
    answers: dict[_QueryKey, set[tuple[int, int]]] = defaultdict(set)
    plans: dict[_QueryKey, set[str]] = defaultdict(set)
    for each in rows.values():
        for key, row in each:
            answers[key].add((row["rows"], row["rows_hash"]))
            plans[key].add(row["plan"])
    times = sum(len(each) for each in rows.values())
    for path, each in rows.items():
        differ = {key.query for key, _ in each if len(answers[key]) > 1}
        planned = {key.query for key, _ in each if len(plans[key]) > 1}
        same = f"{times:,} queries of {len(rows)} runs: the same question brought the same rows each time"
        results[path] = [
            CheckResult(
                "answers", "invalid", f"{_named(differ)} brought other rows than the same question in another run"
            )
            if differ
            else CheckResult("answers", "ok", same),
            CheckResult(
                "plans",
                "warn",
                f"{_named(planned)} had another plan in another run: the volumes were not asked the same",
            )
            if planned
            else CheckResult("plans", "ok", "the same question had the same plan each time"),
        ]
    return results


def asked_by_hammerdb(run: RunFigures) -> bool:
    """Whether it is a run of streams of queries that HammerDB asked."""
    driver = run.record.driver
    return run.record.streams is not None and driver is not None and driver.engine == "hammerdb"


def parallel_workers(run: RunFigures) -> list[CheckResult]:
    """Whether the server can give the workers that the streams may ask for at the same time."""
    workload = run.record.workload
    degree = workload.get("degree")
    if run.record.streams is None or degree is None:
        return []
    settings = run.run.table("postgres/settings")
    result = dict(zip(settings["name"].to_pylist(), settings["setting"].to_pylist(), strict=True))
    most = result.get("max_parallel_workers")
    if most is None:
        return []
    number = int(degree) * int(workload.get("clients", 1))
    figure = f"the streams may ask for {number:,} workers at a time, and max_parallel_workers is {int(most):,}"
    if number > int(most):
        figure += ": some queries run with fewer; raise it, or use a smaller degree"
    return [CheckResult("parallel workers", "warn" if number > int(most) else "ok", figure)]


def _is_fixed(run: RunFigures) -> bool:
    """Whether its queries met the rows of the load, which no refresh function changed meanwhile, and their rows are known."""
    refreshed = run.record.workload.get("refresh", "none") != "none"
    return run.record.streams is not None and not refreshed and not asked_by_hammerdb(run)


def _rows(run: RunFigures) -> list[tuple[_QueryKey, dict[str, Any]]]:
    """Queries that brought their rows."""
    workload = run.record.workload
    table = run.run.table("workload/query").select(["query", "parameters", "rows", "rows_hash", "plan", "error"])
    return [
        (
            _QueryKey(
                str(workload.get("profile")), float(workload.get("scale_factor", 0)), row["query"], row["parameters"]
            ),
            row,
        )
        for row in table.to_pylist()
        if not row["error"]
    ]


def _named(queries: set[int]) -> str:
    ordered = [f"Q{query}" for query in sorted(queries)]
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return f"{', '.join(ordered[:SHOWN])}{more}"
