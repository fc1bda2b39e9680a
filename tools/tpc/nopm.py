"""New-Orders per minute by an installed HammerDB and by our driver, each on its own schema, in turns."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.errors import PgdynoError
from pgdyno.workload.kind.registry import workload_of
from pgdyno.workload.outcome import RunRequest
from tools.tpc.installed import OURS, THEIRS, WAREHOUSES, Place
from tools.tpc.record import NopmPair

if TYPE_CHECKING:
    from pgdyno.postgres.cluster import Cluster

BOUNDS = {
    # Each commit waits 5 ms, as on a slow volume, and nothing else binds.
    "commits": {"commit_delay": "5000", "commit_siblings": "0"},
    "CPU": {"synchronous_commit": "off"},
}
"""What binds -> the server's settings for it."""
_MINUTE_S = 60.0


def measure(cluster: Cluster, bound: str, pairs: int, seed: int) -> list[NopmPair]:
    """Pairs of runs of a minute after a minute, one client each, in an order that the seed draws."""
    order, found = random.Random(seed), []
    for number in range(pairs):
        theirs_first = order.random() < 0.5
        places = (THEIRS, OURS) if theirs_first else (OURS, THEIRS)
        rates = {place: _new_orders_per_min(Place(cluster, place), seed + number) for place in places}
        pair = NopmPair(bound=bound, theirs=rates[THEIRS], ours=rates[OURS], theirs_first=theirs_first)
        said = f"{number + 1}/{pairs} {bound}: {pair.ours:,.0f} NOPM, HammerDB {pair.theirs:,.0f}"
        print(said, file=sys.stderr, flush=True)
        found.append(pair)
    return found


def _new_orders_per_min(place: Place, seed: int) -> float:
    asked: dict[str, Any] = {"engine": "hammerdb", "schema": "public"} if place.name == THEIRS else {"engine": "native"}
    workload = workload_of(
        kind="tpcc", warehouses=WAREHOUSES, clients=1, warmup="1min", duration="1min", seed=seed, **asked
    )
    baseline = workload.baseline(place)
    with tempfile.TemporaryDirectory(prefix="pgdyno-tpc-") as folder:
        outcome = workload.runner()(place, RunRequest(_MINUTE_S, Path(folder), warmup_s=_MINUTE_S))
    if wrong := [one.detail for one in (*outcome.checks, *workload.proofs(place, outcome, baseline)) if not one.ok]:
        raise PgdynoError(f"a run of {place.name} is invalid: {'; '.join(wrong)}", remedy="measure again")
    return outcome.succeeded_by_type["new_order"] * 60 / outcome.phases[-1].seconds
