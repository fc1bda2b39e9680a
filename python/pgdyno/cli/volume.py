"""``pgdyno volume``: attach, list, measure, modify and detach emulated volumes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import complete, volume_fit, volume_types
from pgdyno.cli.output import print_json, print_rows

if TYPE_CHECKING:
    from pgdyno.world.file_system import FileSystem
    from pgdyno.world.volume import AttachedVolume


@click.group(short_help="Attach, list, measure, modify and detach emulated volumes.")
def command() -> None:
    """Attach, list, measure, modify and detach emulated volumes.

    A volume is written as a type with what differs from its defaults: `gp3`, `gp3:size=500GiB,iops=6000`,
    `io2bx:iops=16000`, or `null` (no limit and no delay); `pgdyno volume types` lists them. An array is written
    `4xgp3:size=500GiB,chunk=64KiB` (RAID-0) or `raid10:4xgp3`, with the figures of each member; with `multi_az=1.0ms`
    every write goes to a copy that far away.

    \b
    Example:
      sudo pgdyno volume attach gp3:iops=6000 --mount /mnt/gp3
      pgdyno volume list
      sudo pgdyno volume stats gp3-1
      sudo pgdyno volume detach gp3-1
    """


command.add_command(volume_types.types)
command.add_command(volume_fit.fit)


@command.command()
@click.argument("spec", shell_complete=complete.volume_types)
@click.option("--mount", type=click.Path(path_type=Path), help="Empty or new directory to mount it on.")
@click.option("--no-mount", is_flag=True, help="Leave it a bare block device.")
@click.option("--name", help="What to call it [gp3-1, gp3-2, ...].")
@click.option("--image", type=click.Path(path_type=Path), help="Start with the content of this saved image.")
@click.option("--file-system", type=click.Choice(["ext4", "xfs"]), help="What it is formatted with [ext4].")
@click.option("--mount-options", default="", metavar="OPTIONS", help="As `mount -o` takes them: `noatime`.")
@click.option("--store", default="memory", show_default=True, help="Where the content is kept: memory, or a directory.")
@click.option("--submit-log", type=click.Path(path_type=Path), help="Record every request, for replay.")
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**64 - 1), default=0, show_default=True, help="Seed of its service times."
)
@click.option("--instance", metavar="NAME", help="The instance that it joins, or begins.")
@click.option("--type", "instance_type", metavar="TYPE", help="Type of the instance, whose volumes share its limits.")
@click.option(
    "--dilation",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="So many times slower than a real one; what is said of it is in its own time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything that is known of it as one JSON document.")
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
    seed: int,
    instance: str | None,
    instance_type: str | None,
    dilation: int,
    as_json: bool,
) -> None:
    """Attach the emulated volume SPEC and mount it.

    It stays until `pgdyno volume detach`; what is written to it is gone then, unless it is saved.

    \b
    Example:
      sudo pgdyno volume attach gp3:size=100GiB,iops=6000,throughput=250 --mount /mnt/gp3 --name fast
      sudo pgdyno volume attach io2bx --mount /mnt/wal --file-system xfs --mount-options noatime
      sudo pgdyno volume attach 4xgp3:chunk=64KiB --mount /mnt/data --instance db --type r6g.2xlarge
      sudo pgdyno volume attach gp3 --mount /mnt/wal2 --instance db
    """
    from pgdyno.errors import InputError
    from pgdyno.world import volume

    if (mount is None) != no_mount:
        raise InputError(
            "say where to mount the volume, or that it is not to be", remedy="use --mount DIR or --no-mount"
        )
    if no_mount and mount_options:
        raise InputError(
            "a volume that is not mounted has no mount options", remedy="use --mount DIR, or leave them out"
        )
    attached = volume.attach(
        spec,
        mount=mount,
        name=name,
        image=image,
        store=store,
        submit_log=submit_log,
        seed=seed,
        file_system=file_system,
        mount_options=mount_options,
        instance=instance,
        instance_type=instance_type,
        dilation=dilation,
    )
    attached.keep()
    if as_json:
        print_json(attached.facts)
        return
    where = f" on {attached.mount}" if attached.mount is not None else ""
    slowed = f", {dilation} times slower" if dilation > 1 else ""
    click.echo(f"{attached.name}: {attached.spec['spec']} is {attached.block_device}{where}{slowed}")


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_command(as_json: bool) -> None:
    """List the attached volumes.

    \b
    Example:
      pgdyno volume list --json | jq -r '.volumes[].block_device'
    """
    from pgdyno.world import volume

    found = volume.list_volumes()
    if as_json:
        print_json({"volumes": [one.facts | {"alive": one.alive} for one in found]})
        return
    if not found:
        click.echo("no volume is attached; `pgdyno volume attach SPEC --mount DIR` attaches one", err=True)
        return
    print_rows(["NAME", "VOLUME", "DEVICE", "MOUNTED ON", "STATE"], [_row(one) for one in found])


@command.command()
@click.argument("name", shell_complete=complete.attached_volumes)
@click.option("--json", "as_json", is_flag=True, help="Print counters and histograms as one JSON document.")
def stats(name: str, as_json: bool) -> None:
    """Print the counters of the volume NAME since it was attached.

    Time above a limit is the time in which requests waited for that limit. A late operation was answered later than
    the model said; many of them mean that this machine is too slow for the volume.

    \b
    Example:
      sudo pgdyno volume stats gp3-1 --json | jq .counters
    """
    from pgdyno.world import volume

    answer = volume.find(name).stats()
    if as_json:
        print_json(answer)
        return
    counters = answer["counters"]
    # What a volume does not have, as credits, is no counter of it.
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
    help="How often: once in 6 hours (2023), or four times in 24 hours (2026).",
)
@click.option(
    "--optimizing", type=click.IntRange(min=0), metavar="SECONDS", help="Until it is completed [6 hours per TiB]."
)
@click.option("--json", "as_json", is_flag=True, help="Print what it is now as one JSON document.")
def modify(name: str, spec: str, rule: str, optimizing: int | None, as_json: bool) -> None:
    """Make the volume NAME another one, SPEC, while it is used.

    Figures that SPEC leaves out are the type's defaults. A volume can be made larger, not smaller, and its file system
    grows with it. The new limits hold at once; a provider takes the time that --optimizing names.

    \b
    Example:
      sudo pgdyno volume modify data gp3:size=200GiB,iops=16000,throughput=500 --optimizing 0
      sudo pgdyno volume modify data io2bx:size=200GiB,iops=16000
    """
    from pgdyno.world import preflight, volume

    found = volume.find(name)
    preflight.require_root("modifying a volume")
    answer = found.modify(spec, rule=rule, optimizing_s=optimizing)
    if as_json:
        print_json(answer)
        return
    progress = answer["modification"]
    click.echo(f"{name}: {answer['spec']['spec']}, {progress['state']}, completed in {progress['completed_in_s']:,} s")


@command.command()
@click.argument("name", shell_complete=complete.attached_volumes)
@click.option(
    "--save-image", type=click.Path(path_type=Path), help="Keep its content as an image in this new directory."
)
def detach(name: str, save_image: Path | None) -> None:
    """Unmount the volume NAME and take it away. Its content is lost unless it is saved.

    \b
    Example:
      sudo pgdyno volume detach gp3-1
    """
    from pgdyno.world import preflight, volume

    found = volume.find(name)
    preflight.require_root("detaching a volume")
    found.detach(save_image.absolute() if save_image is not None else None)
    kept = f"; its content is in {save_image}" if save_image is not None else ""
    click.echo(f"{name} is detached{kept}")


def _row(volume: AttachedVolume) -> list[str]:
    mount = str(volume.mount) if volume.mount is not None else "-"
    state = "serving" if volume.alive else "dead (pgdyno doctor --clean)"
    return [volume.name, str(volume.spec["spec"]), volume.block_device, mount, state]


def _figure(name: str, value: Any) -> str:
    """A counter for people: times in seconds, bytes in MiB, the rest with separators."""
    if name.endswith("_ns"):
        return f"{value / 1e9:,.3f} s"
    if name.endswith("_bytes"):
        return f"{value / 2**20:,.1f} MiB"
    return f"{value:,}" if isinstance(value, int) else str(value)
