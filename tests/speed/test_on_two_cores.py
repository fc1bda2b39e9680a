"""What a comparison of this machine spends where, and whether its volumes are on time."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from pgdyno.report import table

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]

TRIES = 3
ROLES = ("server", "daemon", "driver", "probe", "other", "host_busy")
"""``daemon``: that of the volumes; ``other``: the kernel's workers of loop devices, and what no role accounts for."""


def compared(root: Path, volumes: tuple[str, ...], clients: int, seed: int, replicates: int) -> Comparison:
    """As `pgdyno compare` does it, with the lengths of the demonstration."""
    document = {
        "schema_version": 1,
        "name": "on-two-cores",
        "seed": seed,
        "replicates": replicates,
        "workload": {"clients": clients, "scale": 150, "warmup": "10s", "duration": "20s"},
        "factors": {"world.volume": list(volumes)},
    }
    comparison = summarise(run_experiment(Experiment.of(document), root=root, command=("make", "bench")))
    print("\n" + table(comparison))
    return comparison


def spent_us(arm: ArmSummary) -> dict[str, float]:
    """CPU of a transaction in microseconds, by role."""
    runs = [replicate.figures for replicate in arm.replicates]
    return {
        role: mean(run.cpu_share[role] * run.record.world.host.cores / run.work_per_s for run in runs) * 1e6
        for role in ROLES
        if all(role in run.cpu_share for run in runs)
    }


def test_what_a_transaction_of_the_demonstration_costs(tmp_path: Path) -> None:
    volumes = ("gp3:iops=8000", "io2bx:iops=8000")
    comparison = compared(tmp_path, volumes, clients=16, seed=1, replicates=2)
    for volume, arm in zip(volumes, comparison.arms, strict=True):
        runs = [replicate.figures for replicate in arm.replicates]
        requests = mean((run.data.iops or 0.0) / run.work_per_s for run in runs)
        spent = spent_us(arm)
        print(f"| {volume} | {requests:.1f} |", *(f"{spent.get(role, 0.0):.0f} |" for role in ROLES))
        assert spent["daemon"] > 0
        assert spent["host_busy"] >= spent["daemon"] + spent["server"]


@pytest.mark.parametrize("seed", range(1, TRIES + 1))
def test_16000_iops_and_8_clients_are_on_time(tmp_path: Path, seed: int) -> None:
    volumes = ("gp3", "io2bx:iops=16000")
    comparison = compared(tmp_path, volumes, clients=8, seed=seed, replicates=3)
    for volume, arm in zip(volumes, comparison.arms, strict=True):
        print(f"{volume}:", {role: round(us) for role, us in spent_us(arm).items()}, *arm.warnings, sep="\n  ")
        assert arm.why_invalid == ()
        assert [warning for warning in arm.warnings if "lateness" in warning] == []
