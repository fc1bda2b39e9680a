"""Slowed time taken to one beside runs that were not slowed: two volumes in three regimes. Real PostgreSQL, by ``make bench ONLY=dilation``.

An hour on two cores: at dilation 8 a run takes eight times as long, and the noise of a run counts up to nine times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.dilation import WRITES_WAITED_MAX, bound_by_cpu, host_time, undilated_tps
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.dilation import HostTime
    from pgdyno.analysis.statistics import Estimate

pytestmark = [pytest.mark.needs_fuse, pytest.mark.bench]

WITHIN, WITHIN_RATIO = 0.05, 0.03
"""Of a measured throughput, and of a measured ratio of volumes; or the 95 % interval has it."""
REGIMES: dict[str, dict[str, Any]] = {
    "commits": {
        "instance": {"memory": "1GiB"},
        "workload": {"script": "simple-update", "scale": 10, "transactions": 6_000},
    },
    "reads": {
        "instance": {"memory": "192MiB"},
        "workload": {"script": "select-only", "scale": 40, "transactions": 20_000},
    },
    "mixed": {
        "instance": {"memory": "192MiB"},
        "workload": {"script": "tpcb-like", "scale": 40, "transactions": 4_000},
    },
}
"""Each dilation runs the same transactions from the same state. In the same time a slowed run does more of them, so that it
reads and logs fewer pages for each (7.3 instead of 8.6 KiB read and 7.7 instead of 8.8 KB of WAL at dilation 8 and 1), which the line takes for the host's part."""
CLIENTS = 1
"""Two keep two cores half busy at dilation 1. Then each waits for a core, and the truth is not that of enough cores."""
LONGEST = "60s"
VOLUMES = ["gp3:iops=16000,throughput=1000", "io2bx:iops=16000"]


@pytest.mark.parametrize("regime", REGIMES)
def test_what_slowed_runs_say_of_dilation_1_is_what_is_measured_there(tmp_path: Path, regime: str) -> None:
    """The line is near, or refused because what it takes for constant is not; and "at least" is not too much, with or without it."""
    values = REGIMES[regime]
    document = {
        "schema_version": 1,
        "name": "taken-to-one",
        "replicates": 3,
        **values,
        "workload": {
            **values["workload"],
            "engine": "pgbench",
            "clients": CLIENTS,
            "warmup": "0s",
            "duration": LONGEST,
        },
        "factors": {"world.volume": VOLUMES, "world.dilation": [1, 4, 8]},
    }
    comparison = summarise(run_experiment(Experiment.of(document), root=tmp_path, command=("make", "bench")))
    slow, fast = comparison.undilated
    truths = []
    for undilated in (slow, fast):
        assert undilated.measured is not None
        for replicate in undilated.measured.replicates:
            assert bound_by_cpu(replicate.figures) is None, (
                f"{regime}, {undilated.label}: too few cores to measure the truth"
            )
        truths.append(undilated.measured.headline.mean)
        for arm in (undilated.measured, *undilated.arms):
            print(f"{regime}, {arm.label}: {_parts(arm)}")
        for arm in undilated.arms:
            assert _least(arm) <= truths[-1] * (1 + WITHIN), f"{arm.label}: at least {_least(arm):,.0f}"
        if undilated.because:
            print(f"{regime}, {undilated.label}: not extrapolated, because {undilated.because}")
            assert "is not one figure" in undilated.because
            continue
        assert undilated.estimate is not None
        assert undilated.noise is not None
        print(
            f"{regime}, {undilated.label}: {_told(undilated.estimate, ',.0f')} TPS extrapolated, noise x {undilated.noise:.1f}"
        )
        assert _near(undilated.estimate, truths[-1], WITHIN)
    ratio, truth = fast.ratio_to(slow), truths[1] / truths[0]
    least = [_least(ours) / _least(theirs) for ours, theirs in zip(fast.arms, slow.arms, strict=True)]
    print(f"{regime}: {truth:.2f} times, by 'at least' {least[0]:.2f} from dilation 4 and {least[1]:.2f} from 8")
    if ratio is not None:
        print(f"{regime}: {_told(ratio, '.2f')} times extrapolated")
        assert _near(ratio, truth, WITHIN_RATIO)


def _parts(arm: ArmSummary) -> str:
    """What a transaction takes: its volumes by their counters, the rest by the clock, and its CPU time."""
    times = [host_time(replicate.figures) for replicate in arm.replicates]
    response_ms, volumes_ms, cpu_ms = np.mean([_of(time_) for time_ in times if time_ is not None], axis=0)
    host_ms = (response_ms - volumes_ms) * arm.dilation
    return (
        f"{arm.headline.mean:,.0f} TPS, {response_ms:.3f} ms, {volumes_ms:.3f} of it at the volume and {host_ms:.3f} of the host's time;"
        f" {cpu_ms:.3f} ms of CPU" + ("" if arm.dilation == 1 else f"; at dilation 1 at least {_least(arm):,.0f} TPS")
    )


def _of(time: HostTime) -> tuple[float, float, float]:
    assert time.reads_ms is not None
    assert time.commits is not None
    assert time.cpu_ms is not None
    waited = min(time.commits.per_s / time.tps, WRITES_WAITED_MAX) * time.commits.modelled_ms
    return time.response_ms, time.reads_ms + waited, time.cpu_ms


def _least(arm: ArmSummary) -> float:
    values = [undilated_tps(replicate.figures) for replicate in arm.replicates]
    return float(np.mean([value for value in values if value is not None]))


def _told(estimate: Estimate, form: str) -> str:
    assert estimate.low is not None
    assert estimate.high is not None
    return f"{estimate.mean:{form}} ({estimate.low:{form}} to {estimate.high:{form}})"


def _near(estimate: Estimate, truth: float, within: float) -> bool:
    """Whether an estimate is this near to the truth, or its interval has it."""
    covered = estimate.low is not None and estimate.high is not None and estimate.low <= truth <= estimate.high
    return covered or abs(estimate.mean / truth - 1) <= within
