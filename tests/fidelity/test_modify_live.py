"""A volume becomes a faster one under fio: no error, no stall, the old rate before and the new one after."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine.waiting import wait_until
from tests.fidelity.conftest import credit, in_tries, off
from tools.fidelity import fio
from tools.fidelity.cell import Job
from tools.fidelity.host import requests_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fidelity.conftest import Attach

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse, pytest.mark.needs_fio]

BEFORE_IOPS, AFTER_IOPS = 3_000, 16_000
JOB = Job("random", "70/30", 4, 32, 9, ramp_s=0)
CHANGE_AFTER = 12_000
"""Requests: some 4 s of the old rate, and as long of the new one is left."""
SETTLED_MS = 1_000
"""What the bucket saved while fio began is used up then."""
RATE_ERROR = 0.01
GAP_MS = 50
"""The longest time without a completion that a user may see; 0.3 ms is what 32 outstanding at the old rate have."""
DEADLINE_S = 30.0


@dataclass(frozen=True)
class Changed:
    """What fio's log of each request says of the change."""

    before_iops: float
    after_iops: float
    gap_ms: int
    change_ms: int

    def __str__(self) -> str:
        return (
            f"{self.before_iops:,.0f} IOPS before, {self.after_iops:,.0f} after, longest gap {self.gap_ms} ms,"
            f" asked and answered in {self.change_ms} ms"
        )


def rate(completed_ms: list[int], begin_ms: int, end_ms: int) -> float:
    """Completions a second between two instants."""
    return sum(begin_ms <= at < end_ms for at in completed_ms) / (end_ms - begin_ms) * 1000


@pytest.mark.parametrize("before", [f"gp3:iops={BEFORE_IOPS}", f"io2bx:iops={BEFORE_IOPS}"])
def test_a_live_modification_takes_effect_at_once_and_nothing_waits_for_it(
    before: str, attach: Attach, tmp_path: Path
) -> None:
    kind = before.partition(":")[0]
    throughput = ",throughput=1000" if kind == "gp3" else ""

    def measure() -> Changed:
        result = attach(before)
        device, log = result.block_device, tmp_path / "latency"
        first = requests_of(device)
        credit(result, 0)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(fio.run, device, JOB, log=log)
            assert wait_until(lambda: requests_of(device) - first >= CHANGE_AFTER or running.done(), DEADLINE_S)
            number = requests_of(device) - first
            result.modify(f"{kind}:iops={AFTER_IOPS}{throughput}")
            answered = requests_of(device) - first
            running.result(DEADLINE_S)
        result.detach()
        completed_ms = sorted(logged.at_ms for logged in fio.read_log(log))
        asked_ms, answered_ms, end_ms = completed_ms[number], completed_ms[answered], completed_ms[-JOB.depth]
        gap_ms = max(after - before for before, after in pairwise(completed_ms))
        changed = Changed(
            rate(completed_ms, SETTLED_MS, asked_ms),
            rate(completed_ms, answered_ms, end_ms),
            gap_ms,
            answered_ms - asked_ms,
        )
        print(f"\n{before} to {AFTER_IOPS:,}: {changed}")
        return changed

    def faults(changed: Changed) -> list[str]:
        stalled = [f"a gap of {changed.gap_ms} ms, should be {GAP_MS} at most"] if changed.gap_ms > GAP_MS else []
        return [
            *stalled,
            *off("rate before", changed.before_iops, BEFORE_IOPS, RATE_ERROR),
            *off("rate after", changed.after_iops, AFTER_IOPS, RATE_ERROR),
        ]

    in_tries(measure, faults)
