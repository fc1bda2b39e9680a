"""The dilation test: the same experiment at dilation 1, 2 and 4, in three regimes. Real PostgreSQL, by `make bench`.

Where slowed time gives another throughput by more than 5 %, the report must have said so, with a figure that covers it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.analysis.dilation import CPU_BOUND, host_time
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from pgdyno.report import table

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.finding import CheckResult

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
    # All in memory. The server has one core at every dilation and the driver another, so that nothing but the dilation
    # differs: shared by the two, a core would be the server's by another part each time.
    "cpu": {
        "world": {"volume": "io2bx:iops=16000"},
        "instance": {"memory": "1GiB", "vcpus": 1},
        "workload": {"script": "select-only", "scale": 2, "clients": 8},
    },
}


@pytest.mark.parametrize("regime", ["commit", "read"])
def test_slowed_time_is_right_or_says_by_how_much_it_may_not_be(tmp_path: Path, regime: str) -> None:
    comparison = _run(tmp_path, REGIMES[regime])
    for arm, ratio in zip(comparison.arms[1:], comparison.ratios, strict=True):
        assert ratio.estimate is not None
        off, excess = ratio.estimate.mean - 1, _excess(arm)
        print(f"{regime}-bound, dilation {arm.dilation}: TPS {off:+.1%}, at most {excess:+.1%} by the report")
        print("\n".join(f"  {finding.level}: {finding.figure}" for finding in _said(arm)))
        assert not any(CPU_BOUND in finding.figure for finding in _said(arm)), f"the {regime}s bind"
        assert -WITHIN < off < excess + WITHIN, "the figure covers it, and nothing makes slowed time slower"
        if off > WITHIN:
            assert all(finding.level == "warn" for finding in _said(arm)), "and it is a warning"


def test_where_the_cpu_binds_a_core_does_what_so_many_would(tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("the driver needs a core beside the server's")
    cpu = REGIMES["cpu"]
    driven = {**cpu, "workload": {**cpu["workload"], "driver_cpus": str(cpus[1])}}
    comparison = _run(tmp_path, driven)
    for arm, ratio in zip(comparison.arms[1:], comparison.ratios, strict=True):
        assert ratio.estimate is not None
        print(f"cpu-bound, dilation {arm.dilation}: {ratio.estimate.mean:.3f} times the TPS; {_said(arm)[0].figure}")
        assert all(finding.level == "warn" and CPU_BOUND in finding.figure for finding in _said(arm))
        assert f"what {arm.dilation} cores would do" in _said(arm)[0].figure
        assert ratio.estimate.mean == pytest.approx(arm.dilation, rel=WITHIN), "as many times the throughput of one"


def _said(arm: ArmSummary) -> list[CheckResult]:
    """What the report says of the dilation, one finding of each replicate."""
    results = [finding for replicate in arm.replicates for finding in replicate.findings if finding.check == "dilation"]
    assert len(results) == len(arm.replicates), "a dilated run says so"
    return results


def _excess(arm: ArmSummary) -> float:
    """By how much the throughput of this closed loop may be too high, by the report's own figure."""
    known = [host_time(replicate.figures) for replicate in arm.replicates]
    return max(time.excess for time in known if time is not None and time.excess is not None)


def _run(root: Path, result: dict[str, Any]) -> Comparison:
    document = {
        "schema_version": 1,
        "name": "dilation",
        "replicates": 3,
        **result,
        "workload": {**result["workload"], "warmup": "3s", "duration": "10s"},
        "factors": {"world.dilation": [1, 2, 4]},
    }
    comparison = summarise(run_experiment(Experiment.of(document), root=root, command=("make", "bench")))
    print("\n" + table(comparison))
    return comparison
