"""Samples of a volume that was never attached: counters that grow at rates which a test chooses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pgdyno.advise.metrics.samples import CounterHistory
from pgdyno.analysis.figures import CounterSamples
from pgdyno.results.record import Anchor

SECOND_NS = 1_000_000_000
ANCHOR = Anchor(monotonic_ns=5_000 * SECOND_NS, unix_ns=1_795_265_771 * SECOND_NS)
"""12:56:11 UTC, so that 49 s of the minute are left."""
GP3: dict[str, Any] = {"type": "gp3", "limits": {"iops": 3000, "throughput_mib_per_s": 125}}
IO2: dict[str, Any] = {"type": "io2bx", "limits": {"iops": 16000, "throughput_mib_per_s": 4000}}
GROWTH_PER_S: dict[str, float] = {
    "read_ops": 1000,
    "write_ops": 500,
    "read_bytes": 1000 * 8192,
    "write_bytes": 500 * 16384,
    "read_time_ns": 1000 * 500_000,
    "write_time_ns": 500 * 2_000_000,
    "queue_time_ns": 1.5 * SECOND_NS,
    "busy_ns": 0.75 * SECOND_NS,
    "io_units": 1500,
    "exceeded_iops_ns": 0.25 * SECOND_NS,
    "exceeded_throughput_ns": 0,
}
"""1,000 reads of 8 KiB that take 0.5 ms and 500 writes of 16 KiB that take 2 ms: 1.5 outstanding by Little's law."""


def make_samples(
    seconds: float = 180,
    *,
    spec: dict[str, Any] | None = None,
    levels: dict[str, tuple[float, float]] | None = None,
    volume: str = "data",
    earlier: tuple[tuple[int, dict[str, Any]], ...] = (),
    **growth_per_s: float,
) -> CounterHistory:
    """A sample each second. ``levels`` go from the first value to the second, evenly; a growth of NaN is a counter that is not there.

    ``earlier`` is what it was before: (seconds after the first sample, specification).
    """
    offsets = np.append(np.arange(0, seconds, 1.0), seconds)
    t_ns = ANCHOR.monotonic_ns + np.rint(offsets * SECOND_NS).astype(np.int64)
    rates = GROWTH_PER_S | growth_per_s
    before = tuple((ANCHOR.monotonic_ns + after_s * SECOND_NS, was) for after_s, was in earlier)
    columns = {name: 7_000 + offsets * rate for name, rate in rates.items() if not math.isnan(rate)}
    for name, (first, last) in (levels or {}).items():
        columns[name] = np.linspace(first, last, len(offsets))
    return CounterHistory(volume, GP3 if spec is None else spec, ANCHOR, CounterSamples(t_ns, columns), before)
