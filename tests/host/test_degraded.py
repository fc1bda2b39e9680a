"""`degraded=` on a real device: half of several volumes have only a part of their limits, it is counted, and the log replays."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from pgdyno.base import engine
from pgdyno.machine import volume

from ..support.direct import PAGE, moved
from .needs import needs_fuse

if TYPE_CHECKING:
    from pathlib import Path

VOLUMES = 4
"""Of one instance, whose seed decides which of them are degraded at first."""


@needs_fuse
def test_what_was_asked_for_is_counted_and_replayed(state: Path) -> None:
    log = state.parent / "log"
    with ExitStack() as ending:
        attached = [
            ending.enter_context(
                volume.attached(
                    "gp3:size=1GiB,degraded=50%",
                    mount=None,
                    name=f"shaky-{number}",
                    instance="shaky",
                    seed=3 if number == 0 else None,
                    submit_log=log if number == 0 else None,
                )
            )
            for number in range(VOLUMES)
        ]
        for item in attached:
            assert item.spec["spec"] == "gp3:size=1GiB,iops=3000,throughput=125,degraded=50%"
            assert item.spec["degradation"]["of_time_percent"] == 50.0
            moved(item.block_device, [place * PAGE for place in range(50)])
        degraded = [item.stats()["counters"]["degraded_ns"] for item in attached]
    assert any(ns > 0 for ns in degraded), "another seed is needed: none begins in a period"
    assert any(ns == 0 for ns in degraded), "another seed is needed: each begins in a period"
    replayed = engine.run_json(["replay", str(log)])
    assert (replayed["complete"], replayed["first_difference"]) == (True, None)
    assert replayed["identical"] == replayed["grants"] >= VOLUMES * 50


@needs_fuse
def test_any_other_volume_does_not_have_the_counter(state: Path) -> None:
    with volume.attached("gp3:size=1GiB", mount=None, name="plain") as plain:
        assert "degradation" not in plain.spec
        assert plain.stats()["counters"]["degraded_ns"] is None
