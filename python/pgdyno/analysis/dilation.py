"""Dilated runs: how much of a transaction's time was the host's own, and how far such a run can be trusted.

A transaction waits for its volumes, or for what the host does for it: computing, the way of a request through the
kernel, wake-ups. Volumes are slowed by the dilation and the host is not. Its part is counted twice here, by CPU time and
by what sessions were seen waiting for, since each account misses something; the larger one is believed. Why the figures
are upper bounds: docs/concept/dilation.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pgdyno.analysis.finding import CheckResult, Level

from ..base.text import cpus_of, percent
from .figures import DATA, Wait, path_us, volume_attach, volume_counters
from .run import RunFigures

SERIAL_ROLES = ("server", "driver", "relay")
"""Whose CPU time a transaction waits for. The daemon's is part of the path of a request, which is counted by itself."""
WRITES_WAITED_MAX = 1.0
"""Writes that a transaction waits for: that of its commit. Pages are written behind it."""
_OTHERS_READS = frozenset({"bufferio", "aioiocompletion", "aioiouringexecution"})
"""Waits for a read that another process, or the kernel, makes for this session; their names since 14, in lower case."""


@dataclass(frozen=True)
class Requests:
    """Reads of all volumes, or writes of the volume that commits wait for."""

    per_s: float
    modelled_ms: float
    """Mean time that the model gave one, the subject's."""
    path_ms: float
    """Path of one of 8 KiB by the calibration, the host's."""

    def at_volume(self, dilation: int) -> float:
        """The part of a wait for one that was at the volume.

        The path is taken off the model's time already. What was calibrated is a request to the block device itself; the
        page cache, the file system and a wake-up of a busy machine come on top, and are taken to be as much again.
        """
        whole_ms = self.modelled_ms + self.path_ms / dilation
        return self.modelled_ms / whole_ms if whole_ms else 0.0


@dataclass(frozen=True)
class HostTime:
    """The transactions of a dilated run in mean figures. What was not recorded is None."""

    dilation: int
    tps: float
    response_ms: float
    """Response time of a transaction from its actual start, in the subject's time."""
    cpu_ms: float | None
    """CPU time of :data:`SERIAL_ROLES` for a transaction, the host's."""
    waits: Mapping[Wait, float]
    """What the sessions were waiting for -> how many of them; empty when they were not sampled."""
    reads: Requests | None
    commits: Requests | None
    travelling: float | None = 0.0
    """Sessions whose message was on the way over an emulated distance."""

    @property
    def reads_ms(self) -> float | None:
        """What the reads of a transaction take at the volumes, all together, in the subject's time."""
        return None if self.reads is None else self.reads.per_s * self.reads.modelled_ms / self.tps

    @property
    def computed_ms(self) -> float | None:
        """The host's part by CPU time and paths, in its milliseconds. It misses waiting for a core, and wake-ups."""
        if self.cpu_ms is None or self.reads is None or self.commits is None:
            return None
        writes = min(self.commits.per_s / self.tps, WRITES_WAITED_MAX)
        return self.cpu_ms + self.reads.per_s / self.tps * self.reads.path_ms + writes * self.commits.path_ms

    @property
    def not_waited_ms(self) -> float | None:
        """The host's part by waits, in its milliseconds: all time but that at the volumes and on an emulated way.

        Who waits for a lock waits for one whose time is divided as that of the others. It misses what the host took of
        waits beyond a path for each request.
        """
        sessions = self.tps * self.response_ms / 1e3
        locked = math.fsum(number for wait, number in self.waits.items() if wait.type == "Lock")
        if (
            not self.waits
            or self.reads is None
            or self.commits is None
            or self.travelling is None
            or locked >= sessions
        ):
            return None
        reading = min(
            _reading(self.waits) * self.reads.at_volume(self.dilation),
            self.reads.per_s * self.reads.modelled_ms / 1e3,  # a read that the page cache had was not at the volume
        )
        # A session that waits for its client is idle, which no sample shows, or within a transaction.
        without_work = max(0.0, sessions - math.fsum(self.waits.values())) + _named(self.waits, "Client", "clientread")
        slowed = (
            reading + _syncing(self.waits) * self.commits.at_volume(self.dilation) + min(self.travelling, without_work)
        )
        return max(0.0, 1 - slowed / (sessions - locked)) * self.response_ms * self.dilation

    @property
    def ms(self) -> float | None:
        """The host's part of a transaction at most, in its milliseconds; None where neither account is known."""
        known = [value for value in (self.computed_ms, self.not_waited_ms) if value is not None]
        return min(max(known), self.response_ms * self.dilation) if known else None

    @property
    def excess(self) -> float | None:
        """By how much a closed loop's throughput may be too high, as a share of the right one; 0 to dilation - 1."""
        host_ms = self.ms
        return None if host_ms is None else host_ms * (1 - 1 / self.dilation) / self.response_ms

    @property
    def short(self) -> float | None:
        """By how much response times may be too short, as a share of the right ones."""
        excess = self.excess
        return None if excess is None else excess / (1 + excess)


def host_time(run: RunFigures) -> HostTime | None:
    """The host's part in a run's transactions; None where there were none."""
    served = run.service_ms if run.service_ms.total else run.latency_ms
    if not served.total or not served.sum or not run.work_per_s:
        return None
    world = run.record.world
    share = math.fsum(run.cpu_share.get(role, 0.0) for role in SERIAL_ROLES)
    return HostTime(
        dilation=world.dilation,
        tps=run.work_per_s,
        response_ms=served.sum / served.total,
        # In a second of a dilated world a core has `dilation` seconds of CPU time.
        cpu_ms=share * world.host.cores * world.dilation / run.work_per_s * 1e3 if "server" in run.cpu_share else None,
        waits=run.waits,
        reads=_requests(run, "read", tuple(run.volumes)),
        commits=_requests(run, "write", ("wal" if "wal" in run.volumes else DATA,)),
        travelling=_travelling(run),
    )


def _requests(run: RunFigures, op: str, roles: tuple[str, ...]) -> Requests | None:
    """One operation of several volumes in the measure phase; None where a counter does not cover it."""
    measure = run.record.measure
    span = (measure.begin_ns, measure.end_ns)
    ops = modelled_ms = path_ms = 0.0
    for role in roles:
        counters = volume_counters(run.run, role)
        done, modelled_ns = counters.delta(f"{op}_ops", *span), counters.delta(f"{op}_modelled_ns", *span)
        if done is None or modelled_ns is None:
            return None
        ops += done
        modelled_ms += modelled_ns / 1e6
        path_ms += done * path_us(volume_attach(run.run, role)).get(op, 0.0) / 1e3
    each = max(1.0, ops)
    return Requests(ops / measure.seconds, modelled_ms / each, path_ms / each)


def _travelling(run: RunFigures) -> float | None:
    """Sessions whose message was on the way, on average; None where the relay did not say how many messages it carried."""
    client = run.record.client
    if not client.rtt_ms:
        return 0.0
    messages = client.relay.get("to_server", {}).get("chunks")
    transactions = sum(run.run.table("workload/throughput")["transactions"].to_pylist())
    if messages is None or not transactions:
        return None
    return float(messages / transactions * run.work_per_s * client.rtt_ms / 1e3)


def _reading(waits: Mapping[Wait, float]) -> float:
    """Sessions that waited for a read."""
    return math.fsum(
        number
        for wait, number in waits.items()
        if (wait.type == "IO" and "read" in wait.event.lower()) or wait.event.lower() in _OTHERS_READS
    )


def _syncing(waits: Mapping[Wait, float]) -> float:
    """Sessions that waited for something to be on the volume, by themselves or behind who writes the log.

    That one copies into the page cache before it syncs; those behind it see the two in the same proportion.
    """
    own = math.fsum(number for wait, number in waits.items() if wait.type == "IO" and "sync" in wait.event.lower())
    syncs, copies = _named(waits, "IO", "walsync"), _named(waits, "IO", "walwrite")
    behind = _named(waits, "LWLock", "walwrite")
    return own + (behind * syncs / (syncs + copies) if syncs else 0.0)


def _named(waits: Mapping[Wait, float], kind: str, event: str) -> float:
    """Sessions in one wait; before 17 PostgreSQL wrote ``WALSync`` where it now writes ``WalSync``."""
    return math.fsum(number for wait, number in waits.items() if wait.type == kind and wait.event.lower() == event)


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
