"""Counters of a block device: NVMe statistics of an EBS volume or instance store, and the kernel's own.
attach.

How long requests waited for a limit is counted in microseconds, so its growth over the time between two readings is the share of
that time in which the limit was exceeded. Traps that are taken care of: a reading has no time of its own; with ``--interval`` every
reading but the first is a difference already; counters begin again when a volume is attached.

An instance store has limits of its own and none of EBS. Its text says so; JSON of nvme-cli writes them under the name of the
instance's EBS limits, and looks like an EBS volume's.

Formats: amazonlinux/amazon-ec2-utils d84cf6d (``ebsnvme``), linux-nvme/nvme-cli (``plugins/amzn``, #2559 and #2923).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ....base.errors import HostError, InputError
from ..measured import Check, DeviceSamples, IntervalSample
from .columns import SECTOR_BYTES
from .sysstat import unix_s

CHECKS: dict[str, Check] = {
    "ebs_volume_performance_exceeded_iops": "iops",
    "ebs_volume_performance_exceeded_tp": "throughput",
    "ec2_instance_ebs_performance_exceeded_iops": "instance_iops",
    "ec2_instance_ebs_performance_exceeded_tp": "instance_throughput",
}
"""Counters of microseconds of an EBS volume -> the limit that was exceeded in them."""
LOCAL_CHECKS: dict[str, Check] = {
    "ec2_instance_local_storage_performance_exceeded_iops": "iops",
    "ec2_instance_local_storage_performance_exceeded_tp": "throughput",
}
"""Those of an instance store, whose limits are the disk's own."""
LOCAL = "the readings are of an instance store: its limits come with the instance type and cannot be raised"
_TOTALS = tuple(f"total_{way}_{what}" for what in ("ops", "bytes", "time") for way in ("read", "write"))
_OLD_NAMES = {name.replace("ec2_instance_ebs", "ec2_instance"): name for name in CHECKS if name.startswith("ec2")}
_HEADINGS = {
    "total ops": ("total_read_ops", "total_write_ops"),
    "total bytes": ("total_read_bytes", "total_write_bytes"),
    "total time": ("total_read_time", "total_write_time"),
    "ebs volume performance exceeded": tuple(CHECKS)[:2],
    "ec2 instance ebs performance exceeded": tuple(CHECKS)[2:],
    "ec2 instance local storage performance exceeded": tuple(LOCAL_CHECKS),
}
"""Heading of the text -> the counters below it: of reads or IOPS first, of writes or throughput second."""
_HEADING = re.compile(r"\s*(?P<name>[A-Za-z0-9 ]+?)\s*(?:\(us\))?\s*:?\s*")
_ROW = re.compile(r"\s*(?P<what>Read|Write|IOPS|Throughput)\s*:\s*(?P<value>\d+)\s*")
_POLLING = re.compile(r"Polling EBS stats every (\d+) sec")
GREW_MAX = 1.05
"""Times the time between two readings that a counter of time may grow: the clock of the readings is another one."""
RESOLUTION_S = 1.0
"""`date -Is` leaves out parts of a second, so between two of its times up to so much more may have passed."""
_REMEDY = "write `date -Is` before each reading: (date -Is; ebsnvme stats --json /dev/nvme1n1) >> FILE"


@dataclass
class NvmeCounters:
    """The counters once, or what they grew by."""

    path: str
    counters: dict[str, int] = field(default_factory=dict)
    at_s: float | None = None
    """When it was taken, in seconds since 1970."""
    grew_for_s: float | None = None
    """The time in which counters grew by these values; ``None`` where they are since attach."""

    @property
    def is_local(self) -> bool:
        """Whether it is of an instance store."""
        return all(name in self.counters for name in LOCAL_CHECKS)


def read(files: Sequence[tuple[str, str, float]], near_s: float | None = None) -> DeviceSamples:
    """One volume, from the readings of all files: (text, path, time of its last change in seconds since 1970) of each.

    A reading without a time is as old as its file, where the file has no other one. :class:`InputError` where there are fewer
    than two, their times are not known, or a counter fell.
    """
    counters = [reading for text, path, changed_s in files for reading in _dated(text, path, changed_s, near_s)]
    names = ", ".join(dict.fromkeys(path for _, path, _ in files))
    if not counters:
        raise InputError(
            f"{names} is not output of ebsnvme",
            remedy="write it with `ebsnvme stats --json /dev/nvme1n1`",
            code="size.nvme.none",
        )
    totals = sorted((counter for counter in counters if counter.grew_for_s is None), key=lambda item: item.at_s or 0.0)
    differences = [counter for counter in counters if counter.grew_for_s is not None]
    if len(totals) < 2 and not differences:
        raise InputError(
            f"{names} has one reading, and only the growth of counters says what was exceeded when",
            code="size.nvme.one_reading",
            remedy="take a second reading after the watch, and name both files or append it to the first",
        )
    samples = [_between(*pair) for pair in pairwise(totals)] + [
        _sample(difference, difference.counters) for difference in differences
    ]
    samples.sort(key=lambda sample: sample.at_s or 0.0)
    local = [counter.is_local for counter in counters]
    if any(local) and not all(local):
        raise InputError(
            f"{names} has readings of an EBS volume and of an instance store",
            remedy="name one file for each disk",
            code="size.nvme.two_disks",
        )
    return DeviceSamples("NVMe", names, tuple(samples), notes=(LOCAL,) if all(local) else ())


def _dated(text: str, path: str, changed_s: float, near_s: float | None) -> list[NvmeCounters]:
    readings = list(_readings(text, path, near_s))
    polled = _POLLING.search(text)
    if polled:
        return _polled(readings, float(polled[1]), changed_s)
    undated = [reading for reading in readings if reading.at_s is None]
    if len(undated) == 1 == len(readings):
        undated[0].at_s = changed_s
    elif undated:
        raise InputError(
            f"{path} has {len(readings)} readings, and the times of {len(undated)} are not known", remedy=_REMEDY
        )
    return readings


def _polled(readings: list[NvmeCounters], interval_s: float, changed_s: float) -> list[NvmeCounters]:
    """Of ``--interval``: the first counts since attach, the others are differences; the last was written when the file changed."""
    begin_s = readings[0].at_s if readings else None
    if begin_s is None:
        begin_s = changed_s - interval_s * (len(readings) - 1)
    for place, reading in enumerate(readings):
        reading.at_s, reading.grew_for_s = begin_s + place * interval_s, interval_s
    return readings[1:]


def _readings(text: str, path: str, near_s: float | None) -> Iterator[NvmeCounters]:
    decoder, at, pending_s = json.JSONDecoder(), 0, None
    reading, names = NvmeCounters(path), tuple[str, ...]()
    while at < len(text):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        if line.lstrip().startswith("{"):
            try:
                page, at = decoder.raw_decode(text, at + len(line) - len(line.lstrip()))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path} is not JSON: {error}", remedy=_REMEDY) from error
            yield NvmeCounters(path, _counters(page, path), pending_s)
            pending_s = None
            continue
        at += len(line) + 1
        row, heading = _ROW.fullmatch(line), _HEADING.fullmatch(line)
        title = "" if heading is None else heading["name"].lower()
        if row is not None and names:
            reading.counters[names[row["what"] in ("Write", "Throughput")]] = int(row["value"])
        elif title in _HEADINGS:
            if title == "total ops":
                yield from _whole(reading)
                reading, pending_s = NvmeCounters(path, at_s=pending_s), None
            names = _HEADINGS[title]
        elif line.strip():
            names = ()
            pending_s = unix_s(line.strip(), near_s) or pending_s
    yield from _whole(reading)


def _whole(reading: NvmeCounters) -> Iterator[NvmeCounters]:
    """The reading of a text, once it has something."""
    if reading.counters:
        reading.counters = _counters(reading.counters, reading.path)
        yield reading


def _counters(page: object, path: str) -> dict[str, int]:
    """The counters that are used; :class:`InputError` where one is missing or is none."""
    known: Mapping[str, Any] = page if isinstance(page, dict) else {}
    known = {_OLD_NAMES.get(name, name): value for name, value in known.items()}
    needed = (*_TOTALS, *(LOCAL_CHECKS if any(name in known for name in LOCAL_CHECKS) else CHECKS))
    for name in needed:
        value = known.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise InputError(
                f"{path}: a reading has no counter {name}",
                remedy="write it with `ebsnvme stats --json /dev/nvme1n1` (an EBS volume) or `nvme amzn stats /dev/nvme1n1` (also an"
                " instance store)",
                code="size.nvme.counter",
                data={"counter": name},
            )
    return {name: known[name] for name in needed}


def _between(before: NvmeCounters, after: NvmeCounters) -> IntervalSample:
    """What happened between two readings since attach."""
    grown = {name: value - before.counters.get(name, 0) for name, value in after.counters.items()}
    fell = next((name for name, value in grown.items() if value < 0), None)
    if fell is not None:
        raise InputError(
            f"{after.path}: {fell} fell between {_utc(before.at_s)} and {_utc(after.at_s)}, as when a volume is attached again"
            " or is another one",
            remedy="use readings of one volume from one time of its being attached",
        )
    assert before.at_s is not None and after.at_s is not None, "_dated gives each a time"
    after.grew_for_s = after.at_s - before.at_s
    if after.grew_for_s <= 0:
        raise InputError(f"{after.path}: two readings are of the same time, {_utc(after.at_s)}", remedy=_REMEDY)
    return _sample(after, grown)


def _sample(reading: NvmeCounters, grown: Mapping[str, int]) -> IntervalSample:
    seconds = reading.grew_for_s or 0.0
    rates = {name: value / seconds for name, value in grown.items()}
    shares = {check: rates[name] / 1e6 for name, check in (LOCAL_CHECKS if reading.is_local else CHECKS).items()}
    most = max(shares.values())
    if most * seconds > GREW_MAX * seconds + RESOLUTION_S:
        raise InputError(
            f"{reading.path}: {most * seconds:,.0f} s above a limit in {seconds:,.0f} s before {_utc(reading.at_s)}: the times"
            " of the readings are not right",
            remedy=_REMEDY,
        )
    ops, busy_us = (
        rates["total_read_ops"] + rates["total_write_ops"],
        rates["total_read_time"] + rates["total_write_time"],
    )
    return IntervalSample(
        seconds,
        rates["total_read_ops"],
        rates["total_write_ops"],
        rates["total_read_bytes"],
        rates["total_write_bytes"],
        queue_length=busy_us / 1e6,  # the time of all requests together over the time that passed (Little's law)
        latency_ms=busy_us / ops / 1e3 if ops else None,
        exceeded={check: min(1.0, share) for check, share in shares.items()},
        at_s=None if reading.at_s is None else reading.at_s - seconds,
    )


def _utc(at_s: float | None) -> str:
    return f"{datetime.fromtimestamp(at_s or 0.0, UTC):%Y-%m-%dT%H:%M:%SZ}"


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
    before, samples = _live_counters(node, begin), list[IntervalSample]()
    while before.at_s - begin < seconds - STEP_S / 2:
        if tell is not None:
            tell(seconds - (before.at_s - begin))
        # The next whole step: who was late, since the machine stood still, does not catch up by steps of no length.
        step = int((before.at_s - begin) / STEP_S + 0.5) + 1
        wait(max(0.0, begin + STEP_S * step - clock()))
        now = _live_counters(node, clock())
        samples.append(_live_between(name, before, now))
        before = now
    size_bytes = int((node / "size").read_text()) * SECTOR_BYTES
    return DeviceSamples("live", name, tuple(samples), True, size_bytes)


def _live_counters(node: Path, at_s: float) -> DiskCounters:
    try:
        fields = [int(field) for field in (node / "stat").read_text().split()]
    except OSError as error:
        raise HostError(f"{node.name} went away while it was watched", remedy="watch a device that stays") from error
    return DiskCounters(at_s, fields[0], fields[2], fields[4], fields[6], fields[3] + fields[7], fields[10])


def _live_between(name: str, before: DiskCounters, now: DiskCounters) -> IntervalSample:
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
