"""``pgdyno volume snapshot fsr``: fast snapshot restore, and the credits that volumes are made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pgdyno.cli import complete
from pgdyno.cli.shared import Integer

if TYPE_CHECKING:
    from pgdyno.host.snapshot_file import Snapshot


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="SNAPSHOT...", shell_complete=complete.snapshots)
@click.option("--zones", type=Integer(1, 10), help="Zones, each of which is charged [1].")
@click.option("--off", is_flag=True, help="Disable it; the credits are gone.")
@click.option("--json", "as_json", is_flag=True, help="Print the credits as one JSON document.")
def fsr(names: tuple[str, ...], zones: int | None, off: bool, as_json: bool) -> None:
    """Enable fast snapshot restore for each SNAPSHOT, and print its volume creation credits.

    The snapshot is optimized for 60 minutes a TiB. From then on it earns credits, at most 10 an hour, and fewer the larger it is. A volume
    that is restored with `init=fsr` takes one; below one credit it is lazy. Asked again, the command shows the credits.

    \b
    Example:
      sudo pgdyno volume snapshot fsr snap-3
    """
    import time

    from pgdyno.cli.output import print_json
    from pgdyno.host import paths, preflight, snapshot_fast
    from pgdyno.host import snapshot as snapshots

    found = [snapshots.find(name) for name in dict.fromkeys(names)]
    preflight.require_root("changing a snapshot")
    state = paths.state_dir()
    changed = snapshot_fast.disable(found, state) if off else snapshot_fast.enable(found, zones, state)
    now = time.time()
    if as_json:
        print_json({"snapshots": [_document(one, now) for one in changed]})
        return
    for one in changed:
        click.echo(f"{one.name}: {_words(one, now)}")


def _document(one: Snapshot, now_unix_s: float) -> dict[str, object]:
    from dataclasses import asdict

    from pgdyno.host import snapshot_fast

    bucket = asdict(snapshot_fast.credits_at(one, now_unix_s)) if one.fast_zones else None
    return {"name": one.name, "zones": one.fast_zones, "credits": bucket}


def _words(one: Snapshot, now_unix_s: float) -> str:
    from pgdyno.catalog import Catalog
    from pgdyno.host import snapshot_fast
    from pgdyno.quantity import duration_words
    from pgdyno.text import money

    if not one.fast_zones:
        return "fast snapshot restore is disabled"
    with Catalog() as catalog:
        usd = catalog.snapshots()["prices"]["fast_restore_hour_usd"] * one.fast_zones
    found = snapshot_fast.credits_at(one, now_unix_s)
    parts = [f"fast snapshot restore in {one.fast_zones} zone{'s' * (one.fast_zones > 1)}, {money(usd)} an hour"]
    if found.optimizing_s:
        parts.append(f"optimized in {duration_words(found.optimizing_s)}")
    parts.append(f"{found.balance:.3g} of at most {found.most:.3g} credits")
    if found.next_s:
        parts.append(f"a volume can have it in {duration_words(found.next_s)}")
    return "; ".join(parts)
