"""Controls: what a comparison must come to if the emulated volumes are what they say. Real PostgreSQL, by `make bench`.

Each prints its figures. They take minutes and want a quiet machine, so they are not part of `make test`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.experiment import CompareExperiment
from pgdyno.report import table
from pgdyno.run import compare
from pgdyno.workload.spec import PgbenchSpec

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.run_figures import RunFigures

pytestmark = [pytest.mark.needs_fuse, pytest.mark.bench]


def _compare(root: Path, *arms: str, **asked: Any) -> Comparison:
    fields = {name: asked.pop(name) for name in ("warmup_s", "measure_s", "extra_settings") if name in asked}
    memory_bytes = asked.pop("memory_mib") << 20
    experiment = CompareExperiment.of(arms=arms, memory_bytes=memory_bytes, workload=PgbenchSpec.of(**asked), **fields)
    comparison = summarise(compare(experiment, root=root, command=("make", "bench")))
    print("\n" + table(comparison))
    return comparison


def test_a_commit_costs_one_device_write(tmp_path: Path, state_dir: Path) -> None:
    """One client, all data in memory: TPS = 1 / (CPU + one device write) within 5 %.

    CPU, with the round trips between client and server, is what a transaction takes on the same volume when its
    commit does not wait for the write. (The null volume is no measure of it: there client and server wake each other
    on two cores at twice the pace, and use twice the CPU for a transaction.)
    """
    load = {"memory_mib": 1024, "warmup_s": 8, "measure_s": 15, "script": "simple-update", "scale": 2, "clients": 1}
    waiting = _compare(tmp_path / "waits", "gp3", "io2bx", **load)
    asynchronous = _compare(tmp_path / "not", "gp3", "io2bx", extra_settings={"synchronous_commit": "off"}, **load)
    for arm, without in zip(waiting.arms, asynchronous.arms, strict=True):
        writes = [_write_per_transaction(replicate.figures) for replicate in arm.replicates]
        per_transaction = sum(count for count, _ in writes) / len(writes)
        write_s = sum(modelled_s for _, modelled_s in writes) / len(writes)
        expected = 1 / (1 / without.tps.mean + write_s)
        error = arm.tps.mean / expected - 1
        print(f"{arm.volume}: {per_transaction:.4f} writes a transaction of {write_s * 1e6:.0f} us,")
        print(f"  {arm.tps.mean:.1f} TPS, expected {expected:.1f}: {100 * error:+.1f} %")
        assert 0.99 < per_transaction < 1.05
        assert abs(error) < 0.05, f"off by {100 * error:+.1f} %"


def _write_per_transaction(figures: RunFigures) -> tuple[float, float]:
    """Device writes per transaction, and the mean time of a write in seconds as the model said."""
    run = figures.run
    measure = run.record.measure
    rows = run.table("probe/volume").to_pylist()
    inside = [row for row in rows if measure.begin_ns <= row["t_ns"] <= measure.end_ns]
    first, last = inside[0], inside[-1]
    writes = last["write_ops"] - first["write_ops"]
    transactions = figures.tps * (last["t_ns"] - first["t_ns"]) / 1e9
    return writes / transactions, (last["modelled_ns"] - first["modelled_ns"]) / writes / 1e9


def test_a_read_bound_run_scales_with_the_iops(tmp_path: Path, state_dir: Path) -> None:
    """Twice the IOPS, twice the transactions: 2.0 within 0.1."""
    found = _compare(
        tmp_path, "gp3", "gp3:iops=6000,throughput=250",
        memory_mib=192, warmup_s=12, measure_s=12, script="select-only", scale=100, clients=32,
    )  # fmt: skip
    estimate = found.ratios[0].estimate
    assert estimate is not None
    assert abs(estimate.mean - 2.0) <= 0.1


def test_iops_that_are_not_needed_make_no_difference(tmp_path: Path, state_dir: Path) -> None:
    found = _compare(
        tmp_path, "io2bx:iops=16000", "io2bx:iops=32000",
        memory_mib=1024, warmup_s=8, measure_s=15, script="simple-update", scale=10, clients=4,
    )  # fmt: skip
    assert not found.ratios[0].distinguishable
