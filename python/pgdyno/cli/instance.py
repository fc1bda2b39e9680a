"""``pgdyno instance``: instance types by name, their memory, processors, limits to their volumes and price."""

from __future__ import annotations

from typing import Any

import click

from pgdyno.cli.output import print_json, print_rows


@click.group(short_help="List instance types, and show one of them.")
def command() -> None:
    """List instance types, and show one of them.

    An instance is written as its type, `r6g.large`, as a class of RDS, `db.r6g.large`, or by its resources, `vcpus=4,memory=16GiB`. Its EBS limits apply to all
    of its volumes together. A month behind the name, `m5.xlarge@2018-12`, gives it the limits that it had then.

    \b
    Example:
      pgdyno instance types --like r6g
      pgdyno instance show r6g.large
    """


@command.command()
@click.option("--like", metavar="PART", help="Only types with PART in their name.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def types(like: str | None, as_json: bool) -> None:
    """List the instance types of the catalogue.

    The first figure of an EBS limit is the baseline, which is always available, and the second the maximum. If it is
    higher, it is available for 30 minutes in 24 hours.

    \b
    Example:
      pgdyno instance types --like r7i
      pgdyno instance types --json | jq -r '.types[] | select(.memory_bytes >= 1099511627776) | .instance'
    """
    from ..base import engine

    chosen = [] if like is None else [f"--like={like}"]
    answer = engine.run_json(["instance", "types", *chosen])
    if as_json:
        print_json(answer)
        return
    types = answer["types"]
    if not types:
        click.echo(f"no instance type has `{like}` in its name; `pgdyno instance types` lists them all", err=True)
        return
    header = ["TYPE", "VCPUS", "MEMORY", "EBS MIB/S", "EBS IOPS", "USD/H"]
    print_rows(header, [_row(type_) for type_ in types])


@command.command()
@click.argument("instance")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(instance: str, as_json: bool) -> None:
    """Say what INSTANCE has, and where that is written.

    \b
    Example:
      pgdyno instance show r6g.large
      pgdyno instance show db.r6g.2xlarge
      pgdyno instance show m5.xlarge@2018-12
      pgdyno instance show vcpus=4,memory=16GiB --json
    """
    from ..base import engine

    json = engine.run_json(["instance", "spec", instance])
    if as_json:
        print_json(json)
        return
    for name, text in _facts(json):
        click.echo(f"{name:<12}{text}")


def _facts(document: dict[str, Any]) -> list[tuple[str, str]]:
    """What there is to say, name and text, without what is not known."""
    ebs = document["ebs"]
    facts = [
        ("instance", document["instance"]),
        ("processors", f"{document['vcpus']} vCPUs" + (f", {document['arch']}" if document["arch"] else "")),
    ]
    if document["burstable"]:
        facts.append(("", _baseline(document)))
    facts.append(("memory", _size(document["memory_bytes"])))
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
    """What a burstable type may use without limit of time."""
    baseline = document["sustained_vcpus"]
    sustained = "its baseline is not known" if baseline is None else f"{baseline:g} vCPUs sustained"
    return f"burstable: {sustained}, more only while CPU credits last"


def _row(document: dict[str, Any]) -> list[str]:
    ebs, usd = document["ebs"], document["usd_per_hour"]
    limits = ["-", "-"] if ebs is None else [_span(ebs, "mib_per_s"), _span(ebs, "iops")]
    return [
        document["instance"],
        str(document["vcpus"]),
        _size(document["memory_bytes"]),
        *limits,
        "-" if usd is None else f"{usd:g}",
    ]


def _span(ebs: dict[str, Any], unit: str) -> str:
    """Baseline and maximum, or one figure where they are the same."""
    figures = [f"{ebs[f'{which}_{unit}']:,.0f}" for which in ("baseline", "maximum")]
    return " to ".join(dict.fromkeys(figures))


def _size(size_bytes: int) -> str:
    gib = size_bytes / 2**30
    return f"{gib:,.3f}".rstrip("0").rstrip(".") + " GiB"
