"""Evidence of each second of a run: its devices, its sessions, its CPU, its checkpoints. No verdict yet.

A figure that was not recorded is None, and nothing is concluded from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.binding.sessions import (
    SESSION_LOCKS,
    SessionStates,
    look_ms_by_second,
    others_by_second,
    sessions_by_second,
)
from pgdyno.analysis.replay import kept_up
from pgdyno.analysis.series import checkpoint_starts

from ...results import StoredRun
from ...results.record import InstanceRecord, RunPhase, RunRecord, VolumeRecord
from ..dilation import server_cores
from ..figures import BLOCK_BYTES, CounterSamples, cpu_counters, device_counters, volume_roles, volume_spec
from ..instrument import cores_of
from ..run import HARNESS_ROLES, RunFigures
from .device import BoughtInstance, DeviceActivity, ProvisionedVolume, cpu_share_of

if TYPE_CHECKING:
    import numpy as np


_DONE = ("num_done", "sync_time_ms", "write_time_ms")
"""What grows when a checkpoint ends: the count from 18 on; before it the times, which are added at its end."""

INTERVAL_MAX_S = 60.0
"""From one checkpoint's begin to the next. PostgreSQL itself warns below 30 s (checkpoint_warning), and its default is 5
minutes: a page that is changed once a minute goes whole into WAL each time."""
MOVED_MIN = 0.5
"""Share of all bytes moved: without the checkpoints there would be less than half of them."""


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a run's measure phase."""

    inside: tuple[bool, ...]
    """For each second, whether a checkpoint was under way in it."""
    started: int = 0
    """Begun in the phase."""
    requested: int = 0
    """Of these, because max_wal_size was reached, or because one was asked for."""
    seconds: float = 0.0
    """Length of the phase."""
    page_bytes: float | None = None
    """Pages that checkpoints wrote, and whole pages in WAL, which each page needs after a checkpoint. None where either is not known."""
    written_share: float | None = None
    """``page_bytes``, of all bytes that went to the volumes; None where either is not known."""
    moved_share: float | None = None
    """The same, of all bytes that went to the volumes or came from them."""
    outside_ratio: float | None = None
    """Transactions per second outside of checkpoints over those of the whole phase; None where either is not known."""

    @property
    def interval_s(self) -> float | None:
        """Mean time from one begin to the next; None with fewer than two."""
        return self.seconds / self.started if self.started >= 2 else None

    @property
    def too_often(self) -> bool:
        """Whether they follow each other so closely that most of what volumes do is because of them.

        Then the time outside of them does not count as better: a page that is changed there for the first time goes whole into WAL.
        """
        interval_s, share = self.interval_s, self.moved_share
        return interval_s is not None and interval_s <= INTERVAL_MAX_S and share is not None and share >= MOVED_MIN

    def of_volumes(self, written: float | None, read: float | None) -> Checkpoints:
        """The same with the bytes that all volumes wrote and read in the phase; None for what is not known."""
        return replace(
            self,
            written_share=_share(self.page_bytes, written),
            moved_share=_share(self.page_bytes, None if written is None or read is None else written + read),
        )


def checkpoints_of(run: RunFigures, edges: np.ndarray[Any, Any]) -> Checkpoints:
    """From pg_stat_checkpointer (pg_stat_bgwriter before 17), to the resolution of the probe."""
    bins = len(edges) - 1
    table, measure = run.run.table("probe/checkpointer"), run.record.measure
    if table.num_rows < 2:
        return Checkpoints((False,) * bins, seconds=measure.seconds)
    counters = CounterSamples.of_server(table)
    spans = _spans(checkpoint_starts(run.run), _ends(counters), measure.end_ns)
    begin_ns = edges[:-1].tolist()
    inside = tuple(any(begin < right and end > left for begin, end in spans)
                   for left, right in zip(begin_ns, edges[1:].tolist(), strict=True))  # fmt: skip
    timed, requested = (_grown(counters, name, measure) for name in ("num_timed", "num_requested"))
    return Checkpoints(
        inside=inside,
        started=timed + requested,
        requested=requested,
        seconds=measure.seconds,
        page_bytes=_page_bytes(run, counters),
        outside_ratio=_outside_ratio(run, edges, inside),
    ).of_volumes(*_volume_bytes(run))


def _grown(counters: CounterSamples, name: str, measure: RunPhase) -> int:
    """Whole checkpoints by a counter; there can be several between two looks at it."""
    grown = counters.delta(name, measure.begin_ns, measure.end_ns)
    return 0 if grown is None or math.isnan(grown) else round(grown)


def _spans(starts: list[int], ends: list[int], last_ns: int) -> list[tuple[int, int]]:
    """Begin and end of each; one whose end was not seen lasts until the next begins, or the run ends."""
    spans = []
    for place, start in enumerate(starts):
        following = starts[place + 1] if place + 1 < len(starts) else last_ns
        end = next((t for t in ends if t >= start), following)
        spans.append((start, max(start, end)))
    return spans


def _ends(counters: CounterSamples) -> list[int]:
    import numpy as np

    for name in _DONE:
        values = counters.columns.get(name)
        if values is not None and not np.isnan(values).all():
            return [int(t) for t in counters.t_ns[1:][np.diff(values) > 0]]
    return []


def _page_bytes(run: RunFigures, checkpointer: CounterSamples) -> float | None:
    span = (run.record.measure.begin_ns, run.record.measure.end_ns)
    wal = CounterSamples.of_server(run.run.table("probe/wal"))
    pages = [checkpointer.delta("buffers_written", *span), wal.delta("wal_fpi", *span)]
    return None if None in pages else sum(page for page in pages if page is not None) * BLOCK_BYTES


def _volume_bytes(run: RunFigures) -> tuple[float | None, float | None]:
    """What all volumes wrote and read by the host's counters; None where the host does not show them."""
    span = (run.record.measure.begin_ns, run.record.measure.end_ns)
    devices = [device_counters(run.run, role) for role in volume_roles(run.run)]
    written, read = (
        [moved for device in devices if (moved := device.delta(name, *span)) is not None]
        for name in ("write_bytes", "read_bytes")
    )
    return sum(written) if written else None, sum(read) if read else None


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None or math.isnan(part) or not whole > 0:
        return None
    return min(1.0, part / whole)


def _outside_ratio(run: RunFigures, edges: np.ndarray[Any, Any], inside: tuple[bool, ...]) -> float | None:
    import numpy as np

    table, bins = run.run.table("workload/throughput"), len(edges) - 1
    if table.num_rows == 0 or all(inside):
        return None
    middle = (table["t_begin_ns"].to_numpy() + table["t_end_ns"].to_numpy()) // 2
    place = np.searchsorted(edges, middle, side="right") - 1
    counted = (place >= 0) & (place < bins)
    done = np.bincount(place[counted], weights=table["transactions"].to_numpy()[counted], minlength=bins)
    mean = float(done.mean())
    return float(done[~np.array(inside)].mean()) / mean if mean > 0 else None


OBSERVE = "observe"
"""The kind of workload of a server that was only watched: its own users made the load."""


@dataclass(frozen=True)
class Circumstances:
    """They belong to one run, or to a server that was watched."""

    volumes: Mapping[str, VolumeRecord] = field(default_factory=dict)
    """By role: what there is, and what could be bought instead."""
    instance: InstanceRecord = field(default_factory=InstanceRecord)
    arrivals: float | None = None
    """What was due over what was done, in an open loop. None in a closed one, and where it is not known what was asked for."""
    all_done: bool = False
    """Whether everything that an open loop asked for was done."""
    lock: str | None = None
    """The most frequent wait for another session, in words."""


def circumstances_of(run: RunFigures) -> Circumstances:
    """Those of a recorded run."""
    record, waits = run.record, run.waits
    arrivals, all_done = _asked_for(record)
    return Circumstances(
        volumes=record.world.volumes,
        instance=record.world.instance,
        arrivals=arrivals,
        all_done=all_done,
        lock=next((wait.label for wait in waits if wait.type in {"LWLock", *SESSION_LOCKS}), None),
    )


def _asked_for(record: RunRecord) -> tuple[float | None, bool]:
    """What was due over what was done, and whether all of it was done."""
    if (replay := record.replay) is not None:
        # All of it is sent in the end; what counts is whether that took longer than it was to take.
        return max(1.0, replay.took_s / replay.due_s) if replay.due_s else None, kept_up(replay)
    if record.workload.get("closed", True):
        return None, False
    return _due_over_done(record), record.account.scheduled == record.account.succeeded


def is_watched(record: RunRecord) -> bool:
    """Whether a run is a watch: the number of the server's clients is not known."""
    return record.workload.get("kind") == OBSERVE


def _due_over_done(record: RunRecord) -> float:
    backlog = record.driver.backlog if record.driver is not None else 0
    due, done = record.account.scheduled + (backlog or 0), record.account.succeeded
    return due / done if done else math.inf


SECOND_NS = 1_000_000_000
MIB = float(1 << 20)
_SLACK_NS = SECOND_NS // 2
"""How far outside of the samples a second may reach: they are taken once a second, wherever in it."""


@dataclass(frozen=True)
class Cpu:
    """Whose CPU time a second was, as shares of the machine."""

    idle: float
    harness: float
    other: float
    """Processes that are neither the server's nor pgdyno's, the kernel's own work, and what the hypervisor kept."""
    driver_busy: float
    """CPU time of the driver's threads, as a share of what they can use."""
    server: float | None
    """None where its processes are not on this host."""
    server_busy: float | None
    """The server's CPU time, as a share of the CPUs that it may use."""


@dataclass(frozen=True)
class ThrottledShares:
    """In which share of a second requests waited for a limit, as the provider counts it: the volume's own counters, or its checks."""

    iops: float = 0.0
    throughput: float = 0.0
    instance_iops: float = 0.0
    instance_throughput: float = 0.0


@dataclass(frozen=True)
class Second:
    """The evidence of one second."""

    sessions: SessionStates | None = None
    devices: Mapping[str, DeviceActivity] = field(default_factory=dict)
    """By the role of its volume; one that was not seen is absent."""
    cpu: Cpu | None = None
    connections: float | None = None
    """Sessions over those that the server admits from ordinary roles; None where they were not counted."""
    exceeded: Mapping[str, ThrottledShares] = field(default_factory=dict)
    """By the role of the volume; one of which the provider says nothing is absent."""
    pool_wait_ms: float | None = None
    """What the watch's own questions waited on average for a session of a connection pooler; None where none is between."""
    others_at_disk: float = 0.0
    """Mean number of the server's processes that wait for a volume and do not serve a client: base backups, autovacuum, replay."""


@dataclass(frozen=True)
class KnownConditions:
    """What is known of a run beforehand: clients and what was bought."""

    clients: int
    bought: Mapping[str, ProvisionedVolume]
    """By role; a volume whose type is not known is absent."""
    instance: BoughtInstance | None = None
    driven: bool = True
    """Whether pgdyno's own clients made the load; otherwise it is not known how many more there would be."""
    cpu_share: float = 1.0
    """Share of the instance's vCPUs that may be used without limit of time: less than 1 of a burstable one."""
    pooled: bool = False
    """Whether the server was watched through a connection pooler: clients that wait in it are not seen."""
    inferred: frozenset[str] = frozenset()
    """Roles of volumes whose limits were inferred from what was seen: nothing is sure by them."""
    cores: float | None = None
    """CPUs that the server may use; None where that is not known."""


@dataclass(frozen=True)
class Evidence:
    """All seconds of a run's measure phase."""

    given: KnownConditions
    seconds: tuple[Second, ...]
    checkpoints: Checkpoints
    missing: tuple[str, ...]
    """What was not seen, in words."""


def evidence_of(run: RunFigures) -> Evidence:
    """Read a run's tables, but for those that only an emulated volume has."""
    import numpy as np

    measure = run.record.measure
    bins = max(1, int(measure.seconds))
    edges = measure.begin_ns + np.arange(bins + 1, dtype=np.int64) * SECOND_NS
    devices = devices_of(run.run)
    given, connections = _given(run), _connections(run, edges)
    sessions, others = sessions_by_second(run.run, edges, given.clients), others_by_second(run.run, edges)
    cpu = _cpu(run, edges)
    looks_ms = look_ms_by_second(run.run, edges) if given.pooled else [None] * bins
    rtt_ms = float(run.record.workload.get("rtt_ms") or 0.0)
    seconds = tuple(
        Second(
            sessions=sessions[place],
            devices={role: activity for role, device in devices.items() if (activity := device[place]) is not None},
            cpu=cpu[place],
            connections=connections[place],
            others_at_disk=others[place],
            pool_wait_ms=None if (look_ms := looks_ms[place]) is None else max(0.0, look_ms - rtt_ms),
        )
        for place in range(bins)
    )
    return Evidence(given, seconds, checkpoints_of(run, edges), tuple(missing_of(given, seconds)))


def devices_of(run: StoredRun) -> dict[str, list[DeviceActivity | None]]:
    """What each volume's block device did in each second of the measure phase; None where it was not sampled."""
    import numpy as np

    measure = run.record.measure
    edges = measure.begin_ns + np.arange(max(1, int(measure.seconds)) + 1, dtype=np.int64) * SECOND_NS
    return {role: _devices(device_counters(run, role), edges) for role in volume_roles(run)}


def per_second(counters: CounterSamples, name: str, edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Growth of a counter between each two edges (ns), for one second; NaN where no samples reach."""
    import numpy as np

    t_ns = counters.t_ns
    if name not in counters.columns or len(t_ns) < 2:
        return np.full(len(edges) - 1, np.nan)
    # Relative to the first sample, because nanoseconds since boot lose their last digits in a double.
    at = np.interp((edges - t_ns[0]).astype(float), (t_ns - t_ns[0]).astype(float), counters.columns[name])
    reached = (edges[:-1] >= t_ns[0] - _SLACK_NS) & (edges[1:] <= t_ns[-1] + _SLACK_NS)
    return np.where(reached, np.diff(at) / (np.diff(edges) / SECOND_NS), np.nan)


def _given(run: RunFigures) -> KnownConditions:
    record = run.record
    bought = {role: ProvisionedVolume.of(volume_spec(run.run, role)) for role in volume_roles(run.run)}
    return KnownConditions(
        clients=_clients(record),
        bought={role: volume for role, volume in bought.items() if volume is not None},
        instance=BoughtInstance.of(record.world.instance),
        cpu_share=cpu_share_of(record.world.instance),
        driven=not is_watched(record),
        cores=server_cores(run) if record.world.host.cores else None,
        pooled=bool(record.workload.get("pooler")),
    )


def _clients(record: RunRecord) -> int:
    """Sessions that there are always. Those of a load and of a replay come and go, and those of a watched server are not known: of
    them are those that are seen.
    """
    come_and_go = record.bulk_load is not None or record.replay is not None
    return 0 if is_watched(record) or come_and_go else int(record.workload.get("clients", 1))


def _connections(run: RunFigures, edges: np.ndarray[Any, Any]) -> list[float | None]:
    """Sessions over what ordinary roles may have, at the begin of each second; None where they were not counted."""
    import numpy as np

    bins = len(edges) - 1
    table, allowed = run.run.table("probe/database"), run.server.connections_max
    if "client_sessions" not in table.column_names or table.num_rows == 0 or not allowed:
        return [None] * bins
    counted = np.nan_to_num(table["client_sessions"].to_numpy().astype(float), nan=-1.0)
    last = np.searchsorted(table["t_begin_ns"].to_numpy(), edges[:-1], side="right") - 1
    result = counted[np.clip(last, 0, None)]
    return [None if count < 0 else count / allowed for count in result.tolist()]


def _devices(counters: CounterSamples, edges: np.ndarray[Any, Any]) -> list[DeviceActivity | None]:
    names = ("reads", "writes", "read_bytes", "write_bytes", "read_time_ms", "write_time_ms", "weighted_time_ms")
    columns = [per_second(counters, name, edges).tolist() for name in names]
    return [_device(*row) for row in zip(*columns, strict=True)]


def _device(*row: float) -> DeviceActivity | None:
    if any(math.isnan(value) for value in row):
        return None
    reads, writes, read_bytes, write_bytes, read_ms, write_ms, weighted_ms = row
    return DeviceActivity(
        reads_per_s=reads,
        writes_per_s=writes,
        read_mib_per_s=read_bytes / MIB,
        write_mib_per_s=write_bytes / MIB,
        request_ms=(read_ms + write_ms) / (reads + writes) if reads + writes > 0 else 0.0,
        queue_length=weighted_ms / 1e3,
        reading=read_ms / 1e3,
    )


def _cpu(run: RunFigures, edges: np.ndarray[Any, Any]) -> list[Cpu | None]:
    """The shares of each second; None where the host's were not recorded."""
    world = run.record.world
    # In a second of a dilated world a core has `dilation` seconds of CPU time.
    machine_ns = max(1, world.host.cores) * world.dilation * float(SECOND_NS)
    shares = {
        role: (per_second(counters, "cpu_ns", edges) / machine_ns).tolist()
        for role, counters in cpu_counters(run.run).items()
    }
    bins = len(edges) - 1
    if not {"host_busy", "host_idle"} <= shares.keys():
        return [None] * bins
    threads = int(run.record.workload.get("threads", 1)) if run.record.driver is None else run.record.driver.threads
    threads = cores_of(threads, run.record.workload.get("driver_cpus"), world.host.cores)
    cpu: list[Cpu | None] = []
    for place in range(bins):
        second = {role: values[place] for role, values in shares.items() if not math.isnan(values[place])}
        cpu.append(_cpu_of(second, world.host.cores / threads, world.host.cores / server_cores(run)))
    return cpu


def _cpu_of(shares: Mapping[str, float], per_driver: float, per_server: float) -> Cpu | None:
    """One second; the factors turn a share of the machine into one of the driver's and of the server's CPUs."""
    if not {"host_busy", "host_idle"} <= shares.keys():
        return None
    known = sum(share for role, share in shares.items() if not role.startswith("host_"))
    server = shares.get("server")
    return Cpu(
        idle=shares["host_idle"],
        harness=sum(shares.get(role, 0.0) for role in HARNESS_ROLES),
        other=max(0.0, shares["host_busy"] - known) + shares.get("host_steal", 0.0),
        driver_busy=shares.get("driver", 0.0) * per_driver,
        server=server,
        server_busy=None if server is None else server * per_server,
    )


def missing_of(given: KnownConditions, seconds: tuple[Second, ...]) -> list[str]:
    """What was not seen in any second."""
    results = []
    if all(second.sessions is None for second in seconds):
        results.append("what sessions waited for was not sampled")
    if not any(second.devices for second in seconds):
        results.append("no block device of the server was seen")
    if not given.bought:
        results.append("what the volume was bought with is not known")
    if all(second.cpu is None for second in seconds):
        results.append("the host's CPU was not recorded")
    elif all(second.cpu is None or second.cpu.server is None for second in seconds):
        results.append("the server's CPU was not seen")
    return results
