"""A disk whose limits are known, and what fio would see of it: token buckets worked out by arithmetic, not by the model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pgdyno.advise.twin.fio import Course, FioJob, JobResult, LatencyDistribution, Op
from pgdyno.advise.twin.fit import PAGE_KIB, Measurements, PathCost, ambiguous_unit_kib, mix_for
from pgdyno.advise.twin.measure import LARGE_KIB, MANY_DEPTH, OPS, SIZES_KIB

NATIVE_PER_S = 30_000
"""What the disk does while its bucket is full."""
FIO_NS = 4_000
"""What fio itself costs beyond the emulator's path."""
PATH_NS = 60_000


@dataclass(frozen=True)
class Disk:
    """What a fit should find."""

    iops: dict[Op, float]
    bytes_per_s: float | None
    unit_kib: int = 256
    bucket_ms: int = 100
    drawn: bool = False
    service_us: dict[Op, float] = field(default_factory=lambda: {"read": 400.0, "write": 700.0})
    merges: bool = False

    def per_s(self, op: Op, block_kib: float) -> float:
        """Requests a second once the buckets are empty."""
        units = max(1.0, block_kib / self.unit_kib)
        by_bytes = np.inf if self.bytes_per_s is None else self.bytes_per_s / block_kib / 1024
        return float(min(self.iops[op] / units, by_bytes))

    def measured(self, seed: int = 1) -> Measurements:
        """What fio would see of it, with a null volume beside it."""
        draws = np.random.default_rng(seed)
        light = {
            (op, size): self._light(op, size, self.service_us[op] * 1000, draws) for op in OPS for size in SIZES_KIB
        }
        null = {(op, size): self._light(op, size, PATH_NS, draws) for op in OPS for size in SIZES_KIB}
        sequential = self.per_s("read", 16) * (4 if self.merges else 1)
        return Measurements(
            alone={op: light[op, PAGE_KIB] for op in OPS},
            light=light,
            many={op: self._saturated(op, 4, MANY_DEPTH, 12, draws) for op in OPS},
            large={op: self._saturated(op, LARGE_KIB, 16, 10, draws) for op in OPS},
            mixed=self.mixed(),
            sequential=answer(FioJob("read", 16, 32, 5, random=False), sequential, bins(np.full(100, 1e6))),
            null_alone={op: null[op, PAGE_KIB] for op in OPS},
            null_light=null,
            path={op: PathCost(PATH_NS, 0) for op in OPS},
            written_bytes=1 << 30,
        )

    def mixed(self) -> JobResult | None:
        """Small and large writes together, where a fit asks for them."""
        unit_kib = ambiguous_unit_kib(self.iops["write"], self.per_s("write", LARGE_KIB) * LARGE_KIB)
        if unit_kib is None:
            return None
        job = mix_for(unit_kib, FioJob("write", 4, MANY_DEPTH, 5))
        assert job.large_kib is not None
        share = job.large_percent / 100
        units = (1 - share) + share * max(1.0, job.large_kib / self.unit_kib)
        mean_bytes = ((1 - share) * 4 + share * job.large_kib) * 1024
        by_bytes = np.inf if self.bytes_per_s is None else self.bytes_per_s / mean_bytes
        return answer(job, float(min(self.iops["write"] / units, by_bytes)), bins(np.full(100, 1e6)))

    def _light(self, op: Op, block_kib: int, mean_ns: float, draws: np.random.Generator) -> JobResult:
        """Half of a time is fixed and the rest has a tail."""
        times = FIO_NS + mean_ns / 2 + draws.gamma(4.0, mean_ns / 8, 2000)
        return answer(FioJob(op, block_kib, 1, 4), 500, bins(times))

    def _saturated(self, op: Op, block_kib: int, depth: int, seconds: int, draws: np.random.Generator) -> JobResult:
        rate = self.per_s(op, block_kib)
        held = rate * self.bucket_ms / 1000
        number = np.arange(1, int(held + rate * seconds))
        done_s = np.maximum(number / NATIVE_PER_S, (number - held) / rate)
        done_s = done_s[done_s <= seconds]
        mean_ns = depth / rate * 1e9
        shape = (
            draws.gamma(2.0, mean_ns / 2, len(done_s))
            if self.drawn
            else draws.normal(mean_ns, mean_ns / 20, len(done_s))
        )
        job = FioJob(op, block_kib, depth, seconds, logged=True)
        return answer(job, rate, bins(shape), Course(np.round(done_s, 3), shape))


def answer(job: FioJob, per_s: float, latency: LatencyDistribution, course: Course | None = None) -> JobResult:
    """An answer of so many requests a second."""
    return JobResult(job, per_s, per_s * job.block_kib * 1024, 0, latency, course)


def bins(times_ns: np.ndarray) -> LatencyDistribution:  # type: ignore[type-arg]  # of floats
    """As fio keeps them: in bins of 1/64 of their power of two."""
    width = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(times_ns, 1))) - 6, 0)
    values, counts = np.unique((np.floor(times_ns / width) * width + width / 2).astype(np.int64), return_counts=True)
    return LatencyDistribution.of_bins({str(value): int(count) for value, count in zip(values, counts, strict=True)})
