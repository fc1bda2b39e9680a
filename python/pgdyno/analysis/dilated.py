"""What a dilated run can be trusted in.

Everything but the host was slowed, so the CPU looks ``dilation`` times faster beside it. That is right for all sessions
together where they keep the CPU busy: two cores at dilation 8 do what sixteen would, if those did not get in each
other's way. It is wrong for one session: what the host does for its transaction takes an eighth of the time that it
takes on a real machine. How much of a transaction that is at most, :mod:`pgdyno.analysis.host_time` says.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis.cpu_list import cpus_of
from pgdyno.analysis.finding import CheckResult, Level
from pgdyno.analysis.host_time import host_time
from pgdyno.analysis.run_figures import RunFigures

from ..base.text import percent

CPU_BOUND_SHARE = 0.85
"""Share of its CPUs. From here on sessions queue for a core, and what all of them do counts, not what one takes."""
EXCESS_WARN = 0.05
"""Share of the throughput of a closed loop; the figure that the dilation test allows."""
CPU_BOUND = "bound by CPU"
"""Words of the finding of a run that was."""


def dilated(run: RunFigures) -> Iterator[CheckResult]:
    """The regime of a dilated run, with its figure; nothing of any other."""
    dilation = run.record.world.dilation
    if dilation == 1:
        return
    bound = bound_by_cpu(run)
    if bound is not None:
        yield CheckResult("dilation", "warn", f"{dilation} times slower and {CPU_BOUND} {bound}")
        return
    host = host_time(run)
    if host is None or host.ms is None or host.excess is None or host.short is None:
        yield CheckResult("dilation", "unknown", f"{dilation} times slower; neither CPU time nor waits were recorded")
        return
    level: Level = "warn" if host.excess > EXCESS_WARN else "ok"
    yield CheckResult(
        "dilation",
        level,
        f"{dilation} times slower, but for the host's part of a transaction (computing, paths, wake-ups), which is at most"
        f" {host.ms:.3g} ms: response times are up to {percent(host.short)} too short, and the throughput of a closed loop"
        f" up to {percent(host.excess)} too high",
    )


def undilated_tps(run: RunFigures) -> float | None:
    """Throughput of a closed loop at dilation 1, at least: with as much longer transactions as the host's part at most makes them.

    None of a run that was not slowed, whose rate is given, or that the CPU bound.
    """
    if run.record.world.dilation == 1 or run.record.workload.get("closed") is False or bound_by_cpu(run) is not None:
        return None
    host = host_time(run)
    return None if host is None or host.excess is None else run.work_per_s / (1 + host.excess)


def server_cores(run: RunFigures) -> float:
    """Cores of the host that the server could use, each by the share of its time that the server had of it."""
    world = run.record.world
    cores = len(cpus_of(world.instance.cpus)) if world.instance.cpus else world.host.cores
    return cores * world.instance.cpu_share


def bound_by_cpu(run: RunFigures) -> str | None:
    """By how much of which CPUs, and what the throughput is then; None where cores were left.

    The server can be short of CPU with less than all of it, where the driver takes the rest.
    """
    world, cores = run.record.world, server_cores(run)
    server, machine = run.cpu_share.get("server"), run.cpu_share.get("host_busy", 0.0)
    busy = 0.0 if server is None else server * world.host.cores / cores
    if busy >= CPU_BOUND_SHARE:
        text, theirs = f"{percent(busy)} of the server's", "are"
    elif machine >= CPU_BOUND_SHARE:
        text, theirs = (
            f"{percent(machine)} of the machine's",
            "have all that ran beside the server on them too and are",
        )
        cores = world.host.cores
    else:
        return None
    slowed = cores * world.dilation
    vcpus = world.instance.vcpus
    return f"({text}): the throughput is what {slowed:g} cores would do that {theirs} never in each other's way" + (
        "" if vcpus in (None, slowed) else f", and the instance has {vcpus}"
    )
