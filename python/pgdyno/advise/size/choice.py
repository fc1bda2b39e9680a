"""Which of the devices of a file is sized, and whether the first report of ``iostat`` counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...base.errors import InputError
from .demand import MIB
from .measured import DeviceSamples, FirstReport, IntervalSample

SHOWN_DEVICES_MAX = 8
"""Devices that an error lists: more of them do not help to choose."""
_LAYER = re.compile(r"(?:loop|ram|zram|dm-|md|zd|sr|fd|drbd|bcache)\d.*")
"""Names of Linux for what lies above a disk, or is none."""


def choose(samples: Mapping[str, DeviceSamples], wanted: Sequence[str], path: str) -> DeviceSamples:
    """The device that is to be sized: the one that was named, or the only one that did anything.

    Several named devices are added up, interval by interval: they are to become one volume. An :class:`InputError` when
    one is not there, or when several did something and none was named: partitions and the layers above a disk (``dm-0``,
    ``md0``) show the same requests once more, so that a sum of everything would count twice.
    """
    if not samples:
        raise InputError(f"{path} has no samples of a device", remedy="write it with `iostat -dxt 1`, or `sar -d 1`")
    names = _named(samples, wanted, path) if wanted else _active(samples, path)
    chosen = samples[names[0]]
    for name in names[1:]:
        chosen = _sum(chosen, samples[name], path)
    return _with_first(chosen, path)


def _named(samples: Mapping[str, DeviceSamples], wanted: Sequence[str], path: str) -> list[str]:
    """The devices that were named, each once, whether as ``sda`` or as ``/dev/sda``."""
    names = list(dict.fromkeys(name if name in samples else name.removeprefix("/dev/") for name in wanted))
    missing = [name for name in names if name not in samples]
    if missing:
        raise InputError(f"{path} has no device `{missing[0]}`", remedy=f"it has {_listed(samples)}")
    for part in names:
        disk = next((name for name in names if _is_partition(part, name)), None)
        if disk is not None:
            raise InputError(
                f"{part} is a partition of {disk}: its requests would count twice", remedy=f"use --device {disk} alone"
            )
    return names


def _active(samples: Mapping[str, DeviceSamples], path: str) -> list[str]:
    """The one device that did something; any when none did."""
    active = {name: sample for name, sample in samples.items() if sample.busiest_ops_per_s > 0}
    if len(active) > 1:
        raise InputError(
            f"{path} has {len(active)} devices that did something: {_listed(active)}",
            remedy=f"name the volume, and no layer above it: --device {_likeliest(active)}",
        )
    return list(active or samples)[:1]


def _is_partition(name: str, disk: str) -> bool:
    """As the kernel names them: ``sda1`` of ``sda``, ``nvme0n1p1`` of ``nvme0n1``."""
    return re.fullmatch(re.escape(disk) + ("p" if disk[-1:].isdigit() else "") + r"\d+", name) is not None


def _with_first(measured: DeviceSamples, path: str) -> DeviceSamples:
    """With those first reports that show more than any later one, and a note of each.

    An average since boot is hardly ever the most of a file that was made under load, and where it is, the load was
    once at least as high. So what is kept is never more than the disk did, and what is dropped is never the peak.
    """
    ops = max((sample.ops_per_s for sample in measured.samples), default=0.0)
    size = max((sample.bytes_per_s for sample in measured.samples), default=0.0)
    samples, notes = list(measured.samples), list(measured.notes)
    for first in reversed(measured.first_reports):
        sample = first.sample
        if not ops and sample.ops_per_s:
            raise InputError(
                f"{path}: {measured.device} did something in the first report only ({_rates(sample)}), which is an average"
                " since boot unless iostat was run with -y",
                remedy="measure under load; if iostat was run with -y, repeat this with --first-report keep",
            )
        if sample.ops_per_s > ops or sample.bytes_per_s > size:
            samples.insert(first.place, sample)
            notes.append(
                f"the first report ({_rates(sample)}) shows more than any later one and is kept, as an interval of iostat -y;"
                " if iostat was run without -y it is an average since boot: --first-report drop"
            )
        else:
            notes.append(
                f"the first report ({_rates(sample)}) is taken for an average since boot and dropped; if iostat was run with"
                " -y it is an interval: --first-report keep"
            )
    return replace(measured, samples=tuple(samples), notes=tuple(notes), first_reports=())


def _rates(sample: IntervalSample) -> str:
    return f"{sample.ops_per_s:,.0f} IOPS, {sample.bytes_per_s / MIB:,.1f} MiB/s"


def _sum(left: DeviceSamples, right: DeviceSamples, path: str) -> DeviceSamples:
    if [(sample.seconds, sample.at_s) for sample in left.samples] != [
        (sample.seconds, sample.at_s) for sample in right.samples
    ]:
        raise InputError(
            f"{path}: {left.device} and {right.device} do not have the same intervals, and cannot be added up",
            remedy="name one --device, or measure them together, for a time in which all were attached",
        )
    sizes = (left.size_bytes, right.size_bytes)
    firsts = zip(left.first_reports, right.first_reports, strict=True)
    return replace(
        left,
        device=f"{left.device} + {right.device}",
        samples=tuple(_both(*pair) for pair in zip(left.samples, right.samples, strict=True)),
        split_known=left.split_known and right.split_known,
        size_bytes=None if None in sizes else sum(size or 0 for size in sizes),
        notes=tuple(dict.fromkeys((*left.notes, *right.notes))),
        first_reports=tuple(FirstReport(item.place, _both(item.sample, other.sample)) for item, other in firsts),
    )


def _both(left: IntervalSample, right: IntervalSample) -> IntervalSample:
    queues = [sample.queue_length for sample in (left, right) if sample.queue_length is not None]
    ops_per_s = left.ops_per_s + right.ops_per_s
    waits = [(s.latency_ms, s.ops_per_s) for s in (left, right) if s.latency_ms is not None]
    exceeded = {
        name: max(sample.exceeded.get(name, 0.0) for sample in (left, right))
        for name in {**left.exceeded, **right.exceeded}
    }
    balance = {
        name: min(sample.balance.get(name, 1.0) for sample in (left, right))
        for name in {**left.balance, **right.balance}
    }
    return IntervalSample(
        left.seconds,
        left.read_ops_per_s + right.read_ops_per_s,
        left.write_ops_per_s + right.write_ops_per_s,
        left.read_bytes_per_s + right.read_bytes_per_s,
        left.write_bytes_per_s + right.write_bytes_per_s,
        queue_length=sum(queues) if queues else None,
        latency_ms=sum(ms * ops for ms, ops in waits) / ops_per_s if waits and ops_per_s else None,
        exceeded=exceeded,
        balance=balance,
        at_s=left.at_s,
    )


def _likeliest(samples: Mapping[str, DeviceSamples]) -> str:
    """The busiest disk, or the busiest of all when no name is that of a disk."""
    disks = [
        name
        for name in samples
        if not _LAYER.fullmatch(name) and not any(_is_partition(name, disk) for disk in samples)
    ]
    return max(disks or samples, key=lambda name: samples[name].busiest_ops_per_s)


def _listed(samples: Mapping[str, DeviceSamples]) -> str:
    names = sorted(samples, key=lambda name: -samples[name].busiest_ops_per_s)
    shown = [f"{name} (up to {samples[name].busiest_ops_per_s:,.0f} IOPS)" for name in names[:SHOWN_DEVICES_MAX]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
