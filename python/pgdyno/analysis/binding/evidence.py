"""What a run shows of each of its seconds: its devices, its sessions, its CPU, its checkpoints. No verdict yet.

A figure that was not recorded is None, and what follows from it is not said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.binding.bought import BoughtInstance, ProvisionedVolume, cpu_share_of
from pgdyno.analysis.binding.checkpoints import Checkpoints, checkpoints_of
from pgdyno.analysis.binding.circumstances import is_watched
from pgdyno.analysis.binding.device import DeviceActivity
from pgdyno.analysis.binding.sessions import SessionStates, look_ms_by_second, others_by_second, sessions_by_second

from ...results import StoredRun
from ...results.record import RunRecord
from ..dilation import server_cores
from ..figures import CounterSamples, cpu_counters, device_counters, volume_roles, volume_spec
from ..instrument import cores_of
from ..run import LABORATORY_ROLES, RunFigures

if TYPE_CHECKING:
    import numpy as np

SECOND_NS = 1_000_000_000
MIB = float(1 << 20)
_SLACK_NS = SECOND_NS // 2
"""How far outside of the samples a second may reach: they are taken once a second, wherever in it."""


@dataclass(frozen=True)
class Cpu:
    """Whose CPU time a second was, as shares of the machine."""

    idle: float
    laboratory: float
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
        laboratory=sum(shares.get(role, 0.0) for role in LABORATORY_ROLES),
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
