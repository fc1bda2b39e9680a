"""Whether the driver could do what it was asked to: else a run says what the driver does, and not the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pgdyno.analysis.cpu_list import cpus_of
from pgdyno.analysis.finding import CheckResult, Level
from pgdyno.analysis.run_figures import RunFigures

from ..base.text import percent
from ..results.record import ClockRecord, DriverRecord

BUSY_INVALID = 0.90
"""A thread that computes nine tenths of the time makes transactions wait for the driver, whatever the volume does."""
WAKE_MS_INVALID = 1.0
"""99 % of the driver's wakes must be on time to this: the fastest volumes answer within about a millisecond, so a driver
that is later would be taken for a volume."""
WAKE_SHARE_INVALID = 0.10
"""Or to this share of the median service time, if that is more: what replicates of an arm differ by on a quiet machine is of
that size for one transaction in a hundred."""
WAKE_PART_MIN = 0.01
"""Part of the transactions (statements of a replay) that must have waited for a time: what fewer of them were late by is in no percentile up to the
99th. A replay that a slow volume holds back seldom waits for anything but answers."""
BEGIN_MS_INVALID = 5.0
"""Drivers of one load must begin together to this, and their clocks be known to it: half a per cent of a second, into which transactions are counted."""
BACKLOG_WARN = 0.01
"""Share of the scheduled transactions: those that still waited when the run ended have unknown response times, all of them long."""


def driven(run: RunFigures) -> Iterator[CheckResult]:
    """The checks of a run's driver; by the probe's figures where it does not tell its own.

    Of several drivers each is judged by its name, and their CPU together too where they share a host's cores.
    """
    driver, world = run.record.driver, run.record.world
    number = int(run.record.workload.get("threads", 1)) if driver is None else driver.threads
    threads = cores_of(number, run.record.workload.get("driver_cpus"), world.host.cores)
    share = run.cpu_share.get("driver")
    elsewhere = any(driver.host is not None for driver in run.record.drivers.values())
    own = None if driver is None or elsewhere else busy(driver, threads, world.dilation)
    if elsewhere:
        pass  # each is judged on its own host
    elif own is not None:
        yield own
    elif share is None:
        yield CheckResult("driver", "unknown", "its CPU was not recorded")
    else:
        yield _busy(share * world.host.cores / threads, threads)
    if driver is not None:
        service = run.service_ms if run.service_ms.total else run.latency_ms
        service_ms_p50 = service.percentile(50) or 0.0
        yield from on_schedule(driver, service_ms_p50)
        for name, record in run.record.drivers.items():
            cores = world.host.cores if record.host is None else record.host.cores
            threads = cores_of(record.threads, run.record.workload.get("driver_cpus"), cores)
            results = [busy(record, threads, world.dilation), *on_schedule(record, service_ms_p50)]
            yield from (replace(each, figure=f"{name}: {each.figure}") for each in results if each is not None)
        yield from together(run.record.drivers)
        yield from backlog(driver, run.record.account.scheduled)


def busy(driver: DriverRecord, threads: int, dilation: int = 1) -> CheckResult | None:
    """How busy its threads were, of which ``threads`` can run at a time; None when it does not tell."""
    if driver.cpu_ns is None or not driver.elapsed_ns:
        return None
    # In a second of a dilated world a core has `dilation` seconds of CPU time.
    result = _busy(driver.cpu_ns / (driver.elapsed_ns * dilation) / threads, threads)
    if not driver.transactions:
        return result
    each_us, what = driver.cpu_ns / driver.transactions / 1e3, "row" if driver.engine == "loader" else "transaction"
    return CheckResult(result.check, result.level, f"{result.figure}, {each_us:,.1f} µs of CPU a {what}")


def on_schedule(driver: DriverRecord, service_ms_p50: float) -> Iterator[CheckResult]:
    """Whether it woke when it wanted to; nothing of a driver that does not tell, or that never waited for a time."""
    if driver.wake is None:
        return
    limit_ms = max(WAKE_MS_INVALID, WAKE_SHARE_INVALID * service_ms_p50)
    late_ms = driver.wake.p99_us / 1e3
    part = driver.wake.count / max(1, driver.transactions or 1)
    is_rare = part < WAKE_PART_MIN
    level: Level = "invalid" if late_ms > limit_ms and not is_rare else "ok"
    judged = f"not judged: {percent(part)} of its work waited for a time" if is_rare else f"allowed: {limit_ms:.3f} ms"
    yield CheckResult(
        "schedule", level, f"99 % of {driver.wake.count:,} times it woke at most {late_ms:.3f} ms late ({judged})"
    )


def together(drivers: Mapping[str, DriverRecord]) -> Iterator[CheckResult]:
    """Whether several drivers began at the same instant, and whether their clocks are known; nothing of one."""
    late_ms = {name: driver.begin_late_ms for name, driver in drivers.items() if driver.begin_late_ms is not None}
    if not late_ms:
        return
    last = max(late_ms, key=lambda name: late_ms[name])
    level: Level = "invalid" if late_ms[last] > BEGIN_MS_INVALID else "ok"
    figure = (
        f"{len(drivers)} drivers; the last, {last}, began {late_ms[last]:.3f} ms after the instant that was set for all"
    )
    yield CheckResult("beginning", level, f"{figure} (allowed: {BEGIN_MS_INVALID:g} ms)")
    off_ms = {name: _off_ms(driver.clock) for name, driver in drivers.items() if driver.clock is not None}
    if off_ms:
        worst = max(off_ms, key=lambda name: off_ms[name])
        level = "invalid" if off_ms[worst] > BEGIN_MS_INVALID else "ok"
        figure = f"each is known to {off_ms[worst]:.3f} ms or better during the run; the worst is that of {worst}"
        yield CheckResult("clocks", level, f"{figure} (allowed: {BEGIN_MS_INVALID:g} ms)")


def _off_ms(clock: ClockRecord) -> float:
    """How far the instants of a driver may be from what the record says, at the end of its run."""
    return (clock.uncertainty_ns + abs(clock.drift_ns or 0)) / 1e6


def backlog(driver: DriverRecord, scheduled: int) -> Iterator[CheckResult]:
    """What was due at the end and had not begun, beside what was ``scheduled`` and is settled."""
    if not driver.backlog:
        return
    share = driver.backlog / (scheduled + driver.backlog)
    # What the server could not take is a result: it makes no run invalid.
    level: Level = "warn" if share > BACKLOG_WARN else "ok"
    what = "transactions were due and had found no free client when the run ended"
    yield CheckResult("backlog", level, f"{driver.backlog:,} {what} ({percent(share)})")


def cores_of(threads: int, cpus: str | None, cores: int) -> int:
    """How many of the threads can run at a time: on the CPUs of a list in the kernel's notation, else on all cores."""
    allowed = len(cpus_of(cpus)) if cpus else cores
    return max(1, min(threads, allowed, cores))


def _busy(share: float, threads: int) -> CheckResult:
    level: Level = "invalid" if share >= BUSY_INVALID else "ok"
    noun = "thread" if threads == 1 else f"{threads} threads"
    return CheckResult("driver", level, f"its {noun} computed {percent(share)} of the time")
