"""The instance: how much memory and which CPUs PostgreSQL has, as control groups that last for a ``with`` block."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..base.errors import HostError, InputError
from . import cgroup, preflight
from .dirty_limits import DirtyLimits
from .journal import HostJournal

MEMORY_BYTES_MIN = 64 << 20
"""PostgreSQL's own processes need about half of this before they cache anything."""
PERIOD_US, PERIOD_US_MAX = 100_000, 1_000_000
"""In which a share of the CPUs' time is given, the kernel's default, and the longest that it takes (``sched-bwc.rst``)."""
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,47}")
_ONE_PAGE = 4096


class InstanceGroup:
    """Bounds the memory (with its page cache) and the CPUs of the processes that are started in it.

    ``cpus`` is a list as the kernel writes it (``0``, ``0-3,8``); ``None`` leaves all of them. Of their time the processes get ``cpu_share``, in
    periods of a tenth of a second of the subject's time. On entry the groups are made and the kernel's dirty limits set to the instance's size (``dirty_limits=False`` leaves those
    alone), and the times after which it writes back made ``dilation`` times longer; on exit everything is undone. Processes that are still inside have ``timeout_s`` to end.
    """

    def __init__(
        self,
        name: str,
        memory_bytes: int,
        cpus: str | None = None,
        *,
        cpu_share: float = 1.0,
        dirty_limits: bool = True,
        dilation: int = 1,
        journal: HostJournal | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        if not NAME.fullmatch(name):
            raise InputError(
                f"`{name}` is not a valid name of an instance",
                remedy="use lower-case letters, digits, `-`, `_` and `.`",
            )
        self.name = name
        self.memory_bytes = memory_bytes // _ONE_PAGE * _ONE_PAGE
        self.cpus = cpus
        self.cpu_share = cpu_share
        self.timeout_s = timeout_s
        self._journal = journal or HostJournal()
        self._wants_dirty_limits = dirty_limits
        self._dilation = dilation
        self._dirty: DirtyLimits | None = None
        self._groups: dict[cgroup.Controller, Path] = {}
        self._entries: dict[Path, str] = {}
        self._version = 0

    def __enter__(self) -> InstanceGroup:
        preflight.require_root("bounding an instance's memory")
        self._check()
        hierarchy = cgroup.find_hierarchy()
        self._version = hierarchy.version
        try:
            if self._wants_dirty_limits:
                # Known before it is taken: an interruption between the two would leave them set.
                self._dirty = DirtyLimits(self.memory_bytes, self._version, self._dilation)
                self._dirty.acquire()
            for controller in cgroup.CONTROLLERS:
                self._make(hierarchy, controller)
            hierarchy.limit_memory(self._groups["memory"], self.memory_bytes)
            if self.cpu_share < 1:
                hierarchy.limit_cpu(self._groups["cpu"], *self._quota())
            if "cpu" in self._groups:
                # The volume's own threads wait for a CPU like anyone's, where a real volume has its own
                # (docs/decision/0015).
                hierarchy.give_way(self._groups["cpu"].parent)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stuck = self.close()
        if stuck and error is None:
            raise HostError(
                f"processes are still in the control groups of instance `{self.name}`: {', '.join(map(str, stuck))}",
                remedy="end the processes listed there, then run `pgdyno doctor --clean`",
            )

    def close(self) -> list[Path]:
        """Undo everything; returns the groups that could not be removed because processes stay in them."""
        stuck = []
        try:
            for group, entry in reversed(list(self._entries.items())):
                if cgroup.remove(group, self.timeout_s):
                    self._journal.done(entry)
                    del self._entries[group]
                else:
                    stuck.append(group)
        finally:
            if self._dirty is not None:
                self._dirty.release()
        return stuck

    @property
    def paths(self) -> dict[str, str | None]:
        """The groups for the probe: ``cgroup_cpu`` (``cpuacct.usage`` or ``cpu.stat``) and ``cgroup_memory``."""
        return {
            "cgroup_cpu": str(self._groups["cpuacct"]) if "cpuacct" in self._groups else None,
            "cgroup_memory": str(self._groups["memory"]) if "memory" in self._groups else None,
        }

    @property
    def join_files(self) -> list[Path]:
        """The files a process writes its id into to be inside."""
        return sorted({group / "cgroup.procs" for group in self._groups.values()})

    def join_args(self, argv: Sequence[str]) -> list[str]:
        """A command line that is inside the instance from its first instruction on, then becomes ``argv``."""
        script = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"'
        return ["/bin/sh", "-c", script, "pgdyno-join", *map(str, self.join_files), "--", *argv]

    @property
    def facts(self) -> dict[str, Any]:
        """What was set, for the record of a run."""
        return {
            "name": self.name,
            "memory_bytes": self.memory_bytes,
            "cpus": self.cpus,
            "cpu_share": self.cpu_share,
            "cgroup_version": self._version,
            "sysctls": self._dirty.facts if self._dirty is not None else {},
        }

    def _check(self) -> None:
        if self.memory_bytes < MEMORY_BYTES_MIN:
            raise InputError(
                f"an instance needs at least {MEMORY_BYTES_MIN >> 20} MiB of memory, not {self.memory_bytes >> 20}",
                remedy="give it more memory",
            )
        preflight.require_memory(self.memory_bytes, f"an instance of {self.memory_bytes >> 20} MiB")
        if self.cpus is not None:
            require_cpus(self.cpus)

    def _make(self, hierarchy: cgroup.Hierarchy, controller: cgroup.Controller) -> None:
        if not hierarchy.offers(controller):
            if controller == "cpuset" and self.cpus is not None:
                raise _no_cpuset()
            if controller == "cpu" and self.cpu_share < 1:
                raise _no_cpu()
            return
        group = hierarchy.group(controller, self.name)
        if group not in self._groups.values():
            self._make_group(hierarchy, controller, group)
        self._groups[controller] = group
        if controller == "cpuset":
            self._bind_cpus(group, hierarchy.version)

    def _quota(self) -> tuple[int, int]:
        """CPU time in a period, and the period, in the host's microseconds; in slowed time a period is as much longer."""
        cores = len(parse_cpus(self.cpus) if self.cpus is not None else os.sched_getaffinity(0))
        period_us = min(PERIOD_US * self._dilation, PERIOD_US_MAX)
        return round(self.cpu_share * cores * period_us), period_us

    def _make_group(self, hierarchy: cgroup.Hierarchy, controller: cgroup.Controller, group: Path) -> None:
        taken = HostError(
            f"the instance `{self.name}` already exists ({group})",
            remedy="run `pgdyno doctor --clean` if its run was killed, or use another name",
        )
        if group.exists():
            raise taken
        entry = self._entries[group] = self._journal.record("cgroup", path=str(group))
        try:
            hierarchy.prepare(group, controller)
            group.mkdir()
        except FileExistsError:
            del self._entries[group]  # it is not ours to remove
            self._journal.done(entry)
            raise taken from None

    def _bind_cpus(self, group: Path, version: int) -> None:
        if self.cpus is not None:
            (group / "cpuset.cpus").write_text(self.cpus)
        if version == 1:  # inherits nothing
            for name in ("cpuset.mems", *(("cpuset.cpus",) if self.cpus is None else ())):
                (group / name).write_text((group.parent / name).read_text())


def require_cpus(text: str) -> None:
    """This process may use every CPU of the list. :class:`InputError` names those that it may not."""
    offered = os.sched_getaffinity(0)
    unknown = parse_cpus(text) - offered
    if unknown:
        raise InputError(
            f"this machine offers no CPU {', '.join(map(str, sorted(unknown)))}",
            remedy=f"choose among {', '.join(map(str, sorted(offered)))}",
        )


def require_control_groups(*, bound: bool, shared: bool = False) -> None:
    """This kernel has the control groups of an instance: its memory's, the CPUs' if they are to be ``bound``, and that of their time if it is ``shared``."""
    hierarchy = cgroup.find_hierarchy()
    if bound and not hierarchy.offers("cpuset"):
        raise _no_cpuset()
    if shared and not hierarchy.offers("cpu"):
        raise _no_cpu()


def _no_cpuset() -> HostError:
    return HostError("this kernel offers no cpuset control group", remedy="leave the CPUs unbound")


def _no_cpu() -> HostError:
    return HostError(
        "this kernel offers no cpu control group, which limits CPU time", remedy="leave instance.cpu_share at 1"
    )


def parse_cpus(text: str) -> set[int]:
    """The CPUs of a list as the kernel writes it (``0-3,8``). :class:`InputError` when it is not one."""
    cpus: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part.strip())
        if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
            raise InputError(f"`{text}` is not a list of CPUs", remedy="write it as `0`, `0-3` or `0,2`")
        cpus |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return cpus
