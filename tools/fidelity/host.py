"""What the host did meanwhile, second by second: the device's own counters, CPU stolen by the hypervisor, CPU pressure."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pydantic import BaseModel

SECTOR_BYTES = 512
_TRIES = 5
_TOGETHER_NS = 200_000
"""Clock and counter that were read further apart than this are read again: 0.2 ms are 0.02 % of a second."""


class Second(BaseModel, frozen=True):
    """About one second of a job."""

    begin_ns: int
    """CLOCK_MONOTONIC."""
    length_ns: int
    requests: int
    bytes: int
    steal_ticks: int
    """CPU time that the hypervisor gave to others, all cores, in ticks of 10 ms."""
    cpu_pressure_us: int
    """Time in which some task waited for a CPU; 0 where the kernel does not say."""


@dataclass(frozen=True)
class _Sample:
    t_ns: int
    requests: int
    sectors: int
    steal_ticks: int
    cpu_pressure_us: int


class HostSampler:
    """Samples once a second for the length of a ``with`` block; :attr:`seconds` has the result."""

    def __init__(self, block_device: str) -> None:
        self._stat = Path("/sys/block") / Path(block_device).name / "stat"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="host-sampler", daemon=True)
        self._samples: list[_Sample] = []

    def __enter__(self) -> HostSampler:
        self._samples.append(self._sample())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._samples.append(self._sample())

    @property
    def seconds(self) -> list[Second]:
        """The intervals between samples, in order; the last one may be shorter."""
        pairs = zip(self._samples, self._samples[1:], strict=False)
        return [
            Second(
                begin_ns=before.t_ns,
                length_ns=after.t_ns - before.t_ns,
                requests=after.requests - before.requests,
                bytes=(after.sectors - before.sectors) * SECTOR_BYTES,
                steal_ticks=after.steal_ticks - before.steal_ticks,
                cpu_pressure_us=after.cpu_pressure_us - before.cpu_pressure_us,
            )
            for before, after in pairs
        ]

    def _run(self) -> None:
        due = time.monotonic() + 1.0
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self._samples.append(self._sample())
            due += 1.0

    def _sample(self) -> _Sample:
        for _ in range(_TRIES):
            before_ns = time.monotonic_ns()
            fields = self._stat.read_text().split()
            after_ns = time.monotonic_ns()
            if after_ns - before_ns < _TOGETHER_NS:
                break
        requests, sectors = int(fields[0]) + int(fields[4]), int(fields[2]) + int(fields[6])
        return _Sample((before_ns + after_ns) // 2, requests, sectors, steal_ticks(), _cpu_pressure_us())


def requests_of(block_device: str) -> int:
    """Requests that a block device has completed."""
    fields = (Path("/sys/block") / Path(block_device).name / "stat").read_text().split()
    return int(fields[0]) + int(fields[4])


def steal_ticks() -> int:
    """Stolen CPU time since boot, all cores (proc(5))."""
    with Path("/proc/stat").open() as file:
        return int(file.readline().split()[8])


def _cpu_pressure_us() -> int:
    try:
        line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return 0
    return int(line.rsplit("=", 1)[1])


def steady(seconds: list[Second], ramp_s: int) -> list[Second]:
    """The seconds in which the job ran at its pace: after its ramp, and before it began to end.

    When exactly fio began is not known; a second is left out at either end for that.
    """
    active = [index for index, second in enumerate(seconds) if second.requests]
    if not active:
        return []
    return seconds[active[0] + ramp_s + 1 : active[-1]]
