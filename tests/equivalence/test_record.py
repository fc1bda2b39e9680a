"""The record, by ``make bench ONLY=equivalence``: measured, judged, and its page written."""

from __future__ import annotations

import os

import pytest

from tools.equivalence import __main__ as program
from tools.equivalence.workloads import WORKLOADS

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("engine")]


def test_the_driver_is_the_originals_equal() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("driver and server need a CPU each")
    judged = program.write(program.collect(WORKLOADS, program.RESULTS))
    failed = [str(claim) for claim in judged if not claim.holds]
    assert failed == [], "\n".join(failed)
