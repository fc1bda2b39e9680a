"""A block device that is watched now: differences of the kernel's counters. Everybody may read them.

The fields of ``/sys/class/block/NAME/stat``: the kernel's Documentation/block/stat.rst (Linux 6.18). Its sectors are of
512 bytes, whatever the device's own are; its times are milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ....base.errors import HostError, InputError
from ..measured import DeviceSamples, IntervalSample
from .columns import SECTOR_BYTES

SYSFS = Path("/sys/class/block")
STEP_S = 1.0
"""Length of an interval: a burst that is shorter is carried by the second's worth of tokens that volumes have."""
MS_END = 1 << 32
"""The kernel prints the times as unsigned int: 50 days of all requests together, which a long queue passes within days."""


@dataclass(frozen=True)
class DiskCounters:
    """Since the device is there."""

    at_s: float
    reads: int
    read_sectors: int
    writes: int
    write_sectors: int
    busy_ms: int
    """Time of all requests together, each from its begin to its end."""
    waiting_ms: int
    """The same, with those that are not yet done; over a span of time it gives the mean queue length."""


def watch(
    device: str,
    seconds: float,
    *,
    sysfs: Path = SYSFS,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
    tell: Callable[[float], None] | None = None,
) -> DeviceSamples:
    """Watch ``device`` (``nvme1n1``, ``/dev/sdb``, ``/dev/disk/by-id/...``) for ``seconds``, in steps of one.

    ``tell`` hears how many seconds are left. :class:`InputError` when there is no such device, or no time to watch it;
    :class:`HostError` when it goes away meanwhile.
    """
    name = Path(device).resolve().name if "/" in device else device
    node = sysfs / name
    if not (node / "stat").is_file():
        known = ", ".join(sorted(path.name for path in sysfs.glob("*"))) if sysfs.is_dir() else ""
        raise InputError(f"there is no block device `{device}`", remedy=f"there are {known}" if known else "")
    if seconds < 2 * STEP_S:
        raise InputError(f"{seconds:g} s are too few to see a load", remedy="watch for minutes: --for 10min")
    begin = clock()
    before, samples = _counters(node, begin), list[IntervalSample]()
    while before.at_s - begin < seconds - STEP_S / 2:
        if tell is not None:
            tell(seconds - (before.at_s - begin))
        # The next whole step: who was late, since the machine stood still, does not catch up by steps of no length.
        step = int((before.at_s - begin) / STEP_S + 0.5) + 1
        wait(max(0.0, begin + STEP_S * step - clock()))
        now = _counters(node, clock())
        samples.append(_between(name, before, now))
        before = now
    size_bytes = int((node / "size").read_text()) * SECTOR_BYTES
    return DeviceSamples("live", name, tuple(samples), True, size_bytes)


def _counters(node: Path, at_s: float) -> DiskCounters:
    try:
        fields = [int(field) for field in (node / "stat").read_text().split()]
    except OSError as error:
        raise HostError(f"{node.name} went away while it was watched", remedy="watch a device that stays") from error
    return DiskCounters(at_s, fields[0], fields[2], fields[4], fields[6], fields[3] + fields[7], fields[10])


def _between(name: str, before: DiskCounters, now: DiskCounters) -> IntervalSample:
    seconds = now.at_s - before.at_s
    reads, writes = now.reads - before.reads, now.writes - before.writes
    requests = reads + writes
    if reads < 0 or writes < 0:
        raise HostError(f"{name} was replaced while it was watched", remedy="watch a device that stays")
    return IntervalSample(
        seconds,
        reads / seconds,
        writes / seconds,
        (now.read_sectors - before.read_sectors) * SECTOR_BYTES / seconds,
        (now.write_sectors - before.write_sectors) * SECTOR_BYTES / seconds,
        queue_length=(now.waiting_ms - before.waiting_ms) % MS_END / 1000 / seconds,
        latency_ms=(now.busy_ms - before.busy_ms) % MS_END / requests if requests else None,
    )
