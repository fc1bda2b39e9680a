"""``pgdyno volume types``: the volume types of the catalogue with limits, price and durability."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.option("--like", metavar="PART", help="Only types with PART in their name or provider.")
@click.option("--json", "as_json", is_flag=True, help="Print all facts as one JSON document.")
def types(like: str | None, as_json: bool) -> None:
    """List the volume types of the catalogue.

    A range is what a type can have, from its smallest volume to its largest; `with credits` is what it does for a while. Of
    reads and writes with limits of their own, reads come first. The price is that of a month of the type as it comes
    (`pgdyno volume types --json` says what that is), without the instance.

    \b
    Example:
      pgdyno volume types
      pgdyno volume types --like aws
      pgdyno volume types --json | jq -r '.types[] | select(.volatile) | .type'
    """
    from pgdyno import _engine

    found = _engine.run_json(["volume", "types"])["types"]
    if like is not None:
        found = [one for one in found if like.lower() in f"{one['type']} {one['provider']}".lower()]
    if as_json:
        import json

        click.echo(json.dumps({"types": found}, indent=1))
        return
    if not found:
        click.echo(f"no volume type has `{like}` in its name; `pgdyno volume types` lists them all", err=True)
        return
    header = ["TYPE", "PROVIDER", "SIZE", "IOPS", "MIB/S", "USD/MONTH", "DURABILITY"]
    rows = [header, *(_row(one) for one in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(one: dict[str, Any]) -> list[str]:
    usd, size = one["default_usd_per_month"], one["size_bytes"]
    provider = one["provider"] + (f" to {one['until'][:4]}" if one["until"] else "")
    return [
        one["type"],
        provider,
        " to ".join(dict.fromkeys(_size(size[end]) for end in ("minimum", "maximum"))),
        _iops(one),
        _rate(one["throughput_mib_per_s"], one["burst_throughput_mib_per_s_max"]),
        "-" if usd is None else f"{usd:,.2f}",
        "gone with the instance" if one["volatile"] else one["durability"] or "-",
    ]


def _iops(one: dict[str, Any]) -> str:
    reads = _rate(one["iops"], one["burst_iops_max"])
    return reads if one["write_iops"] is None else f"{reads} / {_rate(one['write_iops'], None)}"


def _rate(allowed: dict[str, Any] | None, burst: int | None) -> str:
    """The range, and what credits make of it."""
    if allowed is None:
        return "-"
    ends = " to ".join(dict.fromkeys(f"{allowed[end]:,}" for end in ("minimum", "maximum")))
    return ends if burst is None else f"{ends}, {burst:,} with credits"


def _size(size_bytes: int) -> str:
    """In the largest unit in which it is whole, or GiB."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20)):
        if size_bytes % (1 << power) == 0 and not (unit == "MiB" and size_bytes > 1 << 34):
            return f"{size_bytes >> power:,} {unit}"
    return f"{size_bytes / 2**30:,.0f} GiB"
