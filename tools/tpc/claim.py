"""What the workloads derived from TPC-C and TPC-H must keep to, judged on a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.statistics import ratio_interval
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
    claims = [claim for name, load in record.loads.items() for claim in (_load(name, load), _memory(name, load))]
    claims += [_before(name, loads) for name, loads in record.before.items()]
    claims += [] if record.hammerdb is None else [*map(_beside, record.hammerdb.types), *_nopm(record.hammerdb.nopm)]
    claims += _driver(record) if record.driver else []
    claims += _over_time(record.driver_minutes_kib) if len(record.driver_minutes_kib) >= _MINUTES_MIN else []
    if record.queries is not None:
        queries, cores = record.queries, record.queries.cores
        claims.append(
            Claim(
                "CPU of ten streams",
                f"≤ {STREAMS_CORES_MAX:.0%} of a core",
                f"{cores:.2%} of one: {queries.queries} queries at scale factor {queries.scale_factor:g} in {queries.elapsed_s:.0f} s",
                cores <= STREAMS_CORES_MAX,
            )
        )
    return claims + ([] if compared is None else equivalence.judge(compared))


def _load(name: str, loads: Loads) -> Claim:
    ratio, most = loads.ratio(), LOAD_RATIO_MAX[name]
    seconds = sorted(pair.native_s for pair in loads.pairs)[len(loads.pairs) // 2]
    longest = LOAD_S_MAX.get(name)
    return Claim(
        f"load of {name}",
        f"≤ {most:g} × COPY" + ("" if longest is None else f", ≤ {longest:g} s"),
        f"{equivalence.words(ratio)}; median {seconds:.1f} s",
        ratio.mean <= most and (longest is None or seconds <= longest),
    )


def _memory(name: str, loads: Loads) -> Claim:
    peak, most = max(pair.peak_kib for pair in loads.pairs) / 1024, PEAK_MIB_MAX[name]
    return Claim(f"memory of {name}", f"≤ {most} MiB", f"{peak:.0f} MiB at most", peak <= most)


def _before(name: str, loads: BeforeLoads) -> Claim:
    ratio = loads.ratio()
    return Claim(
        f"load of {name}, against {loads.older}",
        f"≤ {BEFORE_RATIO_MAX:g} × the time before",
        f"{equivalence.words(ratio)}; CPU of the loader {equivalence.words(loads.cpu_ratio())}",
        ratio.mean <= BEFORE_RATIO_MAX,
    )


def _beside(type_beside: TypeBeside) -> Claim:
    apart = type_beside.apart()
    return Claim(
        f"{type_beside.type}: rows, ids and WAL beside HammerDB's routine",
        f"within {BESIDE_MAX:.0%}",
        type_beside.worst(),
        all(abs(share) <= BESIDE_MAX for share in apart.values()),
        tuple(f"{what}: {share:+.2%}" for what, share in apart.items() if abs(share) > BESIDE_MAX),
    )


def _nopm(measured: Sequence[NopmPair]) -> list[Claim]:
    nopm = []
    for bound, (low, high) in NOPM_BANDS.items():
        pairs = [(pair.ours, pair.theirs) for pair in measured if pair.bound == bound]
        if pairs:
            ratio = ratio_interval(pairs)
            nopm.append(
                Claim(
                    f"NOPM beside HammerDB, bound by {bound}",
                    f"{low:g} to {high:g}",
                    equivalence.words(ratio),
                    low <= ratio.mean <= high,
                )
            )
    return nopm


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
    result, peak = compare(record.driver), max(record.driver_kib) / 1024
    return [
        Claim(
            "CPU of the driver",
            f"≤ {DRIVER_RATIO_MAX:g} × pgbench",
            f"{result.ratio:.2f} × ({result.low:.2f} to {result.high:.2f}); {result.native_us:.1f} µs a transaction",
            result.ratio <= DRIVER_RATIO_MAX,
        ),
        Claim("memory of the driver", f"≤ {DRIVER_MIB_MAX} MiB", f"{peak:.0f} MiB at most", peak <= DRIVER_MIB_MAX),
    ]
