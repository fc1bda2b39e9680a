"""Notes for people about a volume: sentences for the terminal."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ..base.quantity import duration_words
from .terminal import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from ..base.specification import VolumeSpec
    from ..machine.volume import AttachedVolume

_LONG_FORMAT_BYTES = 8 << 40
"""From here on mkfs.ext4 takes ten seconds or more on two cores."""
_ALL_PPM = 1_000_000
_GROWERS = {"ext4": "resize2fs {device}", "xfs": "xfs_growfs {mount}"}
"""What makes a mounted file system as large as its device."""


def tell(attached: AttachedVolume, *, as_json: bool, more: str = "") -> None:
    """Print what was attached: its facts as JSON, or where it is with ``more`` on it; what is to be noted on standard error."""
    for note in of_attach(attached):
        click.echo(f"note: {note}", err=True)
    if as_json:
        print_json(attached.facts)
        return
    where = f" on {attached.mount}" if attached.mount is not None else ""
    click.echo(f"{attached.name}: {attached.spec['spec']} is {attached.block_device}{where}{more}")


def before_attach(volume: VolumeSpec, file_system: str | None, image: Path | None) -> Iterator[str]:
    """What is to be noted of a volume before it is attached."""
    size_bytes = volume.size_bytes
    if image is None and volume.is_restored:
        yield "a volume without --image is empty and has nothing to load, so init= changes nothing"
    if image is None and file_system in (None, "ext4") and size_bytes >= _LONG_FORMAT_BYTES:
        yield (
            f"formatting {_size(size_bytes)} with ext4 may take minutes on a busy machine; `--file-system xfs` takes seconds"
        )


def of_attach(volume: AttachedVolume) -> Iterator[str]:
    """What is to be noted of a volume that has just been attached."""
    size_bytes, store = int(volume.spec["size_bytes"]), str(volume.facts["store"])
    if store != "memory":
        free_bytes = shutil.disk_usage(store).free
        if free_bytes < size_bytes:
            yield (
                f"the volume may need up to {_size(size_bytes)} in {store}, where {_size(free_bytes)} are free;"
                " when the store is full, writes to the volume fail with I/O errors"
            )
    image_bytes, kind = volume.facts.get("image_bytes"), volume.facts.get("file_system")
    if image_bytes and int(image_bytes) < size_bytes and volume.mount is not None and kind in _GROWERS:
        grow = _GROWERS[kind].format(device=volume.block_device, mount=volume.mount)
        yield (
            f"the file system comes from the image and has {_size(int(image_bytes))} of the volume's"
            f" {_size(size_bytes)}; `{grow}` enlarges it"
        )
    if not volume.facts.get("base_overhead_confirmed", True):
        read_us = volume.facts["base_overhead_8k"]["read_ns"] / 1000
        yield (
            f"the machine was busy while the emulator measured its own cost ({read_us:.0f} us for a read of 8 KiB); the volume"
            " may be slightly too fast: attach it again when the machine is idle"
        )


def state(volume: AttachedVolume, document: Mapping[str, Any] | None) -> str:
    """The state of a volume in the list, with what to do about it."""
    if not volume.alive or document is None:
        return f"dead (pgdyno volume detach {volume.name})"
    pid = volume.daemon.pid
    if document["state"] == "stopped":
        return f"stopped (kill -CONT {pid})"
    if document["state"] == "silent":
        return f"silent (process {pid} does not answer)"
    failure = document.get("store_failure")
    if failure is not None:
        return store_failure(failure)
    impaired = ["impaired"] if document["status"] == "impaired" else []
    loading, failing = _loading(document.get("initialized_ppm")), faults(document.get("faults") or (), volume.spec)
    return "; ".join([str(document["state"]), *impaired, *loading, *failing])


def _loading(initialized_ppm: int | None) -> Iterator[str]:
    """What a volume has of its snapshot, while some of it is missing. Rounded down: all of it is 100 per cent, and nothing else."""
    if initialized_ppm is not None and initialized_ppm < _ALL_PPM:
        yield f"initialized {initialized_ppm // 10_000} %"


def store_failure(failure: Mapping[str, Any]) -> str:
    """``store full since 2026-11-23 11:02:03 UTC``."""
    since = datetime.fromtimestamp(failure["since_unix_ns"] / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"store full since {since}" if failure["full"] else f"store fails since {since}: {failure['error']}"


def faults(documents: Iterable[Mapping[str, Any]], spec: Mapping[str, Any]) -> Iterator[str]:
    """The faults of a volume of this specification, one line for each that several members or operations share.

    ``paused, 41 s left``, ``+500 ms on 50 % of reads``, ``I/O errors on 100 % of writes``, ``lost``,
    ``member 2: lost; each stripe has another copy``.
    """
    array = spec.get("array") or {}
    copies = int(array.get("copies") or 1)
    count = int(array.get("columns") or 1) * copies
    members_of: dict[str, list[int]] = {}
    for fault in documents:
        members_of.setdefault(_fault(fault), []).append(int(fault["member"]))
    for line, members in members_of.items():
        if len(set(members)) == count:
            yield line
            continue
        names = ", ".join(map(str, sorted(set(members))))
        text = f"{'member' if len(set(members)) == 1 else 'members'} {names}: {line}"
        yield f"{text}; {_after_loss(set(members), copies)}" if line == "lost" else text


def _after_loss(members: set[int], copies: int) -> str:
    """What is left of an array without these members. They are counted column by column, the copies of a column beside each other."""
    columns = {member // copies for member in members}
    if any(members >= set(range(column * copies, (column + 1) * copies)) for column in columns):
        return "the array is lost with it" if len(members) == 1 else "the array is lost with them"
    return "each stripe has another copy"


def _fault(fault: Mapping[str, Any]) -> str:
    operations = " and ".join(operation for operation in ("reads", "writes") if fault[operation])
    share = f"on {fault['share'] * 100:g} % of {operations}"
    kind = fault["kind"]
    if kind == "pause":
        result = "paused"
    elif kind == "latency":
        result = f"+{fault['added_ms']:,g} ms {share}"
    elif kind == "error":
        place = f" from byte {fault['offset']:,} on for {_size(fault['bytes'])}" if fault["offset"] else ""
        result = f"I/O errors {share}{place}" if not fault["once"] else f"one I/O error {share}{place}"
    else:
        return "lost"
    if fault["begins_in_s"] > 0:
        result += f", begins in {duration_words(fault['begins_in_s'])}"
    left_s = fault["ends_in_s"]
    return result if left_s is None else f"{result}, {duration_words(left_s)} left"


def _size(size_bytes: int) -> str:
    gib = size_bytes / 2**30
    if gib >= 1024:
        return f"{gib / 1024:,.0f} TiB"
    return f"{gib:,.1f} GiB" if gib >= 1 else f"{size_bytes >> 20:,} MiB"
