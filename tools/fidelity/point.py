"""A measured point, and the folder that keeps them: one JSON file each, whole distributions, nothing thrown away."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel

from pgdyno.base import engine
from pgdyno.machine import awake
from pgdyno.machine.memory import meminfo_bytes
from tools.fidelity.cell import Cell
from tools.fidelity.host import Second, steady
from tools.fidelity.latency import Latency

PERCENTILES = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0)


class Side(BaseModel, frozen=True):
    """Rate and latency, as measured or as modelled."""

    iops: float
    mib_per_s: float
    latency_ns: list[tuple[int, int]]
    """(middle of fio's bin, count)."""
    exact_ns: dict[float, float] | None = None
    """Percentiles from single values, where those were known."""

    @property
    def latency(self) -> Latency:
        """The distribution."""
        return Latency.of_bins(self.latency_ns)

    def percentile_ns(self, percent: float) -> float:
        """From single values where known, else from the bins."""
        exact = (self.exact_ns or {}).get(percent)
        return self.latency.percentile_ns(percent) if exact is None else exact


class Daemon(BaseModel, frozen=True):
    """What pgdyno's own counters say of the job, with its ramp."""

    requests: int
    late: int
    """Released more than 5 % of their modelled latency after their time."""
    overrun: int
    lateness_ns: int
    modelled_ns: int
    lateness_p99_ns: float
    cpu_ns_per_request: float
    path_read_ns: int
    path_write_ns: int
    """What the way through the kernel was measured to cost at attach, for 8 KiB: answers go out so much earlier."""
    replay_identical: int
    replay_grants: int
    """Both 0 for a volume without a log: one without a model of its own."""


class Paired(BaseModel, frozen=True):
    """Single requests as fio timed them, each against the model's time of the same request."""

    requests: int
    close: int
    """Within :data:`tools.fidelity.pairing.CLOSE` of it."""
    median_error: float
    """The middle one of the errors, a share."""

    @property
    def close_share(self) -> float:
        """Share of the requests that are close."""
        return self.close / self.requests


class Point(BaseModel, frozen=True):
    """One cell, measured."""

    cell: Cell
    begin: datetime
    asked_iops: float | None
    measured: Side
    modelled: Side | None = None
    daemon: Daemon | None = None
    paired: Paired | None = None
    """Where each request was held against its own modelled time."""
    seconds: list[Second]
    tries: int = 1
    """Measured so often until the host gave its CPU (see ``STEAL_DISTURBS`` in :mod:`tools.fidelity.measure`)."""

    @property
    def steady_seconds(self) -> list[Second]:
        """Seconds at the job's pace."""
        return steady(self.seconds, self.cell.job.ramp_s)

    def __str__(self) -> str:
        sides = [("measured", self.measured), *([("modelled", self.modelled)] if self.modelled else [])]
        shown = (f"{name} {side.iops:,.1f} IOPS, p50 {side.percentile_ns(50) / 1e3:,.1f} µs" for name, side in sides)
        return f"{self.cell.world} {self.cell.volume} {self.cell.job}: {'; '.join(shown)}"

    def iops_of(self, second: Second) -> float:
        """Requests of fio a second; the kernel may have merged or split them, so bytes are counted."""
        return second.bytes / (self.cell.job.block_kib << 10) / second.length_ns * 1e9


class Machine(BaseModel, frozen=True):
    """Where and with what a record was measured."""

    build_hash: str
    cores: int
    memory_gib: int
    kernel: str
    processor: str
    fio: str
    qemu: str
    awake: bool = False
    """Whether idle CPUs can be kept polling, as they are for most cells."""

    @classmethod
    def here(cls) -> Machine:
        """This one."""
        models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("processor")]
        return cls(
            build_hash=engine.facts().build_hash,
            cores=len(cpus),
            memory_gib=round(meminfo_bytes()["MemTotal"] / 2**30),
            kernel=platform.release(),
            processor=models[0].split(":", 1)[1].strip() if models else platform.machine(),
            fio=_said("fio", "--version"),
            qemu=_said("qemu-storage-daemon", "--version"),
            awake=awake.possible(),
        )


def _said(*command: str) -> str:
    """The first line that a program says, or that it is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "not installed"


class Record:
    """A folder of points of one build on one machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._machine_file = folder / "machine.json"
        self._repeated_file = folder / "repeated.txt"

    @classmethod
    def resumed(cls, root: Path, cells: list[Cell]) -> Record:
        """The latest record below ``root``, if of this build and machine and without some of ``cells``, or a new one."""
        machine = Machine.here()
        for folder in sorted(root.glob("[0-9]*"), reverse=True)[:1]:
            record = cls(folder)
            if record.machine == machine and any(not record.has(cell) for cell in cells):
                return record
        record = cls(root / cls._now())
        record.folder.mkdir(parents=True)
        record._machine_file.write_text(machine.model_dump_json(indent=1))
        return record

    @classmethod
    def latest(cls, root: Path) -> Record | None:
        """The latest record below ``root``, whatever its build."""
        return next((cls(folder) for folder in sorted(root.glob("[0-9]*"), reverse=True)), None)

    @property
    def machine(self) -> Machine:
        """Where it was measured."""
        return Machine.model_validate_json(self._machine_file.read_text())

    def has(self, cell: Cell) -> bool:
        """Whether the cell is measured."""
        return self._file(cell).exists()

    def add(self, point: Point) -> None:
        """Keep a point; it is either whole or absent."""
        file = self._file(point.cell)
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(point.model_dump_json())
        unfinished.rename(file)

    def repeats(self, part: str) -> None:
        """Note that a part is measured anew."""
        self._repeated_file.write_text("\n".join([*self.repeated(), part]) + "\n")

    def repeated(self) -> list[str]:
        """Parts that were measured anew, once for each time."""
        return self._repeated_file.read_text().split() if self._repeated_file.exists() else []

    def points(self) -> list[Point]:
        """All points in the order in which they were measured."""
        files = (file for file in self.folder.glob("*.json") if file != self._machine_file)
        return sorted((Point.model_validate_json(file.read_text()) for file in files), key=lambda point: point.begin)

    @staticmethod
    def _now() -> str:
        return datetime.now(UTC).strftime("%Y%m%d-%H%M%S")

    def _file(self, cell: Cell) -> Path:
        return self.folder / f"{cell.key}.json"
