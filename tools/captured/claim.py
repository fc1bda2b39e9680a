"""What captures and replays must keep to, judged on a record (issue 21, "Costs")."""

from __future__ import annotations

from tools.captured.measure import LANES, REPLAYED
from tools.captured.record import Record
from tools.driver.load import Load
from tools.driver.record import TOLERANCE_KIB, compare
from tools.fidelity.claim import Claim

READ_MB_PER_S_MIN = 100
READ_MIB_MAX = 200
CPU_RATIO_MAX = 1.15
"""Of a replay's CPU for each statement to the driver's for the same statements as a script."""
PER_CORE_MIN = 20_000
LATE_MS_MAX = 1.0

NAMES = (
    "reading",
    "memory of reading",
    *(f"CPU of {load.name}" for load in REPLAYED),
    "statements for each core",
    "lateness",
    "lanes",
    "memory",
)


def judge(record: Record) -> list[Claim]:
    """The claims, in the order of :data:`NAMES`."""
    reading, late_ms, many = record.reading, record.idle.late_us_p99 / 1e3, record.many
    peak_mib, minutes = reading.peak_kib / 1024, len(record.memory.resident_kib) / 60
    grown = record.memory.growth_kib
    return [
        Claim(
            "reading",
            f"≥ {READ_MB_PER_S_MIN} MB/s on one core",
            f"{reading.mb_per_cpu_s:,.0f} MB/s",
            reading.mb_per_cpu_s >= READ_MB_PER_S_MIN,
        ),
        Claim("memory of reading", f"≤ {READ_MIB_MAX} MiB", f"{peak_mib:,.0f} MiB", peak_mib <= READ_MIB_MAX),
        *(_cpu(record, load) for load in REPLAYED),
        Claim(
            "statements for each core",
            f"≥ {PER_CORE_MIN:,}/s",
            f"{record.fastest.per_core_s:,.0f}/s",
            record.fastest.per_core_s >= PER_CORE_MIN,
        ),
        Claim("lateness", f"p99 ≤ {LATE_MS_MAX:g} ms", f"{late_ms:.2f} ms", late_ms <= LATE_MS_MAX),
        Claim(
            "lanes",
            f"{LANES:,}, none fails",
            f"{many.lanes:,}, {many.newly_failed:,} of {many.statements + many.newly_failed:,} statements fail",
            many.lanes >= LANES and not many.newly_failed,
        ),
        Claim(
            "memory",
            f"grows by ≤ {TOLERANCE_KIB:,} KiB",
            f"by {grown:,} KiB in {minutes:.0f} minutes",
            grown <= TOLERANCE_KIB,
        ),
    ]


def _cpu(record: Record, load: Load) -> Claim:
    result = compare(record.of(load))
    return Claim(
        name=f"CPU of {load.name}",
        bar=f"≤ {CPU_RATIO_MAX:g} × the driver",
        found=f"{result.ratio:.2f} × ({result.low:.2f} to {result.high:.2f})",
        holds=result.ratio <= CPU_RATIO_MAX,
    )
