"""What an arm comes to on this machine: programs, volumes, instance, settings. Everything that can be refused is, here.

Nothing is changed. What is wrong is said with the place in the experiment file where it was written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pgdyno.experiment import Arm, Experiment
from pgdyno.experiment.tables import MEMORY_BYTES_DEFAULT, MEMORY_BYTES_MIN

from ..advise.size.offers import with_price
from ..base.catalog import Catalog
from ..base.errors import InputError
from ..base.specification import VolumeSpec
from ..machine import awake, preflight
from ..machine.dirty_limits import current_limits
from ..machine.file_system import require_mount_options
from ..machine.instance import require_control_groups, require_cpus
from ..machine.instance_type import cpus_of, is_storage_only, resolve_type
from ..machine.mount_options import require_known_options
from ..results import record
from ..server import settings, timers
from ..server.accepted import require_accepted
from ..server.binaries import PgBinaries, find_binaries
from ..server.remote import RemoteServer
from ..workload.kind import SESSIONS_DEFAULT

SAMPLES_MIN = 12
SAMPLE_INTERVAL_MS_MIN = 100
"""A probe's sample costs some tenths of a millisecond of CPU: at ten a second less than one per cent of a core."""


@dataclass(frozen=True)
class ResolvedArm:
    """An arm with what its words mean here."""

    arm: Arm
    """With as many rows as its instance's memory asks for."""
    binaries: PgBinaries
    volumes: dict[str, VolumeSpec]
    """By role, the data's first; for a real server how they were provisioned, if known."""
    instance: record.InstanceRecord
    settings: dict[str, str]
    """PostgreSQL's settings: the chosen set, over it what the user named, all timers slowed by the dilation."""
    server: RemoteServer | None = None
    """The server of a real world."""

    @property
    def postgres(self) -> record.PostgresRecord:
        """The server's version, and where it comes from."""
        if self.server is not None:
            return record.PostgresRecord(version=self.server.version, source="an existing server")
        given_up = tuple(sorted(self.given_up))
        return record.PostgresRecord(version=self.binaries.version, source=self.binaries.source, given_up=given_up)

    @property
    def given_up(self) -> dict[str, str]:
        """Settings that are refused elsewhere because durability rests on them."""
        return dict.fromkeys(self.arm.postgres.given_up, "off")

    @property
    def memory_bytes(self) -> int:
        """Memory of the instance."""
        assert self.instance.memory_bytes is not None
        return self.instance.memory_bytes

    @property
    def measure_s(self) -> float:
        """Estimate: the measure phase in seconds of the subject's time, as the file says at most.

                A run of a fixed number of transactions ends with the last one, when its volume has completed their requests; without a
        volume of known IOPS this is unknown.
        """
        workload, volume = self.arm.workload, self.volumes.get("data")
        iops = 0.0 if volume is None or volume.iops is None else volume.iops.maximum
        _, measure_s = workload.phases_s
        if workload.due_s is not None:
            return min(measure_s, workload.due_s)
        if not workload.counted or not iops:
            return measure_s
        assert volume is not None
        mib_per_s = math.inf if volume.mib_per_s is None else volume.mib_per_s.maximum
        return min(measure_s, workload.work_s(iops, self.arm.world.dilation, mib_per_s))

    @property
    def sample_interval_ms(self) -> int:
        """How often the probes of host and volume sample a run, in real time: every second of the subject's time.

        A run of so few transactions that it would hold hardly a sample is sampled as often as leaves it a dozen, ten times a
        second at most.
        """
        every_ms = 1000 * self.arm.world.dilation
        if not self.arm.workload.counted:
            return every_ms
        return max(SAMPLE_INTERVAL_MS_MIN, min(every_ms, int(self.measure_s * every_ms / SAMPLES_MIN)))


def emulated_arms(experiment: Experiment, *, to_run: bool = True) -> tuple[ResolvedArm, ...]:
    """Every arm on emulated volumes, or the first reason why it cannot be run here.

    Unless it is ``to_run``, what only a run needs is not required: root, devices, programs.
    """
    if to_run:
        _require_workloads(experiment)
    programs = _Programs()
    with Catalog() as catalog:
        arms = tuple(_resolve(experiment, arm, catalog, programs) for arm in experiment.arms)
        if to_run:
            arms = tuple(_with_price(catalog, arm) for arm in arms)
    if to_run:
        _require_host(experiment, arms)
    return arms


def _require_workloads(experiment: Experiment) -> None:
    """Refuse workloads whose driver or whose files are missing."""
    for arm in experiment.arms:
        with experiment.origin.explained(arm.written(("workload", arm.workload.blamed))):
            arm.workload.require()
        with experiment.origin.explained(arm.written(("workload", "clients"))):
            arm.workload.require_descriptors(distant=arm.client.rtt_ms > 0)


def _with_price(catalog: Catalog, arm: ResolvedArm) -> ResolvedArm:
    """The arm with the price of its instance, which its runs record."""
    return replace(arm, instance=with_price(catalog, arm.instance))


def existing_arms(experiment: Experiment, *, to_run: bool = True) -> tuple[ResolvedArm, ...]:
    """Arms on an existing server: opened once, and nothing of it is chosen."""
    if to_run:
        _require_workloads(experiment)
    with Catalog() as catalog:
        arms = _existing(experiment, catalog)
        return tuple(_with_price(catalog, arm) for arm in arms) if to_run else arms


def _existing(experiment: Experiment, catalog: Catalog) -> tuple[ResolvedArm, ...]:
    first = experiment.arms[0]
    assert first.world.dsn is not None
    with experiment.origin.explained(("postgres", "bin")):
        binaries = find_binaries(Path(first.postgres.bin) if first.postgres.bin else None)
    with experiment.origin.explained(("world", "dsn")):
        server = RemoteServer.open(first.world.dsn, binaries)
    prepared = next((arm for arm in experiment.arms if arm.workload.prepares), None)
    if prepared is not None:
        with experiment.origin.explained(prepared.written(("workload", "protocol"))):
            server.require_prepared()
    arms = tuple(_driven(experiment, arm, server) for arm in experiment.arms)
    bought = {}
    for role, spec in first.world.bought.items():
        with experiment.origin.explained(("world", "bought", role)):
            bought[role] = catalog.resolve(spec)
    for arm in arms:
        _require_cpus(experiment, arm)
    preflight.require_programs("taskset")
    nothing = record.InstanceRecord()
    return tuple(ResolvedArm(arm, binaries, bought, nothing, {}, server) for arm in arms)


def _driven(experiment: Experiment, arm: Arm, server: RemoteServer) -> Arm:
    """The arm with a driver that can connect to this server as libpq did: pgbench may be built without TLS.

    Refuses an engine that was asked for and cannot.
    """
    with experiment.origin.explained(arm.written(("workload", "engine"))):
        arm = arm.with_workload(arm.workload.connecting(server, server.environment))
    if arm.workload.by_engine:
        with experiment.origin.explained(("world", "dsn")):
            server.require_engine()
    return arm


class _Programs:
    """PostgreSQL's programs of an experiment: arms with the same programs and settings ask once, as each question takes 0.1 s."""

    def __init__(self) -> None:
        self.find = cache(find_binaries)
        self._require = cache(lambda binaries, chosen: require_accepted(binaries, dict(chosen)))

    def require_accepted(self, binaries: PgBinaries, chosen: Mapping[str, str]) -> None:
        """See :func:`~pgdyno.server.accepted.require_accepted`."""
        self._require(binaries, tuple(chosen.items()))


def _resolve(experiment: Experiment, arm: Arm, catalog: Catalog, programs: _Programs) -> ResolvedArm:
    origin = experiment.origin
    volumes = {}
    for role, spec in arm.world.placement.items():
        short = role == "data" and arm.world.volume is not None
        with origin.explained(arm.written(("world", "volume") if short else ("world", "volumes", role))):
            volumes[role] = catalog.resolve(arm.world.made_full[role])
        if arm.world.restored:
            with origin.explained(arm.written(("world", "restored"))):
                volumes[role] = catalog.resolve(spec)
    with origin.explained(arm.written(("world", "mount_options"))):
        require_mount_options(arm.world.mount_options)
    instance = _instance(experiment, arm, volumes)
    assert instance.memory_bytes is not None
    with origin.explained(arm.written(("postgres", "bin"))):
        binaries = programs.find(Path(arm.postgres.bin) if arm.postgres.bin else None)
    wal_volume_bytes = volumes.get("wal", volumes["data"]).size_bytes
    with origin.explained(arm.written(("workload", arm.workload.blamed))):
        sessions = arm.workload.sessions or SESSIONS_DEFAULT
        own = arm.workload.server_settings
    tuned = settings.tuned(instance.memory_bytes, binaries.major, sessions, wal_volume_bytes=wal_volume_bytes)
    ours = tuned if arm.postgres.settings == "tuned" else settings.defaults()
    chosen = settings.together(ours, own, arm.postgres.parameters)
    _require_connections(experiment, arm, chosen)
    with origin.explained(arm.written(("world", "dilation"))):
        dilated = timers.dilated(chosen, arm.world.dilation, binaries.major)
    try:
        programs.require_accepted(binaries, dilated)
    except InputError as error:
        refused = [name for name in error.data.get("settings", ()) if name in arm.postgres.parameters]
        place = arm.written(("postgres", "parameters", *refused[:1]))
        raise origin.error(place, error.message, error.remedy, code=error.code, data=error.data) from error
    return ResolvedArm(arm.sized(instance.memory_bytes), binaries, volumes, instance, dilated)


def _instance(experiment: Experiment, arm: Arm, volumes: dict[str, VolumeSpec]) -> record.InstanceRecord:
    instance = arm.instance
    _require_cpus(experiment, arm)
    result = None
    if instance.type is not None:
        with experiment.origin.explained(arm.written(("instance", "type"))):
            result = resolve_type(instance.type)
            result.require_room(volumes.values())
            result.require_iops(volumes.values())
    memory_bytes = instance.memory_bytes or (result.memory_bytes if result else MEMORY_BYTES_DEFAULT)
    memory_bytes = _of_workload(experiment, arm) or memory_bytes
    vcpus = instance.vcpus or (result.vcpus if result else None)
    return record.InstanceRecord(
        memory_bytes=memory_bytes,
        cpus=instance.cpus or cpus_of(vcpus, arm.world.dilation),
        cpu_share=instance.cpu_share,
        type=result.name if result else None,
        vcpus=vcpus,
        ebs=result.ebs if result else {},
        storage_only=is_storage_only(vcpus, arm.world.dilation),
    )


def _of_workload(experiment: Experiment, arm: Arm) -> int | None:
    """Memory of an instance that the workload chooses, as its data cannot be scaled."""
    place = arm.written(("workload", "data_to_memory"))
    with experiment.origin.explained(place):
        chosen = arm.workload.memory_bytes
    if chosen is None:
        return None
    if arm.instance.memory_bytes is not None or arm.instance.type is not None:
        why = "with a database of your own it chooses the instance's memory, and so does [instance]; omit one of them"
        raise experiment.origin.error(place, why)
    if chosen < MEMORY_BYTES_MIN:
        why = f"the instance would have {chosen >> 20} MiB, and PostgreSQL needs at least {MEMORY_BYTES_MIN >> 20}"
        raise experiment.origin.error(place, why, "use a lower ratio")
    return chosen


def _require_cpus(experiment: Experiment, arm: Arm) -> None:
    instance, origin = arm.instance, experiment.origin
    for path, cpus in ((("instance", "cpus"), instance.cpus), (("workload", "driver_cpus"), arm.workload.driver_cpus)):
        if cpus is not None:
            with origin.explained(arm.written(path)):
                require_cpus(cpus)


def _require_connections(experiment: Experiment, arm: Arm, chosen: Mapping[str, str]) -> None:
    """The server takes a session for each client, and those beside them."""
    sessions = arm.workload.sessions
    if sessions is None:
        return
    text = next((value for name, value in chosen.items() if name.lower() == "max_connections"), None)
    if text is not None and not text.isdigit():
        return  # the server says what is wrong with it
    limit = settings.CONNECTIONS_DEFAULT if text is None else int(text)
    needed = sessions + settings.CONNECTIONS_BESIDE
    if limit < needed:
        raise experiment.error(
            arm,
            ("workload", "clients"),
            f"{sessions:,} clients and the probes need {needed:,} connections, and the server takes {limit:,}",
            f"set PostgreSQL's max_connections to {needed} or more, or use fewer clients",
        )


def _require_host(experiment: Experiment, arms: tuple[ResolvedArm, ...]) -> None:
    preflight.require_root("attaching a volume")
    preflight.require_fuse()
    preflight.require_mounts()
    preflight.require_loop()
    if any(arm.arm.world.cpus_awake for arm in arms):
        awake.require()
    formats = sorted({f"mkfs.{arm.arm.world.file_system}" for arm in arms})
    own = ["fstrim"] if any(arm.arm.workload.own_database is not None for arm in arms) else []
    preflight.require_programs("mount", "umount", "taskset", *formats, *own)
    for arm in arms:
        with experiment.origin.explained(arm.arm.written(("world", "mount_options"))):
            require_known_options(arm.arm.world.file_system, arm.arm.world.mount_options)
    require_control_groups(
        bound=any(arm.instance.cpus is not None for arm in arms),
        shared=any(arm.instance.cpu_share < 1 for arm in arms),
    )
    current_limits()
