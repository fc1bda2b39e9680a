"""What an arm comes to on this machine: programs, volumes, instance, settings. Everything that can be refused is, here.

Nothing is changed. What is wrong is said with the place in the experiment file where it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.experiment.tables import MEMORY_BYTES_DEFAULT
from pgdyno.postgres import settings, timers
from pgdyno.postgres.accepted import require_accepted
from pgdyno.postgres.binaries import PgBinaries, find_binaries
from pgdyno.postgres.remote import RemoteServer
from pgdyno.store import record
from pgdyno.workload import driver
from pgdyno.world import awake, preflight, volume
from pgdyno.world.dirty_limits import current_limits
from pgdyno.world.file_system import require_mount_options
from pgdyno.world.instance import parse_cpus
from pgdyno.world.instance_type import cpus_of, is_storage_only, resolve_type

if TYPE_CHECKING:
    from pgdyno.experiment import Arm, Experiment

_BLAMED = {"script": "files", "sysbench": "test", "pgbench": "script", "load": "bulk"}
"""Kind of a workload -> the key that a refusal of its driver is about."""


REQUESTS_PER_TRANSACTION = 3.0
"""Of TPC-B on data larger than memory: an account is read, a page of it is written back, a commit is written. It only feeds the
estimate of runs that end after so many transactions."""
SAMPLES_MIN = 12
SAMPLE_INTERVAL_MS_MIN = 100
"""A probe's sample costs some tenths of a millisecond of CPU: at ten a second less than one per cent of a core."""


@dataclass(frozen=True)
class ResolvedArm:
    """An arm with what its words mean here."""

    arm: Arm
    """With as many rows as its instance's memory asks for."""
    binaries: PgBinaries
    volumes: dict[str, dict[str, Any]]
    """Role -> resolved specification, the data's first; of a real server what they were bought as, where that is told."""
    instance: record.InstanceRecord
    settings: dict[str, str]
    """PostgreSQL's settings: the chosen set, over it what the user named, all timers slowed by the dilation."""
    server: RemoteServer | None = None
    """The server of a real world."""

    @property
    def postgres(self) -> record.PostgresRecord:
        """The server's version, and where it comes from."""
        if self.server is not None:
            return record.PostgresRecord(version=self.server.version, source="a server that existed already")
        return record.PostgresRecord(version=self.binaries.version, source=self.binaries.source)

    @property
    def memory_bytes(self) -> int:
        """Memory of the instance."""
        assert self.instance.memory_bytes is not None
        return self.instance.memory_bytes

    @property
    def measure_s(self) -> float:
        """Estimate: the measure phase in seconds of the subject's time, ``workload.measure_s`` at most.

        One of so many transactions ends with the last of them, which is when its volume has done their requests; without a
        volume of known IOPS nobody can tell.
        """
        workload, volume = self.arm.workload, self.volumes.get("data", {})
        iops = max(float((volume.get(part) or {}).get("iops") or 0.0) for part in ("limits", "burst"))
        if workload.transactions is None or not iops:
            return workload.measure_s
        requests = workload.transactions * workload.clients * REQUESTS_PER_TRANSACTION
        return min(workload.measure_s, requests / iops)

    @property
    def sample_interval_ms(self) -> int:
        """How often the probes of host and volume sample a run, in real time: every second of the subject's time.

        A run of so few transactions that it would hold hardly a sample is sampled as often as leaves it a dozen, ten times a
        second at most.
        """
        every_ms = 1000 * self.arm.world.dilation
        if self.arm.workload.transactions is None:
            return every_ms
        return max(SAMPLE_INTERVAL_MS_MIN, min(every_ms, int(self.measure_s * every_ms / SAMPLES_MIN)))


def resolve(experiment: Experiment, *, to_run: bool = True) -> tuple[ResolvedArm, ...]:
    """Every arm of ``experiment``, or the first reason why it cannot be run here.

    Unless it is ``to_run``, what only a run needs is not asked for: root, devices, programs.
    """
    for arm in experiment.arms if to_run else ():
        with experiment.origin.explained(arm.written(("workload", _BLAMED.get(arm.workload.kind, "kind")))):
            if arm.workload.kind == "load":
                arm.workload.bulk.sources()  # that there are such files
            else:
                driver.require(arm.workload)
    if experiment.real:
        return _existing(experiment)
    arms = tuple(_resolve(experiment, arm) for arm in experiment.arms)
    if to_run:
        _require_host(arms)
    return arms


def _existing(experiment: Experiment) -> tuple[ResolvedArm, ...]:
    """Arms on a server that exists already: opened once, and nothing of it is chosen."""
    first = experiment.arms[0]
    assert first.world.dsn is not None
    with experiment.origin.explained(("postgres", "bin")):
        binaries = find_binaries(Path(first.postgres.bin) if first.postgres.bin else None)
    with experiment.origin.explained(("world", "dsn")):
        server = RemoteServer.open(first.world.dsn, binaries)
    bought = {}
    for role, spec in first.world.bought.items():
        with experiment.origin.explained(("world", "bought", role)):
            bought[role] = volume.resolve(spec)
    for arm in experiment.arms:
        _require_cpus(experiment, arm)
    preflight.require_programs("taskset")
    nothing = record.InstanceRecord()
    return tuple(ResolvedArm(arm, binaries, bought, nothing, {}, server) for arm in experiment.arms)


def _resolve(experiment: Experiment, arm: Arm) -> ResolvedArm:
    origin = experiment.origin
    volumes = {}
    for role, spec in arm.world.placement.items():
        short = role == "data" and arm.world.volume is not None
        with origin.explained(arm.written(("world", "volume") if short else ("world", "volumes", role))):
            volumes[role] = volume.resolve(spec)
    with origin.explained(arm.written(("world", "mount_options"))):
        require_mount_options(arm.world.mount_options)
    instance = _instance(experiment, arm, volumes)
    assert instance.memory_bytes is not None
    with origin.explained(arm.written(("postgres", "bin"))):
        binaries = find_binaries(Path(arm.postgres.bin) if arm.postgres.bin else None)
    tuned = settings.tuned(instance.memory_bytes, binaries.major)
    chosen = (tuned if arm.postgres.settings == "tuned" else settings.defaults()) | arm.postgres.parameters
    with origin.explained(arm.written(("world", "dilation"))):
        dilated = timers.dilated(chosen, arm.world.dilation, binaries.major)
    with origin.explained(arm.written(("postgres", "parameters"))):
        require_accepted(binaries, dilated)
    return ResolvedArm(arm.sized(instance.memory_bytes), binaries, volumes, instance, dilated)


def _instance(experiment: Experiment, arm: Arm, volumes: dict[str, dict[str, Any]]) -> record.InstanceRecord:
    asked = arm.instance
    _require_cpus(experiment, arm)
    found = None
    if asked.type is not None:
        with experiment.origin.explained(arm.written(("instance", "type"))):
            found = resolve_type(asked.type)
            found.require_room(volumes.values())
    memory_bytes = asked.memory_bytes or (found.memory_bytes if found else MEMORY_BYTES_DEFAULT)
    vcpus = asked.vcpus or (found.vcpus if found else None)
    return record.InstanceRecord(
        memory_bytes=memory_bytes,
        cpus=asked.cpus or cpus_of(vcpus, arm.world.dilation),
        type=found.name if found else None,
        vcpus=vcpus,
        ebs=found.ebs if found else {},
        storage_only=is_storage_only(vcpus, arm.world.dilation),
    )


def _require_cpus(experiment: Experiment, arm: Arm) -> None:
    asked, origin = arm.instance, experiment.origin
    for path, cpus in ((("instance", "cpus"), asked.cpus), (("workload", "driver_cpus"), arm.workload.driver_cpus)):
        if cpus is not None:
            with origin.explained(arm.written(path)):
                parse_cpus(cpus)


def _require_host(arms: tuple[ResolvedArm, ...]) -> None:
    preflight.require_root("attaching a volume")
    preflight.require_fuse()
    preflight.require_loop()
    if any(one.arm.world.cpus_awake for one in arms):
        awake.require()
    formats = sorted({f"mkfs.{one.arm.world.file_system}" for one in arms})
    preflight.require_programs("mount", "umount", "taskset", *formats)
    largest = max(one.memory_bytes for one in arms)
    preflight.require_memory(largest, f"an instance of {largest >> 20} MiB")
    current_limits()
