"""What is measured: a job of fio on a volume of one of four kinds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

Pattern = Literal["random", "sequential"]
Mix = Literal["read", "write", "70/30"]
World = Literal["pgdyno", "loop", "blk-throttle", "qemu"]
"""Who serves the volume: pgdyno; a plain loop device; that under the kernel's blk-throttle; QEMU's storage daemon."""

REGION_MIB = 512
"""The part of a volume that jobs use. It is written beforehand, so that reads move data, and fits in memory."""

READ_SHARE: dict[Mix, float] = {"read": 1.0, "write": 0.0, "70/30": 0.7}

_RW = {
    ("random", "read"): "randread",
    ("random", "write"): "randwrite",
    ("random", "70/30"): "randrw",
    ("sequential", "read"): "read",
    ("sequential", "write"): "write",
    ("sequential", "70/30"): "rw",
}


@dataclass(frozen=True)
class Job:
    """A job of fio with direct I/O; ``ramp_s`` seconds at its beginning do not count."""

    pattern: Pattern
    mix: Mix
    block_kib: int
    depth: int
    seconds: int
    ramp_s: int = 1

    @property
    def rw(self) -> str:
        """What fio calls the pattern and the mix."""
        return _RW[self.pattern, self.mix]

    def __str__(self) -> str:
        return f"{self.pattern} {self.mix}, {self.block_kib} KiB, depth {self.depth}"


@dataclass(frozen=True)
class Cell:
    """One point of the record before it is measured."""

    part: str
    """Which part of the record it belongs to: see :mod:`tools.fidelity.matrix`."""
    world: World
    volume: str
    """As a user writes it: ``gp3:iops=3000``."""
    job: Job
    repetition: int = 1
    dilation: int = 1
    """So many times slower than a real one. The job's seconds are real; every other figure is in the volume's time."""
    instance: str | None = None
    """Two such volumes are used at once, behind an instance of this type."""
    awake: bool = True
    """Whether idle CPUs poll meanwhile, where the machine lets us ask for it (docs/decision/0019-idle-cpus-poll.md)."""

    @property
    def key(self) -> str:
        """A name for its file; another job or volume has another one."""
        job = self.job
        words = f"{self.part} {self.world} {self.volume} {job.rw} {job.block_kib}k d{job.depth} {job.seconds}s"
        words += "" if self.instance is None else f" on {self.instance}"
        words += "" if self.dilation == 1 else f" dilated {self.dilation}"
        return re.sub(r"[^a-z0-9]+", "-", f"{words} {self.repetition}".lower())

    @property
    def takes_s(self) -> float:
        """About how long it takes, with attaching."""
        return self.job.seconds + self.job.ramp_s + 1.5


@dataclass(frozen=True)
class Limits:
    """The provisioned limits of a volume; ``None`` where there is none."""

    iops: int | None
    bytes_per_s: int | None
    unit_bytes: int
    read_tokens: int = 1
    write_tokens: int = 1
    """What a unit costs of the IOPS, where reads and writes have limits of their own (crates/volume/src/params.rs)."""
    whole_units: bool = False
    """Whether the throughput is charged whole units, as st1's and sc1's is."""

    @classmethod
    def of(cls, spec: dict[str, Any]) -> Limits:
        """From the engine's resolved specification; an array has the limits of its columns together."""
        array = spec["array"]
        params = array["member"]["params"] if array else spec["params"]
        columns = int(array["columns"]) if array else 1
        limits = (params["iops_limit"], params["throughput_limit"])
        iops, bytes_per_s = [limit and columns * int(limit["rate_per_s"]) for limit in limits]
        cost = params.get("cost", {})
        return cls(iops, bytes_per_s, int(params["accounting"]["unit_bytes"]), **cost)

    def asked_iops(self, job: Job) -> float | None:
        """Requests a second that the limits allow; service time may keep a volume below it. None without a limit.

        A sequential job with more than one request outstanding is merged up to the I/O unit, one that waits for each
        request is not (docs/concept/volume/split_merge.md).
        """
        block_bytes = job.block_kib << 10
        merged = job.pattern == "sequential" and job.depth > 1
        units = block_bytes / self.unit_bytes if merged else -(-block_bytes // self.unit_bytes)
        share = READ_SHARE[job.mix]
        tokens = units * (share * self.read_tokens + (1 - share) * self.write_tokens)
        charged_bytes = units * self.unit_bytes if self.whole_units else block_bytes
        limits = ((self.iops, tokens), (self.bytes_per_s, charged_bytes))
        return min((rate / cost for rate, cost in limits if rate is not None), default=None)
