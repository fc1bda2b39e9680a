"""``pgdyno volume``: attach, list, measure, modify, fail, snapshot and detach emulated volumes."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import parameters
from pgdyno.cli.streams import drawn
from pgdyno.cli.terminal import is_live

from ..base.text import printable
from . import volume_fail, volume_snapshot
from .parameters import PathParameter
from .terminal import print_json, print_rows
from .volume_notes import before_attach, faults, state, store_failure, tell

if TYPE_CHECKING:
    from ..advise.twin.fit import Twin
    from ..advise.twin.measure import Tell
    from ..machine.file_system import FileSystem
    from ..machine.volume import AttachedVolume, Cache


@click.group()
def command() -> None:
    """Attach, list, measure, modify, fail and detach emulated volumes.

    A volume is written as its type and what differs from the type's defaults: `gp3`, `gp3:size=500GiB,iops=6000`,
    `io2bx:iops=8000`, or `null` (no limit and no delay); `pgdyno catalog volumes` lists the types. An array is written
    `4xgp3:size=500GiB,chunk=64KiB` (RAID-0) or `raid10:4xgp3`, with the values of each member. With `multi_az=1.0ms`
    every write also goes to a synchronous copy with that round-trip time. With `init=lazy`, `init=200MiB/s` or `init=fsr` it is made
    from a snapshot, for which the image stands.

    \b
    Example:
      sudo pgdyno volume attach gp3:iops=6000 --mount /mnt/gp3
      pgdyno volume list
      sudo pgdyno volume stats gp3-1
      sudo pgdyno volume detach gp3-1
    """


command.add_command(volume_fail.fail)
command.add_command(volume_fail.heal)
command.add_command(volume_snapshot.policy)
command.add_command(volume_snapshot.snapshot)
command.add_command(volume_snapshot.snapshots_command)
command.add_command(volume_snapshot.restore)


@command.command()
@click.argument("spec", shell_complete=parameters.volume_types)
@click.option("--mount", type=PathParameter(), help="Empty or new directory to mount it on.")
@click.option("--no-mount", is_flag=True, help="Do not mount it: leave a bare block device.")
@click.option("--name", help="Name of the volume [gp3-1, gp3-2, ...].")
@click.option("--image", type=PathParameter(), help="Start with the content of this saved image.")
@click.option("--file-system", type=click.Choice(["ext4", "xfs"]), help="File system [ext4].")
@click.option("--mount-options", default="", metavar="OPTIONS", help="Mount options, for example `noatime`.")
@click.option("--store", default="memory", show_default=True, metavar="memory|DIR", help="Where the content is kept.")
@click.option("--submit-log", type=PathParameter(), help="Record every request in this file, for replay.")
@click.option(
    "--write-log", type=PathParameter(), help="Record every write with its data in this file, for `crashtest`."
)
@click.option(
    "--write-log-limit", metavar="SIZE", default="1GiB", show_default=True, help="Memory that the write log may take."
)
@click.option(
    "--cache",
    type=click.Choice(["none", "volatile"]),
    default="none",
    show_default=True,
    help="Write cache of the device: with a volatile one a write is durable after a flush.",
)
@click.option(
    "--seed", type=parameters.Integer(min=0, max=2**64 - 1), help="Seed of the service times [the instance's, else 0]."
)
@click.option("--instance", metavar="NAME", help="Instance to join or to start.")
@click.option("--type", "instance_type", metavar="TYPE", help="Type of the instance; its volumes share its limits.")
@click.option(
    "--dilation",
    type=parameters.Integer(1, 1000),
    default=1,
    show_default=True,
    help="Slow the volume down by this factor; its statistics are in slowed time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all facts about it as one JSON document.")
def attach(
    spec: str,
    mount: Path | None,
    no_mount: bool,
    name: str | None,
    image: Path | None,
    file_system: FileSystem | None,
    mount_options: str,
    store: str,
    submit_log: Path | None,
    write_log: Path | None,
    write_log_limit: str,
    cache: Cache,
    seed: int | None,
    instance: str | None,
    instance_type: str | None,
    dilation: int,
    as_json: bool,
) -> None:
    """Attach the emulated volume SPEC and mount it.

    It stays attached until `pgdyno volume detach`; its content is lost then unless it is saved.

    \b
    Example:
      sudo pgdyno volume attach gp3:size=100GiB,iops=6000,throughput=250 --mount /mnt/gp3 --name fast
      sudo pgdyno volume attach io2bx --mount /mnt/wal --file-system xfs --mount-options noatime
      sudo pgdyno volume attach 4xgp3:chunk=64KiB --mount /mnt/data --instance db --type r6g.2xlarge
      sudo pgdyno volume attach gp3 --mount /mnt/wal2 --instance db
    """
    from ..base import catalog
    from ..base.errors import InputError
    from ..base.quantity import parse_bytes
    from ..machine import volume

    if mount is None and not no_mount:
        raise InputError("the mount point is missing", remedy="use --mount DIR, or --no-mount for a bare block device")
    if mount is not None and no_mount:
        raise InputError("--mount and --no-mount exclude each other", remedy="use one of them")
    if not store:
        raise InputError("the store has no name", remedy="use --store memory, or name a directory")
    if no_mount and mount_options:
        raise InputError("a volume that is not mounted has no mount options", remedy="use --mount DIR, or omit them")
    known = catalog.resolve(spec)
    for note in before_attach(known, file_system, image):
        click.echo(f"note: {note}", err=True)
    attached = volume.attach(
        spec,
        mount=mount,
        name=name,
        image=image,
        store=store,
        submit_log=submit_log,
        write_log=write_log,
        write_log_limit_bytes=parse_bytes(write_log_limit, "--write-log-limit"),
        cache=cache,
        seed=seed,
        file_system=file_system,
        mount_options=mount_options,
        instance=instance,
        instance_type=instance_type,
        dilation=dilation,
    )
    attached.keep()
    tell(attached, as_json=as_json, more=f", {dilation} times slower" if dilation > 1 else "")


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_command(as_json: bool) -> None:
    """List the attached volumes with their states.

    A volume is `serving`, `stopped` (its daemon was stopped by a signal), `silent` (its daemon does not answer within two
    seconds), or `dead`. If its store failed, because it is full or its disk is broken, the state says since when; faults that
    were injected are part of the state, too, and one that is paused or lost is `impaired`, which is AWS's word.

    \b
    Example:
      pgdyno volume list --json | jq -r '.volumes[].block_device'
    """
    from ..machine import paths, volume
    from ..machine.unfinished import unfinished

    volumes, states = volume.list_volumes(), volume.states()
    rest = unfinished(paths.state_dir())
    if as_json:
        known = [volume.facts | {"alive": volume.alive} | states.get(volume.name, {}) for volume in volumes]
        names = [{"name": volume.name, "attaching": volume.owner is not None} for volume in rest]
        print_json({"volumes": known, "unfinished": names})
        return
    if not volumes and not rest:
        click.echo("no volume is attached; `pgdyno volume attach SPEC --mount DIR` attaches one", err=True)
        return
    rows = [_row(volume, state(volume, states.get(volume.name))) for volume in volumes]
    rows += [[volume.name, "-", "-", "-", volume.state] for volume in rest]
    print_rows(["NAME", "VOLUME", "DEVICE", "MOUNTED ON", "STATE"], rows)


@command.command()
@click.argument("name", shell_complete=parameters.attached_volumes)
@click.option("--json", "as_json", is_flag=True, help="Print counters and histograms as one JSON document.")
def stats(name: str, as_json: bool) -> None:
    """Print the counters of the volume NAME since it was attached.

    Time above a limit is the time in which requests waited for that limit. A late operation completed later than in the
    model; many of them mean that this machine is too slow for the volume. A failed operation ended with an
    I/O error, because the store is full or its disk is broken; it is not counted among the reads and writes.

    \b
    Example:
      sudo pgdyno volume stats gp3-1 --json | jq .counters
    """
    from ..machine import preflight, volume

    result = volume.find(name)
    preflight.require_root("reading a volume's counters")
    answer = result.stats()
    if as_json:
        print_json(answer)
        return
    if answer.get("submit_log") and not answer["submit_log"]["complete"]:
        click.echo(f"warning: the submit log is incomplete: {answer['submit_log']['error']}", err=True)
    if answer.get("store_failure"):
        click.echo(f"warning: {store_failure(answer['store_failure'])}", err=True)
    for fault in faults(answer.get("faults") or (), result.spec):
        click.echo(f"note: {fault}", err=True)
    counters = answer["counters"]
    # Counters that the volume does not have, such as credits, are None.
    known = {key: value for key, value in counters.items() if value is not None}
    print_rows(["COUNTER", "VALUE"], [[key, _figure(key, value)] for key, value in known.items()])


@command.command()
@click.argument("name", shell_complete=parameters.attached_volumes)
@click.argument("spec", shell_complete=parameters.volume_types)
@click.option(
    "--rule",
    type=click.Choice(["2023", "2026"]),
    default="2026",
    show_default=True,
    help="How often it may be modified: once in 6 hours (2023), or four times in 24 hours (2026).",
)
@click.option(
    "--optimizing",
    type=parameters.Integer(min=0),
    metavar="SECONDS",
    help="Time until the modification is completed [6 hours per TiB].",
)
@click.option("--json", "as_json", is_flag=True, help="Print the modified volume as one JSON document.")
def modify(name: str, spec: str, rule: str, optimizing: int | None, as_json: bool) -> None:
    """Modify the attached volume NAME to SPEC, online.

    Values that SPEC omits are the type's defaults. A volume can be made larger, not smaller, and its file system
    grows with it. The new limits apply immediately; the modification is completed after --optimizing seconds.

    \b
    Example:
      sudo pgdyno volume modify data gp3:size=200GiB,iops=16000,throughput=500 --optimizing 0
      sudo pgdyno volume modify data io2bx:size=200GiB,iops=16000
    """
    from ..machine import preflight, volume

    result = volume.find(name)
    preflight.require_root("modifying a volume")
    answer = result.modify(spec, rule=rule, optimizing_s=optimizing)
    if as_json:
        print_json(answer)
        return
    progress = answer["modification"]
    left = f", completed in {progress['completed_in_s']:,} s" if progress["completed_in_s"] else ""
    click.echo(f"{name}: {answer['spec']['spec']}, {progress['state']}{left}")


@command.command()
@click.argument("name", shell_complete=parameters.attached_volumes)
@click.option("--save-image", type=PathParameter(), help="Keep its content as an image in this new directory.")
def detach(name: str, save_image: Path | None) -> None:
    """Unmount and remove the volume NAME. Its content is lost unless it is saved.

    An image has what was written since the image or the snapshot that the volume was made from, or its last snapshot; it stands on that
    one, which has to stay where it is.

    This also removes the remains of an interrupted attach of NAME, and the directories that the attach created for the
    mount point if they are empty.

    \b
    Example:
      sudo pgdyno volume detach gp3-1
    """
    from ..base.errors import InputError
    from ..machine import preflight, snapshot_file, volume
    from ..machine.unfinished import UnfinishedVolume

    result = volume.find_any(name)
    preflight.require_root("detaching a volume")
    if isinstance(result, UnfinishedVolume):
        if save_image is not None:
            raise InputError(
                f"the attach of `{name}` was interrupted, so it has no content to save", remedy="omit --save-image"
            )
        result.detach()
        click.echo(f"{name}: the remains of an interrupted attach are removed")
        return
    reason = result.panic
    answer = result.detach(save_image.absolute() if save_image is not None else None)
    if answer.get("write_log_full"):
        click.echo(
            f"warning: the write log {answer['write_log_full']} ended at its limit (--write-log-limit): what came later is not in it",
            err=True,
        )
    if reason is not None:
        click.echo(f"note: the volume's daemon had ended itself, because of a bug: {reason}", err=True)
    kept = f"; its content is in {save_image}" if save_image is not None else ""
    click.echo(f"{name} is detached{kept}")
    base = None if save_image is None else snapshot_file.base_of(save_image)
    if base is not None:
        click.echo(f"note: {save_image} stands on {base}: keep both where they are", err=True)


@command.command()
@click.argument("name", shell_complete=parameters.attached_volumes)
@click.argument("text")
def mark(name: str, text: str) -> None:
    """Write TEXT as a mark into the write log of the volume NAME.

    The mark stands between the writes before and after it. The volume must be attached with --write-log. A log that has used up
    its memory takes no more marks.

    \b
    Example:
      sudo pgdyno volume mark logged "checkpoint begins"
    """
    from ..base.text import size
    from ..machine import preflight, volume

    result = volume.find(name)
    preflight.require_root("marking a write log")
    log = result.mark(text)
    full = "; it is full and has ended" if log["full"] else ""
    click.echo(f"{name}: {log['events']:,} events, {size(log['data_bytes'])} of data{full}")


@command.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The twin's file; it must end in .toml."
)
@click.option("--region", default="1GiB", show_default=True, metavar="SIZE", help="Amount of the disk that is used.")
@click.option(
    "--quick", is_flag=True, help="A third of the time: less exact, and does not detect buckets of more than a second."
)
@click.option("--overwrite-device", is_flag=True, help="PATH is a block device; its content may be lost.")
@click.option("--json", "as_json", is_flag=True, help="Print the twin as one JSON document.")
def fit(path: Path, output: Path, region: str, quick: bool, overwrite_device: bool, as_json: bool) -> None:
    """Measure a disk, and write a twin: a volume that behaves like it.

    PATH is a directory on the disk, or a file that does not exist yet. fio measures for about two and a half minutes in a
    temporary file there; no other process should use the disk during that time. The twin can be used like any other volume.

    \b
    Example:
      sudo pgdyno volume fit /var/lib/postgresql -o mine.toml
      sudo pgdyno compare mine.toml gp3
    """
    from .. import __version__
    from ..advise.twin import file
    from ..advise.twin.fio import require_fio
    from ..advise.twin.fit import fit as fit_to
    from ..advise.twin.measure import MIB, JobSchedule, measure, opened
    from ..base import catalog
    from ..machine import paths, preflight

    region_bytes = _region(region)
    file.require_writable(output)
    version = require_fio()
    preflight.require_root("attaching the volume without delay that the disk is compared with")
    preflight.require_fuse()
    preflight.require_mounts()
    preflight.require_loop()
    schedule, began = JobSchedule.quick() if quick else JobSchedule(), time.monotonic()
    with opened(path, region_bytes, overwrite=overwrite_device) as target:
        minutes = schedule.takes_s(region_bytes // MIB) / 60
        most_mib = schedule.most_written_mib(region_bytes // MIB)
        where = (
            target.shown if target.file_system is None else f"a file of {region_bytes // MIB:,} MiB in {target.shown}"
        )
        _say(
            f"measuring {target.device} for about {minutes:.1f} minutes: writes {where} repeatedly,"
            f" at most {most_mib:,} MiB in total" + ("" if target.file_system is None else "; the file is removed")
        )
        with _fit_progress() as tell:
            result = measure(target, schedule, state_dir=paths.state_dir(), tell=tell)
        twin = fit_to(result)
        file.write(output, twin, target, result, fio=version, pgdyno=__version__)
    resolved = dict(catalog.resolve(f"twin:{output}").document)
    if as_json:
        print_json(
            {
                "twin": str(output.absolute()),
                "notes": list(twin.notes),
                "written_bytes": result.written_bytes,
                "seconds": round(time.monotonic() - began, 1),
                "spec": resolved,
            }
        )
        return
    _print_twin(output, resolved, twin, result.written_bytes // MIB)


def _region(text: str) -> int:
    from ..advise.twin.measure import LEAST_REGION_MIB, MIB
    from ..base.errors import InputError
    from ..base.quantity import parse_bytes

    region_bytes = parse_bytes(text, "--region") // MIB * MIB
    if region_bytes < LEAST_REGION_MIB * MIB:
        raise InputError(
            f"--region: {text} is too small to measure", remedy=f"use at least {LEAST_REGION_MIB}MiB, preferably 1GiB"
        )
    return region_bytes


def _print_twin(output: Path, resolved: dict[str, Any], twin: Twin, written_mib: int) -> None:
    middle = twin.probability_ppm.index(500_000)
    page = twin.size_kib.index(8)
    unit = f"{twin.unit_kib} KiB, sequential ones {'merged' if twin.merge_sequential else 'not merged'}"
    facts = [
        ("volume", resolved["title"]),
        ("bucket", f"{twin.iops_bucket_ms} ms of its IOPS, {twin.bytes_bucket_ms} ms of its throughput"),
        ("I/O unit", unit),
        ("order", {"fifo": "in turn", "gamma": "drawn"}[twin.order]),
        (
            "8 KiB",
            f"read {twin.read_ns[page][middle] / 1000:,.0f} us, write {twin.write_ns[page][middle] / 1000:,.0f} us",
        ),
        ("written", f"{written_mib:,} MiB"),
        *(("note", note) for note in twin.notes),
        ("use it", f"pgdyno compare {shlex.quote(str(output))} gp3"),
    ]
    for name, words in facts:
        click.echo(f"{name:<10}{words}")


@contextmanager
def _fit_progress() -> Iterator[Tell]:
    """A bar with what is left on a terminal; elsewhere a line for each step."""
    began = time.monotonic()
    if not is_live(sys.stderr):
        yield lambda done_s, total_s, text: _say(
            f"[{time.monotonic() - began:5.0f} s] {text} (about {max(0.0, total_s - done_s):.0f} s left)"
        )
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=drawn(sys.stderr)), transient=True) as bar:
        task = bar.add_task("fill", total=None)
        yield lambda done_s, total_s, text: bar.update(
            task, completed=done_s, total=total_s, description=printable(text)
        )


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _row(volume: AttachedVolume, state: str) -> list[str]:
    from ..machine import mounts

    mount = str(volume.mount) if volume.mount is not None else "-"
    if volume.mount is not None and state.startswith("serving") and not mounts.is_mount_point(volume.mount):
        mount = f"not mounted (was {mount})"
    return [volume.name, str(volume.spec["spec"]), volume.block_device, mount, state]


def _figure(name: str, value: Any) -> str:
    """A counter in readable form: times in seconds, bytes in MiB, the rest with separators."""
    if name.endswith("_ns"):
        return f"{value / 1e9:,.3f} s"
    if name.endswith("_bytes"):
        return f"{value / 2**20:,.1f} MiB"
    return f"{value:,}" if isinstance(value, int) else str(value)
