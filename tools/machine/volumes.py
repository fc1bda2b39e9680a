"""Volumes in the machine: file systems that grow while they are mounted, and a device below the kernel's device-mapper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.machine.step import Found, Step, as_user, document, failed, sudo

if TYPE_CHECKING:
    from tools.machine.virtual import Machine

_GIB = 1 << 30
_USABLE = 0.9
"""What a file system leaves of its device at least."""


def grows(file_system: str) -> Step:
    """A mounted file system, with a file in it, is made twice as large."""
    mount = f"/mnt/{file_system}"

    def run(machine: Machine) -> Found:
        attach = f"volume attach gp3:size=2GiB --mount {mount} --name grown --file-system {file_system}"
        done = as_user(machine, sudo(attach))
        if done.code != 0:
            return failed(done)
        try:
            fill = f"dd if=/dev/urandom of={mount}/file bs=1M count=16 conv=fsync status=none && sha256sum {mount}/file"
            size = f"findmnt --noheadings --bytes --output SIZE {mount}"
            content, before = machine.ask(fill).stdout, int(machine.ask(size).stdout)
            modified = as_user(machine, sudo("volume modify grown gp3:size=4GiB --optimizing 0"))
            if modified.code != 0:
                return failed(modified)
            after, same = int(machine.ask(size).stdout), machine.ask(f"sha256sum {mount}/file").stdout == content
        finally:
            detached = as_user(machine, sudo("volume detach grown"))
        if detached.code != 0:
            return failed(detached)
        text = f"{before / _GIB:.2f} GiB, then {after / _GIB:.2f} GiB" + ("" if same else "; the file changed")
        return Found(same and before < 2 * _GIB and after >= 4 * _USABLE * _GIB, text)

    did = f"`volume attach gp3:size=2GiB --file-system {file_system}`, a file, `volume modify … gp3:size=4GiB`, `volume detach`"
    return Step(f"{file_system} grows", did, "4 GiB while it stays mounted; the file is unchanged", run)


def mapped(machine: Machine) -> Found:
    """A volume that a device-mapper's device lies on."""
    attached = as_user(machine, sudo("volume attach gp3:size=2GiB --no-mount --name bare --json"))
    if attached.code != 0:
        return failed(attached)
    device = document(attached)["block_device"]
    made = machine.ask(
        f'dmsetup create over --table "0 $(blockdev --getsz {device}) linear {device} 0" && udevadm settle'
        " && mkfs.ext4 -q /dev/mapper/over && mkdir -p /mnt/over && mount /dev/mapper/over /mnt/over && echo here > /mnt/over/file"
    )
    refused = as_user(machine, sudo("volume detach bare"))
    read = machine.ask("sync && echo 3 > /proc/sys/vm/drop_caches && cat /mnt/over/file")
    undone = machine.ask("umount /mnt/over && dmsetup remove over && udevadm settle")
    detached = as_user(machine, sudo("volume detach bare"))
    for answer in (made, undone, detached):
        if answer.code != 0:
            return failed(answer)
    if refused.code == 0 or read.stdout != "here\n":
        return Found(False, f"detached with {refused.code} below a mounted device: {' '.join(refused.stderr.split())}")
    words = " ".join(refused.stderr.split())
    return Found("part of another device" in words, f"refused: {words}")


MAPPED = Step(
    "device-mapper",
    "a linear device of the device-mapper over `volume attach --no-mount`, ext4 on it, mounted; `volume detach`",
    "detaching is refused with what uses the volume, and its content stays; after `dmsetup remove` it is detached",
    mapped,
)
