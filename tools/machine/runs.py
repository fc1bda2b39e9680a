"""Comparisons in the machine, and one that is killed: whose the memory limit is, what is judged, and what stays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tools.machine.image import USER
from tools.machine.step import Found, Step, document, failed, sudo

if TYPE_CHECKING:
    from tools.machine.virtual import Answer, Machine

MEMORY_MIB = 72
"""Less than the data set has, so that the check of all balances, which reads it, reaches the limit."""
CLIENTS = 4
LOAD = f"--duration 5s --scale 6 --clients {CLIENTS} --warmup 2s --replicates 1 --memory {MEMORY_MIB}MiB --full-check"
SERVER_PROCESSES = CLIENTS + 5
"""PostgreSQL has so many once the clients are there: the postmaster, four that work for it, and theirs."""
RUN_S = 2400.0
_STARTING = {"sh", "setpriv"}
"""What a server's process is before it is one."""
_SLOW = re.compile(
    r"(?:replicate \d+: )?(?:\w+ )*(lateness|device|harness|host|steal|samples|schedule|driver): (?!.*(no counters|do not cover))"
)
"""Checks that a slow machine fails. A run that lacks counters fails the same ones, and is not slow."""
_LEFT = (
    "ls -d /sys/fs/cgroup/pgdyno/* 2>/dev/null; grep -o '/run/pgdyno[^ ]*' /proc/mounts; losetup --noheadings --list;"
    " pgrep -a 'postgres|pgdyno-engine'; ls /run/pgdyno/journal 2>/dev/null"
)
_DIRTY = "cd /proc/sys/vm && grep . dirty_ratio dirty_background_ratio dirty_bytes dirty_background_bytes"


def compare(volumes: str) -> Step:
    """A comparison to its end, watched."""

    def run(machine: Machine) -> Found:
        before = machine.ask(_DIRTY).stdout
        command = sudo(f"compare {volumes} {LOAD} --keep-invalid --json")
        answer = machine.ask(command, user=USER, timeout_s=RUN_S, watch=True)
        if answer.code != 0:
            return failed(answer)
        unchanged, left = machine.ask(_DIRTY).stdout == before, machine.ask(_LEFT).stdout
        wrong, texts = [], judged(document(answer))
        wrong += [reason for reason in texts if not is_slow(reason)]
        wrong += memory(answer)
        wrong += [f"left behind: {left}"] if left else []
        wrong += [] if unchanged else ["the kernel's dirty limits were not put back"]
        if wrong:
            return Found(False, "; ".join(wrong))
        return Found(
            True, "; ".join([limits(answer), *(f"invalid, the machine is too slow: {reason}" for reason in texts)])
        )

    expected = (
        f"ends; invalid for the machine's speed alone; `memory.max` is {MEMORY_MIB} MiB and nearly used, by processes of"
        " PostgreSQL alone; groups and kernel settings are as before"
    )
    return Step(f"compare {volumes}", f"`sudo pgdyno compare {volumes} {LOAD}`", expected, run)


def judged(comparison: dict[str, Any]) -> list[str]:
    """Why arms are invalid, each reason once."""
    return sorted({reason for arm in comparison["arms"] for reason in arm["why_invalid"]})


def is_slow(reason: str) -> bool:
    """Whether a slow machine is why a run is invalid."""
    return _SLOW.match(reason) is not None


def memory(answer: Answer) -> list[str]:
    """What is wrong with the control groups that were seen during a run."""
    wrong = [] if answer.groups else ["no control group was seen"]
    for name, group in answer.groups.items():
        allowed = MEMORY_MIB << 20
        if group["memory.max"] != str(allowed) or group["memory.swap.max"] not in ("0", ""):
            wrong.append(f"{name}: memory.max {group['memory.max']}, memory.swap.max {group['memory.swap.max']}")
        if group["memory_current_max"] > allowed:
            wrong.append(f"{name}: memory.current was {group['memory_current_max']}")
        if strange := sorted(set(group["members"]) - {"postgres"} - _STARTING):
            wrong.append(f"{name}: {', '.join(strange)} in the server's group")
        if inside := [path for path in group["engines"] if path.startswith("/pgdyno/")]:
            wrong.append(f"{name}: the engine is in {', '.join(inside)}")
        if group["cpu.weight of the parent"] != "1":
            wrong.append(f"{name}: cpu.weight {group['cpu.weight of the parent']}")
    most = max((group["memory_current_max"] for group in answer.groups.values()), default=0)
    if answer.groups and most < 0.9 * (MEMORY_MIB << 20):
        wrong.append(f"memory.current came to {most >> 20} MiB only: the limit was not felt")
    return wrong


def limits(answer: Answer) -> str:
    """What was read of the fullest group."""
    name, group = max(answer.groups.items(), key=lambda item: int(item[1]["memory_current_max"]))
    most = group["members"].get("postgres", 0)
    return (
        f"`{name}`: `memory.max` {int(group['memory.max']):,}, `memory.current` at most {group['memory_current_max']:,}, at"
        f" most {most} processes, all of PostgreSQL; the engine is in {', '.join(f'`{path}`' for path in group['engines'])}"
    )


def killed(machine: Machine) -> Found:
    """Kill a comparison while its clients work, and clean up."""
    before = machine.ask(_DIRTY).stdout
    command = sudo(f"compare null null {LOAD}")
    answer = machine.ask(
        command, user=USER, timeout_s=RUN_S, watch=True, kill=["compare", "null"], kill_at=SERVER_PROCESSES
    )
    if not answer.killed:
        return failed(answer)
    left = machine.ask(_LEFT).stdout
    cleaned = machine.ask(sudo("doctor --clean"), user=USER, timeout_s=300.0)
    if cleaned.code not in (0, 3):
        return failed(cleaned)
    still, settings = machine.ask(_LEFT).stdout, machine.ask(_DIRTY).stdout
    wrong = [] if left else ["the killed run left nothing, so that nothing was shown"]
    wrong += [f"still there: {still}"] if still else []
    wrong += [] if settings == before else [f"dirty limits: {settings}"]
    texts = [line for line in cleaned.stdout.splitlines() if line.strip()]
    return Found(
        not wrong,
        "; ".join(wrong) or f"it left {len(left.splitlines())} things; {len(texts)} lines said what was removed",
    )


KILLED = Step(
    "killed",
    "a comparison is killed (SIGKILL) while its clients work; `sudo pgdyno doctor --clean`",
    "groups, mounts, loop devices, processes, journal and kernel settings are as before",
    killed,
)
