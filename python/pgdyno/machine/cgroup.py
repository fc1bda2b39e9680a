"""Control groups, version 1 and 2, behind one small seam: where a group lies and what its files are called."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

from ..base.errors import HostError
from .mounts import kernel_lines
from .process import ProcessIdentity, identity
from .waiting import wait_until

PARENT = "pgdyno"
"""The group beneath which every instance has its own."""

Controller = Literal["memory", "cpu", "cpuacct", "cpuset"]
CONTROLLERS: tuple[Controller, ...] = get_args(Controller)
_HAND_DOWN_TRIES = 5
_OUT_OF_THE_CONTAINER = "run outside of the container, or start it with `--cgroupns=host --privileged`"
_FOR_THE_KERNEL = "boot without `cgroup_disable=` and without `systemd.unified_cgroup_hierarchy=0` (Raspberry Pi: with `cgroup_enable=memory`)"
_DELEGATE = (
    f"{_OUT_OF_THE_CONTAINER}; in a container of systemd or LXC give its unit `Delegate=cpu cpuset memory` on the host"
)


class Hierarchy(Protocol):
    """One version of control groups."""

    @property
    def version(self) -> int:
        """1 or 2."""

    def offers(self, controller: Controller) -> bool:
        """Whether groups can have this controller here."""

    def how_to_offer(self, controllers: Sequence[Controller]) -> str:
        """What to do about controllers that it does not offer."""

    def group(self, controller: Controller, name: str) -> Path:
        """The directory of the group ``name`` for a controller."""

    def require_groups(self) -> None:
        """Groups can be made, as far as that is seen without making one. :class:`HostError` if not."""

    def prepare(self, group: Path, controller: Controller) -> None:
        """Make the parent group so that a new group beneath it is usable at once."""

    def limit_memory(self, group: Path, memory_bytes: int) -> None:
        """Bound memory and page cache of a group, without swap."""

    def limit_cpu(self, group: Path, quota_us: int, period_us: int) -> None:
        """Let the processes of a group have so much CPU time together in each period; then they wait for the next."""

    def give_way(self, group: Path) -> None:
        """Let everything outside of the group have the CPU first; what that leaves is the group's in full."""


@dataclass(frozen=True)
class V1:
    """Version 1: one tree per controller (some mounted together)."""

    mounts: dict[str, Path]
    version: int = 1

    def offers(self, controller: Controller) -> bool:
        """Whether the controller's tree is mounted."""
        return controller in self.mounts

    def how_to_offer(self, controllers: Sequence[Controller]) -> str:
        """Their trees are to be mounted."""
        wanted = (f"`mount -t cgroup -o {name} cgroup /sys/fs/cgroup/{name}`" for name in controllers)
        return f"mount the controllers named: {', '.join(wanted)}"

    def group(self, controller: Controller, name: str) -> Path:
        """``/sys/fs/cgroup/CONTROLLER/pgdyno/NAME``."""
        return self.mounts[controller] / PARENT / name

    def require_groups(self) -> None:
        """The memory controller's tree can be written to."""
        _require_writable(self.mounts["memory"])

    def prepare(self, group: Path, controller: Controller) -> None:
        """A cpuset group takes no process before it has CPUs and memory nodes, and the parent comes first."""
        group.parent.mkdir(exist_ok=True)
        if controller == "cpuset":
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not (group.parent / name).read_text().strip():
                    (group.parent / name).write_text((group.parent.parent / name).read_text())

    def limit_memory(self, group: Path, memory_bytes: int) -> None:
        """Sets ``memory.limit_in_bytes``, no swap for the group."""
        (group / "memory.limit_in_bytes").write_text(str(memory_bytes))
        with contextlib.suppress(OSError):  # absent where the kernel was built without it
            (group / "memory.swappiness").write_text("0")
        with contextlib.suppress(OSError):
            (group / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))

    def limit_cpu(self, group: Path, quota_us: int, period_us: int) -> None:
        """Sets ``cpu.cfs_period_us`` and ``cpu.cfs_quota_us``."""
        (group / "cpu.cfs_period_us").write_text(str(period_us))
        (group / "cpu.cfs_quota_us").write_text(str(quota_us))

    def give_way(self, group: Path) -> None:
        """Sets ``cpu.shares`` to the least there is."""
        (group / "cpu.shares").write_text("2")


@dataclass(frozen=True)
class V2:
    """Version 2: one tree, in which a parent hands controllers down."""

    root: Path
    controllers: frozenset[str]
    """Those that the root can hand down, of the ones used here."""
    version: int = 2

    def offers(self, controller: Controller) -> bool:
        """Whether the root can hand it down. CPU time is counted in every group, without a controller."""
        return controller == "cpuacct" or controller in self.controllers

    def how_to_offer(self, controllers: Sequence[Controller]) -> str:
        """The kernel does not have them there, or the group above a container's own does not hand them down."""
        return _FOR_THE_KERNEL if _is_the_kernels(self.root) else _DELEGATE

    def group(self, controller: Controller, name: str) -> Path:
        """The same directory for every controller."""
        return self.root / PARENT / name

    def require_groups(self) -> None:
        """The tree can be written to, and its root hands controllers down or can: it is the kernel's, or empty."""
        _require_writable(self.root)
        handed_down = set((self.root / "cgroup.subtree_control").read_text().split())
        if self.controllers <= handed_down or _is_the_kernels(self.root):
            return
        if (self.root / "cgroup.procs").read_text().strip():
            raise _hands_nothing_down(self.root, OSError(errno.EBUSY, os.strerror(errno.EBUSY)))

    def prepare(self, group: Path, controller: Controller) -> None:
        """Hand the controllers down from the root to the groups beneath the parent.

        systemd takes those that it does not use itself back from the root, while it starts a session for one, as long as
        no group below hands them on: then the parent has them no more, and it is done again.
        """
        group.parent.mkdir(exist_ok=True)
        wanted = " ".join(f"+{name}" for name in sorted(self.controllers))
        for left in reversed(range(_HAND_DOWN_TRIES)):
            _hand_down(group.parent.parent, wanted)
            if _hand_down(group.parent, wanted, may_lack=left > 0):
                return

    def limit_memory(self, group: Path, memory_bytes: int) -> None:
        """Sets ``memory.max``, no swap for the group."""
        (group / "memory.max").write_text(str(memory_bytes))
        with contextlib.suppress(OSError):
            (group / "memory.swap.max").write_text("0")

    def limit_cpu(self, group: Path, quota_us: int, period_us: int) -> None:
        """Sets ``cpu.max``."""
        (group / "cpu.max").write_text(f"{quota_us} {period_us}")

    def give_way(self, group: Path) -> None:
        """Sets ``cpu.weight`` to the least there is."""
        (group / "cpu.weight").write_text("1")


def _require_writable(tree: Path) -> None:
    if os.statvfs(tree).f_flag & os.ST_RDONLY:
        raise HostError(f"{tree} is read-only here: no control group can be created", remedy=_OUT_OF_THE_CONTAINER)


def _hand_down(folder: Path, wanted: str, *, may_lack: bool = False) -> bool:
    """Whether a group hands controllers down now; one that lacks them is an error unless it ``may_lack`` them."""
    try:
        (folder / "cgroup.subtree_control").write_text(wanted)
    except OSError as error:
        if error.errno == errno.ENOENT and may_lack:
            return False
        raise _hands_nothing_down(folder, error) from None
    return True


def _is_the_kernels(root: Path) -> bool:
    """Whether this is version 2's own root, and not the group that a container sees as its root."""
    return not (root / "cgroup.type").exists()


def _hands_nothing_down(folder: Path, error: OSError) -> HostError:
    """What a group's refusal to hand controllers down means (the kernel's ``cgroup-v2.rst``)."""
    if error.errno == errno.EBUSY:
        # A group that is not the real root may hand controllers down or have processes, not both.
        return HostError(
            f"{folder} hands no controllers down ({error.strerror}): it is a container's own group, and has processes",
            remedy=_OUT_OF_THE_CONTAINER,
        )
    if error.errno == errno.EINVAL:
        # Kernels with CONFIG_RT_GROUP_SCHED; others control real-time processes with all others.
        return HostError(
            f"{folder} does not hand the CPU controller down: this kernel cannot while a real-time process is in a group",
            remedy="find it with `ps -eo pid,cls,comm`, and end it or move it: `echo PID > /sys/fs/cgroup/cgroup.procs`",
        )
    return HostError(f"{folder} hands no controllers down: {error.strerror}", remedy=_OUT_OF_THE_CONTAINER)


def find_hierarchy(mountinfo: Path = Path("/proc/self/mountinfo")) -> Hierarchy:
    """The version whose memory controller is usable here. :class:`HostError` when there is none."""
    v1: dict[str, Path] = {}
    v2: V2 | None = None
    without_memory: Path | None = None
    for line in kernel_lines(mountinfo):
        left, right = line.split(" - ", 1)
        target, (fstype, _, options) = Path(left.split(" ")[4]), right.split(" ", 2)
        if fstype == "cgroup":
            v1.update({name: target for name in options.split(",") if name in CONTROLLERS})
        elif fstype == "cgroup2" and (target / "cgroup.controllers").is_file():
            offered = set((target / "cgroup.controllers").read_text().split())
            if "memory" in offered:
                v2 = V2(target, frozenset({"memory", "cpu", "cpuset"} & offered))
            else:
                without_memory = target
    if "memory" in v1:
        return V1(v1)
    if v2 is not None:
        return v2
    if without_memory is not None:
        raise _no_memory(without_memory)
    raise HostError(
        "this kernel offers no memory control group, so an instance's memory cannot be bounded",
        remedy="mount cgroup2 at /sys/fs/cgroup (systemd does), or run outside of the container that hides it",
    )


def _no_memory(root: Path) -> HostError:
    """Version 2 is there, without the controller that an instance needs."""
    if _is_the_kernels(root):
        return HostError(
            f"the control groups at {root} have no memory controller, so an instance's memory cannot be bounded",
            remedy=_FOR_THE_KERNEL,
        )
    return HostError(
        f"{root} is a container's own group, and the memory controller is not handed down to it", remedy=_DELEGATE
    )


def memory_left_bytes(
    own: Path = Path("/proc/self/cgroup"), mountinfo: Path = Path("/proc/self/mountinfo")
) -> int | None:
    """What the control groups of this process, its container's for one, still let it have; None without a limit.

    Pages of files that were not used for some time do not count as used: the kernel gives them up at the limit.
    """
    try:
        hierarchy = find_hierarchy(mountinfo)
        lines = own.read_text(encoding="utf-8").splitlines()
    except (HostError, OSError):
        return None
    top = hierarchy.group("memory", "").parent
    wanted = "" if hierarchy.version == 2 else "memory"
    path = next((line.split(":", 2)[2] for line in lines if wanted in line.split(":", 2)[1].split(",")), "/")
    # In its own namespace a container sees `/`; without one it gets the host's path, which may be invisible to it.
    group = top / path.lstrip("/")
    levels = [parent for parent in (group, *group.parents) if parent.is_relative_to(top)]
    return min((left for level in levels if (left := _left_bytes(level)) is not None), default=None)


def _left_bytes(group: Path) -> int | None:
    """What is left of one group's limit, of either version."""
    for limit_name, used_name, stat_name in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with contextlib.suppress(OSError, ValueError):
            limit = int((group / limit_name).read_text())  # "max" is none
            used = int((group / used_name).read_text())
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            return max(0, limit - used + int(stat.get(stat_name, 0)))
    return None


def members(group: Path) -> list[ProcessIdentity]:
    """The processes in a group and in the groups beneath it."""
    members = []
    for folder, _, _ in os.walk(group):  # which bears that groups go meanwhile, as `rglob` does from Python 3.13 on
        with contextlib.suppress(OSError):
            pids = Path(folder, "cgroup.procs").read_text().split()
            members += [process for pid in pids if (process := identity(int(pid))) is not None]
    return members


def remove(group: Path, timeout_s: float = 10.0) -> bool:
    """Remove a group and those beneath it once they are empty; ``False`` when processes stay past ``timeout_s``."""
    if not wait_until(lambda: _remove_tree(group), timeout_s):
        return False
    with contextlib.suppress(OSError):  # another instance still needs the parent
        group.parent.rmdir()
    return True


def _remove_tree(group: Path) -> bool:
    children: Sequence[Path] = [child for child in group.iterdir() if child.is_dir()] if group.is_dir() else []
    for child in children:
        _remove_tree(child)
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # EBUSY: a process is still on its way out
        return False
    return True
