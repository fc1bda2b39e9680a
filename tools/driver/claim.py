"""What the driver must keep to, judged on a record."""

from __future__ import annotations

from tools.driver.load import LOADS, Load
from tools.driver.measure import IDLE_RATES_PER_S
from tools.driver.record import TOLERANCE_KIB, Idle, Record, compare
from tools.fidelity.claim import Claim

PER_CORE_MIN = 200_000
"""Transactions that one core must be able to schedule: ten times what PostgreSQL answers on one."""


NAMES = (*(f"CPU of {load.name}" for load in LOADS), "idle transactions for each core", "memory")


def judge(record: Record) -> list[Claim]:
    """The claims that the record has figures for, in the order of :data:`NAMES`."""
    judged = [_cpu(record, load) for load in LOADS if record.of(load)]
    return [*judged, _idle(record.idle), _memory(record)]


def _cpu(record: Record, load: Load) -> Claim:
    result = compare(record.of(load))
    return Claim(
        name=f"CPU of {load.name}",
        bar=f"≤ {load.tps_ratio_max:g} × {load.original}",
        found=f"{result.ratio:.2f} × ({result.low:.2f} to {result.high:.2f})",
        holds=result.ratio <= load.tps_ratio_max,
    )


def _idle(idle: list[Idle]) -> Claim:
    """The rate is kept, all of it, by less than a core; and as many go on a core when more are offered."""
    kept = next(other for other in idle if other.rate_per_s == IDLE_RATES_PER_S[0])
    most = max(idle, key=lambda other: other.rate_per_s)
    whole = kept.succeeded == kept.scheduled
    return Claim(
        name="idle transactions for each core",
        bar=f"≥ {PER_CORE_MIN:,}/s",
        found=f"{most.per_core_s:,.0f}/s; {kept.succeeded / kept.scheduled:.2%} of {kept.rate_per_s:,}/s on one thread",
        holds=most.per_core_s >= PER_CORE_MIN and whole,
    )


def _memory(record: Record) -> Claim:
    minutes = len(record.memory.resident_kib) / 60
    return Claim(
        name="memory",
        bar=f"grows by ≤ {TOLERANCE_KIB:,} KiB",
        found=f"by {record.memory.growth_kib:,} KiB in {minutes:.0f} minutes",
        holds=record.memory.growth_kib <= TOLERANCE_KIB,
    )
