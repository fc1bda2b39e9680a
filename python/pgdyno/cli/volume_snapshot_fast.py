"""``pgdyno volume snapshot fsr``: fast snapshot restore, and the credits that volumes are made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pgdyno.cli import complete
from pgdyno.cli.shared import Integer

if TYPE_CHECKING:
    from ..machine.snapshot_file import VolumeSnapshot


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

    from ..machine import paths, preflight, snapshot_fast
    from ..machine import snapshot as snapshots

    results = [snapshots.find(name) for name in dict.fromkeys(names)]
    preflight.require_root("changing a snapshot")
    state = paths.state_dir()
    changed = snapshot_fast.disable(results, state) if off else snapshot_fast.enable(results, zones, state)
    now = time.time()
    if as_json:
        print_json({"snapshots": [_document(snapshot, now) for snapshot in changed]})
        return
    for snapshot in changed:
        click.echo(f"{snapshot.name}: {_words(snapshot, now)}")


def _document(snapshot: VolumeSnapshot, now_unix_s: float) -> dict[str, object]:
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
