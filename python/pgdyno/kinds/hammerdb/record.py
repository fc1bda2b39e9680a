"""Outcome of a run that HammerDB drove, from its output and its time profile: the tables that every driver fills.

It keeps no distribution, and its ramp-up is in all of its figures. What is made of it here has its percentiles and its sum
exactly, and nothing in between.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pgdyno.workload import histogram
from pgdyno.workload.outcome import Outcome

from ...results import tables
from ...results.record import Account, Check, DriverRecord, RunPhase
from ...results.work_record import RefreshRecord
from ..tpcc.audit import MIX
from ..tpch import run as tpch_run
from ..tpch.queries import Streams
from ..tpch.refresh import orders_of_set
from .output import TICK_S, HammerdbOutput, Mean, QueriesOutput, RunningQuery
from .script import ScriptOptions, users_of

if TYPE_CHECKING:
    import pyarrow as pa


PROFILE_FILE: Final = "hdbxtprofile.log"
"""Its name in the folder for temporary files."""
PROCEDURES: Final = {
    "NEWORD": "new_order",
    "PAYMENT": "payment",
    "DELIVERY": "delivery",
    "SLEV": "stock_level",
    "OSTAT": "order_status",
}
"""HammerDB's name of a type -> ours."""
_SECTION = re.compile(r">>>>> (?:VIRTUAL USER (\d+) :|SUMMARY OF (\d+) ACTIVE VIRTUAL USERS)")
"""A user's part, or the summary, which comes last."""
_PROCEDURE = re.compile(r"PROC: (\w+)")
_FIGURE = re.compile(r"\b(CALLS|MIN|AVG|MAX|P99|P95|P75|P50|P25): ([\d.]+)")
_PERCENTILES: Final = {"P25": 0.25, "P50": 0.50, "P75": 0.75, "P95": 0.95, "P99": 0.99}
"""Those of 4.12 lack the quarters."""


@dataclass(frozen=True)
class TransactionTimes:
    """One type of transaction."""

    calls: int
    mean_ms: float
    marks_ms: tuple[tuple[float, float], ...]
    """(Share of the calls, which took at most this long), from the shortest to the longest."""

    def buckets_us(self, count: int) -> dict[int, int]:
        """``count`` calls as whole microseconds -> number: the percentiles are those of the profile, and so is the mean.

        Of the calls between two percentiles it is only known where they lie, so they are put at its two ends: as many at the
        upper one as the mean asks for, one at least.
        """
        if count <= 0:
            return {}
        steps = list(self._steps(count))
        low_ms = math.fsum(many * lower for many, lower, _ in steps)
        high_ms = math.fsum(many * upper for many, _, upper in steps)
        asked_ms = self.mean_ms * count
        above = 1.0 if high_ms <= low_ms else min(1.0, max(0.0, (asked_ms - low_ms) / (high_ms - low_ms)))
        buckets_us: dict[int, int] = {}
        for many, lower, upper in steps:
            at_upper = max(1, round(many * above))
            for value_ms, number in ((upper, at_upper), (lower, many - at_upper)):
                if number:
                    value_us = round(value_ms * 1e3)
                    buckets_us[value_us] = buckets_us.get(value_us, 0) + number
        return buckets_us

    def _steps(self, count: int) -> Iterator[tuple[int, float, float]]:
        """(How many, more than this, at most that) between neighbouring marks."""
        for (share, lower), (next_share, upper) in pairwise(self.marks_ms):
            # The tolerance keeps 95 % of 20 at the 19th, as where percentiles are taken.
            many = math.ceil(count * next_share - 1e-9) - math.ceil(count * share - 1e-9)
            if many:
                yield many, lower, upper


@dataclass(frozen=True)
class Profile:
    """The summary over all users."""

    users: int
    """Users that reported their times."""
    times: Mapping[str, TransactionTimes]
    """By type of transaction."""

    @property
    def complete(self) -> bool:
        """True if each type is there."""
        return set(self.times) == set(PROCEDURES.values())


def read_profile(text: str) -> Profile | None:
    """The summary of a profile's log; None where it has none.

    Percentiles are the summary's. Calls and their mean are added up over the users: the summary of 4.12 counts each call twice
    where times are stored with its job too, which is its default.
    """
    calls, total_ms = defaultdict[str, int](int), defaultdict[str, float](float)
    parts = _SECTION.split(text)
    for user, summary, section in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        values = _figures(section)
        if user is not None:
            for name, figures in values.items():
                calls[name] += round(figures["CALLS"])
                total_ms[name] += figures["CALLS"] * figures["AVG"]
        if summary is not None:
            return Profile(
                int(summary),
                {name: _times_of_type(values[name], calls[name], total_ms[name]) for name in values if calls[name]},
            )
    return None


def _figures(section: str) -> dict[str, dict[str, float]]:
    """By type, what a section says of it; without those that lack a figure."""
    parts = _PROCEDURE.split(section)
    document = {}
    for name, figures in zip(parts[1::2], parts[2::2], strict=True):
        values = {key: float(value) for key, value in _FIGURE.findall(figures)}
        if name in PROCEDURES and {"CALLS", "MIN", "AVG", "MAX", "P50"} <= values.keys():
            document[PROCEDURES[name]] = values
    return document


def _times_of_type(values: Mapping[str, float], calls: int, total_ms: float) -> TransactionTimes:
    marks = [(share, values[key]) for key, share in _PERCENTILES.items() if key in values]
    return TransactionTimes(calls, total_ms / calls, _rising([(0.0, values["MIN"]), *marks, (1.0, values["MAX"])]))


def _rising(marks: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """The marks with no value below the one before: its percentiles are of a sample, its least and greatest of all calls."""
    results: list[tuple[float, float]] = []
    for share, value in marks:
        results.append((share, max([value, *(value for _, value in results[-1:])])))
    return tuple(results)


SECOND_NS: Final = 1_000_000_000
LATE_MAX: Final = 0.02
"""Share of the measured minutes by which they may be longer: HammerDB divides by whole minutes, so its figures are off by as much."""
_LATE_S: Final = 0.5
"""Seconds that are allowed in any case: lines arrive a little later than they were written."""
_NAMES: Final = tuple(name for name, _ in MIX)


def tpcc_outcome(
    spec: ScriptOptions, output: HammerdbOutput, profile: Profile | None, minutes: int, minute_s: float
) -> Outcome:
    """The run. One that came to no result has nothing measured, and a check that failed."""
    begin_ns, end_ns = output.begin_ns, output.end_ns or max(output.begin_ns, output.closed_ns)
    calls = {name: 0 if profile is None or name not in profile.times else profile.times[name].calls for name in _NAMES}
    done = {name: max(0, calls[name] - output.failed[name]) for name in _NAMES}
    measured = _measured(done, (output.nopm or 0) * minutes if output.whole else 0)
    failed, failed_all = sum(output.failed_measured.values()) if output.whole else 0, sum(output.failed.values())
    latency = _latency(profile, measured, begin_ns, end_ns)
    return Outcome(
        phases=(
            RunPhase(name="warmup", begin_ns=output.bench_ns, end_ns=begin_ns),
            RunPhase(name="measure", begin_ns=begin_ns, end_ns=end_ns),
        ),
        account=_account(sum(measured.values()), failed),
        account_total=_account(sum(done.values()), failed_all),
        writes_total=done["payment"],
        uncounted_max=0,
        latency=latency,
        throughput=_throughput(output, done, measured),
        service=None,
        statement=None,
        histograms=histogram.document(latency, begin_ns, end_ns),
        checks=tuple(
            _checks(spec, output, profile, minutes * minute_s, counted=(measured["new_order"], done["new_order"]))
        ),
        driver=DriverRecord(engine="hammerdb", version=output.version, threads=spec.clients),
        succeeded_by_type=measured,
        succeeded_by_type_total=done,
    )


def _account(succeeded: int, failed: int) -> Account:
    return Account(scheduled=succeeded + failed, skipped=0, succeeded=succeeded, failed=failed)


def _measured(done: Mapping[str, int], new_orders: int) -> dict[str, int]:
    """Transactions of the measured minutes by type: New-Orders as HammerDB counted them, the others as the whole run was mixed."""
    whole = done["new_order"]
    share = min(1.0, new_orders / whole) if whole else 0.0
    return {name: new_orders if name == "new_order" else round(done[name] * share) for name in _NAMES}


def _latency(profile: Profile | None, measured: Mapping[str, int], begin_ns: int, end_ns: int) -> pa.Table:
    """One bin for all of the measured minutes: the profile has no others."""
    import numpy as np

    rows: list[dict[str, Any]] = []
    for name in _NAMES if profile is not None else ():
        times = profile.times.get(name) if profile is not None else None
        counts: dict[int, int] = {}
        for value_us, number in (times.buckets_us(measured[name]) if times is not None else {}).items():
            (bucket,) = histogram.bucket_us(np.array([value_us], dtype=np.int64)).tolist()
            counts[bucket] = counts.get(bucket, 0) + number
        rows += [
            {"t_begin_ns": begin_ns, "t_end_ns": end_ns, "script": name, "latency_us": bucket, "count": number}
            for bucket, number in sorted(counts.items())
        ]
    return tables.from_rows("workload/latency", rows)


def _throughput(output: HammerdbOutput, done: Mapping[str, int], measured: Mapping[str, int]) -> pa.Table:
    """Both phases in the bins of the transaction counter, whose sums are those of the account."""
    if not output.whole:
        return tables.empty("workload/throughput")
    before = {name: max(0, done[name] - measured[name]) for name in _NAMES}
    rows: list[dict[str, Any]] = []
    for begin_ns, end_ns, counts, failed in (
        (output.bench_ns, output.begin_ns, before, output.failed - output.failed_measured),
        (output.begin_ns, output.end_ns, measured, output.failed_measured),
    ):
        edges, weights = _bins(output.counters, begin_ns, end_ns)
        for name in _NAMES:
            each = zip(_spread(counts[name], weights), _spread(failed[name], weights), strict=True)
            rows += [
                {"t_begin_ns": edges[at], "t_end_ns": edges[at + 1], "script": name, "transactions": many, "failed": bad, "skipped": 0}
                for at, (many, bad) in enumerate(each)
            ]  # fmt: skip
    return tables.from_rows("workload/throughput", rows)


def _bins(counters: Sequence[tuple[int, int]], begin_ns: int, end_ns: int) -> tuple[list[int], list[float]]:
    """Edges of a phase where the counter looked, and how much of the phase's work lies between each two."""
    looks = [t_ns for t_ns, _ in counters if begin_ns < t_ns < end_ns]
    edges = [begin_ns, *looks, end_ns]
    weights = []
    for begin, end in pairwise(edges):
        # What a look tells is of the time until it, so the last bin has it of the look after the phase.
        rate = next((tpm for t_ns, tpm in counters if t_ns >= end), 0)
        weights.append(float(rate) * (end - begin))
    return edges, weights if math.fsum(weights) > 0 else [float(end - begin) for begin, end in pairwise(edges)]


def _spread(count: int, weights: Sequence[float]) -> list[int]:
    """``count`` in whole numbers, in proportion to the weights; their sum is ``count``."""
    whole = math.fsum(weights)
    if whole <= 0:
        return [count, *[0] * (len(weights) - 1)]
    spread, sofar, given = [], 0.0, 0
    for weight in weights:
        sofar += weight
        upto = round(count * sofar / whole)
        spread.append(upto - given)
        given = upto
    return spread


def _checks(
    spec: ScriptOptions, output: HammerdbOutput, profile: Profile | None, planned_s: float, *, counted: tuple[int, int]
) -> Iterator[Check]:
    yield _result(output, *counted)
    yield _users(spec, output)
    lasted_s = (output.end_ns - output.begin_ns) / SECOND_NS if output.end_ns else 0.0
    yield Check(
        name="measured_under_load",
        ok=output.whole and abs(lasted_s - planned_s) <= max(_LATE_S, LATE_MAX * planned_s),
        detail=f"measured {lasted_s:.3f} s of {planned_s:g} s; HammerDB divides by these, so {LATE_MAX:.0%} are allowed",
    )
    text = (
        "none was written"
        if profile is None
        else f"{profile.users} of {spec.clients} users, {len(profile.times)} of 5 types"
    )
    yield Check(
        name="hammerdb_time_profile",
        ok=profile is not None and profile.complete and profile.users == spec.clients,
        detail=f"time profile: {text}",
    )


def _result(output: HammerdbOutput, measured: int, whole: int) -> Check:
    """It came to one, and measured no more New-Orders than its users made in the whole run."""
    if not output.whole or output.nopm is None or output.tpm is None:
        return Check(name="hammerdb_result", ok=False, detail="HammerDB ended without a TEST RESULT")
    return Check(
        name="hammerdb_result",
        ok=measured <= whole,
        detail=f"HammerDB printed {output.nopm:,} NOPM and {output.tpm:,} TPM: {measured:,} New-Orders, of {whole:,} in the whole run",
        figures={"hammerdb_nopm": output.nopm, "hammerdb_tpm": output.tpm},
    )


def _users(spec: ScriptOptions, output: HammerdbOutput) -> Check:
    """All of them, and the monitor, worked to the end at what they were asked for."""
    wrong = list(output.wrong)
    if output.users is not None and output.users != spec.clients:
        wrong.append(f"{output.users} users were configured")
    lasted = output.finished["SUCCESS"]
    if lasted != spec.clients + 1 or output.finished["FAILED"]:
        wrong.append(f"{lasted} of {spec.clients} users and a monitor ended well")
    return Check(
        name="clients_lasted", ok=not wrong, detail="; ".join(wrong) or f"all {spec.clients} users worked to the end"
    )


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
    return tpch_run.outcome(
        RunPhase(name="measure", begin_ns=output.begin_ns, end_ns=end_ns),
        rows,
        streams.planned,
        checks=(
            *tpch_run.checks_of(rows, streams.planned, _streams(streams), late=late),
            _query_users(streams, output),
            _query_result(streams, output),
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


def _query_users(streams: Streams, output: QueriesOutput) -> Check:
    """All of them worked to the end at what they were asked for."""
    wrong, users, lasted = list(output.wrong), users_of(streams), output.finished["SUCCESS"]
    if lasted != users:
        wrong.append(f"{lasted} of {users} users ended well")
    return Check(name="clients_lasted", ok=not wrong, detail="; ".join(wrong) or f"all {users} users worked to the end")


def _query_result(streams: Streams, output: QueriesOutput) -> Check:
    """Each set has its geometric mean, and those that can be computed from what was printed are as printed."""
    wrong = list(_differences(output))
    sets = streams.clients * streams.query_sets
    if len(output.means) != sets:
        wrong.insert(0, f"HammerDB printed the geometric mean of {len(output.means)} of {sets} sets")
    known = [mean for mean in output.means if mean.seconds > 0]
    figures = {"hammerdb_geomean_s": tpch_run.geometric_mean([mean.seconds for mean in known])} if known else {}
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
        geometric_mean = tpch_run.geometric_mean(seconds)
        if abs(geometric_mean - mean.seconds) > _PRINTED_S:
            yield f"the times of set {mean.query_set} of user {mean.user} have the geometric mean {geometric_mean:.5f} s, not {mean.seconds:.5f}"


def _times(output: QueriesOutput) -> dict[tuple[int, int], list[float]]:
    times: dict[tuple[int, int], list[float]] = {}
    for query in output.queries:
        if query.end_ns and not query.error:
            times.setdefault((query.user, query.query_set), []).append(query.seconds)
    return times
