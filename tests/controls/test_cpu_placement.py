"""Whether PostgreSQL should have a core of its own: the measurement behind docs/decision/0007."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.statistics import ratio_interval
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.run import RunFigures

pytestmark = [pytest.mark.needs_fuse, pytest.mark.bench]

PLACEMENTS = {"shared": (None, None), "split": ("0", "1")}
"""CPUs of PostgreSQL and of pgbench. Daemon and kernel workers may use both: they are short and come first."""
BLOCKS = 3
ARMS = ("gp3", "io2bx:iops=16000")


def test_sharing_both_cores_is_not_slower_than_splitting_them(tmp_path: Path, state_dir: Path) -> None:
    figures: dict[tuple[str, str], list[RunFigures]] = {}
    for block in range(1, BLOCKS + 1):
        # Interleaved, and turned around in every other block, so that a drift of the host meets both.
        for name in sorted(PLACEMENTS, reverse=block % 2 == 0):
            for run in _runs(tmp_path / f"{block}-{name}", name, block):
                figures.setdefault((run.record.arm, name), []).append(run)
    for arm in ARMS:
        shared, split = figures[arm, "shared"], figures[arm, "split"]
        for name, runs in (("shared", shared), ("split", split)):
            shown = "  ".join(f"{run.work_per_s:,.0f} TPS, late {_lateness(run) / _latency(run):.2%}" for run in runs)
            print(f"\n{arm} {name}: {shown}", end="")
        ratio = ratio_interval([(a.work_per_s, b.work_per_s) for a, b in zip(split, shared, strict=True)])
        print(f"\n{arm}: split / shared = {ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f})")
        assert ratio.low is not None
        assert ratio.low <= 1.0, "splitting the cores is faster: decide again"


def _runs(root: Path, placement: str, block: int) -> list[RunFigures]:
    server_cpus, driver_cpus = PLACEMENTS[placement]
    cpus = {} if server_cpus is None else {"cpus": server_cpus}
    document = {
        "schema_version": 1,
        "name": "cpu-placement",
        "seed": block,
        "replicates": 1,
        "instance": {"memory": "160MiB", **cpus},
        "workload": {"scale": 40, "clients": 16, "warmup": "6s", "duration": "12s", "driver_cpus": driver_cpus},
        "factors": {"world.volume": list(ARMS)},
    }
    comparison = summarise(run_experiment(Experiment.of(document), root=root, command=("make", "bench")))
    return [arm.replicates[0].figures for arm in comparison.arms]


def _lateness(run: RunFigures) -> float:
    return run.data.read_lateness_ms.sum + run.data.write_lateness_ms.sum


def _latency(run: RunFigures) -> float:
    return run.data.read_ms.sum + run.data.write_ms.sum
