"""Controls: what a comparison must come to if the emulated volumes are what they say. Real PostgreSQL, by `make bench`.

Each prints its figures. They take minutes and want a quiet machine, so they are not part of `make test`.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from pgdyno.report import table

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.run import RunFigures

pytestmark = [pytest.mark.needs_fuse, pytest.mark.bench]


def _compare(root: Path, *arms: str, **result: Any) -> Comparison:
    durations = {"warmup": f"{result.pop('warmup_s')}s", "duration": f"{result.pop('measure_s')}s"}
    document = {
        "schema_version": 1,
        "name": "control",
        "instance": {"memory": f"{result.pop('memory_mib')}MiB"},
        "workload": {**durations, **result},
        "factors": {"world.volume": list(arms)},
    }
    comparison = summarise(run_experiment(Experiment.of(document), root=root, command=("make", "bench")))
    print("\n" + table(comparison))
    return comparison


def test_a_commit_costs_one_device_write(tmp_path: Path, state_dir: Path) -> None:
    """One client, all data in memory: a transaction takes its CPU and one device write, within 5 %.

    The CPU, with the wake-ups between client and server, is what io2bx leaves beside its write; it must be what the
    processes used and little more. With it gp3 is predicted. (A volume without delay is no measure of the CPU: there
    client and server wake each other at twice the pace and use up to twice the CPU for a transaction.)
    """
    comparison = _compare(
        tmp_path, "gp3", "io2bx",
        memory_mib=1024, warmup_s=8, measure_s=15, script="simple-update", scale=2, clients=1,
    )  # fmt: skip
    gp3, io2bx = (_transaction(arm) for arm in comparison.arms)
    print(f"gp3 {gp3}\nio2bx {io2bx}")
    for arm in (gp3, io2bx):
        assert 0.99 < arm.writes < 1.05, "one device write a commit"
    beside_s = io2bx.whole_s - io2bx.write_s
    assert io2bx.cpu_s < beside_s < io2bx.cpu_s + 100e-6
    error = (beside_s + gp3.write_s) / gp3.whole_s - 1
    print(f"gp3: {1 / gp3.whole_s:.1f} TPS, predicted {1 / (beside_s + gp3.write_s):.1f}: {-100 * error:+.1f} %")
    assert abs(error) < 0.05


@dataclass(frozen=True)
class Transaction:
    """The mean transaction of an arm."""

    whole_s: float
    writes: float
    write_s: float
    """One device write, as the model said."""
    cpu_s: float
    """CPU time of server and driver."""


def _transaction(arm: ArmSummary) -> Transaction:
    runs = [replicate.figures for replicate in arm.replicates]
    writes = [_write_per_transaction(run) for run in runs]
    cpu_s = [
        (run.cpu_share["server"] + run.cpu_share["driver"]) * run.record.world.host.cores / run.work_per_s
        for run in runs
    ]
    return Transaction(
        1 / arm.headline.mean, mean(count for count, _ in writes), mean(took_s for _, took_s in writes), mean(cpu_s)
    )


def _write_per_transaction(figures: RunFigures) -> tuple[float, float]:
    """Device writes per transaction, and the mean time of a write in seconds as the model said."""
    run = figures.run
    measure = run.record.measure
    rows = run.table("probe/volume").to_pylist()
    inside = [row for row in rows if measure.begin_ns <= row["t_ns"] <= measure.end_ns]
    first, last = inside[0], inside[-1]
    writes = last["write_ops"] - first["write_ops"]
    transactions = figures.work_per_s * (last["t_ns"] - first["t_ns"]) / 1e9
    return writes / transactions, (last["write_modelled_ns"] - first["write_modelled_ns"]) / writes / 1e9


def test_a_read_bound_run_scales_with_the_iops(tmp_path: Path, state_dir: Path) -> None:
    """Twice the IOPS, twice the transactions: 2.0 within 0.1."""
    comparison = _compare(
        tmp_path, "gp3", "gp3:iops=6000,throughput=250",
        memory_mib=192, warmup_s=12, measure_s=12, script="select-only", scale=100, clients=32,
    )  # fmt: skip
    estimate = comparison.ratios[0].estimate
    assert estimate is not None
    assert abs(estimate.mean - 2.0) <= 0.1


def test_iops_that_are_not_needed_make_no_difference(tmp_path: Path, state_dir: Path) -> None:
    comparison = _compare(
        tmp_path, "io2bx:iops=16000", "io2bx:iops=32000",
        memory_mib=1024, warmup_s=8, measure_s=15, script="simple-update", scale=10, clients=4,
    )  # fmt: skip
    assert not comparison.ratios[0].distinguishable
