"""Which of the devices of a file is sized, and whether the first report of ``iostat`` counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgdyno.errors import InputError
from pgdyno.size.demand import MIB
from pgdyno.size.measured import FirstReport, Measured, Sample

SHOWN_DEVICES_MAX = 8
"""Devices that an error lists: more of them do not help to choose."""
_LAYER = re.compile(r"(?:loop|ram|zram|dm-|md|zd|sr|fd|drbd|bcache)\d.*")
"""Names of Linux for what lies above a disk, or is none."""


def choose(found: Mapping[str, Measured], wanted: Sequence[str], path: str) -> Measured:
    """The device that is to be sized: the one that was named, or the only one that did anything.

    Several named devices are added up, interval by interval: they are to become one volume. An :class:`InputError` when
    one is not there, or when several did something and none was named: partitions and the layers above a disk (``dm-0``,
    ``md0``) show the same requests once more, so that a sum of everything would count twice.
    """
    if not found:
        raise InputError(f"{path} has no samples of a device", remedy="write it with `iostat -dxt 1`, or `sar -d 1`")
    names = _named(found, wanted, path) if wanted else _active(found, path)
    chosen = found[names[0]]
    for name in names[1:]:
        chosen = _sum(chosen, found[name], path)
    return _with_first(chosen, path)


def _named(found: Mapping[str, Measured], wanted: Sequence[str], path: str) -> list[str]:
    """The devices that were named, each once, whether as ``sda`` or as ``/dev/sda``."""
    names = list(dict.fromkeys(name if name in found else name.removeprefix("/dev/") for name in wanted))
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"{path} has no device `{missing[0]}`", remedy=f"it has {_listed(found)}")
    for part in names:
        disk = next((name for name in names if _is_partition(part, name)), None)
        if disk is not None:
            raise InputError(
                f"{part} is a partition of {disk}: its requests would count twice", remedy=f"use --device {disk} alone"
            )
    return names


def _active(found: Mapping[str, Measured], path: str) -> list[str]:
    """The one device that did something; any when none did."""
    active = {name: one for name, one in found.items() if one.busiest_ops_per_s > 0}
    if len(active) > 1:
        raise InputError(
            f"{path} has {len(active)} devices that did something: {_listed(active)}",
            remedy=f"name the volume, and no layer above it: --device {_likeliest(active)}",
        )
    return list(active or found)[:1]


def _is_partition(name: str, disk: str) -> bool:
    """As the kernel names them: ``sda1`` of ``sda``, ``nvme0n1p1`` of ``nvme0n1``."""
    return re.fullmatch(re.escape(disk) + ("p" if disk[-1:].isdigit() else "") + r"\d+", name) is not None


def _with_first(measured: Measured, path: str) -> Measured:
    """With those first reports that show more than any later one, and a note of each.

    An average since boot is hardly ever the most of a file that was made under load, and where it is, the load was
    once at least as high. So what is kept is never more than the disk did, and what is dropped is never the peak.
    """
    ops = max((one.ops_per_s for one in measured.samples), default=0.0)
    size = max((one.bytes_per_s for one in measured.samples), default=0.0)
    samples, notes = list(measured.samples), list(measured.notes)
    for first in reversed(measured.first_reports):
        one = first.sample
        if not ops and one.ops_per_s:
            raise InputError(
                f"{path}: {measured.device} did something in the first report only ({_rates(one)}), which is an average"
                " since boot unless iostat was run with -y",
                remedy="measure under load; if iostat was run with -y, repeat this with --first-report keep",
            )
        if one.ops_per_s > ops or one.bytes_per_s > size:
            samples.insert(first.place, one)
            notes.append(
                f"the first report ({_rates(one)}) shows more than any later one and is kept, as an interval of iostat -y;"
                " if iostat was run without -y it is an average since boot: --first-report drop"
            )
        else:
            notes.append(
                f"the first report ({_rates(one)}) is taken for an average since boot and dropped; if iostat was run with"
                " -y it is an interval: --first-report keep"
            )
    return replace(measured, samples=tuple(samples), notes=tuple(notes), first_reports=())


def _rates(sample: Sample) -> str:
    return f"{sample.ops_per_s:,.0f} IOPS, {sample.bytes_per_s / MIB:,.1f} MiB/s"


def _sum(left: Measured, right: Measured, path: str) -> Measured:
    if [(sample.seconds, sample.at_s) for sample in left.samples] != [(one.seconds, one.at_s) for one in right.samples]:
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
        first_reports=tuple(FirstReport(one.place, _both(one.sample, other.sample)) for one, other in firsts),
    )


def _both(left: Sample, right: Sample) -> Sample:
    queues = [sample.queue_length for sample in (left, right) if sample.queue_length is not None]
    ops_per_s = left.ops_per_s + right.ops_per_s
    waits = [(s.latency_ms, s.ops_per_s) for s in (left, right) if s.latency_ms is not None]
    exceeded = {
        name: max(one.exceeded.get(name, 0.0) for one in (left, right)) for name in {**left.exceeded, **right.exceeded}
    }
    balance = {
        name: min(one.balance.get(name, 1.0) for one in (left, right)) for name in {**left.balance, **right.balance}
    }
    return Sample(
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


def _likeliest(found: Mapping[str, Measured]) -> str:
    """The busiest disk, or the busiest of all when no name is that of a disk."""
    disks = [
        name for name in found if not _LAYER.fullmatch(name) and not any(_is_partition(name, disk) for disk in found)
    ]
    return max(disks or found, key=lambda name: found[name].busiest_ops_per_s)


def _listed(found: Mapping[str, Measured]) -> str:
    names = sorted(found, key=lambda name: -found[name].busiest_ops_per_s)
    shown = [f"{name} (up to {found[name].busiest_ops_per_s:,.0f} IOPS)" for name in names[:SHOWN_DEVICES_MAX]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
