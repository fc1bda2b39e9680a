"""What a run takes beside its phases, on a volume without limits: clone, attach, start, checks, stop, detach, record."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import pytest

from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from pgdyno.results import open_experiment

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = {
    "schema_version": 1,
    "name": "overhead",
    "replicates": 6,
    "world": {"volume": "null:size=2GiB"},
    "instance": {"memory": "256MiB"},
    "workload": {"script": "select-only", "engine": "native", "scale": 2, "clients": 2, "warmup": "1s", "duration": "3s"},
}  # fmt: skip
OVERHEAD_S = 12.0
"""Two cores take 1.6 s, beside other jobs; far above, so that a busy machine does not fail it. The figure to compare is the one that is printed."""


def beside_s(directory: Path) -> list[float]:
    """Seconds of each run of a recorded experiment but the last, from its begin to that of the next, without its phases."""
    runs = sorted(
        (run.record for run in open_experiment(directory).runs), key=lambda record: record.anchor.monotonic_ns
    )
    return [
        (after.anchor.monotonic_ns - before.anchor.monotonic_ns) / 1e9 - sum(phase.seconds for phase in before.phases)
        for before, after in pairwise(runs)
    ]


@pytest.mark.bench
@pytest.mark.needs_fuse
def test_a_run_takes_few_seconds_beside_its_phases(state_dir: Path, tmp_path: Path) -> None:
    directory = run_experiment(Experiment.of(DOCUMENT), root=tmp_path, command=("make", "bench"))
    values = beside_s(directory)
    stages = [run.record.seconds for run in open_experiment(directory).runs]
    each = ", ".join(f"{name} {median(stage[name] for stage in stages):.2f}" for name in stages[0])
    print(
        f"\nbeside its phases a run takes {median(values):.2f} s ({min(values):.2f} to {max(values):.2f}); of it in seconds: {each}"
    )
    assert median(values) < OVERHEAD_S
