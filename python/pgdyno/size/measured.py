"""A load as it was measured: one sample for each interval, whatever program has written it down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.errors import InputError

SHOWN_DEVICES_MAX = 8
"""Devices that an error lists: more of them do not help to choose."""


@dataclass(frozen=True)
class Sample:
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
    limited: bool | None = None
    """Whether the provider says that more was wanted than provisioned; ``None`` where it says nothing."""
    at_s: float | None = field(default=None, compare=False)
    """When it began, in seconds since 1970, where intervals may be missing; ``None`` where the source has all."""

    @classmethod
    def idle(cls, seconds: float) -> Sample:
        """Of a device that a report leaves out, since it did nothing."""
        return cls(seconds, 0, 0, 0, 0, 0.0)

    @property
    def ops_per_s(self) -> float:
        """Requests per second, reads and writes."""
        return self.read_ops_per_s + self.write_ops_per_s

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second, reads and writes."""
        return self.read_bytes_per_s + self.write_bytes_per_s


@dataclass(frozen=True)
class Measured:
    """The samples of one device, in the order of time. Intervals that are missing are left out, and are not zero."""

    origin: str
    """``iostat``, ``sar``, ``CloudWatch`` or ``live``."""
    device: str
    samples: tuple[Sample, ...]
    split_known: bool = True
    """Whether reads and writes were counted apart; otherwise they are shared out by their bytes."""
    size_bytes: int | None = None
    """The device's own size, where it is known."""
    notes: tuple[str, ...] = ()
    """What a reader must know: what was dropped or inferred."""

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


def choose(found: Mapping[str, Measured], wanted: Sequence[str], path: str) -> Measured:
    """The device that is to be sized: the one that was named, or the only one that did anything.

    Several named devices are added up, interval by interval: they are to become one volume. An :class:`InputError` when
    one is not there, or when several did something and none was named: partitions and the layers above a disk (``dm-0``,
    ``md0``) show the same requests once more, so that a sum of everything would count twice.
    """
    if not found:
        raise InputError(f"{path} has no samples of a device", remedy="write it with `iostat -dxt 1`, or `sar -d 1`")
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(f"{path} has no device `{missing[0]}`", remedy=f"it has {_listed(found)}")
    if not wanted:
        active = [name for name, one in found.items() if one.busiest_ops_per_s > 0]
        if len(active) > 1:
            busy = {name: found[name] for name in active}
            raise InputError(
                f"{path} has {len(active)} devices that did something: {_listed(busy)}",
                remedy=f"name the volume, and no layer above it twice: --device {_busiest(busy)}",
            )
        wanted = active or list(found)[:1]
    chosen = found[wanted[0]]
    for name in wanted[1:]:
        chosen = _sum(chosen, found[name], path)
    return chosen


def _sum(left: Measured, right: Measured, path: str) -> Measured:
    if [(sample.seconds, sample.at_s) for sample in left.samples] != [(one.seconds, one.at_s) for one in right.samples]:
        raise InputError(
            f"{path}: {left.device} and {right.device} have not the same intervals, and cannot be added up",
            remedy="name one --device, or measure them together, for a time in which all were attached",
        )
    sizes = (left.size_bytes, right.size_bytes)
    return replace(
        left,
        device=f"{left.device} + {right.device}",
        samples=tuple(_both(*pair) for pair in zip(left.samples, right.samples, strict=True)),
        split_known=left.split_known and right.split_known,
        size_bytes=None if None in sizes else sum(size or 0 for size in sizes),
        notes=tuple(dict.fromkeys((*left.notes, *right.notes))),
    )


def _both(left: Sample, right: Sample) -> Sample:
    queues = [sample.queue_length for sample in (left, right) if sample.queue_length is not None]
    ops_per_s = left.ops_per_s + right.ops_per_s
    waits = [(s.latency_ms, s.ops_per_s) for s in (left, right) if s.latency_ms is not None]
    flags = [sample.limited for sample in (left, right) if sample.limited is not None]
    return Sample(
        left.seconds,
        left.read_ops_per_s + right.read_ops_per_s,
        left.write_ops_per_s + right.write_ops_per_s,
        left.read_bytes_per_s + right.read_bytes_per_s,
        left.write_bytes_per_s + right.write_bytes_per_s,
        queue_length=sum(queues) if queues else None,
        latency_ms=sum(ms * ops for ms, ops in waits) / ops_per_s if waits and ops_per_s else None,
        limited=any(flags) if flags else None,
        at_s=left.at_s,
    )


def _busiest(found: Mapping[str, Measured]) -> str:
    return max(found, key=lambda name: found[name].busiest_ops_per_s)


def _listed(found: Mapping[str, Measured]) -> str:
    names = sorted(found, key=lambda name: -found[name].busiest_ops_per_s)
    shown = [f"{name} (up to {found[name].busiest_ops_per_s:,.0f} IOPS)" for name in names[:SHOWN_DEVICES_MAX]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
