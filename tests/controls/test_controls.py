"""Controls: what a comparison must come to if the emulated volumes are what they say. Real PostgreSQL, by `make bench`.

Each prints its figures. They take minutes and want a quiet machine, so they are not part of `make test`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.experiment import CompareExperiment
from pgdyno.report import table
from pgdyno.run import compare
from pgdyno.store import open_experiment
from pgdyno.workload.spec import PgbenchSpec

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_fuse, pytest.mark.bench]


def _compare(
    root: Path, *arms: str, memory_mib: int, warmup_s: float, measure_s: float, **workload: object
) -> Comparison:
    experiment = CompareExperiment.of(
        arms=arms,
        workload=PgbenchSpec.of(**workload),
        memory_bytes=memory_mib << 20,
        warmup_s=warmup_s,
        measure_s=measure_s,
    )
    comparison = summarise(compare(experiment, root=root, command=("make", "bench")))
    print("\n" + table(comparison))
    return comparison


def test_a_commit_costs_one_device_write(tmp_path: Path, state_dir: Path) -> None:
    """One client, all data in memory: TPS = 1 / (CPU + one device write) within 5 %.

    The CPU (with the path through the block layer) is what the null volume takes; the emulator takes the path off
    the modelled write again, so the write adds what the model says less that path.
    """
    found = _compare(
        tmp_path, "null", "gp3", "io2bx",
        memory_mib=1024, warmup_s=10, measure_s=20, script="simple-update", scale=2, clients=1,
    )  # fmt: skip
    null = found.arms[0]
    for arm in found.arms[1:]:
        writes = [_write_per_transaction(tmp_path, run.record.run_id) for run in (r.figures for r in arm.replicates)]
        per_transaction = sum(count for count, _, _ in writes) / len(writes)
        write_s = sum(modelled_s - path_s for _, modelled_s, path_s in writes) / len(writes)
        expected = 1 / (1 / null.tps.mean + write_s)
        error = arm.tps.mean / expected - 1
        print(
            f"{arm.volume}: {per_transaction:.4f} writes a transaction, {arm.tps.mean:.1f} TPS, expected {expected:.1f}"
        )
        assert 0.99 < per_transaction < 1.05
        assert abs(error) < 0.05, f"off by {100 * error:+.1f} %"


def _write_per_transaction(root: Path, run_id: str) -> tuple[float, float, float]:
    """Device writes per transaction, mean modelled time of a write and its calibrated path, in seconds."""
    experiment = open_experiment(next(root.glob("*-compare-*")))
    run = next(run for run in experiment.runs if run.record.run_id == run_id)
    counters = run.table("probe/volume").to_pylist()
    inside = [row for row in counters if run.record.measure.begin_ns <= row["t_ns"] <= run.record.measure.end_ns]
    first, last = inside[0], inside[-1]
    writes = last["write_ops"] - first["write_ops"]
    seconds = (last["t_ns"] - first["t_ns"]) / 1e9
    transactions = run.record.account.succeeded / run.record.measure.seconds * seconds
    modelled_s = (last["modelled_ns"] - first["modelled_ns"]) / writes / 1e9
    size_kib = (last["write_bytes"] - first["write_bytes"]) / writes / 1024
    path = run.record.world.attach["base_overhead"]["write"]
    return writes / transactions, modelled_s, (path["fixed_ns"] + size_kib * path["per_kib_ps"] / 1000) / 1e9


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
