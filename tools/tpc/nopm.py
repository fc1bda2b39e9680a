"""New-Orders per minute by an installed HammerDB and by our driver, each on its own schema, in turns."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.kinds.registry import workload_of
from pgdyno.kinds.tpcc.audit import MISSING
from pgdyno.workload.outcome import RunRequest
from tools.tpc.installed import OURS, THEIRS, WAREHOUSES, Place
from tools.tpc.record import NopmPair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.results.record import Check
    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.outcome import Outcome


@dataclass(frozen=True)
class Bound:
    """How one limit is made to bind."""

    settings: dict[str, str]
    """The server's."""
    apart: bool = False
    """The server has one CPU to itself, and who asks has the others."""


BOUNDS = {
    # Each commit waits 30 ms, as on a volume that hardly answers: what a client's own process takes between two is 1 % of that at most.
    "commits": Bound({"commit_delay": "30000", "commit_siblings": "0"}),
    # The clients keep the server's CPU busy, so what their own processes take does not count.
    "CPU": Bound({"synchronous_commit": "off"}, apart=True),
}
"""What binds -> how."""
CLIENTS = WAREHOUSES
"""Each has a warehouse of its own, so that they do not wait for each other's rows."""
_MINUTE_S = 60.0
_LOST_MAX = 0.005
"""So many of the New-Orders or payments that HammerDB counts may have left no row."""


def measure(cluster: Cluster, bound: str, pairs: int, seed: int) -> Iterator[NopmPair]:
    """Pairs of runs of a minute after a minute, in an order that the seed draws. The server has been started for this bound."""
    order, how = random.Random(seed), BOUNDS[bound]
    for number in range(pairs):
        theirs_first = order.random() < 0.5
        places = (THEIRS, OURS) if theirs_first else (OURS, THEIRS)
        with _apart(cluster) if how.apart else contextlib.nullcontext():
            rates = {place: _new_orders_per_min(Place(cluster, place), seed + number) for place in places}
        pair = NopmPair(bound=bound, theirs=rates[THEIRS], ours=rates[OURS], theirs_first=theirs_first)
        text = f"{number + 1}/{pairs} {bound}: {pair.ours:,.0f} NOPM, HammerDB {pair.theirs:,.0f}"
        print(text, file=sys.stderr, flush=True)
        yield pair


@contextlib.contextmanager
def _apart(cluster: Cluster) -> Iterator[None]:
    """The server on the first CPU, this process and what it starts on the others. :class:`InputError` where there is one alone."""
    before = os.sched_getaffinity(0)
    first, *others = sorted(before)
    if not others:
        raise InputError("a server with a CPU of its own needs two CPUs", remedy="measure with --bound commits")
    os.sched_setaffinity(cluster.pid, {first})
    os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        os.sched_setaffinity(cluster.pid, before)


def _new_orders_per_min(place: Place, seed: int) -> float:
    document: dict[str, Any] = (
        {"engine": "hammerdb", "schema": "public"} if place.name == THEIRS else {"engine": "native"}
    )
    workload = workload_of(
        kind="tpcc", warehouses=WAREHOUSES, clients=CLIENTS, all_warehouses=True,
        warmup="1min", duration="1min", seed=seed, **document,
    )  # fmt: skip
    baseline = workload.baseline(place)
    with tempfile.TemporaryDirectory(prefix="pgdyno-tpc-") as folder:
        outcome = workload.runner()(place, RunRequest(_MINUTE_S, Path(folder), warmup_s=_MINUTE_S))
    checks = (*outcome.checks, *workload.proofs(place, outcome, baseline))
    if wrong := [check.detail for check in checks if not check.ok and not _is_a_lost_call(check, place, outcome)]:
        raise PgdynoError(f"a run of {place.name} is invalid: {'; '.join(wrong)}", remedy="measure again")
    return outcome.succeeded_by_type["new_order"] * 60 / outcome.phases[-1].seconds


def _is_a_lost_call(check: Check, place: Place, outcome: Outcome) -> bool:
    """HammerDB's NOPM are what its tables grew by. Its users count a few calls more, of those that the server rolled back."""
    missing = check.figures.get(MISSING, 0)
    return place.name == THEIRS and 0 < missing <= _LOST_MAX * outcome.succeeded_by_type_total["new_order"]
