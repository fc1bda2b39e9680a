"""What a dilated run can be trusted in.

Everything but the code was slowed, so the CPU looks ``dilation`` times faster beside it. That is right for all sessions
together where they keep the CPU busy: two cores at dilation 8 do what sixteen would, if those did not get in each other's
way. It is wrong for one session: its own computing takes an eighth of the time that it takes on a real core. How much of a
transaction that is, is known, since its CPU time was counted; up to so much too short is its response time, and up to so
much too high is what a closed loop of few clients does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.cpu_list import cpus_of
from pgdyno.analysis.finding import Finding, Level, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.analysis.run_figures import RunFigures

CPU_BOUND_SHARE = 0.85
"""Of its CPUs. From here on sessions queue for a core, and what all of them do counts, not what one takes."""
SHORT_WARN = 0.05
"""Of the response time; the figure that the dilation test allows."""


def dilated(run: RunFigures) -> Iterator[Finding]:
    """The regime of a dilated run, with its figure; nothing of any other."""
    dilation = run.record.world.dilation
    if dilation == 1:
        return
    server, short = run.cpu_share.get("server"), computing_share(run)
    if server is None or short is None:
        yield Finding("dilation", "unknown", f"{dilation} times slower; the server's CPU time was not recorded")
        return
    busy = server * run.record.world.host.cores / server_cores(run)
    if busy >= CPU_BOUND_SHARE:
        vcpus = run.record.world.instance.vcpus
        figure = (
            f"{dilation} times slower and bound by CPU ({percent(busy)} of the server's): the throughput is what"
            f" {server_cores(run) * dilation} cores would do that are never in each other's way"
            + ("" if vcpus in (None, server_cores(run) * dilation) else f", and the instance has {vcpus}")
        )
        yield Finding("dilation", "warn", figure)
        return
    level: Level = "warn" if short > SHORT_WARN else "ok"
    yield Finding(
        "dilation",
        level,
        f"{dilation} times slower; a session computed that much faster than on a real core, so response times are up to"
        f" {percent(short)} too short",
    )


def computing_share(run: RunFigures) -> float | None:
    """By how much more, as a share of its response time, a transaction would have computed on a core of its own.

    CPU time of the server for each transaction, of which the subject's time saw one part in ``dilation``. The server's
    background processes are in it, so it is an upper bound.
    """
    server, dilation = run.cpu_share.get("server"), run.record.world.dilation
    transactions, response_ms = run.latency_ms.total, run.latency_ms.sum
    if server is None or not transactions or not response_ms:
        return None
    cpu_ms = server * run.record.world.host.cores * dilation * run.record.measure.seconds * 1e3
    return cpu_ms * (1 - 1 / dilation) / response_ms


def server_cores(run: RunFigures) -> int:
    """Cores of the host that the server could use."""
    world = run.record.world
    return len(cpus_of(world.instance.cpus)) if world.instance.cpus else world.host.cores
