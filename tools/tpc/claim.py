"""What the workloads derived from TPC-C and TPC-H must keep to, judged on a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.interval import ratio_interval
from tools.driver.record import compare
from tools.equivalence import claims as equivalence
from tools.fidelity.claim import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.equivalence.record import Record as Equivalence
    from tools.tpc.record import BeforeLoads, Loads, NopmPair, Record, TypeBeside

LOAD_RATIO_MAX = {"TPC-C, 10 warehouses": 1.15, "TPC-H, scale factor 1": 1.2}
LOAD_S_MAX = {"TPC-C, 10 warehouses": 20.0}
"""On two cores."""
PEAK_MIB_MAX = {"TPC-C, 10 warehouses": 64, "TPC-H, scale factor 1": 400}
"""Of TPC-H 300 are dbgen's text."""
DRIVER_RATIO_MAX = 1.1
DRIVER_MIB_MAX = 64
DRIVER_GROWTH_MAX = 1.05
"""Largest memory of the second half of a long run against that of the first half without its first minute: pages that are
touched once are seen within the first, and a leak of a byte a transaction is 1.8 MB in half an hour at 1,000 a second."""
_MINUTES_MIN = 4
STREAMS_CORES_MAX = 0.01
BESIDE_MAX = 0.02
NOPM_BANDS = {"commits": (0.97, 1.03), "CPU": (0.9, 1.1)}
"""Bound by CPU HammerDB's own share of it counts too."""
BEFORE_RATIO_MAX = 1.03
"""Of loads of pgbench's and sysbench's tables, which share their loader with those of TPC-C and TPC-H."""
NAMES = (
    *(f"{what} of {name}" for name in LOAD_RATIO_MAX for what in ("load", "memory")),
    "CPU of the driver",
    "memory of the driver",
    "CPU of ten streams",
)


def judge(record: Record, compared: Equivalence | None = None) -> list[Claim]:
    """The claims that the record has figures for, in the order of :data:`NAMES`; then those of TPC-C beside pgbench."""
    found = [claim for name, one in record.loads.items() for claim in (_load(name, one), _memory(name, one))]
    found += [_before(name, one) for name, one in record.before.items()]
    found += [] if record.hammerdb is None else [*map(_beside, record.hammerdb.types), *_nopm(record.hammerdb.nopm)]
    found += _driver(record) if record.driver else []
    found += _over_time(record.driver_minutes_kib) if len(record.driver_minutes_kib) >= _MINUTES_MIN else []
    if record.queries is not None:
        asked, cores = record.queries, record.queries.cores
        found.append(
            Claim(
                "CPU of ten streams",
                f"≤ {STREAMS_CORES_MAX:.0%} of a core",
                f"{cores:.2%} of one: {asked.queries} queries at scale factor {asked.scale_factor:g} in {asked.elapsed_s:.0f} s",
                cores <= STREAMS_CORES_MAX,
            )
        )
    return found + ([] if compared is None else equivalence.judge(compared))


def _load(name: str, one: Loads) -> Claim:
    ratio, most = one.ratio(), LOAD_RATIO_MAX[name]
    seconds = sorted(pair.native_s for pair in one.pairs)[len(one.pairs) // 2]
    longest = LOAD_S_MAX.get(name)
    return Claim(
        f"load of {name}",
        f"≤ {most:g} × COPY" + ("" if longest is None else f", ≤ {longest:g} s"),
        f"{equivalence.words(ratio)}; median {seconds:.1f} s",
        ratio.mean <= most and (longest is None or seconds <= longest),
    )


def _memory(name: str, one: Loads) -> Claim:
    peak, most = max(pair.peak_kib for pair in one.pairs) / 1024, PEAK_MIB_MAX[name]
    return Claim(f"memory of {name}", f"≤ {most} MiB", f"{peak:.0f} MiB at most", peak <= most)


def _before(name: str, one: BeforeLoads) -> Claim:
    ratio = one.ratio()
    return Claim(
        f"load of {name}, against {one.older}",
        f"≤ {BEFORE_RATIO_MAX:g} × the time before",
        f"{equivalence.words(ratio)}; CPU of the loader {equivalence.words(one.cpu_ratio())}",
        ratio.mean <= BEFORE_RATIO_MAX,
    )


def _beside(one: TypeBeside) -> Claim:
    apart = one.apart()
    return Claim(
        f"{one.type}: rows, ids and WAL beside HammerDB's routine",
        f"within {BESIDE_MAX:.0%}",
        one.worst(),
        all(abs(share) <= BESIDE_MAX for share in apart.values()),
        tuple(f"{what}: {share:+.2%}" for what, share in apart.items() if abs(share) > BESIDE_MAX),
    )


def _nopm(measured: Sequence[NopmPair]) -> list[Claim]:
    found = []
    for bound, (low, high) in NOPM_BANDS.items():
        pairs = [(one.ours, one.theirs) for one in measured if one.bound == bound]
        if pairs:
            ratio = ratio_interval(pairs)
            found.append(
                Claim(
                    f"NOPM beside HammerDB, bound by {bound}",
                    f"{low:g} to {high:g}",
                    equivalence.words(ratio),
                    low <= ratio.mean <= high,
                )
            )
    return found


def _over_time(minutes_kib: list[int]) -> list[Claim]:
    half = len(minutes_kib) // 2
    growth, peak = max(minutes_kib[half:]) / max(minutes_kib[1:half]), max(minutes_kib) / 1024
    return [
        Claim(
            "memory of the driver over time",
            f"≤ {DRIVER_MIB_MAX} MiB, its second half ≤ {DRIVER_GROWTH_MAX:g} × its first",
            f"{peak:.0f} MiB at most in {len(minutes_kib)} minutes; {growth:.3f} ×",
            peak <= DRIVER_MIB_MAX and growth <= DRIVER_GROWTH_MAX,
        )
    ]


def _driver(record: Record) -> list[Claim]:
    found, peak = compare(record.driver), max(record.driver_kib) / 1024
    return [
        Claim(
            "CPU of the driver",
            f"≤ {DRIVER_RATIO_MAX:g} × pgbench",
            f"{found.ratio:.2f} × ({found.low:.2f} to {found.high:.2f}); {found.native_us:.1f} µs a transaction",
            found.ratio <= DRIVER_RATIO_MAX,
        ),
        Claim("memory of the driver", f"≤ {DRIVER_MIB_MAX} MiB", f"{peak:.0f} MiB at most", peak <= DRIVER_MIB_MAX),
    ]
