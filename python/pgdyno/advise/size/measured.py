"""A load as it was measured: one sample for each interval, whatever program has written it down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...base.errors import InputError

Check = Literal["iops", "throughput", "instance_iops", "instance_throughput"]
"""A limit that a provider watches itself: of the volume, or of its instance to all volumes together."""
Reserve = Literal["burst", "instance_iops", "instance_throughput"]
"""What a volume or an instance may take above its baseline."""


@dataclass(frozen=True)
class IntervalSample:
    """What one volume did in one interval."""

    seconds: float
    """Length of the interval."""
    read_ops_per_s: float
    write_ops_per_s: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    queue_length: float | None = None
    """Requests waiting or in work, on average; ``None`` where the source does not say."""
    latency_ms: float | None = None
    """Mean time of a request; ``None`` where the source does not say, or there was no request."""
    exceeded: Mapping[Check, float] = field(default_factory=dict)
    """Limit -> share of the interval in which the provider says that more was wanted; absent where it says nothing."""
    balance: Mapping[Reserve, float] = field(default_factory=dict)
    """Reserve -> what is left of it, from 0 to 1; absent where the source does not say."""
    at_s: float | None = field(default=None, compare=False)
    """When it began, in seconds since 1970; ``None`` where the source does not say."""

    @classmethod
    def idle(cls, seconds: float) -> IntervalSample:
        """The interval of a device that a report omits, because it was idle."""
        return cls(seconds, 0, 0, 0, 0, 0.0)

    @property
    def limited(self) -> bool | None:
        """Whether the provider says that more was wanted than provisioned; ``None`` where it says nothing."""
        return any(share > 0 for share in self.exceeded.values()) if self.exceeded else None

    @property
    def ops_per_s(self) -> float:
        """Requests per second, reads and writes."""
        return self.read_ops_per_s + self.write_ops_per_s

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second, reads and writes."""
        return self.read_bytes_per_s + self.write_bytes_per_s


@dataclass(frozen=True)
class FirstReport:
    """What ``iostat`` reported first: an average since boot, or with ``-y`` an interval like the others. No file says which."""

    place: int
    """Before which of the samples it stands."""
    sample: IntervalSample
    """With the usual length of the others."""


@dataclass(frozen=True)
class DeviceSamples:
    """The samples of one device, in the order of time. Intervals that are missing are left out, and are not zero."""

    origin: str
    """``iostat``, ``sar``, ``CloudWatch``, ``NVMe`` or ``live``."""
    device: str
    samples: tuple[IntervalSample, ...]
    split_known: bool = True
    """Whether reads and writes were counted apart; otherwise they are shared out by their bytes."""
    size_bytes: int | None = None
    """The device's own size, where it is known."""
    notes: tuple[str, ...] = ()
    """What a reader must know: what was dropped or inferred."""
    first_reports: tuple[FirstReport, ...] = ()
    """Those of which it is not known yet whether they count: :func:`pgdyno.advise.size.choice.choose` decides."""
    among: tuple[str, ...] = ()
    """Patterns of the only types of volume that its owner can have, ``rds-*`` of a database of RDS; empty: any."""

    @property
    def seconds(self) -> float:
        """How much time the samples cover."""
        return sum(sample.seconds for sample in self.samples)

    @property
    def busiest_ops_per_s(self) -> float:
        """The most requests per second of any interval."""
        return max((sample.ops_per_s for sample in self.samples), default=0.0)


def shared_out(ops_per_s: float, read_bytes_per_s: float, write_bytes_per_s: float) -> tuple[float, float]:
    """Reads and writes per second, where only their sum was counted: in proportion to their bytes."""
    total = read_bytes_per_s + write_bytes_per_s
    reads = ops_per_s * (read_bytes_per_s / total) if total else 0.0
    return reads, ops_per_s - reads


NOT_A_NUMBER, IMPOSSIBLE = "size.value.not_a_number", "size.value.impossible"
"""Codes of the errors."""
COUNT_MAX = 1e9
"""Requests per second, requests in a queue, milliseconds of a request: a hundred times what the fastest arrays do."""
BYTES_MAX = float(1 << 50)
"""Bytes per second: 1 PiB/s, a thousand times what the fastest arrays do."""
SECONDS_MAX = 366 * 86_400.0
"""Length of an interval: a year."""


def possible(value: float, what: str, most: float) -> float:
    """``value``, when it is from 0 to ``most``; ``what`` names the file, the place in it and the field.

    :class:`InputError` otherwise.
    """
    if not math.isfinite(value):
        raise _refused(f"{what} is {value}, which is not a number", NOT_A_NUMBER)
    if value < 0:
        raise _refused(f"{what} is negative: {value:g}", IMPOSSIBLE)
    if value > most:
        raise _refused(f"{what} is {value:g}, which no disk reaches", IMPOSSIBLE)
    return value


def _refused(message: str, code: str) -> InputError:
    return InputError(message, remedy="remove the damaged interval, or measure again", code=code)
