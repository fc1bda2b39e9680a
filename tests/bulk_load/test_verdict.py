"""Loads on emulated volumes, as experiments: the loader's own verdict is what the emulator has counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.loads import agrees, load_of
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from pgdyno.report import table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_fuse, pytest.mark.sets_limits, pytest.mark.slow]

SLOW, FAST = "gp2:size=33GiB,credits=0", "gp3:size=33GiB,iops=16000,throughput=1000"
"""A hundred requests a second, at most 256 KiB each; and more than two cores can ask for, with answers slow enough to be in time."""
VOLUMES = frozenset({"writes to the volume", "reads of the volume", "WAL"})
"""What the loader says when its sessions wait for a volume."""


def asked(volumes: list[str], **bulk: Any) -> dict[str, Any]:
    """A load on each of these volumes."""
    return {
        "schema_version": 1,
        "name": "loads",
        "replicates": 1,
        "instance": {"memory": "256MiB"},
        "workload": {"kind": "load", "bulk": bulk},
        "factors": {"world.volume": volumes},
    }


def test_the_loaders_verdict_is_what_the_volume_counted(state_dir: Path, image_dir: Path, tmp_path: Path) -> None:
    """So many bytes that it takes seconds where nothing binds, in fewer rows than are counted afterwards."""
    tables = ["title_basics", "name_basics"]
    bulk = {"generate": "imdb", "scale": 0.06, "tables": tables, "connections": 1, "vacuum": False}
    experiment = Experiment.of(asked([SLOW, FAST], **bulk))
    directory = run_experiment(experiment, root=tmp_path, command=("make", "test"))
    comparison = summarise(directory)
    print(table(comparison))
    slow, fast = comparison.arms
    for run in (slow.replicates[0].figures, fast.replicates[0].figures):
        checks = {check.name: check for check in run.record.checks}
        assert all(check.ok for check in checks.values()), checks
        assert {"rows_of_the_files", "loaded_in_this_run", "table_rows"} <= checks.keys()
        assert sum(run.run.table("workload/throughput")["transactions"].to_pylist()) == run.record.account.succeeded
    if not (slow.valid and fast.valid):
        pytest.skip(f"this machine was busy with other things: {(*slow.why_invalid, *fast.why_invalid)[0]}")
    assert comparison.ratios[0].estimate is not None
    assert comparison.ratios[0].estimate.mean < 1 / 1.3  # of the seconds, so less is better

    truth = {arm.volume: arm.above_limit_share or 0.0 for arm in comparison.arms}
    assert truth[SLOW] > 0.5, "the emulator's own account: requests waited for the limit"
    assert truth[FAST] < 0.2
    document = {arm.volume: load_of(arm) for arm in comparison.arms}
    bound, free = document[SLOW], document[FAST]
    assert bound is not None
    assert free is not None
    assert bound.limit in VOLUMES
    assert agrees(bound.limit, comparison.bindings[slow.index].verdict.limit)
    assert sum(share for name, share in free.limits.items() if name in VOLUMES) < sum(
        share for name, share in bound.limits.items() if name in VOLUMES
    )
    written = bound.written_per_input_byte
    assert written is not None
    assert 2.0 < written < 8.0, "a page and its WAL for each row, and no more"
