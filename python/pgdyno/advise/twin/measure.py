"""The order of the questions: what is asked of the disk, and of a null volume beside it, within five minutes.

Buckets decide the order. They are full only after rest, so the jobs with little load come before the saturated ones, and
what a single client sees for good comes while they are empty.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...base.errors import HostError, InputError
from ...machine import mounts, volume
from ...machine.journal import HostJournal
from ...machine.process import own_name
from ...machine.scratch import scratch_directory
from ...machine.volume import AttachedVolume
from . import fio
from .fio import FioJob, JobResult, Op
from .fit import PAGE_KIB, Measurements, PathCost, ambiguous_unit_kib, limit_of, mix_for, require_slower_than_the_floor

SPARE_SHARE = 0.05
"""Share of a file system that stays free beside the file. A disk that is nearly full is slower than itself, and others need room."""
MIB = 1 << 20


@dataclass(frozen=True)
class FioTarget:
    """What fio is let loose on."""

    path: str
    """What fio opens."""
    shown: str
    """What the user wrote, absolute."""
    region_bytes: int
    """The part that is written and read."""
    disk_bytes: int
    """Size of the file system, or of the device: the twin's size."""
    device: str
    """The block device below, as ``/dev/vda``; or the file system's source if that is not a device."""
    file_system: str | None
    """Type of the file system; ``None`` for a bare device."""


@contextmanager
def opened(path: Path, region_bytes: int, *, overwrite: bool) -> Iterator[FioTarget]:
    """A target for the length of a ``with`` block. Refuses what is in use, what already exists, and too little space."""
    if _is_block_device(path):
        yield _device(path, region_bytes, overwrite=overwrite)
        return
    folder = _folder(path)
    _require_room(folder, region_bytes)
    descriptor = _nameless_file(folder)
    try:
        _allocate(descriptor, region_bytes, folder)
        device, kind = _file_system_of(folder)
        yield FioTarget(
            path=f"/proc/{os.getpid()}/fd/{descriptor}",
            shown=str(path.absolute()),
            region_bytes=region_bytes,
            disk_bytes=shutil.disk_usage(folder).total // MIB * MIB,
            device=device,
            file_system=kind,
        )
    finally:
        os.close(descriptor)


def _is_block_device(path: Path) -> bool:
    try:
        return stat.S_ISBLK(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"{path} cannot be looked at: {error.strerror}", remedy="name a directory of the disk"
        ) from None


def _folder(path: Path) -> Path:
    """The directory in which the file is made: ``path``, or the one of the new file that it names."""
    if path.is_dir():
        return path.resolve()
    if path.exists():
        raise InputError(
            f"{path} already exists, and fitting would overwrite it",
            remedy="name a directory on the disk, or a file that does not exist yet",
        )
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent}", remedy="name a directory on the disk")
    return path.parent.resolve()


def _nameless_file(folder: Path) -> int:
    try:
        descriptor, name = tempfile.mkstemp(prefix=".pgdyno-fit-", dir=folder)
    except OSError as error:
        raise HostError(f"no file can be made in {folder}: {error.strerror}", remedy="name another directory") from None
    Path(name).unlink()
    return descriptor


def _allocate(descriptor: int, region_bytes: int, folder: Path) -> None:
    try:
        os.posix_fallocate(descriptor, 0, region_bytes)
    except OSError as error:
        raise HostError(
            f"{folder} has no room for {region_bytes / MIB:,.0f} MiB: {error.strerror}",
            remedy="free some space, or choose a smaller --region",
        ) from None


def _require_room(folder: Path, region_bytes: int) -> None:
    usage = shutil.disk_usage(folder)
    needed = region_bytes + SPARE_SHARE * usage.total
    if usage.free < needed:
        raise HostError(
            f"fitting writes a file of {region_bytes / MIB:,.0f} MiB and leaves {SPARE_SHARE:.0%} of the disk free, and"
            f" {folder} has {usage.free / MIB:,.0f} MiB free of {usage.total / MIB:,.0f}",
            remedy="free some space, or choose a smaller --region",
        )


def _device(path: Path, region_bytes: int, *, overwrite: bool) -> FioTarget:
    if not overwrite:
        raise InputError(
            f"{path} is a block device, and fitting would overwrite what is on it",
            remedy="name a directory of its file system, or give its content up with --overwrite-device",
        )
    try:
        # Exclusively: the kernel refuses a device that is mounted, swapped to, or part of another one.
        descriptor = os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(
            f"{path} cannot be had alone: {error.strerror}", remedy="unmount it, and run the command as root"
        ) from None
    try:
        size_bytes = os.lseek(descriptor, 0, os.SEEK_END) // MIB * MIB
    finally:
        os.close(descriptor)
    if size_bytes < region_bytes:
        raise HostError(
            f"{path} has {size_bytes / MIB:,.0f} MiB, and {region_bytes / MIB:,.0f} MiB were to be measured",
            remedy="choose a smaller --region",
        )
    real = str(path.resolve())
    return FioTarget(real, str(path.absolute()), region_bytes, size_bytes, real, None)


def _file_system_of(folder: Path) -> tuple[str, str | None]:
    """Source and type of the mount that holds ``folder``: the deepest, and of those at one place the last."""
    holding = [mount for mount in mounts.mounts() if mount.target == folder or mount.target in folder.parents]
    if not holding:
        return "unknown", None
    result = max(holding, key=lambda mount: (len(mount.target.parts), mount.mount_id))
    return result.source, result.fstype


SIZES_KIB = (4, 8, 16, 64, 256)
"""Sizes of the service time jobs: PostgreSQL's page and its neighbours, a checkpoint's and a scan's merged requests."""
OPS: tuple[Op, Op] = ("read", "write")
LARGE_KIB = 1024
"""Large enough that throughput binds before IOPS on every type of volume in the catalogue."""
MANY_DEPTH = 64
"""More than IOPS times latency of any volume that this machine can emulate (16,000 a second at 1 ms is 16)."""
LEAST_REGION_MIB = 64
"""What a disk must take in within the time for filling; below it there is nothing to measure on."""
NULL_REGION_BYTES = 64 * MIB
LIGHT_SHARE = 4
"""Light jobs ask for one in so many of the requests, or bytes, that the disk can do: nothing queues, and buckets fill."""
LIGHT_PER_S = (10, 500)
"""At least, so that there is something to see, and at most, so that the machine sleeps in between as a server's does."""
Tell = Callable[[float, float, str], None]
"""Told how many seconds are done, of how many, and what comes next."""


@dataclass(frozen=True)
class JobSchedule:
    """Seconds of each kind of job. The defaults come to about two and a half minutes."""

    fill: int = 60
    probe: int = 3
    alone: int = 3
    light: int = 4
    null: int = 2
    many: int = 12
    large: int = 10
    second: int = 5
    """Jobs whose bucket an earlier job has emptied."""

    @classmethod
    def quick(cls) -> JobSchedule:
        """About a third of the time: buckets of more than a second are not seen, and rare latencies hardly."""
        return cls(fill=20, probe=1, alone=2, light=1, null=1, many=5, large=5, second=3)

    def plan(self, region_mib: int) -> dict[str, FioJob]:
        """Every job on the disk by its name, but for the rate of the light ones, in order."""
        plan = {"fill": FioJob("write", 1024, 8, self.fill, random=False, most_mib=region_mib)}
        for op in OPS:
            plan[f"probe {op}"] = FioJob(op, 4, MANY_DEPTH, self.probe, most_mib=512)
        for op in OPS:
            plan[f"alone {op}"] = FioJob(op, PAGE_KIB, 1, self.alone, synced=op == "write")
        for op in OPS:
            for size in SIZES_KIB:
                plan[f"light {op} {size}"] = FioJob(op, size, 1, self.light, synced=op == "write", most_mib=512)
        plan["many write"] = FioJob("write", 4, MANY_DEPTH, self.many, logged=True, most_mib=2048)
        plan["many read"] = FioJob("read", 4, MANY_DEPTH, self.second, logged=True)
        plan["large write"] = FioJob("write", LARGE_KIB, 16, self.large, logged=True, most_mib=8192)
        plan["large read"] = FioJob("read", LARGE_KIB, 16, self.second, logged=True)
        plan["mixed"] = FioJob("write", 4, MANY_DEPTH, self.second, most_mib=1024)
        plan["sequential"] = FioJob("read", 16, 32, self.second, random=False)
        return plan

    def most_written_mib(self, region_mib: int) -> int:
        """What is written to the disk at most; a slower disk is written less in the same time."""
        return sum(job.most_mib for job in self.plan(region_mib).values() if job.op == "write")

    def takes_s(self, region_mib: int) -> float:
        """About how long all of it takes on a disk that fills the region in half of the time for it."""
        plan = self.plan(region_mib)
        nulls = sum(self.null + plan[name].takes_s - plan[name].seconds for name in plan if name.split()[0] in _ON_NULL)
        return sum(job.takes_s for job in plan.values()) - self.fill / 2 + nulls + _ATTACH_S


_ON_NULL = ("alone", "light")
_ATTACH_S = 4.0


@dataclass
class _JobRunner:
    """Asks jobs one after the other and keeps count."""

    target: FioTarget
    scratch: Path
    total_s: float
    tell: Tell
    done_s: float = 0.0
    written_bytes: int = 0
    answers: dict[str, JobResult] = field(default_factory=dict)

    def disk(self, name: str, job: FioJob, region_bytes: int) -> JobResult:
        self.tell(self.done_s, self.total_s, name)
        answer = fio.ask(self.target.path, region_bytes, job, self.scratch)
        self.answers[name] = answer
        self.written_bytes += answer.written_bytes
        self.done_s += job.takes_s
        return answer

    def null(self, name: str, job: FioJob, path: str, seconds: int) -> JobResult:
        self.tell(self.done_s, self.total_s, f"emulator: {name}")
        answer = fio.ask(path, NULL_REGION_BYTES, replace(job, seconds=seconds), self.scratch)
        self.done_s += seconds
        return answer


def measure(target: FioTarget, schedule: JobSchedule, *, state_dir: Path, tell: Tell) -> Measurements:
    """Ask everything. :class:`HostError` when the disk is too slow to be filled, or too fast to be emulated."""
    region_mib = target.region_bytes // MIB
    plan = schedule.plan(region_mib)
    with scratch_directory(state_dir) as scratch:
        asking = _JobRunner(target, scratch, schedule.takes_s(region_mib), tell)
        filled = asking.disk("fill", plan["fill"], target.region_bytes)
        asking.done_s = schedule.fill / 2
        region_bytes = min(target.region_bytes, filled.written_bytes // MIB * MIB)
        if region_bytes < LEAST_REGION_MIB * MIB:
            raise HostError(
                f"{target.shown} took {filled.written_bytes / MIB:.0f} MiB in {schedule.fill} s, which is not enough"
                f" to measure on ({LEAST_REGION_MIB} MiB)",
                remedy="see whether something else keeps the disk busy",
            )

        def disk(name: str) -> JobResult:
            return asking.disk(name, plan[name], region_bytes)

        probes = {op: disk(f"probe {op}") for op in OPS}
        plan |= {
            name: replace(job, rate_per_s=_light_per_s(job.block_kib, probes[job.op].per_s, filled.bytes_per_s))
            for name, job in plan.items()
            if name.startswith("light")
        }
        alone = {op: disk(f"alone {op}") for op in OPS}
        null_alone, null_light, path = _null(asking, plan, schedule, state_dir)
        require_slower_than_the_floor(target.shown, alone, null_alone)
        light = {(op, size): disk(f"light {op} {size}") for op in OPS for size in SIZES_KIB}
        many = {op: disk(f"many {op}") for op in reversed(OPS)}
        large = {op: disk(f"large {op}") for op in reversed(OPS)}
        mixed = None
        unit_kib = ambiguous_unit_kib(limit_of(many["write"]).per_s, limit_of(large["write"]).per_s * LARGE_KIB)
        if unit_kib is not None:
            mixed = asking.disk("mixed", mix_for(unit_kib, plan["mixed"]), region_bytes)
        sequential = disk("sequential")
    return Measurements(
        alone=alone,
        light=light,
        many=many,
        large=large,
        mixed=mixed,
        sequential=sequential,
        null_alone=null_alone,
        null_light=null_light,
        path=path,
        written_bytes=asking.written_bytes,
    )


def _light_per_s(block_kib: int, small_per_s: float, bytes_per_s: float) -> int:
    """Requests a second of a light job, given what the disk did of small ones and of bytes."""
    most = min(small_per_s, bytes_per_s / 1024 / block_kib) / LIGHT_SHARE
    return round(min(max(most, LIGHT_PER_S[0]), LIGHT_PER_S[1]))


def _null(
    asking: _JobRunner, plan: dict[str, FioJob], schedule: JobSchedule, state_dir: Path
) -> tuple[dict[Op, JobResult], dict[tuple[Op, int], JobResult], dict[Op, PathCost]]:
    """The same light jobs on a volume that takes no time: what fio and the emulator cost by themselves."""
    asking.tell(asking.done_s, asking.total_s, "attaching a null volume")
    with _null_target(asking.target.file_system is None, state_dir) as (null_target, path):
        asking.done_s += _ATTACH_S
        fio.ask(path, NULL_REGION_BYTES, replace(plan["fill"], most_mib=NULL_REGION_BYTES // MIB), asking.scratch)
        alone = {op: asking.null(f"alone {op}", plan[f"alone {op}"], path, schedule.null) for op in OPS}
        light = {
            (op, size): asking.null(f"light {op} {size}", plan[f"light {op} {size}"], path, schedule.null)
            for op in OPS
            for size in SIZES_KIB
        }
        overhead = null_target.facts["base_overhead"]
        costs = {op: PathCost(int(overhead[op]["fixed_ns"]), int(overhead[op]["per_kib_ps"])) for op in OPS}
    return alone, light, costs


@contextmanager
def _null_target(bare: bool, state_dir: Path) -> Iterator[tuple[AttachedVolume, str]]:
    """A null volume and what fio opens on it: a file as on the disk, or the device where the disk is one."""
    if bare:
        with volume.attached("null:size=1GiB", mount=None, state_dir=state_dir) as result:
            yield result, result.block_device
        return
    with (
        HostJournal(state_dir).directory(state_dir / "mounts" / own_name("fit")) as mount,
        volume.attached("null:size=1GiB", mount=mount, state_dir=state_dir) as result,
    ):
        file = mount / "fit"
        with file.open("wb") as made:
            made.truncate(NULL_REGION_BYTES)
        yield result, str(file)
