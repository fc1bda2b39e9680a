"""``pgdyno volume snapshot``, ``snapshots``, ``restore`` and ``policy``: the contents of volumes at one instant."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import parameters
from pgdyno.cli.terminal import columns

from .parameters import Integer, PathParameter
from .terminal import print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..durability.retention.days import Day
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


@snapshot.command()
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=parameters.attached_volumes)
@click.option("--instance", metavar="NAME", help="All volumes of this instance.")
@click.option("--rate", metavar="RATE", help="Rate at which changed blocks are stored [40MiB/s, a hypothesis].")
@click.option("--json", "as_json", is_flag=True, help="Print the snapshots as one JSON document.")
def take(names: tuple[str, ...], instance: str | None, rate: str | None, as_json: bool) -> None:
    """Take snapshots of the attached volumes NAME at one instant.

    The volumes stay in use.     A write that was answered before the instant is in its snapshot, and one that was submitted later is not. What is still in
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
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=parameters.snapshots)
@click.option("--json", "as_json", is_flag=True, help="Print what is stored less as one JSON document.")
def delete(names: tuple[str, ...], as_json: bool) -> None:
    """Delete each SNAPSHOT. Blocks that other snapshots need are kept, and each of these restores as before.

    The blocks are merged with the next snapshot, which needs no room on the disk. A layer that an attached volume reads, or that a
    saved image stands on, stays on this machine as long as it does, but is not charged. For a snapshot in the archive, the cost until the end of its 90 days is printed.

    \b
    Example:
      sudo pgdyno volume snapshot delete snap-1
    """
    from ..base.text import size
    from ..machine import paths, preflight, snapshot_delete
    from ..machine import snapshot as snapshots

    results = [snapshots.find(name) for name in dict.fromkeys(names)]
    lost_usd = early_usd(results)
    preflight.require_root("deleting a snapshot")
    done = snapshot_delete.delete(results, paths.state_dir())
    if as_json:
        deleted, kept = [result.name for result in results], [item.document for item in done.kept]
        less = done.stored_bytes_less
        print_json({"deleted": deleted, "stored_bytes_less": less, "early_usd": lost_usd, "kept": kept})
        return
    for result in results:
        click.echo(f"{result.name} is deleted")
    click.echo(f"{size(done.stored_bytes_less)} less are stored.")
    for layer in done.notable:
        click.echo(f"note: {layer}", err=True)
    echo_early(lost_usd)


@snapshot.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=parameters.snapshots)
@click.option("--zones", type=Integer(1, 10), help="Zones, each of which is charged [1].")
@click.option("--off", is_flag=True, help="Disable it; the credits are gone.")
@click.option("--json", "as_json", is_flag=True, help="Print the credits as one JSON document.")
def fsr(names: tuple[str, ...], zones: int | None, off: bool, as_json: bool) -> None:
    """Enable fast snapshot restore, and print volume creation credits.

    The snapshot is optimized for 60 minutes a TiB. From then on it earns credits, at most 10 an hour, and fewer the larger it is. A volume
    that is restored with `init=fsr` takes one; below one credit it is lazy. Asked again, the command shows the credits.

    \b
    Example:
      sudo pgdyno volume snapshot fsr snap-3
    """
    import time

    from ..machine import paths, preflight, snapshot_fast
    from ..machine import snapshot as snapshots
    from .terminal import print_json

    results = [snapshots.find(name) for name in dict.fromkeys(names)]
    preflight.require_root("changing a snapshot")
    state = paths.state_dir()
    changed = snapshot_fast.disable(results, state) if off else snapshot_fast.enable(results, zones, state)
    now = time.time()
    if as_json:
        print_json({"snapshots": [_fast_document(snapshot, now) for snapshot in changed]})
        return
    for snapshot in changed:
        click.echo(f"{snapshot.name}: {_words(snapshot, now)}")


def _fast_document(snapshot: VolumeSnapshot, now_unix_s: float) -> dict[str, object]:
    from dataclasses import asdict

    from ..machine import snapshot_fast

    bucket = asdict(snapshot_fast.credits_at(snapshot, now_unix_s)) if snapshot.fast_zones else None
    return {"name": snapshot.name, "zones": snapshot.fast_zones, "credits": bucket}


def _words(snapshot: VolumeSnapshot, now_unix_s: float) -> str:
    from ..base.catalog import Catalog
    from ..base.quantity import duration_words
    from ..base.text import money
    from ..machine import snapshot_fast

    if not snapshot.fast_zones:
        return "fast snapshot restore is disabled"
    with Catalog() as catalog:
        usd = catalog.snapshots()["prices"]["fast_restore_hour_usd"] * snapshot.fast_zones
    credits_at = snapshot_fast.credits_at(snapshot, now_unix_s)
    parts = [
        f"fast snapshot restore in {snapshot.fast_zones} zone{'s' * (snapshot.fast_zones > 1)}, {money(usd)} an hour"
    ]
    if credits_at.optimizing_s:
        parts.append(f"optimized in {duration_words(credits_at.optimizing_s)}")
    parts.append(f"{credits_at.balance:.3g} of at most {credits_at.most:.3g} credits")
    if credits_at.next_s:
        parts.append(f"a volume can have it in {duration_words(credits_at.next_s)}")
    return "; ".join(parts)


_GIB = 1 << 30
_DAY_NS = 86_400 * 10**9


@snapshot.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=parameters.snapshots)
@click.option("--region", required=True, metavar="REGION", help="Where to, for example `eu-west-1`.")
@click.option("--rate", metavar="RATE", help="Rate at which blocks are copied [40MiB/s, a hypothesis].")
@click.option("--json", "as_json", is_flag=True, help="Print the copies as one JSON document.")
def copy(names: tuple[str, ...], region: str, rate: str | None, as_json: bool) -> None:
    """Copy each SNAPSHOT to another region, under a new name.

    The first copy of a volume's snapshots in a region stores all blocks, a later one what the others there do not hold. It is pending
    until they are copied, restores like its original, and stays when that is deleted.

    \b
    Example:
      sudo pgdyno volume snapshot copy snap-1 --region eu-west-1
    """
    from ..base.catalog import Catalog
    from ..base.quantity import duration_words, parse_mib_per_s
    from ..base.text import money, size
    from ..machine import paths, preflight, snapshot_copy
    from ..machine import snapshot as snapshots
    from .terminal import print_json

    results = [snapshots.find(name) for name in dict.fromkeys(names)]
    mib_per_s = None if rate is None else parse_mib_per_s(rate, "--rate")
    preflight.require_root("copying a snapshot")
    copies = snapshot_copy.copy(results, region, paths.state_dir(), rate_mib_per_s=mib_per_s)
    with Catalog() as catalog:
        gib_usd = catalog.snapshots()["prices"]["transfer_gib_usd"]
    if as_json:
        listed = [{"name": copy.name, "copy_of": copy.copy_of, "stored_bytes": copy.stored_bytes} for copy in copies]
        print_json({"region": region, "copies": listed, "transfer_usd": sum(_gib(copy) for copy in copies) * gib_usd})
        return
    for copy in copies:
        left = duration_words(max(1.0, copy.left_s(copy.copied_unix_ns / 1e9)))
        usd = round(_gib(copy) * gib_usd, 2)
        transfer = f"; the transfer costs {money(usd)}" if usd else ""
        click.echo(f"{copy.name}: {copy.copy_of} in {region}, {size(copy.stored_bytes)} copied in {left}{transfer}")


@snapshot.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=parameters.snapshots)
@click.option("--json", "as_json", is_flag=True, help="Print what is stored as one JSON document.")
def archive(names: tuple[str, ...], as_json: bool) -> None:
    """Move each SNAPSHOT to the archive.

    The archive holds a full copy, at a quarter of the price per GiB, for at least 90 days. Blocks that other snapshots need are
    charged to the next of them. It cannot be restored until it is taken out again.

    \b
    Example:
      sudo pgdyno volume snapshot archive snap-2
    """
    from ..base.catalog import Catalog
    from ..base.text import money, size
    from ..machine import paths, preflight, snapshot_copy
    from ..machine import snapshot as snapshots
    from .terminal import print_json

    results = [snapshots.find(name) for name in dict.fromkeys(names)]
    preflight.require_root("archiving a snapshot")
    before = snapshots.list_snapshots()
    moved = snapshot_copy.archive(results, paths.state_dir())
    after = snapshots.list_snapshots()
    with Catalog() as catalog:
        prices = catalog.snapshots()["prices"]
    totals = [sum(snapshot.usd_per_month(prices) for snapshot in listed) for listed in (before, after)]
    if as_json:
        archived = [{"name": snapshot.name, "stored_bytes": snapshot.stored_bytes} for snapshot in moved]
        print_json({"archived": archived, "usd_per_month_before": totals[0], "usd_per_month": totals[1]})
        return
    for snapshot in moved:
        click.echo(
            f"{snapshot.name} is archived: {size(snapshot.stored_bytes)}, {money(snapshot.usd_per_month(prices))} a month"
        )
    click.echo(f"All snapshots cost {money(totals[1])} a month, {money(totals[0])} before.")


@snapshot.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=parameters.snapshots)
@click.option("--json", "as_json", is_flag=True, help="Print what is stored as one JSON document.")
def unarchive(names: tuple[str, ...], as_json: bool) -> None:
    """Take each SNAPSHOT out of the archive, so that it can be restored.

    The provider needs up to 72 hours for this, pgdyno none. The cost of the archive until the end of the 90 days is printed.

    \b
    Example:
      sudo pgdyno volume snapshot unarchive snap-2
    """
    from ..base.text import size
    from ..machine import paths, preflight, snapshot_copy
    from ..machine import snapshot as snapshots
    from .terminal import print_json

    results = [snapshots.find(name) for name in dict.fromkeys(names)]
    usd = early_usd(results)
    preflight.require_root("taking a snapshot out of the archive")
    moved = snapshot_copy.unarchive(results, paths.state_dir())
    if as_json:
        listed = [{"name": snapshot.name, "stored_bytes": snapshot.stored_bytes} for snapshot in moved]
        print_json({"completed": listed, "early_usd": usd})
        return
    for snapshot in moved:
        click.echo(f"{snapshot.name} is completed: {size(snapshot.stored_bytes)}")
    echo_early(usd)


def early_usd(snapshots: Sequence[VolumeSnapshot]) -> float:
    """What is charged for the rest of the least time of those in the archive, in US dollars."""
    import time

    from ..base.catalog import Catalog
    from ..durability.retention.days import DAYS_PER_MONTH

    with Catalog() as catalog:
        facts = catalog.snapshots()
    least, now_ns = facts["policy"]["archive_days_min"], time.time_ns()
    left = [
        (snapshot, max(0.0, least - (now_ns - snapshot.archived_unix_ns) / _DAY_NS))
        for snapshot in snapshots
        if snapshot.archived
    ]
    prices: dict[str, float] = facts["prices"]
    return sum((item.usd_per_month(prices) * days / DAYS_PER_MONTH for item, days in left), 0.0)


def echo_early(usd: float) -> None:
    """Print it, if there is anything."""
    from ..base.text import money

    if usd:
        price = money(round(usd, 2)) if usd >= 0.01 else "less than $0.01"
        click.echo(f"The archive is charged for at least 90 days: {price} for the rest of them.")


def _gib(snapshot: VolumeSnapshot) -> float:
    return snapshot.stored_bytes / _GIB


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
@click.argument("name", metavar="SNAPSHOT", shell_complete=parameters.snapshots)
@click.argument("spec", required=False, shell_complete=parameters.volume_types)
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
    """Attach a volume with the content of SNAPSHOT.

    The volume is like the one that the snapshot was taken of, or the volume SPEC, which may be larger. With `init=lazy`, `init=200MiB/s` or
    `init=fsr` in SPEC its blocks come as from an EBS snapshot; otherwise they are there. `init=fsr` spends a volume creation credit, and
    without one the volume is lazy. The snapshot stays as it is.

    \b
    Example:
      sudo pgdyno volume restore snap-1 --mount /mnt/restored
      sudo pgdyno volume restore snap-1 gp3:size=200GiB,init=lazy --mount /mnt/lazy
    """
    import time

    from ..base.errors import InputError
    from ..base.specification import init_of
    from ..machine import preflight, snapshot_fast
    from ..machine import snapshot as snapshots
    from .volume_notes import tell

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
    tell(attached, as_json=as_json, more=f", from {name}")


def _document(snapshot: VolumeSnapshot) -> dict[str, object]:
    import time
    from dataclasses import asdict

    left_s = snapshot.left_s(time.time())
    completed = "archived" if snapshot.archived else "completed"
    return asdict(snapshot) | {"state": "pending" if left_s else completed, "completed_in_s": left_s}


_DAYS_MAX = 3660


@click.command()
@click.argument("file", type=PathParameter())
@click.option(
    "--dry-run", "span", metavar="TIME", help="Take no snapshots; simulate this much time, for example `90d`."
)
@click.option(
    "--volume",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=parameters.attached_volumes,
    help="Run the policy on this attached volume; repeatable.",
)
@click.option("--instance", metavar="NAME", help="Run it on all volumes of this instance.")
@click.option("--for", "run_for", metavar="TIME", help="Run it for this long [until Ctrl-C].")
@click.option(
    "--rate", metavar="RATE", help="Rate at which changed blocks are stored and copied [40MiB/s, a hypothesis]."
)
@click.option("--size", metavar="SIZE", default="100GiB", show_default=True, help="Data in the volume.")
@click.option(
    "--changed",
    metavar="SIZE",
    default="5GiB",
    show_default=True,
    help="Data that is written on a day, evenly over all of it.",
)
@click.option("--from", "begin", metavar="DATE", help="First day, in UTC [today].")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print every day as one JSON document; without --dry-run a line for each deed.",
)
def policy(
    file: Path,
    span: str | None,
    names: tuple[str, ...],
    instance: str | None,
    run_for: str | None,
    rate: str | None,
    size: str,
    changed: str,
    begin: str | None,
    as_json: bool,
) -> None:
    """Run a snapshot policy, or print its snapshots and costs with --dry-run.

    Snapshots are taken when they are due, of all volumes of an instance at one instant, and kept, copied, archived and deleted
    according to their schedules. A restarted policy continues with the existing snapshots. With --dry-run no snapshot is taken:
    the command prints the snapshots of each day, their size and price, and how much recent data a loss of the volume would cost.

    The rules are those of Amazon Data Lifecycle Manager: up to four schedules, each every 1 to 24 hours or by cron, by count or by age; fast
    snapshot restore, an archive, copies to up to three regions.

    \b
    Example:
      pgdyno volume policy snapshots.toml --dry-run 90d --size 500GiB --changed 20GiB
      sudo pgdyno volume policy snapshots.toml --volume orders
    """
    from ..base.errors import InputError

    if (span is None) == (not names and instance is None):
        raise InputError(
            "a policy runs on attached volumes, or is looked at", remedy="use --volume or --instance, or --dry-run 90d"
        )
    if span is None:
        _run(file, names, instance, rate, run_for, as_json=as_json)
    else:
        _look(file, span, size, changed, begin, as_json=as_json)


def _run(
    file: Path, names: tuple[str, ...], instance: str | None, rate: str | None, run_for: str | None, *, as_json: bool
) -> None:
    """Run the policy until Ctrl-C, the end of its time, or the loss of a volume."""
    import json
    import math
    import time

    from ..base.catalog import Catalog
    from ..base.errors import InputError
    from ..base.quantity import parse_mib_per_s, parse_seconds
    from ..durability.retention.keeper import Keeper
    from ..durability.retention.policy import read_policy
    from ..machine import paths, preflight, volume

    def volumes() -> list[volume.AttachedVolume]:
        of_instance = [
            list_volume
            for list_volume in volume.list_volumes()
            if instance and list_volume.facts.get("instance") == instance
        ]
        if instance and not of_instance:
            raise InputError(f"no instance is called `{instance}`", remedy="see `pgdyno volume list --json`")
        return of_instance + [volume.find(name) for name in dict.fromkeys(names)]

    with Catalog() as catalog:
        rules = catalog.snapshots()["policy"]
    schedules = read_policy(file, rules)
    mib_per_s = None if rate is None else parse_mib_per_s(rate, "--rate")
    preflight.require_root("taking snapshots")
    on = ", ".join(volume.name for volume in volumes())
    keeper = Keeper(schedules, volumes, paths.state_dir(), dt.datetime.now(dt.UTC), rate_mib_per_s=mib_per_s)
    end_s = math.inf if run_for is None else time.monotonic() + parse_seconds(run_for, "--for")
    click.echo(f"the policy runs on {on}; Ctrl-C ends it", err=True)
    while True:
        now = dt.datetime.now(dt.UTC)
        for deed in keeper.look(now):
            at = now.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
            document = {"at": now.isoformat(), "deed": deed.kind, "snapshots": deed.names, "text": deed.what}
            click.echo(json.dumps(document) if as_json else f"{at}  {deed.kind.replace('_', ' ')}: {deed.what}")
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            return
        time.sleep(min(left_s, keeper.wait_s(now)))


def _look(file: Path, span: str, size: str, changed: str, begin: str | None, *, as_json: bool) -> None:
    """The days of the dry run."""
    from ..base import text
    from ..base.catalog import Catalog
    from ..base.errors import InputError
    from ..base.quantity import parse_bytes
    from ..durability.retention.days import Data, days
    from ..durability.retention.policy import DAY_S, read_policy, span_s
    from .terminal import print_json

    count = round(span_s(span, "--dry-run") / DAY_S)
    if not 1 <= count <= _DAYS_MAX:
        raise InputError(f"--dry-run: `{span}` is not 1 to {_DAYS_MAX:,} days", remedy="write it as 90d or 1y")
    try:
        first = dt.datetime.now(dt.UTC).date() if begin is None else dt.date.fromisoformat(begin)
    except ValueError:
        raise InputError(f"--from: `{begin}` is not a date", remedy="write it as 2026-11-25") from None
    with Catalog() as catalog:
        facts = catalog.snapshots()
    schedules = read_policy(file, facts["policy"])
    data = Data(parse_bytes(size, "--size"), parse_bytes(changed, "--changed"))
    result, lost_s = days(schedules, data, facts["prices"], first, count)
    usd = sum(day.usd for day in result)
    if as_json:
        print_json(
            {
                "size_bytes": data.size_bytes,
                "changed_bytes_per_day": data.changed_bytes_per_day,
                "days": [day.document for day in result],
                "usd": usd,
                "data_loss_max_s": lost_s,
            }
        )
        return
    header = ["DAY", "SNAPSHOTS", "ARCHIVED", "FAST", "STORED", "COPIES", "OLDEST", "USD/DAY"]
    for line in text.fitted([header, *(_row(day) for day in result)], columns(), left=(0, 6)):
        click.echo(line)
    click.echo(f"\n{count:,} days cost {text.money(round(usd, 2))} for snapshots of {text.size(data.size_bytes)}.")
    if lost_s is not None:
        click.echo(f"A volume that is lost loses at most the writes of {text.duration(lost_s)}.")


def _row(day: Day) -> list[str]:
    from ..base import text

    return [
        day.date.isoformat(),
        f"{len(day.snapshots):,}",
        f"{day.archived:,}" if day.archived else "-",
        f"{day.fast:,}" if day.fast else "-",
        text.size(day.stored_bytes + day.archived_bytes),
        text.size(sum(day.copied_bytes.values())) if day.copied_bytes else "-",
        _instant(day),
        f"{day.usd:,.2f}",
    ]


def _instant(day: Day) -> Any:
    return day.snapshots[0][1].strftime("%Y-%m-%d %H:%M") if day.snapshots else "-"
