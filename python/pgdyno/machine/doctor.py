"""What this machine can do for pgdyno, what not, and the remedy: a list of checks, none of which changes anything.

``fail`` means that the main job, comparing emulated volumes, does not work here; ``warn`` that it works and its
numbers deserve a second look.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..base import engine, installation
from ..base.errors import HostError, PgdynoError
from . import awake, cgroup, clean, hammerdb, memory, mounts, paths, preflight
from .volume import list_volumes

Status = Literal["ok", "warn", "fail"]

KERNEL_MIN = (5, 15)
"""The oldest long-term kernel with everything that is used; 6.18 is what pgdyno was tried on."""
MEMORY_FAIL_BYTES = 2 << 30
MEMORY_WARN_BYTES = 6 << 30
"""The demonstration holds its loaded image, two clones' changes and the instance in memory."""
SPACE_WARN_BYTES = 2 << 30
STEAL_WARN_SHARE = 0.02
_STEAL_WINDOW_S = 0.2
"""Its bit in a process's capabilities (linux/capability.h)."""


@dataclass(frozen=True)
class HostCheck:
    """One finding. ``remedy`` is empty when there is nothing to do."""

    name: str
    status: Status
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def examine(state_dir: Path | None = None) -> list[HostCheck]:
    """Examine the machine. A check that cannot be made is a finding, too, and never an exception."""
    state = state_dir or paths.state_dir()
    checks: list[tuple[str, Callable[[], HostCheck]]] = [
        ("root", _root),
        ("kernel", _kernel),
        ("/dev/fuse", _fuse),
        ("mounts", _mounts),
        ("loop devices", _loop),
        ("programs", _programs),
        ("engine", _engine_check),
        ("HammerDB", _hammerdb),
        ("PostgreSQL", _postgres),
        ("control groups", _cgroups),
        ("memory", _memory),
        ("images", _image_space),
        ("disk space", _disk_space),
        ("CPUs", _cpus),
        ("CPU steal", _steal),
        ("clock", _clock),
        ("timers", _timers),
        ("idle CPUs", _idle_cpus),
        ("memory pressure", _memory_pressure),
        ("growing ext4", _growing_ext4),
        ("DAMON reclaim", _damon),
        ("writeback throttle", _wbt),
        ("volumes", lambda: _volumes(state)),
        ("leftovers", lambda: _leftovers(state)),
    ]
    return [_guarded(name, check) for name, check in checks]


def able(checks: list[HostCheck]) -> bool:
    """Whether the main job works."""
    return all(check.status != "fail" for check in checks)


def _guarded(name: str, check: Callable[[], HostCheck]) -> HostCheck:
    try:
        return check()
    except PgdynoError as error:
        return HostCheck(name, "fail", error.message, error.remedy)
    except (OSError, ValueError) as error:
        return HostCheck(
            name, "warn", f"cannot be examined: {error}", "run it as root, on a machine with /proc and /sys"
        )


def _root() -> HostCheck:
    preflight.require_root("mounting an emulated volume and bounding an instance")
    return HostCheck("root", "ok", "yes")


def _kernel() -> HostCheck:
    release = platform.release()
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2])
    if platform.system() != "Linux" or numbers < KERNEL_MIN:
        return HostCheck("kernel", "fail", f"{platform.system()} {release}", "use Linux 5.15 or later")
    return HostCheck("kernel", "ok", f"Linux {release}")


def _fuse() -> HostCheck:
    preflight.require_fuse()
    return HostCheck("/dev/fuse", "ok", "can be opened")


def _mounts() -> HostCheck:
    preflight.require_mounts()
    return HostCheck("mounts", "ok", "FUSE can be mounted")


def _loop() -> HostCheck:
    preflight.require_loop()
    used = len(mounts.loops())
    return HostCheck("loop devices", "ok", f"{used} in use" if used else "none in use")


def _programs() -> HostCheck:
    names = ("mkfs.ext4", "mount", "umount", "losetup", "setpriv")
    preflight.require_programs(*names)
    return HostCheck("programs", "ok", ", ".join(names))


def _engine_check() -> HostCheck:
    facts = engine.facts()
    if not facts.matches:
        text = f"{facts.path} {facts.version} was built from other sources ({facts.build_hash})"
        chosen = bool(os.environ.get("PGDYNO_ENGINE"))
        return HostCheck("engine", "warn" if chosen else "fail", text, installation.how_to_install_again())
    return HostCheck("engine", "ok", f"{facts.version} ({facts.build_hash})")


def _hammerdb() -> HostCheck:
    """It is only needed where a workload names it, so it may be missing, but not be named and missing."""
    if not os.environ.get(hammerdb.HOME):
        return HostCheck("HammerDB", "ok", f'not named by {hammerdb.HOME}; only engine = "hammerdb" needs it')
    try:
        return HostCheck("HammerDB", "ok", str(hammerdb.program()))
    except HostError as error:
        return HostCheck("HammerDB", "warn", error.message, error.remedy)


def _postgres() -> HostCheck:
    from ..server.binaries import find_binaries
    from ..server.user import require_reachable, server_user

    binaries, user = find_binaries(), server_user()
    require_reachable(binaries.bin_dir, user)
    return HostCheck("PostgreSQL", "ok", f"{binaries.source}, run as {user.name if user is not None else 'yourself'}")


def _cgroups() -> HostCheck:
    hierarchy = cgroup.find_hierarchy()
    hierarchy.require_groups()
    lacks = [controller for controller in cgroup.CONTROLLERS if not hierarchy.offers(controller)]
    text = f"version {hierarchy.version}" + (f", without {' and '.join(lacks)}" if lacks else "")
    return HostCheck("control groups", "warn" if lacks else "ok", text, hierarchy.how_to_offer(lacks) if lacks else "")


def _memory() -> HostCheck:
    available = memory.memory_available_bytes()
    status: Status = "fail" if available < MEMORY_FAIL_BYTES else "warn" if available < MEMORY_WARN_BYTES else "ok"
    remedy = "" if status == "ok" else "end other programs, or use smaller instances and scales"
    return HostCheck("memory", status, f"{available / 2**30:.1f} GiB available", remedy)


def _image_space() -> HostCheck:
    """Loaded data sets, and what their clones change, are kept there: in memory by default."""
    folder = paths.image_dir()
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    status: Status = "ok" if free >= MEMORY_WARN_BYTES else "warn" if free >= MEMORY_FAIL_BYTES else "fail"
    remedy = "free some space there, or name another directory in PGDYNO_IMAGE_DIR"
    if paths.is_below(there, Path("/dev/shm")):
        remedy = "run `mount -o remount,size=8G /dev/shm`; in a container pass `--shm-size 8g`"
    return HostCheck("images", status, f"{free / 2**30:.1f} GiB free in {there}", "" if status == "ok" else remedy)


def _disk_space() -> HostCheck:
    free = shutil.disk_usage(Path.cwd()).free
    low = free < SPACE_WARN_BYTES
    text = f"{free / 2**30:.1f} GiB free in {Path.cwd()}"
    return HostCheck("disk space", "warn" if low else "ok", text, "free some space for results" if low else "")


def _cpus() -> HostCheck:
    count = len(os.sched_getaffinity(0))
    remedy = "" if count >= 2 else "use two CPUs: PostgreSQL and pgdyno disturb each other on one"
    return HostCheck("CPUs", "ok" if count >= 2 else "warn", str(count), remedy)


def steal_shares() -> tuple[float, float]:
    """The share of the CPUs' time that other machines got, since boot and during the next fifth of a second."""
    before = _cpu_ticks()
    time.sleep(_STEAL_WINDOW_S)
    now = [later - earlier for earlier, later in zip(before, _cpu_ticks(), strict=True)]
    return before[7] / max(1, sum(before[:8])), now[7] / max(1, sum(now[:8]))


def _steal() -> HostCheck:
    since_boot, now = steal_shares()
    text = f"{100 * since_boot:.1f} % since boot, {100 * now:.0f} % now"
    remedy = "the host gives this machine's CPUs to others: repeat runs, or use another host"
    return HostCheck(
        "CPU steal", *(("warn", text, remedy) if max(since_boot, now) > STEAL_WARN_SHARE else ("ok", text))
    )


def _cpu_ticks() -> list[int]:
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    return [int(field) for field in first.split()[1:]]


def _clock() -> HostCheck:
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    fast = source in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
    remedy = "" if fast else "reading this clock is slow; choose tsc if the machine offers it"
    return HostCheck("clock", "ok" if fast else "warn", source, remedy)


def _timers() -> HostCheck:
    """How late a sleep of 1 ms ends here: the engine's releases are as late."""
    late_us = sorted(_lateness_us() for _ in range(20))[10]
    text = f"a sleep of 1 ms ends {late_us:.0f} µs late"
    remedy = "end other programs; many virtual machines halt idle CPUs too eagerly"
    return HostCheck("timers", *(("warn", text, remedy) if late_us > 500 else ("ok", text)))


def _idle_cpus() -> HostCheck:
    if awake.possible():
        return HostCheck("idle CPUs", "ok", "can be kept from sleeping while a run lasts")
    text = f"sleep during a run, and wake up late on a virtual machine: {awake.LATENCY} cannot be written"
    return HostCheck("idle CPUs", "warn", text, f"run as root; in a container pass `--device {awake.LATENCY}`")


def _memory_pressure() -> HostCheck:
    """Whether a volume's daemon may protect itself against waiting for memory that it is needed to free."""
    if preflight.may_exceed_resources():
        return HostCheck("memory pressure", "ok", "a volume's daemon can mark itself as an I/O flusher")
    return HostCheck(
        "memory pressure",
        "warn",
        "without CAP_SYS_RESOURCE a volume's daemon is not protected when memory runs out",
        "leave memory free during a run; in a container pass `--cap-add SYS_RESOURCE`",
    )


def _growing_ext4() -> HostCheck:
    """`volume modify` to a larger size grows the mounted file system (`ext4_resize_begin` in the kernel)."""
    if preflight.may_exceed_resources():
        return HostCheck("growing ext4", "ok", "a mounted ext4 can be made larger")
    return HostCheck(
        "growing ext4",
        "warn",
        "without CAP_SYS_RESOURCE `volume modify` cannot make a mounted ext4 larger",
        "attach volumes that are to grow with `--file-system xfs`; in a container pass `--cap-add SYS_RESOURCE`",
    )


def _lateness_us() -> float:
    begin = time.monotonic_ns()
    time.sleep(0.001)
    return (time.monotonic_ns() - begin - 1_000_000) / 1000


def _damon() -> HostCheck:
    """DAMON's proactive reclaim pages idle memory out, the daemon's and PostgreSQL's, too."""
    module = Path("/sys/module/damon_reclaim/parameters/enabled")
    switches = [f"echo N > {module}"] if module.is_file() and module.read_text().strip() in ("Y", "1") else []
    for state in Path("/sys/kernel/mm/damon/admin/kdamonds").glob("*/state"):
        schemes = state.parent.glob("contexts/*/schemes/*/action")
        if state.read_text().strip() == "on" and any(action.read_text().strip() == "pageout" for action in schemes):
            switches.append(f"echo off > {state}")
    if not switches:
        return HostCheck("DAMON reclaim", "ok", "off")
    remedy = f"run `{'; '.join(switches)}` before a run, and the opposite after it"
    return HostCheck("DAMON reclaim", "warn", "on: it pages memory out behind a run's back", remedy)


def _wbt() -> HostCheck:
    """The emulator sets this to 0 on its own device, which needs the file to be there."""
    files = sorted(Path("/sys/block").glob("loop*/queue/wbt_lat_usec"))
    if not files:
        return HostCheck("writeback throttle", "ok", "not in this kernel, or no loop device yet")
    return HostCheck("writeback throttle", "ok", "can be switched off for a volume")


def _volumes(state: Path) -> HostCheck:
    try:
        known = list_volumes(state)
    except HostError as error:
        return HostCheck("volumes", "warn", error.message, error.remedy)
    alive = [volume.name for volume in known if volume.alive]
    return HostCheck("volumes", "ok", f"attached: {', '.join(alive)}" if alive else "none attached")


def _leftovers(state: Path) -> HostCheck:
    try:
        leftovers = clean.leftovers(state)
    except HostError as error:
        return HostCheck("leftovers", "warn", error.message, error.remedy)
    if not leftovers:
        return HostCheck("leftovers", "ok", "none")
    more = f" and {len(leftovers) - 3} more" if len(leftovers) > 3 else ""
    return HostCheck(
        "leftovers", "warn", "; ".join(leftovers[:3]) + more, installation.how_to_run_as_root(["doctor", "--clean"])
    )
