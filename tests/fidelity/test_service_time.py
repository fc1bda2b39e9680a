"""Below its limit a volume takes its service time, and append + fsync the time that was published for it.

The modelled time of the requests is judged, and that none was faster: how much slower the host makes them is measured by
``make bench ONLY=fidelity``.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.fidelity.conftest import EARLY, off
from tools.fidelity import fio, model
from tools.fidelity.cell import Job

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.machine.volume import AttachedVolume
    from tests.fidelity.conftest import Attach

pytestmark = [pytest.mark.needs_fuse]

SYNCS = 600

PUBLISHED_MS = {"gp3": (2.73, 2.80), "io2bx": (0.97, 1.08)}
"""Append 8 KiB and fsync on a file system, public timings of lightly loaded volumes (catalog/volumes)."""
HOST_MS = 0.1
"""About what kernel, file system and process add to a volume's own time in these timings; `modelled_ms` is without it."""


@pytest.mark.parametrize("kind", PUBLISHED_MS)
def test_append_and_fsync_take_the_published_time(kind: str, attach: Attach, tmp_path: Path) -> None:
    """Within 10 % either way: the requests come one after the other, so their modelled times add up."""
    result = attach(kind, tmp_path / "volume")
    low_ms, high_ms = PUBLISHED_MS[kind]
    before_ns = _modelled_ns(result)
    took_ms = _append_and_fsync_ms(tmp_path / "volume")
    modelled_ms = (_modelled_ns(result) - before_ns) / 1e6 / SYNCS
    assert (low_ms - HOST_MS) * 0.9 <= modelled_ms <= high_ms * 1.1
    assert took_ms >= modelled_ms * EARLY, "answers left before their time"
    assert result.alive


def _modelled_ns(volume: AttachedVolume) -> int:
    counters = volume.stats()["counters"]
    return int(counters["read_modelled_ns"] + counters["write_modelled_ns"])


def _append_and_fsync_ms(folder: Path) -> float:
    """Mean time of one."""
    descriptor = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        begin = time.perf_counter()
        for _ in range(SYNCS):
            os.write(descriptor, bytes(8192))
            os.fsync(descriptor)
        return (time.perf_counter() - begin) * 1000 / SYNCS
    finally:
        os.close(descriptor)


@pytest.mark.needs_fio
def test_one_read_at_a_time_takes_the_tables_median(attach: Attach, tmp_path: Path) -> None:
    log = tmp_path / "log"
    result = attach("gp3", submit_log=log)
    table = result.spec["params"]["service_time"]["read"]
    row = next(row for row in table["rows"] if row["size_bytes"] == 4096)
    median_ms = row["service_ns"][table["probability_ppm"].index(500_000)] / 1e6
    job = Job("random", "read", 4, 1, 3)
    measured = fio.run(result.block_device, job)
    result.detach()
    modelled = model.predict(log, job, (50.0,))
    assert not off("p50", modelled.exact_ns[50.0] / 1e6, median_ms, 0.03)
    assert measured.latency_ms[50.0] >= median_ms * EARLY, "answers left before their time"
