"""A gp2 volume that runs out of credits while it is measured: a real run is divided where the volume's own account says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pgdyno.analysis.binding.device import ProvisionedVolume
from pgdyno.analysis.compare import summarise
from pgdyno.analysis.credit import inferred
from pgdyno.analysis.figures import CounterSamples, device_counters, volume_spec
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment

if TYPE_CHECKING:
    from pathlib import Path

NAME = "the data volume's IOPS credits"
MEASURE_S = 20
THERE_S, GONE_S = 5, 14
"""When the volume's own account must have credits left, and none: else this machine was too slow, or too busy, to spend them."""
DOCUMENT = {
    "schema_version": 1,
    "name": "credits",
    "replicates": 1,
    # Above the baseline of 300 IOPS by so much that credits are gone after some ten seconds, on any machine.
    "world": {"volume": "gp2:size=100GiB,credits=6000"},
    "instance": {"memory": "96MiB"},
    "workload": {
        "script": "select-only", "scale": 20, "clients": 16, "rate_per_s": 500,
        "warmup": "1s", "duration": f"{MEASURE_S}s",
    },
}  # fmt: skip


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
@pytest.mark.slow
def test_a_real_run_is_divided_where_its_credits_went(state_dir: Path, tmp_path: Path) -> None:
    comparison = summarise(run_experiment(Experiment.of(DOCUMENT), root=tmp_path, command=("make", "test")))
    figures = comparison.arms[0].replicates[0].figures
    counters = CounterSamples.of(figures.run.table("probe/volume"))
    begin_ns = figures.record.measure.begin_ns
    there, gone = (counters.at("io_credits", begin_ns + second * 10**9) for second in (THERE_S, GONE_S))
    if there < 1350 or gone > 300:
        pytest.skip(
            f"this machine spent the credits at its own pace: {there:.0f} after {THERE_S} s, {gone:.0f} after {GONE_S} s"
        )
    first, second = figures.credit.regimes
    assert (first.gone, second.gone) == ((), (NAME,))
    assert second.tps < 0.9 * first.tps
    assert figures.steady.part in (first, second)
    assert any(NAME in warning for warning in comparison.arms[0].warnings)
    # The volume's own account: in the second in which it is divided hardly any credits are left.
    assert counters.at("io_credits", begin_ns + second.begin_s * 10**9) < 2700
    assert counters.at("io_credits", begin_ns + second.end_s * 10**9) < 300
    # By the block device's rates alone, as on a host without that account, it is divided there too.
    bought = ProvisionedVolume.of(volume_spec(figures.run))
    assert bought is not None and bought.iops is not None
    edges = begin_ns + borders_ns(second.end_s)
    seen = inferred(NAME, device_counters(figures.run), "IOPS", bought.iops, edges)
    assert seen is not None
    assert seen.gone.index(True) == pytest.approx(second.begin_s, abs=3)


def borders_ns(count: int) -> np.ndarray:
    """Nanoseconds from the begin to each border of so many seconds."""
    return np.arange(count + 1, dtype=np.int64) * 10**9
