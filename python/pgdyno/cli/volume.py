"""``pgdyno volume``: attach, list, measure, modify, fail, snapshot and detach emulated volumes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import (
    complete,
    shared,
    volume_fail,
    volume_fit,
    volume_mark,
    volume_policy,
    volume_snapshot,
    volume_types,
)
from pgdyno.cli.output import print_json, print_rows
from pgdyno.cli.shared import PathParameter

if TYPE_CHECKING:
    from ..machine.file_system import FileSystem
    from ..machine.volume import AttachedVolume, Cache


@click.group(short_help="Attach, list, measure, modify, fail and detach emulated volumes.")
def command() -> None:
    """Attach, list, measure, modify, fail and detach emulated volumes.

    A volume is written as its type and what differs from the type's defaults: `gp3`, `gp3:size=500GiB,iops=6000`,
    `io2bx:iops=8000`, or `null` (no limit and no delay); `pgdyno volume types` lists the types. An array is written
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


command.add_command(volume_types.types)
command.add_command(volume_fit.fit)
command.add_command(volume_fail.fail)
command.add_command(volume_fail.heal)
command.add_command(volume_mark.mark)
command.add_command(volume_policy.policy)
command.add_command(volume_snapshot.snapshot)
command.add_command(volume_snapshot.snapshots_command)
command.add_command(volume_snapshot.restore)


@command.command()
@click.argument("spec", shell_complete=complete.volume_types)
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
    "--seed", type=shared.Integer(min=0, max=2**64 - 1), help="Seed of the service times [the instance's, else 0]."
)
@click.option("--instance", metavar="NAME", help="Instance to join or to start.")
@click.option("--type", "instance_type", metavar="TYPE", help="Type of the instance; its volumes share its limits.")
@click.option(
    "--dilation",
    type=shared.Integer(1, 1000),
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
    from pgdyno.cli import volume_notes

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
    for note in volume_notes.before_attach(known, file_system, image):
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
    volume_notes.tell(attached, as_json=as_json, more=f", {dilation} times slower" if dilation > 1 else "")


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
    from pgdyno.cli import volume_notes

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
    rows = [_row(volume, volume_notes.state(volume, states.get(volume.name))) for volume in volumes]
    rows += [[volume.name, "-", "-", "-", volume.state] for volume in rest]
    print_rows(["NAME", "VOLUME", "DEVICE", "MOUNTED ON", "STATE"], rows)


@command.command()
@click.argument("name", shell_complete=complete.attached_volumes)
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
    from pgdyno.cli import volume_notes

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
        click.echo(f"warning: {volume_notes.store_failure(answer['store_failure'])}", err=True)
    for fault in volume_notes.faults(answer.get("faults") or (), result.spec):
        click.echo(f"note: {fault}", err=True)
    counters = answer["counters"]
    # Counters that the volume does not have, such as credits, are None.
    known = {key: value for key, value in counters.items() if value is not None}
    print_rows(["COUNTER", "VALUE"], [[key, _figure(key, value)] for key, value in known.items()])


@command.command()
@click.argument("name", shell_complete=complete.attached_volumes)
@click.argument("spec", shell_complete=complete.volume_types)
@click.option(
    "--rule",
    type=click.Choice(["2023", "2026"]),
    default="2026",
    show_default=True,
    help="How often it may be modified: once in 6 hours (2023), or four times in 24 hours (2026).",
)
@click.option(
    "--optimizing",
    type=shared.Integer(min=0),
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
@click.argument("name", shell_complete=complete.attached_volumes)
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
