"""The dilation test: the same experiment at dilation 1, 2 and 4, in three regimes. Real PostgreSQL, by `make bench`.

Where slowed time gives another throughput by more than 5 %, the report must have said so, with a figure that covers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.analysis.dilated import computing_share
from pgdyno.experiment import Experiment
from pgdyno.report import table
from pgdyno.run import run_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary

pytestmark = [pytest.mark.needs_fuse, pytest.mark.bench]

WITHIN = 0.05
REGIMES: dict[str, dict[str, Any]] = {
    "commit": {
        "world": {"volume": "gp3"},
        "instance": {"memory": "1GiB"},
        "workload": {"script": "simple-update", "scale": 10, "clients": 8},
    },
    "read": {
        "world": {"volume": "io2bx:iops=16000"},
        "instance": {"memory": "256MiB"},
        "workload": {"script": "select-only", "scale": 60, "clients": 4},
    },
    "cpu": {
        "world": {"volume": "io2bx:iops=16000"},
        "instance": {"memory": "1GiB", "vcpus": 2},
        "workload": {"script": "select-only", "scale": 2, "clients": 8},
    },
}


@pytest.mark.parametrize("regime", REGIMES)
def test_slowed_time_is_right_or_says_where_it_is_not(tmp_path: Path, regime: str) -> None:
    found = _run(tmp_path, regime)
    for arm, ratio in zip(found.arms[1:], found.ratios, strict=True):
        assert ratio.estimate is not None
        off = ratio.estimate.mean - 1
        said = [f for replicate in arm.replicates for f in replicate.findings if f.check == "dilation"]
        assert said, "a dilated run says so"
        print(f"{regime}-bound, dilation {arm.dilation}: TPS {100 * off:+.1f} %; {said[0].level}: {said[0].figure}")
        if abs(off) > WITHIN:
            assert all(finding.level == "warn" for finding in said), f"{regime}: off by {off:.1%}, and nothing said it"
        if not any("bound by CPU" in finding.figure for finding in said):
            assert off < _covered(arm) + WITHIN, "the figure covers what it warns of"


def _covered(arm: ArmSummary) -> float:
    """By how much the throughput of a closed loop may be too high, by the report's own figure."""
    short = max(computing_share(replicate.figures) or 0.0 for replicate in arm.replicates)
    return 1 / (1 - short) - 1 if short < 1 else float("inf")


def _run(root: Path, regime: str) -> Comparison:
    asked = REGIMES[regime]
    document = {
        "schema_version": 1,
        "name": f"dilation-{regime}",
        "replicates": 2,
        **asked,
        "workload": {**asked["workload"], "warmup": "3s", "duration": "10s"},
        "factors": {"world.dilation": [1, 2, 4]},
    }
    comparison = summarise(run_experiment(Experiment.of(document), root=root, command=("make", "bench")))
    print("\n" + table(comparison))
    return comparison
