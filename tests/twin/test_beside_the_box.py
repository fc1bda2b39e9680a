"""PostgreSQL on a black box and on the twin that was fitted to it, in turn: `make bench ONLY=twin`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgdyno.analysis.statistics import Estimate, ratio_interval
from pgdyno.base import catalog
from pgdyno.cli import main as cli_main
from pgdyno.kinds.registry import workload_of
from pgdyno.machine import awake, volume
from pgdyno.machine.journal import HostJournal
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.workload import histogram, pgbench
from pgdyno.workload.fill import load
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tables import PgbenchTables
from tests.twin.box import hidden_limits, mounted_box
from tools.fidelity import device

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse, pytest.mark.needs_fio, pytest.mark.needs_qemu]

CLIENTS = (1, 8, 32)
PAIRS = int(os.environ.get("PGDYNO_TWIN_PAIRS", "6"))
SECONDS, WARMUP_S = 8.0, 3.0
SCALE = 8
"""Tables of 120 MiB: they and the WAL fit in the box, and in the server's memory, so that commits decide."""
RATIO = 1.05
P99_RATIO = 1.15
"""How far the twin may be from the box, up or down, in TPS and in the 99th percentile of a transaction."""
SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "128MB", "min_wal_size": "80MB", "checkpoint_timeout": "1h"}

Figures = tuple[float, float]
"""TPS, and the 99th percentile of a transaction in milliseconds."""


@contextmanager
def server(mount: Path) -> Iterator[Cluster]:
    """PostgreSQL with pgbench's tables on a mount."""
    cluster = Cluster(find_binaries(), mount / "data")
    try:
        cluster.initdb()
        with cluster.running(SETTINGS):
            load(cluster, PgbenchTables(SCALE))
            yield cluster
    finally:
        cluster.close()


def measured(cluster: Cluster, clients: int, seed: int, folder: Path) -> Figures:
    """One run, after a checkpoint, so that both begin with the same work behind them."""
    with cluster.connect() as connection:
        connection.execute("CHECKPOINT")
    spec = workload_of(script="simple-update", clients=clients, seed=seed, scale=SCALE)
    outcome = pgbench.run(cluster, RunRequest(SECONDS, folder, warmup_s=WARMUP_S), spec)
    decode = histogram.decode(outcome.histograms["histograms"][histogram.ALL])
    return outcome.tps, decode.get_value_at_percentile(99.0) / 1000


def pairs(box: Cluster, twin: Cluster, clients: int, folder: Path) -> list[tuple[Figures, Figures]]:
    """Twin and box next to each other in time, in alternating order."""
    pairs = []
    for number in range(PAIRS):
        both = [("twin", twin), ("box", box)]
        made = {
            name: measured(cluster, clients, number, folder / f"{clients}-{number}-{name}")
            for name, cluster in (both if number % 2 else reversed(both))
        }
        pairs.append((made["twin"], made["box"]))
    return pairs


def test_postgresql_on_a_twin_is_as_on_the_box(
    state_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    limits = hidden_limits(seed)
    file = tmp_path / "twin.toml"
    rows = []
    # A request of the box is handed from one thread to the next: with idle CPUs that halt it measures the hypervisor.
    with (
        awake.kept_awake(wanted=awake.possible()),
        device.bench(state_dir) as bench,
        mounted_box(bench, limits) as box,
    ):
        assert cli_main.run(["volume", "fit", str(box), "-o", str(file), "--region", "256MiB"]) == 0
        fitted = catalog.resolve(str(file)).document["limits"]
        with (
            HostJournal(state_dir).directory(state_dir.parent / "twin") as mount,
            volume.attached(str(file), mount=mount, state_dir=state_dir) as attached,
        ):
            mount.chmod(0o755)
            with server(box) as on_box, server(mount) as on_twin:
                for clients in CLIENTS:
                    item = pairs(on_box, on_twin, clients, tmp_path)
                    tps, p99 = (ratio_interval([(twin[i], box[i]) for twin, box in item]) for i in (0, 1))
                    rows.append((clients, item, tps, p99))
            counters = attached.stats()["counters"]
    with capsys.disabled():
        print(f"\nbox of seed {seed}: {limits}; fitted: {fitted}")
        for clients, item, tps, p99 in rows:
            print(
                f"  {clients:2} clients: TPS {shown(tps)}, p99 {shown(p99)}; box {_means(item, 1)}, twin {_means(item, 0)}"
            )
        late = counters["late_read_ops"] + counters["late_write_ops"]
        print(f"  late: {late:,} of {counters['read_ops'] + counters['write_ops']:,} requests")
    faults = [
        f"{clients} clients: {name} {shown(ratio)}, should be within a factor of {bar}"
        for clients, _, tps, p99 in rows
        for name, ratio, bar in (("TPS", tps, RATIO), ("p99", p99, P99_RATIO))
        if not 1 / bar <= ratio.mean <= bar
    ]
    assert not faults, "; ".join(faults)


def shown(ratio: Estimate) -> str:
    """Twin over box with its 95 % interval."""
    assert ratio.low is not None and ratio.high is not None
    return f"{ratio.mean:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def _means(result: list[tuple[Figures, Figures]], side: int) -> str:
    tps, p99 = (sum(pair[side][i] for pair in result) / len(result) for i in (0, 1))
    return f"{tps:,.0f} TPS, p99 {p99:.2f} ms"
