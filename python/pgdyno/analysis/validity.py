"""Trust in a run: every check of the instrument, by the run's own record.

Each check gives a finding with its figure: ``ok``, ``warn`` (read the numbers with it in mind), ``invalid`` (the
numbers describe this machine or pgdyno, not the volume) or ``unknown`` (the run did not record it). The
thresholds are the constants below, each with its reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.credit import credit_findings
from pgdyno.analysis.finding import CheckResult, Level, graded, why_invalid
from pgdyno.analysis.queries import parallel_workers
from pgdyno.analysis.replay import replayed
from pgdyno.analysis.steady import steadiness

from ..base.errors import InputError
from ..base.text import number, percent
from ..results import StoredRun
from ..results import query as sql_over_runs
from ..results.names import results_root
from . import reading
from .binding.evidence import is_watched
from .dilation import dilated
from .figures import DATA, CounterSamples, of_role, volume_counters, volume_spec
from .instrument import driven, of, on_time
from .run import HARNESS_ROLES, RunFigures, figures_of, unit_of
from .series import events_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


RELAY_BUSY_INVALID = 0.90
"""One thread relays everything: when it computes nine tenths of the time, messages queue for it."""
LONGER_WARN = 0.10
"""A round trip that is a tenth longer than asked, for half of the messages, is another distance."""
_DIRECTIONS = ("to_server", "to_client")


def distance(run: RunFigures) -> Iterator[CheckResult]:
    """What the relay added to its own delay, and whether it kept up. Nothing for a client without a distance."""
    client = run.record.client
    if not client.rtt_ms:
        return
    known = client.relay.get("rtt_ns") and all(direction in client.relay for direction in _DIRECTIONS)
    share = run.cpu_share.get("relay")
    if not known or share is None:
        yield CheckResult("client's distance", "unknown", "the relay's lateness or its CPU was not recorded")
        return
    busy = share * run.record.world.host.cores
    longer = sum(client.relay[direction]["late_ns_p50"] for direction in _DIRECTIONS) / client.relay["rtt_ns"]
    level: Level = "invalid" if busy >= RELAY_BUSY_INVALID else "warn" if longer > LONGER_WARN else "ok"
    figure = (
        f"{client.rtt_ms:g} ms, by the relay's own clock {percent(longer)} more for half of the messages;"
        f" its thread computed {percent(busy)} of the time"
    )
    yield CheckResult("client's distance", level, figure)


def degraded(run: RunFigures) -> Iterator[CheckResult]:
    """For each volume that may be degraded, how long it was while measuring; nothing of any other."""
    measure = run.record.measure
    for role in run.volumes:
        result = volume_spec(run.run, role).get("degradation")
        if result is None:
            continue
        counters = CounterSamples.of(of_role(run.run.table("probe/volume"), role))
        spent_ns = counters.delta("degraded_ns", measure.begin_ns, measure.end_ns)
        of = f" of {number((measure.end_ns - measure.begin_ns) / 1e9)} s"
        spent = "it was not recorded how long" if spent_ns is None else f"for {number(spent_ns / 1e9)}{of}"
        (shortest, longest), (least, most) = result["lasts_s"], result["left_percent"]
        whose = "its provider leaves open" if result["promised"] else "was asked for"
        yield CheckResult(
            "degraded",
            "warn",
            f"the {role} volume had a part of its limits on purpose, {spent}: {number(result['of_time_percent'])} % of the time"
            f" {whose}; {shortest} to {longest} s at a time with {number(least)} to {number(most)} % left are a hypothesis",
        )


HARNESS_SHARE_WARN = 0.25
"""A quarter of the machine taken by the measurement is CPU that a server on a real volume would have had."""
HARNESS_SHARE_INVALID = 0.60
"""Above this the server had the smaller part of the machine. It is allowed while a tenth of the machine stayed idle
(:data:`IDLE_SHARE_SPARE`): then nothing waited long for CPU."""
IDLE_SHARE_SPARE = 0.10
"""Idle CPU below this share means that work queued for CPU."""
OTHER_SHARE_WARN = 0.15
"""On a host with nothing else to do the kernel's own work (loop device, flushing) took up to an eighth of two cores."""
OTHER_SHARE_INVALID = 0.25
"""Other processes took a quarter of the machine. It is allowed while a tenth stayed idle (:data:`IDLE_SHARE_SPARE`)."""
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


def findings(run: RunFigures) -> list[CheckResult]:
    """Every check of a run, in the order in which a reader should see them."""
    if is_watched(run.record):
        # The load is not pgdyno's, and a host that is busy with something else is what was to be found out.
        return [*_recorded(run), *_probes(run), *_gaps(run)]
    return [
        *_recorded(run),
        *_invariants(run),
        _failed(run),
        _skipped(run),
        *_row_locks(run),
        *parallel_workers(run),
        *replayed(run),
        *(() if run.record.sample is None else reading.sample_findings(run.record.sample)),
        *_steadiness(run),
        *credit_findings(run.credit, run.work_per_s, unit_of(run.record).per_second),
        *degraded(run),
        *(finding for volume in run.volumes.values() for finding in on_time(run, volume)),
        *driven(run),
        *distance(run),
        _harness(run),
        _host(run),
        _steal(run),
        *(finding for role in run.volumes for finding in _samples(run, role)),
        *_probes(run),
        *_gaps(run),
        *(finding for role in run.volumes for finding in _device_queue(run, role)),
        *_instance(run),
        *dilated(run),
    ]


def judge(run: StoredRun) -> tuple[str, ...]:
    """The verdict on a recorded run: :func:`why_invalid` of its findings. A run that cannot be read is invalid.

    The table, the page, `pgdyno runs` and `pgdyno query` call a run valid by this and by nothing else.
    """
    try:
        return why_invalid(findings(figures_of(run)))
    except InputError as error:
        return (error.message,)


def _recorded(run: RunFigures) -> Iterator[CheckResult]:
    """What the run itself already knew to be wrong when it ended."""
    if run.record.world.made_up:
        yield CheckResult("while running", "warn", "nothing was measured: the figures of a fake world are made up")
    validity = run.record.validity
    for reason in validity.reasons:
        yield CheckResult("while running", "warn" if validity.valid else "invalid", reason)


def _invariants(run: RunFigures) -> Iterator[CheckResult]:
    checks = run.record.checks
    for check in checks:
        if not check.ok:
            yield CheckResult("workload's invariants", "invalid", f"{check.name.replace('_', ' ')}: {check.detail}")
    if checks and all(check.ok for check in checks):
        yield CheckResult(
            "workload's invariants", "ok", f"{len(checks)} hold ({', '.join(c.name for c in checks).replace('_', ' ')})"
        )
    if not checks:
        yield CheckResult("workload's invariants", "unknown", "none was checked")


def _steadiness(run: RunFigures) -> Iterator[CheckResult]:
    """Of what ends with its work nothing has to be steady, and what events change is not."""
    if events := events_of(run.run):
        words = "; ".join(f"{event.words} after {event.begin_s:.1f} s" for event in events)
        yield CheckResult("events", "ok", f"this run is not steady, on purpose: {words}")
    elif not run.record.ends_with_its_work:
        yield steadiness(run.steady, run.work_per_s)


def _failed(run: RunFigures) -> CheckResult:
    account = run.record.account
    unit = unit_of(run.record)
    tried = account.succeeded + account.rolled_back + account.failed
    if account.succeeded == 0:
        return CheckResult(unit.many, "invalid", f"no {unit.one} succeeded")
    share = account.failed / tried
    figure = f"{account.failed:,} of {tried:,} failed ({percent(share)})"
    return CheckResult(unit.many, graded(share, 0.0, FAILED_SHARE_INVALID), figure)


def _skipped(run: RunFigures) -> CheckResult:
    account = run.record.account
    share = account.skipped / account.scheduled if account.scheduled else 0.0
    # Skipped transactions are what the subject could not take: a result, not a fault of pgdyno.
    level: Level = "warn" if account.skipped else "ok"
    return CheckResult("account", level, f"{account.skipped:,} of {account.scheduled:,} skipped ({percent(share)})")


def _row_locks(run: RunFigures) -> Iterator[CheckResult]:
    """Whether clients of transactions derived from TPC-C share warehouses: each writes the row of its own."""
    workload = run.record.workload
    clients, warehouses = workload.get("clients"), workload.get("warehouses")
    if clients is None or warehouses is None or workload.get("all_warehouses"):
        return
    figure = f"{clients:,} clients on {warehouses:,} warehouses"
    if clients > warehouses:
        wait = "they wait for each other's rows, and a faster volume changes little"
        figure += f": {wait}; use more warehouses, fewer clients or all_warehouses = true"
    yield CheckResult("row locks", "warn" if clients > warehouses else "ok", figure)


def _harness(run: RunFigures) -> CheckResult:
    share = run.harness_share
    if share is None:
        return CheckResult("test harness", "unknown", "its CPU was not recorded")
    parts = ", ".join(f"{role} {percent(run.cpu_share[role])}" for role in HARNESS_ROLES if role in run.cpu_share)
    figure = f"{percent(share)} of the machine's CPU ({parts})"
    idle = run.cpu_share.get("host_idle", 0.0)
    if share > HARNESS_SHARE_INVALID and idle < IDLE_SHARE_SPARE:
        return CheckResult("test harness", "invalid", f"{figure}, with {percent(idle)} idle")
    return CheckResult("test harness", "warn" if share > HARNESS_SHARE_WARN else "ok", figure)


def _host(run: RunFigures) -> CheckResult:
    """CPU that went to processes which are neither the server nor pgdyno's: a noisy host."""
    share = run.cpu_share.get("other")
    if share is None:
        return CheckResult("host", "unknown", "what else ran on it was not recorded")
    figure = f"other processes and the kernel took {percent(share)} of its CPU"
    idle = run.cpu_share.get("host_idle", 0.0)
    if share > OTHER_SHARE_INVALID and idle < IDLE_SHARE_SPARE:
        return CheckResult("host", "invalid", f"{figure}, with {percent(idle)} idle")
    return CheckResult("host", "warn" if share > OTHER_SHARE_WARN else "ok", figure)


def _steal(run: RunFigures) -> CheckResult:
    share = run.cpu_share.get("host_steal")
    if share is None:
        return CheckResult("steal", "unknown", "not recorded")
    figure = f"the hypervisor kept {percent(share)} of the CPU time"
    return CheckResult("steal", graded(share, STEAL_SHARE_WARN, STEAL_SHARE_INVALID), figure)


def _samples(run: RunFigures, role: str) -> Iterator[CheckResult]:
    """Missing samples of a volume (or of its block device when there is no emulated one)."""
    lost = lost_samples(run.run, role)
    if lost is not None:
        share, expected = lost
        figure = f"{percent(share)} of {expected:,} samples of the volume are missing"
        yield CheckResult(of(role, "samples"), graded(share, LOST_SAMPLES_WARN, LOST_SAMPLES_INVALID), figure)
    elif run.record.world.existed:
        why = next((row.why for row in run.record.visibility if not row.seen and "device" in row.what), "")
        figure = "the volume was not sampled" + (f": {why}" if why else "")
        yield CheckResult(of(role, "samples"), "unknown", figure)
    else:
        yield CheckResult(of(role, "samples"), "invalid", "no counters of the volume in the measure phase")


def lost_samples(run: StoredRun, role: str = DATA) -> tuple[float, int] | None:
    """Share of a volume's samples that are missing from the measure phase, and how many were expected.

    The interval is the median gap, so that the figure does not depend on what interval was asked for. None when there
    are too few samples to tell. What is counted are holes between samples: a phase of a second and a half has one sample or two
    of a probe that asks once a second, and both are all.
    """
    import numpy as np

    measure = run.record.measure
    t_ns = volume_counters(run, role).t_ns
    inside = int(np.count_nonzero((t_ns >= measure.begin_ns) & (t_ns < measure.end_ns)))
    if len(t_ns) < 2 or inside == 0:
        return None
    missing = _holes(t_ns, measure.begin_ns, measure.end_ns)
    return missing / (inside + missing), inside + missing


def _holes(t_ns: NDArray[np.int64], begin_ns: int, end_ns: int) -> int:
    """How many samples are missing between ``begin_ns`` and ``end_ns``, at the samples' own interval."""
    import numpy as np

    gaps = np.diff(t_ns)
    interval = float(np.median(gaps))
    missing = max(0, int((t_ns[0] - begin_ns) / interval)) + max(0, int((end_ns - t_ns[-1]) / interval))
    for at, gap in zip(t_ns[:-1], gaps, strict=True):
        steps = round(float(gap) / interval)
        instants = (float(at) + float(gap) * step / steps for step in range(1, steps))
        missing += sum(begin_ns <= instant < end_ns for instant in instants)
    return missing


def _probes(run: RunFigures) -> Iterator[CheckResult]:
    """What each probe lost and what it cost. Their samples are statistics: losing some makes no figure wrong."""
    for row in run.run.table("probe/cost").to_pylist():
        due = (row["samples"] or 0) + (row["lost_samples"] or 0)
        seconds = (row["t_end_ns"] - row["t_begin_ns"]) / 1e9 * run.record.world.dilation
        if due == 0 or seconds <= 0:
            continue
        lost = (row["lost_samples"] or 0) / due
        # The host's probe is a process whose CPU `_harness` has counted.
        used = [row[name] for name in ("client_cpu_ns", "server_cpu_ns") if row[name] is not None]
        cost = f", {percent(sum(used) / 1e9 / seconds)} of a core" if used else ""
        level: Level = "warn" if lost > LOST_SAMPLES_WARN else "ok"
        words = f"{row['probe'].replace('_', ' ')}: {percent(lost)} of {due:,} samples lost{cost}"
        yield CheckResult("probes", level, words)


def _gaps(run: RunFigures) -> Iterator[CheckResult]:
    """What the probes themselves noted that they could not sample, one finding for each thing."""
    measure = run.record.measure
    missing: dict[str, tuple[float, str]] = {}
    for row in run.run.table("probe/gap").to_pylist():
        inside_ns = min(row["t_end_ns"], measure.end_ns) - max(row["t_begin_ns"], measure.begin_ns)
        if inside_ns >= 0:
            seconds, why = missing.get(row["what"], (0.0, row["why"]))
            missing[row["what"]] = (seconds + inside_ns / 1e9, why)
    for what, (seconds, why) in missing.items():
        yield CheckResult("probes", "warn", f"{what} was not sampled for {seconds:.1f} s: {why}")


def _device_queue(run: RunFigures, role: str) -> Iterator[CheckResult]:
    """Whether the kernel's loop device, not the volume, bounded how many requests were in flight."""
    measure = run.record.measure
    table = of_role(run.run.table("probe/disk"), role)
    if table.num_rows == 0 or run.record.world.existed:
        return
    t_ns = table["t_ns"].to_numpy()
    in_flight = table["in_flight"].to_numpy()[(t_ns >= measure.begin_ns) & (t_ns < measure.end_ns)]
    if len(in_flight) == 0:
        return
    share = float((in_flight >= DEVICE_QUEUE_FULL).mean())
    if share > DEVICE_QUEUE_FULL_WARN:
        yield CheckResult(
            of(role, "device's queue"),
            "warn",
            f"full ({DEVICE_QUEUE_FULL} in flight) in {percent(share)} of samples: queue length is 'at least'",
        )


def _instance(run: RunFigures) -> Iterator[CheckResult]:
    """Whether the CPU was the instance's: an instance that is larger than the host is emulated in its storage only."""
    instance, cores = run.record.world.instance, run.record.world.host.cores
    if instance.storage_only:
        name = instance.type or "the instance"
        has = "" if instance.vcpus is None else f" has {instance.vcpus} vCPUs,"
        stands = "" if run.record.world.dilation == 1 else f" that stand for {cores * run.record.world.dilation}"
        figure = f"storage only: {name}{has} this host {cores} cores{stands}, so what the CPU bounds is the host's"
        yield CheckResult("instance", "unknown", figure)


def query(sql: str, results: str | Path | None = None) -> list[dict[str, Any]]:
    """Rows of one SELECT over the finished runs, each a dictionary by column: what ``pgdyno query`` prints.

    ``results`` is the folder, by default that of the command. What cannot be read is left out with a warning. :class:`pgdyno.base.errors.InputError`
    for bad SQL, for anything but one SELECT, and when there are no runs.
    """
    unreadable: dict[Path, str] = {}
    result = sql_over_runs.query(results_root(None if results is None else Path(results)), sql, judge, unreadable)
    for path, why in unreadable.items():
        warnings.warn(f"omitted, because it cannot be read: {path}: {why}", stacklevel=2)
    return result.dictionaries()
