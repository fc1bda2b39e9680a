"""Slowed time taken to one beside runs that were not slowed: two volumes in three regimes. Real PostgreSQL, by ``make bench ONLY=dilation``.

An hour on two cores: at dilation 8 a run takes eight times as long, and the noise of a run counts up to nine times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.dilated import bound_by_cpu
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.interval import Estimate

pytestmark = [pytest.mark.needs_fuse, pytest.mark.bench]

WITHIN, WITHIN_RATIO = 0.05, 0.03
"""Of a measured throughput, and of a measured ratio of volumes; or the 95 % interval has it."""
REGIMES: dict[str, dict[str, Any]] = {
    "commits": {
        "instance": {"memory": "1GiB"},
        "workload": {"script": "simple-update", "scale": 10},
    },
    "reads": {
        "instance": {"memory": "192MiB"},
        "workload": {"script": "select-only", "scale": 40},
    },
    "mixed": {
        "instance": {"memory": "192MiB"},
        "workload": {"script": "tpcb-like", "scale": 40},
    },
}
CLIENTS = 2
"""So few that at dilation 1 two cores are not full and no volume is near its limit: either would be another truth than the line's."""
VOLUMES = ["gp3:iops=16000,throughput=1000", "io2bx:iops=16000"]
WARMUP, DURATION = "5s", "8s"
"""What the memory has beside PostgreSQL is read from the volume within the first: then each dilation measures as warm a cache."""


@pytest.mark.parametrize("regime", REGIMES)
def test_what_slowed_runs_say_of_dilation_1_is_what_is_measured_there(tmp_path: Path, regime: str) -> None:
    asked = REGIMES[regime]
    document = {
        "schema_version": 1,
        "name": "taken-to-one",
        "replicates": 3,
        **asked,
        "workload": {**asked["workload"], "clients": CLIENTS, "warmup": WARMUP, "duration": DURATION},
        "factors": {"world.volume": VOLUMES, "world.dilation": [1, 4, 8]},
    }
    found = summarise(run_experiment(Experiment.of(document), root=tmp_path, command=("make", "bench")))
    slow, fast = found.undilated
    for one in (slow, fast):
        assert not one.because, f"{regime}, {one.label}: {one.because}"
        assert one.estimate is not None
        assert one.noise is not None
        assert one.measured is not None
        for replicate in one.measured.replicates:
            assert bound_by_cpu(replicate.figures) is None, f"{regime}, {one.label}: too few cores to measure the truth"
        truth = one.measured.headline.mean
        print(
            f"{regime}, {one.label}: {one.estimate.mean:,.0f} TPS extrapolated, {truth:,.0f} measured, noise x {one.noise:.1f}"
        )
        assert _near(one.estimate, truth, WITHIN)
    ratio = fast.ratio_to(slow)
    assert ratio is not None
    assert slow.measured is not None
    assert fast.measured is not None
    truth = fast.measured.headline.mean / slow.measured.headline.mean
    print(f"{regime}: {ratio.mean:.2f} times extrapolated, {truth:.2f} measured")
    assert _near(ratio, truth, WITHIN_RATIO)


def _near(estimate: Estimate, truth: float, within: float) -> bool:
    """Whether an estimate is this near to the truth, or its interval has it."""
    covered = estimate.low is not None and estimate.high is not None and estimate.low <= truth <= estimate.high
    return covered or abs(estimate.mean / truth - 1) <= within
