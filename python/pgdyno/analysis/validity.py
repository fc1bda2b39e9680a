"""How far a run can be trusted: the instrument judged by its own record.

Each check gives a finding with its figure: ``ok``, ``warn`` (read the numbers with it in mind), ``invalid`` (the
numbers say something about the laboratory, not about the volume) or ``unknown`` (the run did not record it). The
thresholds are the constants below, each with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pgdyno.analysis.run_figures import LABORATORY_ROLES, RunFigures
from pgdyno.analysis.volume_figures import DATA, device_counters, of_role, volume_counters, volume_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.analysis.volume_figures import VolumeFigures
    from pgdyno.store import Run

LATE_SHARE_WARN = 0.01
"""A p99 of the volume's latency is already shaped by the host when one request in a hundred is late."""
LATE_SHARE_NOTABLE = 0.05
"""Above this the p95 of the volume could be the host's and not the model's: invalid if the lateness weighs something
too (:data:`LATENESS_INVALID`). A request is late when it was released more than 5 % of its modelled latency after its
time, which for a volume of 0.3 ms is one wake-up of a busy machine."""
LATE_SHARE_INVALID = 0.20
"""Above this the body of the distribution is the host's, however little time it was."""
LATENESS_INVALID = 0.02
"""All lateness as a share of all latency: throughput that waits for the volume is wrong by at most this much."""
REQUESTS_MIN = 100
"""A share of fewer requests than this says nothing, and so few are no part of a result: a volume that is hardly used."""
DEVICE_EARLY_INVALID = 0.90
"""Time that requests took at the device, as a share of what the model said. The emulator takes its own calibrated cost off;
on a machine that was busy while it calibrated that cost is too large, and requests come back before their time (0.14 was
seen). Counters that are read once a second leave a few per cent."""
DEVICE_LATE_WARN = 1.25
"""Above this the way through the host adds a quarter to the volume's latency, wherever in the kernel it waits."""
STALLS_INVALID = 0.10
"""The same share above which a run is invalid however few requests were late: a host that stalls now and then, so that the
median and the p99 look sound while a tenth of the waiting was for the host."""
LATENCY_PART_MIN = 0.05
"""A volume whose requests have less than this part of the latency of all volumes cannot make a run invalid by being late:
the transactions hardly waited for it, and of a few requests a few late ones are a large share."""
OVERRUN_SHARE_INVALID = 0.05
"""The same share for requests whose data were not ready when their modelled time was over."""
DRIVER_BUSY_INVALID = 0.90
"""A thread that computes nine tenths of the time makes transactions wait for the driver, whatever the volume does."""
LABORATORY_SHARE_WARN = 0.25
"""A quarter of the machine taken by the measurement is CPU that a server on a real volume would have had."""
LABORATORY_SHARE_INVALID = 0.60
"""Above this the server had the smaller part of the machine. It is allowed while a tenth of the machine stayed idle
(:data:`IDLE_SHARE_SPARE`): then nothing waited long for CPU."""
IDLE_SHARE_SPARE = 0.10
"""Idle CPU below this share means that work queued for CPU."""
OTHER_SHARE_WARN = 0.15
"""On a host with nothing else to do the kernel's own work (loop device, flushing) took up to an eighth of two cores."""
OTHER_SHARE_INVALID = 0.25
"""A quarter of the machine went to strangers. It is allowed while a tenth stayed idle (:data:`IDLE_SHARE_SPARE`)."""
STEAL_SHARE_WARN = 0.05
"""The hypervisor gave this share to others; latencies above the median carry it."""
STEAL_SHARE_INVALID = 0.15
"""At one stolen moment in seven, lateness and throughput depend on the neighbours."""
FAILED_SHARE_INVALID = 0.01
"""Failed transactions are cheaper than successful ones: one in a hundred changes the mix that was measured."""
LOST_SAMPLES_WARN = 0.05
"""Share of the expected samples that are missing. Figures from cumulative counters stand, lines over time have holes."""
LOST_SAMPLES_INVALID = 0.25
"""The host could not even run the probe once a second for a quarter of the time."""
DEVICE_QUEUE_FULL = 128
"""Requests that the kernel's loop device has in flight at most."""
DEVICE_QUEUE_FULL_WARN = 0.05
"""Above this share of samples at the device's limit, the queue length is 'at least'."""

Level = Literal["ok", "warn", "invalid", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One check of one run."""

    check: str
    """What was looked at, the same words for every run."""
    level: Level
    figure: str
    """What was found, with its number and unit; a sentence's end without its full stop."""


def findings(run: RunFigures) -> list[Finding]:
    """Every check of a run, in the order in which a reader should see them."""
    return [
        *_recorded(run),
        *_invariants(run),
        _failed(run),
        _skipped(run),
        *(finding for volume in run.volumes.values() for finding in _volume(run, volume)),
        *(finding for volume in run.volumes.values() for finding in _device(run, volume)),
        _driver(run),
        _laboratory(run),
        _host(run),
        _steal(run),
        *(finding for role in run.volumes for finding in _samples(run, role)),
        *_probes(run),
        *_gaps(run),
        *(finding for role in run.volumes for finding in _device_queue(run, role)),
        *_instance(run),
    ]


def worst(levels: Iterator[Level] | list[Level]) -> Level:
    """The most serious of several levels; ``ok`` for none."""
    order: tuple[Level, ...] = ("ok", "unknown", "warn", "invalid")
    return max(levels, key=order.index, default="ok")


def _level(value: float, warn: float, invalid: float) -> Level:
    return "invalid" if value > invalid else "warn" if value > warn else "ok"


def _graded(check: str, value: float, warn: float, invalid: float, figure: str) -> Finding:
    return Finding(check, _level(value, warn, invalid), figure)


def _recorded(run: RunFigures) -> Iterator[Finding]:
    """What the run itself already knew to be wrong when it ended."""
    validity = run.record.validity
    for reason in validity.reasons:
        yield Finding("while running", "warn" if validity.valid else "invalid", reason)


def _invariants(run: RunFigures) -> Iterator[Finding]:
    checks = run.record.checks
    for check in checks:
        if not check.ok:
            yield Finding("workload's invariants", "invalid", f"{check.name.replace('_', ' ')}: {check.detail}")
    if checks and all(check.ok for check in checks):
        yield Finding(
            "workload's invariants", "ok", f"{len(checks)} hold ({', '.join(c.name for c in checks).replace('_', ' ')})"
        )
    if not checks:
        yield Finding("workload's invariants", "unknown", "none was checked")


def _failed(run: RunFigures) -> Finding:
    account = run.record.account
    tried = account.succeeded + account.failed
    if account.succeeded == 0:
        return Finding("transactions", "invalid", "no transaction succeeded")
    share = account.failed / tried
    return _graded(
        "transactions", share, 0.0, FAILED_SHARE_INVALID, f"{account.failed:,} of {tried:,} failed ({_percent(share)})"
    )


def _skipped(run: RunFigures) -> Finding:
    account = run.record.account
    share = account.skipped / account.scheduled if account.scheduled else 0.0
    # Skipped transactions are what the subject could not take: a result, not a fault of the laboratory.
    level: Level = "warn" if account.skipped else "ok"
    return Finding("account", level, f"{account.skipped:,} of {account.scheduled:,} skipped ({_percent(share)})")


def _volume(run: RunFigures, volume: VolumeFigures) -> Iterator[Finding]:
    """Whether requests came back when the model said; without a model there is nothing to be late to."""
    if run.record.world.kind != "emulated" or volume_spec(run.run, volume.role).get("type") == "null":
        return
    measure = run.record.measure
    counters = volume_counters(run.run, volume.role)
    operations = counters.delta("ops", measure.begin_ns, measure.end_ns)
    for check, name, words, grade in (
        ("lateness", "late_ops", "late by more than 5 % of their modelled latency", _grade_lateness),
        ("store behind the volume", "overrun_ops", "without their data when they were due", _grade_overrun),
    ):
        counted = counters.delta(name, measure.begin_ns, measure.end_ns)
        if operations is None or counted is None:
            yield Finding(_of(check, volume.role), "invalid", "the volume's counters do not cover the measure phase")
        elif operations > 0:
            share = counted / operations
            level, extent = grade(volume, share) if operations >= REQUESTS_MIN else ("ok", ", too few to judge")
            figure = f"{_percent(share)} of {operations:,.0f} requests {words}{extent}"
            part = _latency_part(run, volume)
            if level == "invalid" and part < LATENCY_PART_MIN:
                level, figure = "warn", f"{figure}; they are {_percent(part)} of all volumes' latency"
            yield Finding(_of(check, volume.role), level, figure)


def _device(run: RunFigures, volume: VolumeFigures) -> Iterator[Finding]:
    """Whether the kernel saw requests take what the model said: the one clock that is not the emulator's own."""
    if run.record.world.kind != "emulated" or volume_spec(run.run, volume.role).get("type") == "null":
        return
    span = (run.record.measure.begin_ns, run.record.measure.end_ns)
    model = volume_counters(run.run, volume.role)
    modelled_ns, operations = model.delta("modelled_ns", *span), model.delta("ops", *span)
    device = device_counters(run.run, volume.role)
    reads_ms, writes_ms = device.delta("read_time_ms", *span), device.delta("write_time_ms", *span)
    if not modelled_ns or operations is None or operations < REQUESTS_MIN or reads_ms is None or writes_ms is None:
        return
    share = (reads_ms + writes_ms) * 1e6 / modelled_ns
    level: Level = "invalid" if share < DEVICE_EARLY_INVALID else "warn" if share > DEVICE_LATE_WARN else "ok"
    figure = f"requests took {share:.2f} times what the model said, by the kernel's count"
    yield Finding(_of("device", volume.role), level, figure)


def _latency_part(run: RunFigures, volume: VolumeFigures) -> float:
    """The volume's part of the latency of all requests to all volumes; 1 where no latency was recorded."""
    whole = sum(one.read_ms.sum + one.write_ms.sum for one in run.volumes.values())
    return (volume.read_ms.sum + volume.write_ms.sum) / whole if whole else 1.0


def _of(check: str, role: str) -> str:
    """The check's name; that of another volume than the data's says which."""
    return check if role == DATA else f"{check}, {role} volume"


def _grade_lateness(volume: VolumeFigures, share: float) -> tuple[Level, str]:
    """By how many were late, and by how much time that was beside the latency of all requests."""
    late, latency_ms = volume.lateness_ms, volume.read_ms.sum + volume.write_ms.sum
    median, p99, most = late.percentile(50), late.percentile(99), late.percentile(100)
    if median is None or p99 is None or most is None or latency_ms == 0:
        return _level(share, LATE_SHARE_WARN, LATE_SHARE_NOTABLE), ""
    weight = late.sum / latency_ms
    extent = f" (p50 {median * 1000:.0f} µs, p99 {p99 * 1000:.0f} µs, at most {most:.1f} ms, in all {_percent(weight)} of latency)"
    heavy = (share > LATE_SHARE_NOTABLE and weight > LATENESS_INVALID) or weight > STALLS_INVALID
    return "invalid" if heavy else _level(share, LATE_SHARE_WARN, LATE_SHARE_INVALID), extent


def _grade_overrun(_volume: VolumeFigures, share: float) -> tuple[Level, str]:
    return _level(share, LATE_SHARE_WARN, OVERRUN_SHARE_INVALID), ""


def _driver(run: RunFigures) -> Finding:
    cores = run.record.world.host.cores
    share = run.cpu_share.get("driver")
    if share is None:
        return Finding("driver", "unknown", "its CPU was not recorded")
    threads = max(1, min(int(run.record.workload.get("threads", 1)), cores))
    busy = share * cores / threads
    level: Level = "invalid" if busy >= DRIVER_BUSY_INVALID else "ok"
    noun = "thread" if threads == 1 else f"{threads} threads"
    return Finding("driver", level, f"its {noun} computed {_percent(busy)} of the time")


def _laboratory(run: RunFigures) -> Finding:
    share = run.laboratory_share
    if share is None:
        return Finding("laboratory", "unknown", "its CPU was not recorded")
    parts = ", ".join(f"{role} {_percent(run.cpu_share[role])}" for role in LABORATORY_ROLES if role in run.cpu_share)
    figure = f"{_percent(share)} of the machine's CPU ({parts})"
    idle = run.cpu_share.get("host_idle", 0.0)
    if share > LABORATORY_SHARE_INVALID and idle < IDLE_SHARE_SPARE:
        return Finding("laboratory", "invalid", f"{figure}, with {_percent(idle)} idle")
    return Finding("laboratory", "warn" if share > LABORATORY_SHARE_WARN else "ok", figure)


def _host(run: RunFigures) -> Finding:
    """CPU that went to processes which are neither the server nor the laboratory: a noisy host."""
    share = run.cpu_share.get("other")
    if share is None:
        return Finding("host", "unknown", "what else ran on it was not recorded")
    figure = f"other processes and the kernel took {_percent(share)} of its CPU"
    idle = run.cpu_share.get("host_idle", 0.0)
    if share > OTHER_SHARE_INVALID and idle < IDLE_SHARE_SPARE:
        return Finding("host", "invalid", f"{figure}, with {_percent(idle)} idle")
    return Finding("host", "warn" if share > OTHER_SHARE_WARN else "ok", figure)


def _steal(run: RunFigures) -> Finding:
    share = run.cpu_share.get("host_steal")
    if share is None:
        return Finding("steal", "unknown", "not recorded")
    return _graded(
        "steal", share, STEAL_SHARE_WARN, STEAL_SHARE_INVALID, f"the hypervisor kept {_percent(share)} of the CPU time"
    )


def _samples(run: RunFigures, role: str) -> Iterator[Finding]:
    """Missing samples of a volume (or of its block device when there is no emulated one)."""
    lost = lost_samples(run.run, role)
    if lost is not None:
        share, expected = lost
        figure = f"{_percent(share)} of {expected:,} samples of the volume are missing"
        yield _graded(_of("samples", role), share, LOST_SAMPLES_WARN, LOST_SAMPLES_INVALID, figure)
    elif run.record.world.kind == "real":
        why = next((row.why for row in run.record.visibility if not row.seen and "device" in row.what), "")
        figure = "the volume was not sampled" + (f": {why}" if why else "")
        yield Finding(_of("samples", role), "unknown", figure)
    else:
        yield Finding(_of("samples", role), "invalid", "no counters of the volume in the measure phase")


def lost_samples(run: Run, role: str = DATA) -> tuple[float, int] | None:
    """Share of a volume's samples that are missing from the measure phase, and how many were expected.

    The interval is the median gap, so that the figure does not depend on what interval was asked for. None when there
    are too few samples to tell.
    """
    import numpy as np

    measure = run.record.measure
    t_ns = volume_counters(run, role).t_ns
    inside = t_ns[(t_ns >= measure.begin_ns) & (t_ns < measure.end_ns)]
    if len(t_ns) < 2 or len(inside) == 0:
        return None
    expected = round((measure.end_ns - measure.begin_ns) / float(np.median(np.diff(t_ns))))
    if expected == 0:
        return 0.0, 0
    return max(0.0, 1 - len(inside) / expected), expected


def _probes(run: RunFigures) -> Iterator[Finding]:
    """What each probe lost and what it cost. Their samples are statistics: losing some makes no figure wrong."""
    for row in run.run.table("probe/cost").to_pylist():
        due = (row["samples"] or 0) + (row["lost_samples"] or 0)
        seconds = (row["t_end_ns"] - row["t_begin_ns"]) / 1e9
        if due == 0 or seconds <= 0:
            continue
        lost = (row["lost_samples"] or 0) / due
        # The host's probe is a process whose CPU the laboratory's check has.
        used = [row[name] for name in ("client_cpu_ns", "server_cpu_ns") if row[name] is not None]
        cost = f", {_percent(sum(used) / 1e9 / seconds)} of a core" if used else ""
        level: Level = "warn" if lost > LOST_SAMPLES_WARN else "ok"
        words = f"{row['probe'].replace('_', ' ')}: {_percent(lost)} of {due:,} samples lost{cost}"
        yield Finding("probes", level, words)


def _gaps(run: RunFigures) -> Iterator[Finding]:
    """What the probes themselves noted that they could not sample, one finding for each thing."""
    measure = run.record.measure
    missing: dict[str, tuple[float, str]] = {}
    for row in run.run.table("probe/gap").to_pylist():
        inside_ns = min(row["t_end_ns"], measure.end_ns) - max(row["t_begin_ns"], measure.begin_ns)
        if inside_ns >= 0:
            seconds, why = missing.get(row["what"], (0.0, row["why"]))
            missing[row["what"]] = (seconds + inside_ns / 1e9, why)
    for what, (seconds, why) in missing.items():
        yield Finding("probes", "warn", f"{what} was not sampled for {seconds:.1f} s: {why}")


def _device_queue(run: RunFigures, role: str) -> Iterator[Finding]:
    """Whether the kernel's loop device, not the volume, bounded how many requests were in flight."""
    measure = run.record.measure
    table = of_role(run.run.table("probe/disk"), role)
    if table.num_rows == 0 or run.record.world.kind == "real":
        return
    t_ns = table["t_ns"].to_numpy()
    in_flight = table["in_flight"].to_numpy()[(t_ns >= measure.begin_ns) & (t_ns < measure.end_ns)]
    if len(in_flight) == 0:
        return
    share = float((in_flight >= DEVICE_QUEUE_FULL).mean())
    if share > DEVICE_QUEUE_FULL_WARN:
        yield Finding(
            _of("device's queue", role),
            "warn",
            f"full ({DEVICE_QUEUE_FULL} in flight) in {_percent(share)} of samples: queue length is 'at least'",
        )


def _instance(run: RunFigures) -> Iterator[Finding]:
    """Whether the CPU was the instance's: an instance that is larger than the host is emulated in its storage only."""
    instance, cores = run.record.world.instance, run.record.world.host.cores
    if instance.storage_only:
        name = instance.type or "the instance"
        has = "" if instance.vcpus is None else f" has {instance.vcpus} vCPUs,"
        figure = f"storage only: {name}{has} this host {cores} cores, so what the CPU bounds is the host's"
        yield Finding("instance", "unknown", figure)


def _percent(share: float) -> str:
    if share == 0:
        return "0 %"
    if share < 0.0005:
        return "< 0.1 %"
    return f"{share * 100:.1f} %"
