"""Seconds: which of them count, and what was stolen of them."""

from __future__ import annotations

import pytest

from tests.fidelity.synthetic import second
from tools.fidelity.host import steady
from tools.fidelity.measure import stolen_share

IDLE, BUSY = 0.0, 3000.0


def test_the_ramp_and_both_ends_do_not_count() -> None:
    """fio begins somewhere in second 1; its ramp is over somewhere in second 2; it ends somewhere in second 9."""
    seconds = [second(i, BUSY if 1 <= i <= 9 else IDLE, 4) for i in range(12)]
    assert steady(seconds, ramp_s=1) == seconds[3:9]


def test_a_stall_in_the_middle_counts() -> None:
    seconds = [second(i, IDLE if i == 5 else BUSY, 4) for i in range(10)]
    assert seconds[5] in steady(seconds, ramp_s=1)


def test_a_job_that_did_nothing_has_no_seconds() -> None:
    assert steady([second(i, IDLE, 4) for i in range(5)], ramp_s=1) == []
    assert steady([], ramp_s=1) == []


def test_what_was_stolen_is_a_share_of_all_cores() -> None:
    seconds = [second(0, BUSY, 4, steal_ticks=10), second(1, BUSY, 4)]
    assert stolen_share(seconds, cores=2) == pytest.approx(0.10 / (2 * 2))
    assert stolen_share([], cores=2) == 0
