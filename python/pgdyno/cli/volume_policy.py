"""``pgdyno volume policy``: which snapshots a policy keeps, and what they cost."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import complete
from pgdyno.cli.shared import PathParameter
from pgdyno.cli.terminal import columns

if TYPE_CHECKING:
    from pathlib import Path

    from ..durability.retention.days import Day

_DAYS_MAX = 3660


@click.command()
@click.argument("file", type=PathParameter())
@click.option("--dry-run", "span", metavar="TIME", help="Take none, and look at so much time, for example `90d`.")
@click.option(
    "--volume",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=complete.attached_volumes,
    help="Run the policy on this attached volume; repeatable.",
)
@click.option("--instance", metavar="NAME", help="Run it on all volumes of this instance.")
@click.option("--for", "run_for", metavar="TIME", help="Run it for so long [until Ctrl-C].")
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
    """Run the policy FILE on attached volumes until Ctrl-C, or print what it comes to with --dry-run.

    Snapshots are taken as they are due, all volumes of an instance at one instant, and kept, copied, archived and deleted as their
    schedules say. Started again, it resumes with the snapshots that are there. With --dry-run nothing is attached and none is taken:
    it prints which snapshots exist on each day, their bytes and price, and how old lost data can be.

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
    """Until Ctrl-C, the end of its time, or until a volume is gone."""
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
    from pgdyno.cli.output import print_json

    from ..base import text
    from ..base.catalog import Catalog
    from ..base.errors import InputError
    from ..base.quantity import parse_bytes
    from ..durability.retention.days import Data, days
    from ..durability.retention.policy import DAY_S, read_policy, span_s

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
