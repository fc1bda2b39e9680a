"""Makes the outcome of a run that HammerDB drove of what it said: the tables that any driver fills.

HammerDB counts less than the other drivers. Its result has the New-Orders of the measured minutes and no other type; its time
profile has the calls of each type, its ramp-up among them. So the other types of the measured minutes are taken in proportion,
and the transaction counter says only how they were spread over the seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pgdyno.workload import histogram
from pgdyno.workload.hammerdb.heard import HammerdbOutput
from pgdyno.workload.hammerdb.profile import Profile
from pgdyno.workload.hammerdb.script import ScriptOptions
from pgdyno.workload.outcome import Outcome
from pgdyno.workload.tpcc_audit import MIX

from ...results import tables
from ...results.record import Account, Check, DriverRecord, RunPhase

if TYPE_CHECKING:
    import pyarrow as pa

SECOND_NS: Final = 1_000_000_000
LATE_MAX: Final = 0.02
"""Share of the measured minutes by which they may be longer: HammerDB divides by whole minutes, so its figures are off by as much."""
_LATE_S: Final = 0.5
"""What may come of it in any case: lines arrive a little later than they were written."""
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
        "it wrote none"
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
