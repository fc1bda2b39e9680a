"""Streams of queries in words: what each query took, its ratio, what it spilled."""

from __future__ import annotations

from collections.abc import Callable

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.queries import PRINTED, SPILL_WAITS, WORKERS, ArmQueries, asked_by_hammerdb, queries_of, workers_of
from pgdyno.report import volumes
from pgdyno.report.section import Drawing, Grid, Heading, Matrix, Note, Section, of_arms

from ..analysis.run import RunFigures
from ..base.text import UNKNOWN, number
from .figures.arms import query_seconds
from .section import FigureRow, interval

_MIB = 2**20
_NOTE = (
    "Derived from TPC-H; these are not TPC results. A query's time in a run is the geometric mean over its streams and sets, from"
    " sending it until its last row; intervals are over replicates. Queries per hour counts all streams over the whole run."
)
_BY_HAMMERDB = (
    "HammerDB ran the queries, with parameters of its own draws. It prints their times in milliseconds, but no"
    " parameters, rows, plans or temporary files: these are unknown, and its answers were not compared. Its"
    " geometric mean covers only the queries that returned rows."
)
_SPILL_NOTE = (
    "Temporary files hold what does not fit into work_mem. Bytes are those of all executions of a run, parallel"
    " workers included, as the server reports each file when it removes it. Waits are the mean number of sessions"
    " seen in them."
)


def queries_section(comparison: Comparison) -> Section | None:
    """The queries of each arm."""
    if not is_query_streams(comparison):
        return None
    drawing = Drawing(
        name="queries",
        alternative="Bars: mean seconds of each query by arm, with 95 % intervals.",
        caption="Seconds of each query, mean of the replicates; lines are 95 % intervals.",
        make=lambda width_px, theme: query_seconds(comparison.arms, width_px, theme),
        key=of_arms(comparison) or "arms",
    )
    return Section(
        "queries",
        "Queries",
        (
            Matrix(tuple(query_rows(comparison))),
            Note(_NOTE),
            *([Note(_BY_HAMMERDB)] if any(map(asked_by_hammerdb, _runs(comparison))) else []),
            drawing,
            _each(comparison),
            Heading("Temporary files"),
            Matrix(tuple(spill(comparison))),
            Note(_SPILL_NOTE),
            *(Note(text) for text in unseen(comparison)),
        ),
        brief=True,
    )


def is_query_streams(comparison: Comparison) -> bool:
    """True if the workload is streams of queries."""
    return any(queries_of(arm) is not None for arm in comparison.arms)


def query_rows(comparison: Comparison) -> list[FigureRow]:
    """The figures of each arm's runs."""
    return [
        FigureRow(
            "geometric mean of query seconds",
            tuple(interval(arm.headline) for arm in comparison.arms),
            strong=True,
        ),
        FigureRow(
            f"times that of {comparison.arms[0].label}",
            ("1", *(UNKNOWN if ratio.estimate is None else interval(ratio.estimate) for ratio in comparison.ratios)),
        ),
        *_printed(comparison),
        FigureRow("queries per hour", _of(comparison, lambda arm, _: number(_per_hour(arm)))),
        FigureRow("slowest stream, seconds", _of(comparison, lambda _, item: number(item.slowest_stream_s))),
        FigureRow(
            "streams", _of(comparison, lambda arm, _: str(arm.replicates[0].figures.record.workload.get("clients", 1)))
        ),
        *volumes.mean_rows(comparison),
        *_refresh(comparison),
    ]


def _printed(comparison: Comparison) -> list[FigureRow]:
    """The geometric mean in HammerDB's own words, where it asked."""
    arms = []
    for arm in comparison.arms:
        checks = [check for replicate in arm.replicates for check in replicate.figures.record.checks]
        arms.append([check.figures[PRINTED] for check in checks if PRINTED in check.figures])
    if not any(arms):
        return []
    cells = tuple(number(sum(each) / len(each)) if each else UNKNOWN for each in arms)
    return [FigureRow("geometric mean as HammerDB printed it, s", cells)]


def _runs(comparison: Comparison) -> list[RunFigures]:
    return [replicate.figures for arm in comparison.arms for replicate in arm.replicates]


def _refresh(comparison: Comparison) -> list[FigureRow]:
    """Seconds of the refresh functions, which are in no other figure."""
    arms = [None if (queries := queries_of(arm)) is None else queries.refresh_s for arm in comparison.arms]
    functions = sorted({function for arm in arms if arm is not None for function in arm}, reverse=True)
    return [
        FigureRow(
            f"refresh function that {function}s, seconds a set",
            tuple(UNKNOWN if arm is None or function not in arm else number(arm[function]) for arm in arms),
        )
        for function in functions
    ]


def spill(comparison: Comparison) -> list[FigureRow]:
    """Bytes of temporary files, and sessions that waited for them."""
    temp = _of(
        comparison, lambda _, item: UNKNOWN if item.temp_bytes is None else number(sum(item.temp_bytes.values()) / _MIB)
    )
    most = _of(comparison, lambda _, item: _most(item))
    rows = [FigureRow("written, MiB a run", temp), FigureRow("queries that wrote most, MiB", most)]
    for event, words in SPILL_WAITS.items():
        cells = tuple(_waited(arm, event) for arm in comparison.arms)
        rows.append(FigureRow(f"sessions waiting: {words} ({event})", cells))
    for name, words in zip(
        WORKERS, ("parallel workers planned, a run", "parallel workers launched, a run"), strict=True
    ):
        rows.append(FigureRow(words, tuple(_workers(arm, name) for arm in comparison.arms)))
    return rows


def unseen(comparison: Comparison) -> list[str]:
    """Why temporary files were not counted."""
    reasons = {
        run.temp_unseen
        for arm in comparison.arms
        if (queries := queries_of(arm)) is not None
        for run in queries.by_block.values()
        if run.temp_unseen
    }
    return [f"Temporary files were not counted: {reason}." for reason in sorted(reasons)]


def query_lines(comparison: Comparison) -> list[str]:
    """A line for each arm, for the terminal; empty of other workloads."""
    lines = []
    for arm in comparison.arms:
        queries = queries_of(arm)
        if queries is not None:
            slowest = sorted(queries.query_s.items(), key=lambda item: -item[1].mean)[:3]
            named = ", ".join(f"Q{query} {number(each.mean)} s" for query, each in slowest)
            spilled = queries.temp_bytes
            temp = "" if spilled is None else f"; {number(sum(spilled.values()) / _MIB)} MiB of temporary files a run"
            latencies = "".join(
                f"; {words}" for volume in arm.volumes.values() if (words := volumes.mean_words(volume))
            )
            lines.append(
                f"{arm.label}: derived from TPC-H, {number(_per_hour(arm))} queries per hour, slowest stream"
                f" {number(queries.slowest_stream_s)} s; slowest queries: {named}{temp}{latencies}"
            )
    return lines


def _each(comparison: Comparison) -> Grid:
    """A row for each query: its seconds by arm, and ratios to the first."""
    arms = [(arm, queries_of(arm)) for arm in comparison.arms]
    first = arms[0][1]
    numbers = sorted({query for _, item in arms if item is not None for query in item.query_s})
    ratios = [{} if item is None or first is None else item.ratios(first) for _, item in arms[1:]]
    heads = (
        "query",
        *(f"{arm.label}, s" for arm, _ in arms),
        *(f"{arm.label}: times {arms[0][0].label}" for arm, _ in arms[1:]),
    )
    cells = tuple(
        (
            f"Q{query}",
            *(
                UNKNOWN if item is None or query not in item.query_s else interval(item.query_s[query])
                for _, item in arms
            ),
            *(interval(ratio[query]) if query in ratio else UNKNOWN for ratio in ratios),
        )
        for query in numbers
    )
    return Grid(heads, cells)


def _of(comparison: Comparison, words: Callable[[ArmSummary, ArmQueries], str]) -> tuple[str, ...]:
    return tuple(UNKNOWN if (queries := queries_of(arm)) is None else words(arm, queries) for arm in comparison.arms)


def _per_hour(arm: ArmSummary) -> float:
    runs = [replicate.figures.work_per_s * 3600 for replicate in arm.replicates]
    return sum(runs) / len(runs)


def _most(queries: ArmQueries) -> str:
    if queries.temp_bytes is None:
        return UNKNOWN
    most = sorted(((count, query) for query, count in queries.temp_bytes.items() if count), reverse=True)[:3]
    return ", ".join(f"Q{query} {number(count / _MIB)}" for count, query in most) or "none"


def _waited(arm: ArmSummary, event: str) -> str:
    if not arm.waits:
        return UNKNOWN
    return number(sum(sessions for wait, sessions in arm.waits.items() if wait.event == event))


def _workers(arm: ArmSummary, name: str) -> str:
    counted = [workers_of(replicate.figures).get(name) for replicate in arm.replicates]
    known = [value for value in counted if value is not None]
    return number(sum(known) / len(known)) if known else UNKNOWN
