"""Restored volumes that programs of others look at: fio verifies one, fsck of the other, both used while they were taken."""

from __future__ import annotations

import subprocess
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base.errors import HostError
from pgdyno.machine import program, snapshot, snapshot_delete, volume
from tools.snapshot.server import FAST_MIB_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.machine.file_system import FileSystem
    from pgdyno.machine.snapshot_file import VolumeSnapshot
    from tools.snapshot.record import Restores

REGION_MIB = 16
"""What fio writes before each set, to be verified; beside it another fio goes on writing."""
OF_A_VOLUME = 25
"""Restores of a chain; then new volumes, on the other file system."""
CHECKS = {"ext4": ("e2fsck", "-f", "-n"), "xfs": ("xfs_repair", "-n")}


def look_at(folder: Path, count: int, restores: Restores) -> None:
    """Take the next sets, a chain of them or ``count``, restore each, and let fio and fsck look at it."""
    file_system: FileSystem = "ext4" if restores.restored // OF_A_VOLUME % 2 == 0 else "xfs"
    _chain(folder, file_system, min(OF_A_VOLUME, count), restores)


def _chain(folder: Path, file_system: FileSystem, count: int, restores: Restores) -> None:
    with ExitStack() as stack:
        blocks = stack.enter_context(
            volume.attached("null:size=1GiB", mount=None, name="blocks", instance="db", calibrate=False)
        )
        files = stack.enter_context(
            volume.attached(
                "null:size=1GiB",
                mount=folder / "files",
                name="files",
                instance="db",
                file_system=file_system,
                calibrate=False,
            )
        )
        stack.enter_context(_writing(blocks.block_device))
        stack.enter_context(_churn(folder / "files"))
        for number in range(count):
            written = restores.restored + 1
            _fio(blocks.block_device, written, "--do_verify=0")
            taken = snapshot.take([blocks, files], rate_mib_per_s=FAST_MIB_PER_S).snapshots
            try:
                with _restored(taken[0]) as device:
                    _fio(device, written, "--verify_only")
            except HostError as error:
                restores.fio_faults.append(f"{file_system} {number}: {error.message}"[:200])
            try:
                with _restored(taken[1]) as device:
                    _checked(device, file_system, folder / "checked")
            except HostError as error:
                restores.fsck_faults.append(f"{file_system} {number}: {error.message}"[:200])
            snapshot_delete.delete(taken, blocks.state_dir)
            restores.restored += 1


@contextmanager
def _restored(volume_snapshot: VolumeSnapshot) -> Iterator[str]:
    attached = snapshot.restore(volume_snapshot, mount=None, name="restored", calibrate=False)
    try:
        yield attached.block_device
    finally:
        attached.detach()


def _fio(device: str, number: int, *options: str) -> None:
    """Write or verify the first region, whose blocks are filled with their place and this number: an older content is found, too."""
    program.run(
        *("fio", "--name=checked", f"--filename={device}", f"--size={REGION_MIB}m", "--direct=1", "--bs=4k"),
        *("--ioengine=libaio", "--iodepth=16", "--rw=write", "--verify=pattern", f"--verify_pattern=%o0x{number:08x}"),
        *("--verify_fatal=1", "--verify_state_save=0", *options),
    )


@contextmanager
def _writing(device: str) -> Iterator[None]:
    """Another fio writes behind that region for the length of a ``with`` block."""
    command = [
        *(
            "fio",
            "--name=load",
            f"--filename={device}",
            f"--offset={REGION_MIB}m",
            f"--size={REGION_MIB}m",
            "--direct=1",
        ),
        *("--ioengine=libaio", "--iodepth=8", "--rw=randwrite", "--bs=8k", "--rate_iops=3000", "--time_based"),
        *("--runtime=86400", "--output=/dev/null"),
    ]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def _churn(folder: Path) -> Iterator[None]:
    """Files are made, renamed and removed, so that the journal of the file system has work."""
    stop = threading.Event()

    def work() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            file = folder / f"new-{number % 50}"
            file.write_bytes(bytes([number % 251]) * (number % 40 * 1024))
            file.rename(folder / f"file-{number % 50}")
            if number % 10 == 0:
                program.run("sync", "--file-system", folder)
            if number % 7 == 0:
                (folder / f"file-{number % 50}").unlink()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _checked(device: str, file_system: str, mount: Path) -> None:
    """Mounted once, so that the journal is replayed as after a power cut, and then looked at."""
    mount.mkdir(exist_ok=True)
    # Its original is mounted, and has the same name to XFS.
    program.run("mount", *(("-o", "nouuid") if file_system == "xfs" else ()), device, mount)
    program.run("umount", mount)
    program.run(*CHECKS[file_system], device)
