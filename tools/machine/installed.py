"""What the machine is, and what `pgdyno doctor` says of it: as it is, and as containers of different kinds see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.machine.image import USER
from tools.machine.step import PGDYNO, Found, Step, as_user, checks, failed, quoted, sudo

if TYPE_CHECKING:
    from tools.machine.virtual import Machine

MODULES = ("dm_mod", "dm_delay", "nbd", "loop", "fuse", "xfs")
SPEED = {"clock", "timers", "CPU steal"}
"""Checks that warn of how fast the machine is; in an emulated one they may."""
GROUPS = "control groups"

_OWN_TREE = "umount --lazy /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup"
_TO_A_CHILD = "mkdir /sys/fs/cgroup/init && echo $$ > /sys/fs/cgroup/init/cgroup.procs"
_SCOPE = "systemd-run --quiet --scope"


def machine_is(machine: Machine) -> Found:
    """Control groups of version 2 alone, systemd, and the modules."""
    facts = dict(machine.running.facts)
    facts["systemd"] = machine.ask("systemctl --version | head -1").stdout.strip()
    facts["control groups"] = machine.ask("stat --file-system --format %T /sys/fs/cgroup").stdout.strip()
    facts["controllers"] = machine.ask("cat /sys/fs/cgroup/cgroup.controllers").stdout.strip()
    facts["handed down by systemd"] = machine.ask("cat /sys/fs/cgroup/cgroup.subtree_control").stdout.strip()
    facts["session"] = as_user(machine, "cat /proc/self/cgroup").stdout.strip()
    loaded = machine.ask(f"modprobe --all {' '.join(MODULES)}")
    if loaded.code != 0:
        return failed(loaded)
    facts["modules"] = ", ".join(MODULES)
    right = facts["control groups"] == "cgroup2fs" and facts["init"] == "systemd" and "session" in facts["session"]
    return Found(right, f"{facts['control groups']}, {facts['init']}, a user's login in `{facts['session']}`", facts)


def is_installed(machine: Machine) -> Found:
    """The command of an ordinary user, without root."""
    version, refused = as_user(machine, f"{PGDYNO} --version"), as_user(machine, f"{PGDYNO} compare null null")
    if version.code != 0:
        return failed(version)
    remedy = f"sudo {PGDYNO} compare null null"
    text = f"`{version.stdout.strip()}`; without root: {' '.join(refused.stderr.split())}"
    return Found(refused.code == 3 and remedy in refused.stderr, text)


def is_clean(machine: Machine) -> Found:
    """Nothing fails and nothing warns, but for the speed of an emulated machine."""
    # What `doctor` names for a machine with half of 8 GiB for files in memory.
    machine.ask("mount -o remount,size=8G /dev/shm")
    document = checks(machine)
    if document is None:
        return Found(False, "it printed no document")
    wrong = {name: check for name, check in document.items() if check["status"] != "ok"}
    text = "; ".join(f"{check['status']} {name}: {check['found']}" for name, check in wrong.items()) or "all ok"
    facts = {"PostgreSQL": document["PostgreSQL"]["found"], "engine": document["engine"]["found"]}
    fine = all(check["status"] == "warn" and name in SPEED for name, check in wrong.items())
    return Found(fine, f"{GROUPS}: {document[GROUPS]['found']}; {text}", facts)


def seen(name: str, did: str, prefix: str, status: str, *output: str) -> Step:
    """What `doctor` says of control groups in a container, which is made by ``prefix``."""

    def run(machine: Machine) -> Found:
        document = checks(machine, prefix)
        if document is None:
            return Found(False, "it printed no document")
        check = document[GROUPS]
        text = f"{check['status']}: {check['found']}" + (f" (remedy: {check['remedy']})" if check["remedy"] else "")
        return Found(check["status"] == status and all(word in text for word in output), text)

    return Step(name, did, f"{status}: {', '.join(output)}", run)


def _container(*commands: str, outside: str = "") -> str:
    """A control group namespace and mounts of its own."""
    script = " && ".join((_OWN_TREE, *commands, 'exec "$@"'))
    return f"{outside} unshare --cgroup --mount sh -c {quoted(script)} sh"


STEPS = (
    Step("machine", "its kernel and its systemd", "control groups of version 2, systemd, a scope for each login", machine_is),
    Step(
        "installed",
        f"`pipx install` of the wheel by `{USER}`, whose home directory has mode 0700; `--version` and `compare` without root",
        "the command works, and names the whole command with sudo",
        is_installed,
    ),
    Step("doctor", "`sudo pgdyno doctor`", "nothing fails; only the speed of the machine may warn", is_clean),
    seen(
        "container, read-only",
        "`doctor` with a private namespace and a read-only /sys/fs/cgroup, as a container has by default",
        _container("mount -o remount,bind,ro /sys/fs/cgroup"),
        "fail", "read-only", "--cgroupns=host --privileged",
    ),
    seen(
        "container, its own group",
        "`doctor` with a private namespace that can be written to and has the container's processes (`--privileged`)",
        _container(outside=f"{_SCOPE} --property=Delegate=yes"),
        "fail", "hands no controllers down", "has processes", "--cgroupns=host",
    ),
    seen(
        "container, delegated",
        "`doctor` in a delegated scope whose processes are in a group below it, as in a container with systemd",
        _container(_TO_A_CHILD, outside=f"{_SCOPE} --property=Delegate=yes"),
        "ok", "version 2",
    ),
    seen(
        "container, not delegated",
        "the same in a scope that systemd hands only memory and pids to",
        _container(_TO_A_CHILD, outside=_SCOPE),
        "warn", "without cpu and cpuset", "Delegate=cpu cpuset memory",
    ),
    seen(
        "container, no memory controller",
        "the same below a group that hands nothing down",
        "mkdir -p /sys/fs/cgroup/outer/inner && echo $$ > /sys/fs/cgroup/outer/inner/cgroup.procs && exec"
        + _container(_TO_A_CHILD),
        "fail", "memory controller is not handed down", "Delegate=",
    ),
)  # fmt: skip


def gone(machine: Machine) -> Found:
    """What is outside of the package goes, and then the package."""
    steps = (sudo("doctor --uninstall"), "pipx uninstall pgdyno")
    for step in steps:
        answer = as_user(machine, step)
        if answer.code != 0:
            return failed(answer)
    find = "find / -xdev -iname '*pgdyno*' -not -path '/proc/*' 2>/dev/null; ls -d /run/pgdyno* /dev/shm/*pgdyno* 2>/dev/null"
    left = [path for path in machine.ask(find).stdout.split() if "/results/" not in path]
    return Found(not left, f"left: {', '.join(left[:5])}" if left else "`find` shows nothing of it")


GONE = Step(
    "uninstalled",
    "`sudo pgdyno doctor --uninstall`, `pipx uninstall pgdyno`",
    "nothing is left but the user's results",
    gone,
)
