"""``pgdyno volume snapshot copy``, ``archive`` and ``unarchive``: where snapshots are kept, and for what price."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pgdyno.cli import complete

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..machine.snapshot_file import VolumeSnapshot

_GIB = 1 << 30
_DAY_NS = 86_400 * 10**9


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=complete.snapshots)
@click.option("--region", required=True, metavar="REGION", help="Where to, for example `eu-west-1`.")
@click.option("--rate", metavar="RATE", help="Rate at which blocks are copied [40MiB/s, a hypothesis].")
@click.option("--json", "as_json", is_flag=True, help="Print the copies as one JSON document.")
def copy(names: tuple[str, ...], region: str, rate: str | None, as_json: bool) -> None:
    """Copy each SNAPSHOT to another region, as a snapshot with a name of its own.

    The first copy of a volume's snapshots in a region stores all blocks, a later one what the others there do not hold. It is pending
    until they are copied, restores like its original, and stays when that is deleted.

    \b
    Example:
      sudo pgdyno volume snapshot copy snap-1 --region eu-west-1
    """
    from pgdyno.cli.output import print_json

    from ..base.catalog import Catalog
    from ..base.quantity import duration_words, parse_mib_per_s
    from ..base.text import money, size
    from ..machine import paths, preflight, snapshot_copy
    from ..machine import snapshot as snapshots

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


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=complete.snapshots)
@click.option("--json", "as_json", is_flag=True, help="Print what is stored as one JSON document.")
def archive(names: tuple[str, ...], as_json: bool) -> None:
    """Move each SNAPSHOT to the archive: a full copy, for a quarter of the price of a GiB, for at least 90 days.

    What other snapshots need of it is charged with the next of them. It cannot be restored until it is taken out again.

    \b
    Example:
      sudo pgdyno volume snapshot archive snap-2
    """
    from pgdyno.cli.output import print_json

    from ..base.catalog import Catalog
    from ..base.text import money, size
    from ..machine import paths, preflight, snapshot_copy
    from ..machine import snapshot as snapshots

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


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=complete.snapshots)
@click.option("--json", "as_json", is_flag=True, help="Print what is stored as one JSON document.")
def unarchive(names: tuple[str, ...], as_json: bool) -> None:
    """Take each SNAPSHOT out of the archive, so that it can be restored. The provider takes up to 72 hours for it, pgdyno none.

    What the archive costs until the 90 days are over is printed.

    \b
    Example:
      sudo pgdyno volume snapshot unarchive snap-2
    """
    from pgdyno.cli.output import print_json

    from ..base.text import size
    from ..machine import paths, preflight, snapshot_copy
    from ..machine import snapshot as snapshots

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
