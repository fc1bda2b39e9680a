"""The four kinds of volume as block devices: pgdyno's, a plain loop device, one under blk-throttle, QEMU's.

All four are loop devices with direct I/O over memory. A mount that comes late would leave a plain file, and every
figure would be that file's: so each device is proven before it is used. Nothing outlives this process: its loop devices
go with their last descriptor, which it holds, and QEMU's daemon is told when its parent dies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import HostError
from pgdyno.machine import cgroup, mounts, paths, volume
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.volume import AttachedVolume
from pgdyno.machine.waiting import wait_until
from tools.fidelity import fio
from tools.fidelity.cell import REGION_MIB, Limits

BLKIO = Path("/sys/fs/cgroup/blkio")
"""Version 1, whose limits a plain loop device obeys. Version 2 has the same throttle behind ``io.max``."""
QEMU = "qemu-storage-daemon"
PATIENCE_S = 10.0


@dataclass(frozen=True)
class Device:
    """A block device under test."""

    path: str
    launcher: tuple[str, ...] = ()
    """What has to stand in front of fio's command line."""
    volume: AttachedVolume | None = None
    other: AttachedVolume | None = None
    """A second one on the same instance, used together with it."""

    @property
    def filename(self) -> str:
        """All of it as fio names files."""
        return self.path if self.other is None else f"{self.path}:{self.other.block_device}"


Opened = AbstractContextManager[Device]
"""A device for the length of a ``with`` block."""


@dataclass(frozen=True)
class Bench:
    """What all devices stand on: a filled image for pgdyno, a filled file of the same size for the others."""

    folder: Path
    image: Path
    file: Path
    state_dir: Path


@contextmanager
def bench(state_dir: Path) -> Iterator[Bench]:
    """Fill the region once, where images are kept (in memory), to be cloned or shared by every device."""
    with HostJournal(state_dir).directory(paths.image_dir() / f"fidelity-{os.getpid()}") as folder:
        made = Bench(folder, folder / "image", folder / "region", state_dir)
        with volume.attached("null", mount=None, state_dir=state_dir, name=f"fill-{os.getpid()}") as filled:
            fio.fill(filled.block_device)
            filled.detach(save_image=made.image)
        with made.file.open("wb") as file:
            file.truncate(REGION_MIB << 20)
        with plain_loop(made) as device:
            fio.fill(device.path)
        yield made


@contextmanager
def pgdyno(bench: Bench, spec: str, *, seed: int, submit_log: Path | None, dilation: int = 1) -> Iterator[Device]:
    """An emulated volume, with full buckets."""
    with volume.attached(
        spec,
        mount=None,
        image=bench.image,
        seed=seed,
        submit_log=submit_log,
        state_dir=bench.state_dir,
        dilation=dilation,
    ) as result:
        yield Device(result.block_device, volume=result)


@contextmanager
def pair(bench: Bench, spec: str, instance_type: str, *, seed: int) -> Iterator[Device]:
    """Two emulated volumes on one instance, with full buckets."""
    name = f"fidelity-{os.getpid()}"
    with ExitStack() as stack:
        result, other = (
            stack.enter_context(
                volume.attached(
                    spec,
                    mount=None,
                    image=bench.image,
                    seed=seed,
                    state_dir=bench.state_dir,
                    instance=name,
                    instance_type=instance_type,
                )
            )
            for _ in range(2)
        )
        yield Device(result.block_device, volume=result, other=other)


@contextmanager
def plain_loop(bench: Bench) -> Iterator[Device]:
    """A loop device over the file in memory."""
    with _loop(bench.file, fstype=None) as path:
        yield Device(path)


@contextmanager
def blk_throttle(bench: Bench, limits: Limits, read_share: float) -> Iterator[Device]:
    """A plain loop device under the kernel's throttle, by a control group that fio joins.

    The throttle limits reads and writes apart and has no limit on their sum: each gets its share of the mix.
    """
    journal = HostJournal(bench.state_dir)
    group = BLKIO / cgroup.PARENT / f"fidelity-{os.getpid()}"
    entry = journal.record("cgroup", path=str(group))
    group.mkdir(parents=True)
    try:
        with _loop(bench.file, fstype=None) as path:
            number = Path(path).stat().st_rdev
            for op, share in (("read", read_share), ("write", 1 - read_share)):
                for unit, limit in (("iops", limits.iops), ("bps", limits.bytes_per_s)):
                    if limit is not None and share > 0:
                        rule = f"{os.major(number)}:{os.minor(number)} {round(limit * share)}"
                        (group / f"blkio.throttle.{op}_{unit}_device").write_text(rule)
            join = 'echo $$ > "$0" && exec "$@"'
            yield Device(path, ("/bin/sh", "-c", join, str(group / "cgroup.procs")))
    finally:
        if wait_until(lambda: cgroup.remove(group), PATIENCE_S):
            journal.done(entry)


@contextmanager
def qemu(bench: Bench, limits: Limits) -> Iterator[Device]:
    """QEMU's storage daemon: its throttle filter over the file, exported by FUSE, a loop device on that."""
    export = bench.folder / "export"
    export.touch()
    throttle = [f"limits.iops-total={limits.iops}", f"limits.iops-size={limits.unit_bytes}"] if limits.iops else []
    throttle += [f"limits.bps-total={limits.bytes_per_s}"] if limits.bytes_per_s else []
    # Unless told to unmap, QEMU ignores what the kernel takes for zeroing, and a file system on it would find old content.
    command = [
        *("setpriv", "--pdeathsig", "TERM", QEMU),
        *("--blockdev", f"driver=file,node-name=file,filename={bench.file},cache.direct=on,aio=threads,discard=unmap"),
        *("--object", ",".join(["throttle-group,id=limits", *throttle])),
        *("--blockdev", "driver=throttle,node-name=throttle,throttle-group=limits,file=file,discard=unmap"),
        *("--export", f"type=fuse,id=export,node-name=throttle,mountpoint={export},writable=on"),
    ]
    with (bench.folder / "qemu.log").open("wb") as log:
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        if not wait_until(lambda: mounts.is_mount_point(export) or daemon.poll() is not None, PATIENCE_S):
            raise HostError(f"{QEMU} did not mount {export}", remedy="see whether it was built with FUSE")
        if daemon.poll() is not None:
            text = (bench.folder / "qemu.log").read_text(errors="replace").strip()
            raise HostError(f"{QEMU} ended: {text[-500:]}", remedy="see whether it was built with FUSE")
        with _loop(export, fstype="fuse") as path:
            yield Device(path)
    finally:
        daemon.terminate()
        daemon.wait(PATIENCE_S)
        for mount in mounts.mounts_below(export):
            mounts.unmount_at_once(mount)
        export.unlink()


def missing(world: str) -> str | None:
    """Why this machine cannot have a kind of volume; ``None`` when it can."""
    if world == "blk-throttle" and not (BLKIO / "blkio.throttle.read_iops_device").exists():
        return "no control group of version 1 with blkio is mounted"
    if world == "qemu" and shutil.which(QEMU) is None:
        return f"{QEMU} is not installed (apt install qemu-system-common)"
    return None


@contextmanager
def _loop(file: Path, fstype: str | None) -> Iterator[str]:
    """A loop device with direct I/O on ``file``, which must be a mount of ``fstype`` if that is given."""
    path = subprocess.run(
        ["losetup", "--direct-io=on", "--find", "--show", str(file)], capture_output=True, text=True, check=True
    ).stdout.strip()
    # Detaching a device that is open only marks it: it goes with the last descriptor, however this process ends.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        subprocess.run(["losetup", "-d", path], check=True)
        _prove(path, file, fstype)
        yield path
    finally:
        os.close(descriptor)
        if not wait_until(lambda: path not in {loop.device for loop in mounts.loops()}, PATIENCE_S):
            raise HostError(f"{path} is still in use", remedy="end what uses it; then it goes by itself")


def _prove(path: str, file: Path, fstype: str | None) -> None:
    """What stands behind the device is what was asked for, and the kernel adds no schedule or throttle of its own."""
    queue = Path("/sys/block") / Path(path).name
    document = {
        "backing file": (queue / "loop/backing_file").read_text().strip(),
        "direct I/O": (queue / "loop/dio").read_text().strip(),
        "size": int((queue / "size").read_text()) * 512,
        "mounts": [mount.fstype.split(".")[0] for mount in mounts.mounts() if mount.target == file],
    }
    wanted = {
        "backing file": str(file),
        "direct I/O": "1",
        "size": REGION_MIB << 20,
        "mounts": [fstype] if fstype else [],
    }
    if document != wanted:
        raise HostError(f"{path} is not what was asked for: {document}, wanted {wanted}", remedy="run it again")
    for name, value in (("scheduler", "none"), ("wbt_lat_usec", "0")):
        setting = queue / "queue" / name
        if setting.exists():
            setting.write_text(value)
