"""``pgdyno volume types``: the volume types of the catalogue with limits, price and durability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import complete
from pgdyno.cli.output import print_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..base.specification import VolumeSpec


@click.command()
@click.argument("volumes", metavar="[VOLUME]...", nargs=-1, shell_complete=complete.volume_types)
@click.option("--like", metavar="PART", help="Only types with PART in their name or provider.")
@click.option("--json", "as_json", is_flag=True, help="Print all facts as one JSON document.")
def types(volumes: tuple[str, ...], like: str | None, as_json: bool) -> None:
    """List the volume types of the catalogue.

    A range is what a type can have, from its smallest volume to its largest; `with credits` is what it does for a while. Of
    reads and writes with limits of their own, reads come first. The price is that of a month of the type as it comes
    (`pgdyno volume types --json` says what that is), without the instance. Of VOLUMEs the types stand beside each other, with a line for
    each property.

    \b
    Example:
      pgdyno volume types
      pgdyno volume types --like aws
      pgdyno volume types gp3 io2bx:iops=8000
      pgdyno volume types --json | jq -r '.types[] | select(.volatile) | .type'
    """
    from ..base import engine
    from ..base.errors import InputError

    types = engine.run_json(["volume", "types"])["types"]
    if volumes:
        chosen = _resolved(volumes)
        of_type = {type_["type"]: type_ for type_ in types}
        own = next((spec.spec for spec in chosen if spec.type not in of_type), None)
        if own is not None:
            raise InputError(f"`{own}` is not of a type of the catalogue", remedy="name one of `pgdyno volume types`")
        types = [of_type[spec.type] for spec in chosen]
        if not as_json:
            print_rows(*_beside(types, chosen))
            return
    if like is not None:
        types = [type_ for type_ in types if like.lower() in f"{type_['type']} {type_['provider']}".lower()]
    if as_json:
        import json

        click.echo(json.dumps({"types": types}, indent=1))
        return
    if not types:
        click.echo(f"no volume type has `{like}` in its name; `pgdyno volume types` lists them all", err=True)
        return
    header = ["TYPE", "PROVIDER", "SIZE", "IOPS", "MIB/S", "USD/MONTH", "DURABILITY"]
    print_rows(header, [_row(type_) for type_ in types])


def _resolved(volumes: Sequence[str]) -> list[VolumeSpec]:
    """The volumes; :class:`~pgdyno.base.errors.InputError` for one that is refused."""
    from ..base.catalog import Catalog

    with Catalog() as catalog:
        return [catalog.resolve(volume) for volume in volumes]


def _beside(documents: Sequence[dict[str, Any]], chosen: Sequence[VolumeSpec]) -> tuple[list[str], list[list[str]]]:
    """The volumes as a header, and a row for each property."""
    columns = [_properties(document, volume) for document, volume in zip(documents, chosen, strict=True)]
    header, *rows = ([name, *(column[name] for column in columns)] for name in columns[0])
    return header, rows


def _properties(document: dict[str, Any], volume: VolumeSpec) -> dict[str, str]:
    """What there is to know of a type, and what a volume of it costs."""
    prices, failures = volume.prices, volume.document.get("annual_failure_rate_percent")
    each = document["throughput_mib_per_s_per_iops"]
    return {
        "VOLUME": volume.spec,
        "type": document["title"],
        "provider": document["provider"],
        "recommended for": document["uses"] or "-",
        "size": " to ".join(dict.fromkeys(_size(document["size_bytes"][end]) for end in ("minimum", "maximum"))),
        "IOPS": _iops(document),
        "IOPS, this volume": _own(volume, "iops", "write_iops"),
        "IOPS for each GiB, at most": "-"
        if document["iops_per_gib_max"] is None
        else f"{document['iops_per_gib_max']:,}",
        "MiB/s": _rate(document["throughput_mib_per_s"], document["burst_throughput_mib_per_s_max"]),
        "MiB/s, this volume": _own(volume, "throughput_mib_per_s"),
        "MiB/s for each IOPS, at most": "-" if each is None else f"{each:g}",
        "USD a month for a GiB": "-" if prices is None else f"{prices.gib_month_usd:g}",
        "USD a month for an IOPS": "-" if prices is None else _tiers(prices.iops_month_usd),
        "USD a month for a MiB/s": "-" if prices is None else _tiers(prices.mib_per_s_month_usd),
        "USD a month, this volume": "-" if volume.usd_per_month is None else f"{volume.usd_per_month:,.2f}",
        "durability": "gone with the instance" if document["volatile"] else document["durability"] or "-",
        "failures a year": "-" if not failures else f"{' to '.join(f'{end:g}' for end in dict.fromkeys(failures))} %",
    }


def _own(volume: VolumeSpec, *names: str) -> str:
    """What this volume sustains, of its own figures and size."""
    limits = volume.document.get("limits") or {}
    return " / ".join(f"{limits[name]:,}" for name in names if limits.get(name) is not None) or "-"


def _tiers(tiers: Sequence[tuple[float, float]]) -> str:
    """``0 up to 3,000, then 0.005``."""
    if not tiers:
        return "included"
    text = f"{tiers[0][1]:g}" if not tiers[0][0] else f"0 up to {tiers[0][0]:,.0f}, then {tiers[0][1]:g}"
    return text + "".join(f", {usd:g} above {above:,.0f}" for above, usd in tiers[1:])


def _row(document: dict[str, Any]) -> list[str]:
    usd, size = document["default_usd_per_month"], document["size_bytes"]
    provider = document["provider"] + (f" to {document['until'][:4]}" if document["until"] else "")
    return [
        document["type"],
        provider,
        " to ".join(dict.fromkeys(_size(size[end]) for end in ("minimum", "maximum"))),
        _iops(document),
        _rate(document["throughput_mib_per_s"], document["burst_throughput_mib_per_s_max"]),
        "-" if usd is None else f"{usd:,.2f}",
        "gone with the instance" if document["volatile"] else document["durability"] or "-",
    ]


def _iops(document: dict[str, Any]) -> str:
    reads = _rate(document["iops"], document["burst_iops_max"])
    return reads if document["write_iops"] is None else f"{reads} / {_rate(document['write_iops'], None)}"


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
