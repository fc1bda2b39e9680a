"""The instrument judged by its own record: the driver, and the punctuality of emulated volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pgdyno.analysis.finding import CheckResult, Level, graded

from ..base.text import cpus_of, percent
from ..results.record import ClockRecord, DriverRecord
from .figures import DATA, CounterSamples, VolumeFigures, device_counters, volume_counters, volume_spec
from .run import RunFigures

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


LATE_PART_WARN = 0.02
"""Share of the transactions' time; about what replicates of one arm differ by on a quiet machine."""
LATE_PART_INVALID = 0.05
"""Share of the transactions' time: a volume is not chosen for a twentieth, but a comparison can turn on it."""
OVERRUN_SHARE_WARN = 0.01
"""A p99 of the volume's latency is already shaped by the host's disk when one request in a hundred is."""
OVERRUN_SHARE_INVALID = 0.05
"""Of requests whose data were not ready when their modelled time was over."""
OVERRUN_TIME_MIN = 0.05
"""A volume whose requests have less than this part of the latency of all volumes cannot make a run invalid by a slow
store: the transactions hardly waited for it, and of a few requests a few are a large share."""
REQUESTS_MIN = 100
"""A share of fewer requests than this says nothing, and a result does not depend on them: the volume is hardly used."""
DEVICE_EARLY_INVALID = 0.90
"""Time that requests took at the device, as a share of what the model said. The emulator takes the path's cost off; if
it thinks that too large, requests come back before their time (0.14 was seen after a calibration on a busy machine).
Counters that are read once a second leave a few per cent."""
DEVICE_LATE_WARN = 1.25
"""Above this the way through the host adds a quarter to the latency of the volume's reads, wherever in the kernel they
wait. Writes stand in line behind each other when the server writes many pages at once, and are not judged by it."""

_DISK_WAITS = frozenset({"IO"})
_DISK_EVENTS = frozenset({"WALWrite", "WALWriteLock", "BufferIO", "BufferIo", "CheckpointDone", "CheckpointStart"})
"""Waits of a session that wait for a volume: its own requests, and those of others that it needs before it can continue."""


def on_time(run: RunFigures, volume: VolumeFigures) -> Iterator[CheckResult]:
    """The checks of one volume; without a model there is nothing to be late to."""
    if not run.record.world.emulated or volume_spec(run.run, volume.role).get("type") == "null":
        return
    span = (run.record.measure.begin_ns, run.record.measure.end_ns)
    counters = volume_counters(run.run, volume.role)
    requests = counters.delta("ops", *span)
    if requests is None:
        yield CheckResult(
            of(volume.role, "lateness"), "invalid", "the volume's counters do not cover the measure phase"
        )
    elif requests < REQUESTS_MIN:
        yield CheckResult(of(volume.role, "lateness"), "ok", f"{requests:,.0f} requests, too few to judge")
    else:
        accounts = _accounts(counters, device_counters(run.run, volume.role), span)
        yield _lateness(run, volume, counters, accounts, span)
        yield _store(run, volume, counters, span)
        yield from _device(volume, accounts)


def of(role: str, check: str) -> str:
    """The check's name; that of another volume than the data's says which."""
    return check if role == DATA else f"{check}, {role} volume"


@dataclass(frozen=True)
class _Account:
    """The requests of one operation, as the kernel counted them at the device and as the model said."""

    requests: float
    seen_ms: float
    modelled_ms: float


def _accounts(counters: CounterSamples, device: CounterSamples, span: tuple[int, int]) -> dict[str, _Account]:
    """By operation; one of which either side knows nothing is absent."""
    accounts = {}
    for op in ("read", "write"):
        requests, modelled_ns = counters.delta(f"{op}_ops", *span), counters.delta(f"{op}_modelled_ns", *span)
        seen_ms = device.delta(f"{op}_time_ms", *span)
        if requests is not None and modelled_ns is not None and seen_ms is not None:
            accounts[op] = _Account(requests, seen_ms, modelled_ns / 1e6)
    return accounts


def _lateness(
    run: RunFigures,
    volume: VolumeFigures,
    counters: CounterSamples,
    accounts: dict[str, _Account],
    span: tuple[int, int],
) -> CheckResult:
    """How much of the transactions' time at most was waiting for requests that the host delayed."""
    shares = []
    for op in ("read", "write"):
        requests, late = counters.delta(f"{op}_ops", *span), counters.delta(f"late_{op}_ops", *span)
        if requests and late is not None:
            shares.append(f"{percent(late / requests)} of {requests:,.0f} {op}s")
    figure = f"{' and '.join(shares)} late by more than 5 % of their modelled latency"
    if run.record.bulk_load is not None:
        return _of_load(run, volume, accounts, figure)
    transactions_ms = run.latency_ms.sum
    if transactions_ms == 0:
        return CheckResult(of(volume.role, "lateness"), "unknown", f"{figure}; no transaction's time was recorded")
    beyond_ms = accounts["read"].seen_ms - accounts["read"].modelled_ms if "read" in accounts else 0.0
    late_reads_ms = max(volume.read_lateness_ms.sum, beyond_ms)
    commits = volume.role == ("wal" if "wal" in run.volumes else DATA)
    commit_ms = volume.write_lateness_ms.sum / max(1, volume.write_lateness_ms.total) if commits else 0.0
    part = (late_reads_ms + run.latency_ms.total * commit_ms) / transactions_ms
    level = graded(part, LATE_PART_WARN, LATE_PART_INVALID)
    return CheckResult(
        of(volume.role, "lateness"), level, f"{figure}: at most {percent(part)} of the transactions' time"
    )


def _of_load(run: RunFigures, volume: VolumeFigures, accounts: dict[str, _Account], figure: str) -> CheckResult:
    """The same of a load, which has no response times: by how much its sessions waited longer than the model says.

    Requests took a part longer than they should have, on average; a session that waited for a volume waited that much longer
    at most, and whatever else it did was not touched.
    """
    check = of(volume.role, "lateness")
    modelled_ms = sum(account.modelled_ms for account in accounts.values())
    waiting = sum(count for wait, count in run.waits.items() if wait.type in _DISK_WAITS or wait.event in _DISK_EVENTS)
    seen = sum(run.waits.values())
    if modelled_ms <= 0 or seen <= 0:
        return CheckResult(check, "unknown", f"{figure}; what the load's sessions waited for was not recorded")
    late_ms = volume.read_lateness_ms.sum + volume.write_lateness_ms.sum
    part = late_ms / modelled_ms * waiting / seen
    level = graded(part, LATE_PART_WARN, LATE_PART_INVALID)
    return CheckResult(check, level, f"{figure}: at most {percent(part)} of the load's time")


def _store(run: RunFigures, volume: VolumeFigures, counters: CounterSamples, span: tuple[int, int]) -> CheckResult:
    check = of(volume.role, "store behind the volume")
    requests, overrun = counters.delta("ops", *span), counters.delta("overrun_ops", *span)
    if not requests or overrun is None:
        return CheckResult(check, "unknown", "not recorded")
    share = overrun / requests
    level: Level = graded(share, OVERRUN_SHARE_WARN, OVERRUN_SHARE_INVALID)
    figure = f"{percent(share)} of {requests:,.0f} requests without their data when they were due"
    part = _latency_part(run, volume)
    if level == "invalid" and part < OVERRUN_TIME_MIN:
        level, figure = "warn", f"{figure}; they are {percent(part)} of all volumes' latency"
    return CheckResult(check, level, figure)


def _device(volume: VolumeFigures, accounts: dict[str, _Account]) -> Iterator[CheckResult]:
    """Whether the kernel saw requests take what the model said: the one clock that is not the emulator's own."""
    shares = {
        op: account.seen_ms / account.modelled_ms
        for op, account in accounts.items()
        if account.requests >= REQUESTS_MIN and account.modelled_ms
    }
    if shares:
        early = min(shares.values()) < DEVICE_EARLY_INVALID
        late = shares.get("read", 0.0) > DEVICE_LATE_WARN
        level: Level = "invalid" if early else "warn" if late else "ok"
        text = " and ".join(f"{op}s took {share:.2f} times" for op, share in shares.items())
        yield CheckResult(of(volume.role, "device"), level, f"{text} what the model said, by the kernel's count")


def _latency_part(run: RunFigures, volume: VolumeFigures) -> float:
    """The volume's part of the latency of all requests to all volumes; 1 where no latency was recorded."""
    whole = sum(figures.read_ms.sum + figures.write_ms.sum for figures in run.volumes.values())
    return (volume.read_ms.sum + volume.write_ms.sum) / whole if whole else 1.0
