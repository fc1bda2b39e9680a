"""What the measurements of speed share: devices over filled memory, and a row for each figure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine import awake
from tools.fidelity import device, fio
from tools.fidelity.cell import Job

if TYPE_CHECKING:
    from pgdyno.machine.volume import AttachedVolume


@pytest.fixture
def bench(state_dir: Path) -> Iterator[device.Bench]:
    """A filled image for pgdyno and a filled file of the same size for the others, in memory; idle CPUs poll for all of them."""
    with awake.kept_awake(wanted=awake.possible()), device.bench(state_dir) as made:
        yield made


@contextmanager
def emulated(bench: device.Bench, spec: str) -> Iterator[AttachedVolume]:
    """A volume whose blocks have been written, so that a write moves data and asks for no memory."""
    with device.pgdyno(bench, spec, seed=1, submit_log=None) as text:
        assert text.volume is not None
        fio.fill(text.path)
        yield text.volume


@dataclass(frozen=True)
class Speed:
    """One round of one device."""

    who: str
    iops: float
    median_us: float
    daemon_us: float | None
    """CPU of the whole daemon for each request."""

    def __str__(self) -> str:
        daemon = "" if self.daemon_us is None else f", {self.daemon_us:.1f} us of daemon CPU"
        return f"{self.who}: {self.iops:,.0f} IOPS, median {self.median_us:.1f} us{daemon}"


def of_volume(volume: AttachedVolume, job: Job, device: str | None = None) -> Speed:
    """What fio sees of an emulated volume, or of another ``device`` on its file, and what the volume's daemon spends on it."""
    before = volume.stats()["counters"]
    measured = fio.run(device or volume.block_device, job)
    after = volume.stats()["counters"]
    spent = {key: after[key] - before[key] for key in ("read_ops", "write_ops", "daemon_cpu_ns")}
    cpu_us = spent["daemon_cpu_ns"] / (spent["read_ops"] + spent["write_ops"]) / 1000
    return Speed(str(volume.spec["spec"]), measured.iops, measured.latency_ms[50.0] * 1000, cpu_us)


def of_device(who: str, path: str, job: Job) -> Speed:
    """What fio sees of another device."""
    measured = fio.run(path, job)
    return Speed(who, measured.iops, measured.latency_ms[50.0] * 1000, None)
