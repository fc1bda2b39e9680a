"""``pgdyno catalog``: volume types and instance types, with their limits and prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import parameters

from .terminal import print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..base.specification import VolumeSpec

_like = click.option("--like", metavar="PART", help="Only types with PART in their name.")
_json = click.option("--json", "as_json", is_flag=True, help="Print all facts as one JSON document.")


@click.group()
def command() -> None:
    """Look up volume types and instance types: limits, prices, sources.

    A volume is written as its type and what differs from the type's defaults: `gp3`, `gp3:size=500GiB,iops=6000`. An
    instance is written as its type, `r6g.large`, as an RDS class, `db.r6g.large`, or by its resources,
    `vcpus=4,memory=16GiB`. Its EBS limits apply to all its volumes together. With a month, `m5.xlarge@2018-12`, it has
    the limits of that time.

    \b
    Example:
      pgdyno catalog volumes
      pgdyno catalog instances --like r6g
      pgdyno catalog show gp3 io2bx:iops=8000
      pgdyno catalog show r6g.large
    """


@command.command()
@click.option("--like", metavar="PART", help="Only types with PART in their name or provider.")
@_json
def volumes(like: str | None, as_json: bool) -> None:
    """List the volume types.

    A range goes from the type's smallest volume to its largest; `with credits` is the temporary burst. If reads and writes
    have separate limits, reads come first. The price is for a month of a volume with the type's defaults (see --json),
    without the instance.

    \b
    Example:
      pgdyno catalog volumes --like aws
      pgdyno catalog volumes --json | jq -r '.types[] | select(.volatile) | .type'
    """
    types = _volume_types()
    if like is not None:
        types = [type_ for type_ in types if like.lower() in f"{type_['type']} {type_['provider']}".lower()]
    if as_json:
        print_json({"types": types})
        return
    if not types:
        click.echo(f"no volume type has `{like}` in its name; `pgdyno catalog volumes` lists them all", err=True)
        return
    header = ["TYPE", "PROVIDER", "SIZE", "IOPS", "MIB/S", "USD/MONTH", "DURABILITY"]
    print_rows(header, [_volume_row(type_) for type_ in types])


@command.command()
@_like
@_json
def instances(like: str | None, as_json: bool) -> None:
    """List the instance types.

    Of two figures of an EBS limit, the first is the baseline, which is always available. The second is the maximum, which
    is available for 30 minutes in 24 hours.

    \b
    Example:
      pgdyno catalog instances --like r7i
      pgdyno catalog instances --json | jq -r '.types[] | select(.memory_bytes >= 1099511627776) | .instance'
    """
    from ..base import engine

    chosen = [] if like is None else [f"--like={like}"]
    answer = engine.run_json(["instance", "types", *chosen])
    if as_json:
        print_json(answer)
        return
    types = answer["types"]
    if not types:
        click.echo(f"no instance type has `{like}` in its name; `pgdyno catalog instances` lists them all", err=True)
        return
    header = ["TYPE", "VCPUS", "MEMORY", "EBS MIB/S", "EBS IOPS", "USD/H"]
    print_rows(header, [_instance_row(type_) for type_ in types])


@command.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=parameters.volume_types)
@_json
def show(names: tuple[str, ...], as_json: bool) -> None:
    """Show one instance, or compare volumes property by property.

    NAME is an instance or a volume. Several volumes are shown side by side, with a line for each property.

    \b
    Example:
      pgdyno catalog show gp3 io2bx:iops=8000
      pgdyno catalog show db.r6g.2xlarge
      pgdyno catalog show m5.xlarge@2018-12
      pgdyno catalog show vcpus=4,memory=16GiB --json
    """
    from ..base.errors import InputError

    if not any(_is_instance(name) for name in names):
        _show_volumes(names, as_json=as_json)
    elif len(names) == 1:
        _show_instance(names[0], as_json=as_json)
    else:
        raise InputError("only volumes can be compared", remedy="name one instance, or one or more volumes")


def _is_instance(name: str) -> bool:
    """Whether ``name`` is written as an instance (``r6g.large``, ``vcpus=4``), and not as a volume or the file of a twin."""
    head = name.partition(":")[0]
    return ("." in head or "=" in head) and "/" not in head and not head.endswith(".toml")


def _show_instance(instance: str, *, as_json: bool) -> None:
    from ..base import engine

    document = engine.run_json(["instance", "spec", instance])
    if as_json:
        print_json(document)
        return
    for name, text in _facts(document):
        click.echo(f"{name:<12}{text}")


def _show_volumes(volumes: Sequence[str], *, as_json: bool) -> None:
    from ..base.errors import InputError

    chosen = _resolved(volumes)
    of_type = {type_["type"]: type_ for type_ in _volume_types()}
    twin = next((spec.spec for spec in chosen if spec.type not in of_type), None)
    if twin is not None:
        raise InputError(f"`{twin}` is not in the catalog", remedy="name a type that `pgdyno catalog volumes` lists")
    types = [of_type[spec.type] for spec in chosen]
    if as_json:
        print_json({"types": types})
    else:
        print_rows(*_beside(types, chosen))


def _volume_types() -> list[dict[str, Any]]:
    from ..base import engine

    types: list[dict[str, Any]] = engine.run_json(["volume", "types"])["types"]
    return types


def _facts(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The known facts of an instance, each with its name."""
    ebs = document["ebs"]
    facts = [
        ("instance", document["instance"]),
        ("processors", f"{document['vcpus']} vCPUs" + (f", {document['arch']}" if document["arch"] else "")),
    ]
    if document["burstable"]:
        facts.append(("", _baseline(document)))
    facts.append(("memory", _memory(document["memory_bytes"])))
    if ebs is not None:
        facts.append(
            ("to volumes", f"{_span(ebs, 'mib_per_s')} MiB/s, {_span(ebs, 'iops')} IOPS, all volumes together")
        )
        if ebs["burst"]:
            facts.append(("", "the higher figure for 30 minutes in 24 hours, the lower one always"))
        if not ebs["always"]:
            facts.append(("", "only if it is launched EBS-optimized"))
        if document["volume_iops"]:
            most = ", ".join(f"{name} {iops:,}" for name, iops in document["volume_iops"].items())
            facts.append(("", f"one volume at most: {most} IOPS; it is not a Nitro instance"))
        if document["figures_of"] is not None:
            facts.append(
                ("", f"limits of EC2's {document['figures_of']}: of db.* AWS publishes the maximum bandwidth alone")
            )
    elif document["source"] is not None:
        facts.append(("to volumes", "no bandwidth of its own: it shares the network's"))
    else:
        facts.append(("to volumes", "no limit: it is not a provider's type"))
    if document["usd_per_hour"] is not None:
        facts.append(
            ("price", f"{document['usd_per_hour']:g} USD an hour, {document['price_region']}, Linux on demand")
        )
        facts.append(("", f"{document['price_source']}, {document['price_date']}"))
    if document["source"] is not None:
        facts.append(("source", f"{document['source']}, {document['date']}"))
    return facts


def _baseline(document: dict[str, Any]) -> str:
    """The vCPUs that a burstable type sustains."""
    baseline = document["sustained_vcpus"]
    sustained = "its baseline is not known" if baseline is None else f"{baseline:g} vCPUs sustained"
    return f"burstable: {sustained}, more only while CPU credits last"


def _instance_row(document: dict[str, Any]) -> list[str]:
    ebs, usd = document["ebs"], document["usd_per_hour"]
    limits = ["-", "-"] if ebs is None else [_span(ebs, "mib_per_s"), _span(ebs, "iops")]
    return [
        document["instance"],
        str(document["vcpus"]),
        _memory(document["memory_bytes"]),
        *limits,
        "-" if usd is None else f"{usd:g}",
    ]


def _span(ebs: dict[str, Any], unit: str) -> str:
    """Baseline and maximum, or one figure where they are the same."""
    figures = [f"{ebs[f'{which}_{unit}']:,.0f}" for which in ("baseline", "maximum")]
    return " to ".join(dict.fromkeys(figures))


def _memory(size_bytes: int) -> str:
    gib = size_bytes / 2**30
    return f"{gib:,.3f}".rstrip("0").rstrip(".") + " GiB"


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
    """The properties of a type, and the price of this volume."""
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
    """The limits that this volume sustains at its size."""
    limits = volume.document.get("limits") or {}
    return " / ".join(f"{limits[name]:,}" for name in names if limits.get(name) is not None) or "-"


def _tiers(tiers: Sequence[tuple[float, float]]) -> str:
    """``0 up to 3,000, then 0.005``."""
    if not tiers:
        return "included"
    text = f"{tiers[0][1]:g}" if not tiers[0][0] else f"0 up to {tiers[0][0]:,.0f}, then {tiers[0][1]:g}"
    return text + "".join(f", {usd:g} above {above:,.0f}" for above, usd in tiers[1:])


def _volume_row(document: dict[str, Any]) -> list[str]:
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
    """The range, and the burst on credits."""
    if allowed is None:
        return "-"
    ends = " to ".join(dict.fromkeys(f"{allowed[end]:,}" for end in ("minimum", "maximum")))
    return ends if burst is None else f"{ends}, {burst:,} with credits"


def _size(size_bytes: int) -> str:
    """The size in the largest unit that gives a whole number, or in GiB."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20)):
        if size_bytes % (1 << power) == 0 and not (unit == "MiB" and size_bytes > 1 << 34):
            return f"{size_bytes >> power:,} {unit}"
    return f"{size_bytes / 2**30:,.0f} GiB"
