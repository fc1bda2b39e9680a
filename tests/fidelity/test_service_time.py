"""Below its limit a volume takes its service time, and append + fsync the time that was published for it."""

from __future__ import annotations

import os
import time
from statistics import mean
from typing import TYPE_CHECKING

import pytest

from tests.fidelity.conftest import in_tries, off
from tools.fidelity import fio
from tools.fidelity.cell import Job

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fidelity.conftest import Attach

pytestmark = [pytest.mark.needs_fuse, pytest.mark.slow]

SYNCS = 1500

PUBLISHED_MS = {"gp3": (2.73, 2.80), "io2bx": (0.97, 1.08)}
"""Append 8 KiB and fsync on a file system, public timings of lightly loaded volumes (catalog/volumes)."""


@pytest.mark.parametrize("kind", PUBLISHED_MS)
def test_append_and_fsync_take_the_published_time(kind: str, attach: Attach, tmp_path: Path) -> None:
    found = attach(kind, tmp_path / "volume")
    low_ms, high_ms = PUBLISHED_MS[kind]

    def faults(measured_ms: float) -> list[str]:
        if low_ms * 0.9 <= measured_ms <= high_ms * 1.1:
            return []
        return [f"published {low_ms} to {high_ms} ms, which allows 10 % either way"]

    in_tries(lambda: _append_and_fsync_ms(tmp_path / "volume"), faults)
    assert found.alive


def _append_and_fsync_ms(folder: Path) -> float:
    descriptor = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        took_ms = []
        for _ in range(SYNCS):
            begin = time.perf_counter()
            os.write(descriptor, bytes(8192))
            os.fsync(descriptor)
            took_ms.append((time.perf_counter() - begin) * 1000)
        return mean(took_ms)
    finally:
        os.close(descriptor)


@pytest.mark.needs_fio
def test_one_read_at_a_time_takes_the_tables_median(attach: Attach) -> None:
    found = attach("gp3")
    table = found.spec["params"]["service_time"]["read"]
    row = next(row for row in table["rows"] if row["size_bytes"] == 4096)
    median_ms = row["service_ns"][table["probability_ppm"].index(500_000)] / 1e6

    def measure() -> fio.Measured:
        return fio.run(found.block_device, Job("random", "read", 4, 1, 5))

    in_tries(measure, lambda measured: off("p50", measured.latency_ms[50.0], median_ms, 0.08))
