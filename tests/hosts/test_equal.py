"""One load on one driver here and on four on hosts: equal throughput, by ``make bench ONLY=hosts``. It needs a machine that does nothing else."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.interval import ratio_interval
from pgdyno.hosts import file
from pgdyno.hosts.connection import Connection
from pgdyno.postgres.cluster import Cluster
from pgdyno.workload.kind.registry import workload_of
from pgdyno.workload.load import load
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tables import PgbenchTables
from pgdyno.workload.watch import SECOND_NS
from tests.support.servers import throwaway_cluster

from . import there
from .test_drive import reached

pytestmark = pytest.mark.bench

PAIRS = 8
WARMUP_S = 2.0
SECONDS = 15.0
SCALE = 16
FOUR = ("alpha", "delta", "epsilon", "gamma")
BARS = {300: (0.99, 1.01), None: (0.95, 1.05)}
"""Transactions a second, None for a closed loop -> where the interval of the ratio must lie."""


def tps(server: Cluster, rate_per_s: int | None, seed: int, request: RunRequest) -> float:
    """Transactions a second of 16 clients with four threads."""
    spec = workload_of(scale=SCALE, clients=16, threads=4, engine="native", rate_per_s=rate_per_s, seed=seed)
    request.out_dir.mkdir(parents=True)
    outcome = spec.runner()(reached(server), request)
    assert [one for one in outcome.checks if not one.ok] == []
    measure = outcome.phases[-1]
    return outcome.account.succeeded * SECOND_NS / (measure.end_ns - measure.begin_ns)


@pytest.mark.parametrize("rate_per_s", BARS)
def test_four_drivers_on_hosts_do_what_one_does(
    two: there.Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str], rate_per_s: int | None
) -> None:
    where = [one.place for one in two.apart] or [there.Place("127.0.0.3"), there.Place("127.0.0.4")]
    pairs = []
    with contextlib.ExitStack() as stack:
        for name, place in zip(FOUR[1:3], where, strict=True):
            stack.enter_context(two.worker(name, place))
        server = stack.enter_context(throwaway_cluster(tcp=two.here))
        load(server, PgbenchTables(SCALE))
        names = "\n".join(f"{name} = 1" for name in FOUR)
        connection = stack.enter_context(Connection(file.read(two.file(tmp_path, names))))
        for pair in range(PAIRS):
            one = RunRequest(SECONDS, tmp_path / f"{pair}-one", WARMUP_S)
            four = replace(one, out_dir=tmp_path / f"{pair}-four", drivers=(1, 1, 1, 1), hosts=connection.drivers(FOUR))
            # What drifts meets both alike.
            order = (one, four) if pair % 2 == 0 else (four, one)
            found = {request.out_dir: tps(server, rate_per_s, pair, request) for request in order}
            pairs.append((found[four.out_dir], found[one.out_dir]))
    ratio, (low, high) = ratio_interval(pairs), BARS[rate_per_s]
    assert ratio.low is not None and ratio.high is not None
    what = "closed loop" if rate_per_s is None else f"{rate_per_s} transactions a second"
    with capsys.disabled():
        print(
            f"\nhosts: {what}: four drivers do {ratio.mean:.4f} of one ({ratio.low:.4f} to {ratio.high:.4f}; {PAIRS} pairs)"
        )
    assert low <= ratio.low and ratio.high <= high
