"""PostgreSQL on a volume of 300 IOPS: the limit is named, and what the emulator counted agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from pgdyno.report import document, table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_fuse, pytest.mark.sets_limits, pytest.mark.slow]

DOCUMENT = {
    "schema_version": 1,
    "name": "binding",
    "replicates": 1,
    "world": {"volume": "io2bx:iops=300"},
    "instance": {"memory": "96MiB"},
    "workload": {"script": "tpcb-like", "scale": 8, "clients": 8, "warmup": "2s", "duration": "8s"},
}


def test_a_volume_of_300_iops_is_named_with_a_cheaper_one(state_dir: Path, tmp_path: Path) -> None:
    comparison = summarise(run_experiment(Experiment.of(DOCUMENT), root=tmp_path, command=("make", "test")))
    (arm,) = comparison.arms
    print(table(comparison))
    if not arm.valid:
        pytest.skip(f"this machine was busy with other things: {arm.why_invalid[0]}")
    truth = arm.data.time_above_limit["iops"]
    binding = comparison.bindings[0]
    assert truth > 0.5, "the emulator's own account: requests waited for the limit"
    assert (binding.verdict.limit, binding.verdict.role) == ("volume_iops", "data")
    assert binding.verdict.confidence == "high"
    assert binding.remedy is not None
    # io2 Block Express of 300 IOPS costs more than a gp3 of 3,000, whose latency is higher and does not matter here.
    assert (binding.remedy.spec or "").startswith("gp3:")
    assert (binding.remedy.usd_more_per_month or 0.0) < 0.0
    assert (binding.remedy.tps_ratio_max or 0.0) > 1.5
    text = table(comparison)
    assert "bound by: " in text
    assert "not measured: buy gp3:" in text
    made = document(comparison).arms[0].binding
    assert made.limit == "volume_iops"
    assert made.runs[0].seconds[-1].end_s == 8
