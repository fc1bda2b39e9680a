"""``pgdyno volume snapshot``, ``snapshots`` and ``restore``: contents of volumes at one instant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.cli import complete, volume_snapshot_fast, volume_snapshot_tier
from pgdyno.cli.output import print_json, print_rows
from pgdyno.cli.shared import PathParameter

if TYPE_CHECKING:
    from ..machine.snapshot_file import VolumeSnapshot


class _TakeUnlessNamed(click.Group):
    """A group whose command `take` may be left out: `snapshot data` is `snapshot take data`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names, else `take` with all words."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["take", *args])


@click.group(cls=_TakeUnlessNamed, context_settings={"ignore_unknown_options": True})
def snapshot() -> None:
    """Take, copy, archive and delete snapshots of volumes.

    `pgdyno volume snapshot NAME...` is short for `pgdyno volume snapshot take NAME...`.

    \b
    Example:
      sudo pgdyno volume snapshot shop shop-wal
    """


for _command in (
    volume_snapshot_tier.copy,
    volume_snapshot_tier.archive,
    volume_snapshot_tier.unarchive,
    volume_snapshot_fast.fsr,
):
    snapshot.add_command(_command)


@snapshot.command()
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=complete.attached_volumes)
@click.option("--instance", metavar="NAME", help="All volumes of this instance.")
@click.option("--rate", metavar="RATE", help="Rate at which changed blocks are stored [40MiB/s, a hypothesis].")
@click.option("--json", "as_json", is_flag=True, help="Print the snapshots as one JSON document.")
def take(names: tuple[str, ...], instance: str | None, rate: str | None, as_json: bool) -> None:
    """Take a snapshot of each attached volume NAME, all of one instant, while they are used.

    A write that was answered before the instant is in its snapshot, and one that was submitted later is not. What is still in
    the page cache is not, so a snapshot is what a power cut at that instant would leave. Either all are taken or none.
    Volumes of several instances have no instant in common.

    A snapshot is incremental in blocks of 512 KiB. It is pending until its changed blocks are stored, and can be restored
    from then on. A volume has at most five pending snapshots, of type st1 or sc1 one, which does its baseline meanwhile.

    \b
    Example:
      sudo pgdyno volume snapshot take shop shop-wal
      sudo pgdyno volume snapshot take --instance db --rate 50MiB/s
    """
    from ..base.errors import InputError
    from ..base.quantity import duration_words, parse_mib_per_s
    from ..base.text import size
    from ..machine import preflight, volume
    from ..machine import snapshot as snapshots

    if bool(names) == (instance is not None):
        raise InputError("a snapshot needs the names of volumes, or --instance", remedy="use one of them")
    if instance is not None:
        results = [
            list_volume for list_volume in volume.list_volumes() if list_volume.facts.get("instance") == instance
        ]
        if not results:
            raise InputError(f"no instance is called `{instance}`", remedy="see `pgdyno volume list --json`")
    else:
        results = [volume.find(name) for name in dict.fromkeys(names)]
    preflight.require_root("taking a snapshot")
    taken = snapshots.take(results, rate_mib_per_s=None if rate is None else parse_mib_per_s(rate, "--rate"))
    if as_json:
        print_json({"snapshots": [_document(snapshot) for snapshot in taken.snapshots], "waited_s": taken.waited_s})
        return
    for other in taken.snapshots:
        words = [duration_words(max(1.0, other.pending_s * times)) for times in (1.0, 0.5, 2.0)]
        guess = "" if rate is not None else f" ({words[1]} to {words[2]} at twice and at half the rate)"
        click.echo(f"{other.name}: {other.volume}, {size(other.stored_bytes)} stored in {words[0]}{guess}")


@snapshot.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=complete.snapshots)
@click.option("--json", "as_json", is_flag=True, help="Print what is stored less as one JSON document.")
def delete(names: tuple[str, ...], as_json: bool) -> None:
    """Delete each SNAPSHOT. Blocks that other snapshots need are kept, and each of these restores as before.

    The blocks are merged with the next snapshot, which needs no room on the disk. A layer that an attached volume reads, or that a
    saved image stands on, stays on this machine as long as it does, but is not charged. What a snapshot in the archive costs until its 90 days are over is printed.

    \b
    Example:
      sudo pgdyno volume snapshot delete snap-1
    """
    from ..base.text import size
    from ..machine import paths, preflight, snapshot_delete
    from ..machine import snapshot as snapshots

    results = [snapshots.find(name) for name in dict.fromkeys(names)]
    early_usd = volume_snapshot_tier.early_usd(results)
    preflight.require_root("deleting a snapshot")
    done = snapshot_delete.delete(results, paths.state_dir())
    if as_json:
        deleted, kept = [result.name for result in results], [item.document for item in done.kept]
        less = done.stored_bytes_less
        print_json({"deleted": deleted, "stored_bytes_less": less, "early_usd": early_usd, "kept": kept})
        return
    for result in results:
        click.echo(f"{result.name} is deleted")
    click.echo(f"{size(done.stored_bytes_less)} less are stored.")
    for layer in done.notable:
        click.echo(f"note: {layer}", err=True)
    volume_snapshot_tier.echo_early(early_usd)


@click.command(name="snapshots")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def snapshots_command(as_json: bool) -> None:
    """List the snapshots with their states, sizes and prices.

    STORED is what a snapshot adds to those before it in its region, in blocks of 512 KiB, and what is charged. One in the archive is
    a full copy.

    \b
    Example:
      pgdyno volume snapshots
    """
    import time

    from ..base.catalog import Catalog
    from ..base.quantity import duration_words
    from ..base.text import money, size
    from ..machine import snapshot as snapshots

    results, now = snapshots.list_snapshots(), time.time()
    with Catalog() as catalog:
        prices = catalog.snapshots()["prices"]
    total_bytes, total = (
        sum(result.stored_bytes for result in results),
        sum(result.usd_per_month(prices) for result in results),
    )
    if as_json:
        listed = [_document(result) | {"usd_per_month": result.usd_per_month(prices)} for result in results]
        print_json({"snapshots": listed, "stored_bytes": total_bytes, "usd_per_month": total})
        return
    if not results:
        click.echo("there is no snapshot; `pgdyno volume snapshot NAME` takes one", err=True)
        return
    rows = []
    for result in results:
        left_s = result.left_s(now)
        completed = "archived" if result.archived else "completed"
        state = f"pending ({duration_words(max(1.0, left_s))})" if left_s else completed
        taken = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(result.taken_unix_ns / 1e9))
        sizes = [size(result.size_bytes), size(result.stored_bytes)]
        where = result.region or "-"
        rows.append(
            [
                result.name,
                result.volume,
                result.set_name,
                taken,
                where,
                state,
                *sizes,
                money(result.usd_per_month(prices)),
            ]
        )
    header = ["SNAPSHOT", "VOLUME", "SET", "TAKEN (UTC)", "REGION", "STATE", "SIZE", "STORED", "USD/MONTH"]
    print_rows(header, rows, right=header[6:])
    click.echo(f"\n{size(total_bytes)} are stored, for {money(total)} a month.")


@click.command()
@click.argument("name", metavar="SNAPSHOT", shell_complete=complete.snapshots)
@click.argument("spec", required=False, shell_complete=complete.volume_types)
@click.option("--mount", type=PathParameter(), help="Empty or new directory to mount it on.")
@click.option("--no-mount", is_flag=True, help="Do not mount it: leave a bare block device.")
@click.option("--name", "volume_name", metavar="NAME", help="Name of the volume [gp3-1, gp3-2, ...].")
@click.option("--mount-options", default="", metavar="OPTIONS", help="Mount options, for example `noatime`.")
@click.option("--instance", metavar="NAME", help="Instance to join or to start.")
@click.option("--json", "as_json", is_flag=True, help="Print all facts about it as one JSON document.")
def restore(
    name: str,
    spec: str | None,
    mount: Path | None,
    no_mount: bool,
    volume_name: str | None,
    mount_options: str,
    instance: str | None,
    as_json: bool,
) -> None:
    """Attach a volume with the content of SNAPSHOT, as `pgdyno volume attach` does.

    The volume is like the one that the snapshot was taken of, or the volume SPEC, which may be larger. With `init=lazy`, `init=200MiB/s` or
    `init=fsr` in SPEC its blocks come as from an EBS snapshot; otherwise they are there. `init=fsr` spends a volume creation credit, and
    without one the volume is lazy. The snapshot stays as it is.

    \b
    Example:
      sudo pgdyno volume restore snap-1 --mount /mnt/restored
      sudo pgdyno volume restore snap-1 gp3:size=200GiB,init=lazy --mount /mnt/lazy
    """
    import time

    from pgdyno.cli import volume_notes

    from ..base.errors import InputError
    from ..base.specification import init_of
    from ..machine import preflight, snapshot_fast
    from ..machine import snapshot as snapshots

    if (mount is None) != no_mount:
        raise InputError(
            "a volume is mounted, or left as a block device", remedy="use either --mount DIR or --no-mount"
        )
    result = snapshots.find(name)
    preflight.require_root("attaching a volume")
    attached = snapshots.restore(
        result, spec, mount=mount, name=volume_name, mount_options=mount_options, instance=instance
    )
    attached.keep()
    if init_of(spec or result.spec) == "fsr" and init_of(str(attached.spec["spec"])) == "lazy":
        click.echo(f"note: the volume is lazy: {snapshot_fast.why_lazy(snapshots.find(name), time.time())}", err=True)
    volume_notes.tell(attached, as_json=as_json, more=f", from {name}")


def _document(snapshot: VolumeSnapshot) -> dict[str, object]:
    import time
    from dataclasses import asdict

    left_s = snapshot.left_s(time.time())
    completed = "archived" if snapshot.archived else "completed"
    return asdict(snapshot) | {"state": "pending" if left_s else completed, "completed_in_s": left_s}
