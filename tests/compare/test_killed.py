"""A comparison that is killed, and what a clean-up finds of it: the machine's limits too, so no other tests run beside this."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from pgdyno.machine.clean import left_in
from pgdyno.machine.mounts import mounts_below

from .test_compare_command import TINY, words

pytestmark = [pytest.mark.needs_fuse, pytest.mark.sets_limits, pytest.mark.slow]

KILLS = 2
"""In `make test`; `make bench ONLY=compare` kills fifteen times as often."""
RUN_S = 14.0
"""A tiny comparison of two volumes in two replicates takes longer than this."""


def killed(times: int, state_dir: Path, tmp_path: Path) -> None:
    """Kill a comparison at so many moments; each time `doctor --clean` leaves nothing."""
    moments = random.Random(20261121)
    for _ in range(times):
        command = words("compare", "gp3", "io2bx", *TINY, "-n", "2", "--results", str(tmp_path))
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            process.wait(moments.uniform(0.2, RUN_S))
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        cleaned = subprocess.run(words("doctor", "--clean"), capture_output=True, text=True, check=False, timeout=60)
        assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
        assert left_in(state_dir) == []
        assert mounts_below(state_dir) == []


def test_killed_at_any_moment_it_is_undone_by_doctor_clean(state_dir: Path, tmp_path: Path) -> None:
    killed(KILLS, state_dir, tmp_path)


@pytest.mark.bench
def test_killed_at_many_moments_it_is_undone_by_doctor_clean(state_dir: Path, tmp_path: Path) -> None:
    killed(15 * KILLS, state_dir, tmp_path)
