"""``pgdyno volume policy``: which snapshots a policy keeps, and what they cost."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli.shared import PathParameter

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.retention.days import Day

_DAYS_MAX = 3660


@click.command()
@click.argument("file", type=PathParameter())
@click.option("--dry-run", "span", metavar="TIME", required=True, help="How much time to look at, for example `90d`.")
@click.option("--size", metavar="SIZE", default="100GiB", show_default=True, help="Data in the volume.")
@click.option(
    "--changed",
    metavar="SIZE",
    default="5GiB",
    show_default=True,
    help="Data that is written on a day, evenly over all of it.",
)
@click.option("--from", "begin", metavar="DATE", help="First day, in UTC [today].")
@click.option("--json", "as_json", is_flag=True, help="Print every day with its snapshots as one JSON document.")
def policy(file: Path, span: str, size: str, changed: str, begin: str | None, as_json: bool) -> None:
    """Print which snapshots the policy FILE keeps on each day, their bytes and price, and how old lost data can be.

    Nothing is attached and no snapshot is taken. The rules are those of Amazon Data Lifecycle Manager: up to four schedules, each
    every 1 to 24 hours or by cron, by count or by age; fast snapshot restore, an archive, copies to up to three regions.

    \b
    Example:
      pgdyno volume policy snapshots.toml --dry-run 90d --size 500GiB --changed 20GiB
    """
    from pgdyno import text
    from pgdyno.catalog import Catalog
    from pgdyno.cli.output import print_json
    from pgdyno.errors import InputError
    from pgdyno.quantity import parse_bytes
    from pgdyno.retention.days import Data, days
    from pgdyno.retention.policy import DAY_S, read_policy, span_s

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
    found, lost_s = days(schedules, data, facts["prices"], first, count)
    usd = sum(day.usd for day in found)
    if as_json:
        print_json(
            {
                "size_bytes": data.size_bytes,
                "changed_bytes_per_day": data.changed_bytes_per_day,
                "days": [day.document for day in found],
                "usd": usd,
                "data_loss_max_s": lost_s,
            }
        )
        return
    header = ["DAY", "SNAPSHOTS", "ARCHIVED", "FAST", "STORED", "COPIES", "OLDEST", "USD/DAY"]
    for line in text.aligned([header, *(_row(day) for day in found)], left=(0, 6)):
        click.echo(line)
    click.echo(f"\n{count:,} days cost {text.money(round(usd, 2))} for snapshots of {text.size(data.size_bytes)}.")
    if lost_s is not None:
        click.echo(f"A volume that is lost loses at most the writes of {text.duration(lost_s)}.")


def _row(day: Day) -> list[str]:
    from pgdyno import text

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
