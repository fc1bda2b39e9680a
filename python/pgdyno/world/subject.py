"""The server under test, with what it stands on.

In an emulated world both are created for one run and removed after it; in the real world they already exist.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pgdyno.probe.host import Role
from pgdyno.probe.visibility import look
from pgdyno.workload.server import Server
from pgdyno.world import physical
from pgdyno.world.dataset import Dataset
from pgdyno.world.resolved import ResolvedArm

from ..base.errors import PgdynoError
from ..experiment.events import EventTable
from ..hosts import certificates
from ..machine import awake, paths, preflight, snapshot_delete, volume
from ..machine.file_system import dilated_options
from ..machine.instance import InstanceGroup
from ..machine.journal import HostJournal
from ..machine.placement import AttachedPlacement, Placement, attach_placement
from ..machine.relay import HOST, Relay, relaying
from ..results import record
from ..results.record import HostRecord
from ..server import layout, shifted
from ..server.cluster import SUPERUSER, Cluster
from ..server.settings import together
from .client_endpoint import ReachedServer
from .events import Acts

_ENCRYPTED = {
    "sslmode": "require",
    "channel_binding": "require",
    "sslrootcert": f"{os.devnull}/none",
    "sslcertmode": "disable",
}
"""How drivers on other hosts connect by TLS: the password proves the certificate, so neither files of this user nor an authority count."""


@dataclass
class Stopwatch:
    """Seconds by stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of a ``with`` block."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - begin, 3)


class TestedServer(Server, Protocol):
    """What a run needs of a server: :class:`pgdyno.server.cluster.Cluster`, or an existing one."""

    def settings(self) -> list[dict[str, str | None]]:
        """Every setting as the server reports it."""


def _no_act(event: EventTable) -> str:
    raise PgdynoError(f"this world has no events, and {event.words} was asked for", remedy="this is a bug in pgdyno")


@dataclass(frozen=True)
class Subject:
    """The server under test while it runs."""

    server: TestedServer
    """How the probes reach it, which are not part of the load: directly."""
    world: record.WorldRecord
    postgres: record.PostgresRecord
    volumes: dict[str, volume.AttachedVolume]
    """Emulated volumes by role."""
    devices: dict[str, str]
    """Block devices that the probe can look at, by the role of their volume."""
    roles: Callable[[tuple[int, ...]], dict[str, Role]]
    """Whose use of the host is counted, given the process ids of the drivers."""
    stop: Callable[[], None]
    """End the server, if it was started for this run; its storage stays until the end of the ``with`` block."""
    baseline: Any = None
    """State of the tables before the run; None for a fresh data set."""
    environment: dict[str, str] = field(default_factory=dict)
    """What a client program needs beside the connection string."""
    visibility: tuple[record.Visibility, ...] = ()
    reached: ReachedServer | None = None
    """None where the driver reaches it as the probes do."""
    relay: Relay | None = None
    """What makes the distance; None without one."""
    rtt_ms: float | None = None
    """Emulated round trip of the driver, in the subject's time; None where nothing was chosen."""
    server_died: Callable[[], PgdynoError | None] = lambda: None
    """What a server that was started for this run died of; None while it lives, and for an existing server."""
    act: Callable[[EventTable], str] = _no_act
    """Does an event and says what came of it; only where pgdyno started the server on its volumes."""
    end_acts: Callable[[], None] = lambda: None
    """Ends the faults that events injected, so that the tables can be checked."""

    @property
    def driven(self) -> Server:
        """The server as the driver reaches it."""
        return self.reached or self.server

    def client(self) -> record.ClientRecord:
        """Where the driver stood. Ends the relay, so it is asked when the load is over."""
        document = {} if self.relay is None else self.relay.stop()
        return record.ClientRecord(rtt_ms=self.rtt_ms, relay=document)

    def usd_per_month(self, role: str) -> float | None:
        """List price of the volume that a role has now; None of one that is not sold."""
        spec = self.volumes[role].facts.get("spec") if role in self.volumes else None
        return spec.get("usd_per_month") if isinstance(spec, dict) else None

    def stats(self) -> dict[str, dict[str, Any]]:
        """Every emulated volume's counters now, by role."""
        return {role: attached.stats() for role, attached in self.volumes.items()}

    def reasons(self) -> tuple[str, ...]:
        """What broke during the run."""
        dead = [role for role, attached in self.volumes.items() if attached.daemon.ending()]
        return tuple(f"the daemon of the {role} volume died during the run" for role in dead)

    def volume_died(self) -> PgdynoError | None:
        """What the daemons of volumes came to; None while all live."""
        dead = self.reasons()
        return PgdynoError("; ".join(dead), remedy="run the same command again") if dead else None


@contextlib.contextmanager
def emulated(
    resolved: ResolvedArm,
    dataset: Dataset,
    *,
    name: str,
    seed: int,
    watch: Stopwatch,
    log: Path,
    listen: str | None = None,
) -> Iterator[Subject]:
    """PostgreSQL in an instance on emulated volumes that start from the data set; ``log`` receives the server's.

    ``listen`` is the address at which drivers on other hosts reach it.
    """
    journal = HostJournal(paths.state_dir())
    world = resolved.arm.world
    limited = resolved.instance.type if resolved.instance.ebs else None
    options = dilated_options(world.file_system, world.mount_options, world.dilation)
    placement = Placement(resolved.volumes, world.file_system, options, limited, world.dilation)
    as_of_us = resolved.arm.workload.clock_unix_us
    library = None if as_of_us is None else shifted.library()
    with contextlib.ExitStack() as stack:
        # Before the path to the volume is calibrated: it is as long as CPUs take to wake.
        stack.enter_context(awake.kept_awake(wanted=awake.decided(world.cpus_awake)))
        if any(event.do == "snapshot" for event in resolved.arm.events):
            # Until after the volumes, which stand on their layers.
            stack.enter_context(snapshot_delete.temporary(journal, name))
        with watch.stage("attach"):
            attached = stack.enter_context(
                attach_placement(placement, name=name, images=dataset.images, seed=seed, journal=journal)
            )
        volumes, mounts = dict(attached.volumes), attached.mounts
        stack.callback(_detach, attached, watch, log.parent)
        instance = stack.enter_context(
            InstanceGroup(
                name,
                resolved.memory_bytes,
                resolved.instance.cpus,
                cpu_share=resolved.instance.cpu_share,
                dilation=world.dilation,
                journal=journal,
            )
        )
        cluster = _cluster(resolved, layout.data_dir(mounts), dataset.database, listen)
        stack.push(partial(_close, cluster, log))
        with watch.stage("start"):
            layout.arrange(cluster, mounts)
            settings = together(physical.preloaded(cluster), layout.settings(mounts), resolved.settings)
            shift = None if library is None or as_of_us is None else library.to(as_of_us)
            environment = {} if shift is None else shift.environment
            again = partial(cluster.start, settings, instance, given_up=resolved.given_up, environment=environment)
            again()
            if shift is not None:
                shift.require(cluster)
            resolved.arm.workload.disarm(cluster)
        acts = Acts(volumes, cluster, lambda timeout_s: again(timeout_s=timeout_s))
        is_near = cluster.tcp is not None and not resolved.arm.client.hosts
        distance = stack.enter_context(_distance(resolved, cluster)) if is_near else None
        yield Subject(
            server=cluster,
            world=_world(resolved, volumes),
            postgres=resolved.postgres.model_copy(update={"clock_shift_s": None if shift is None else shift.seconds}),
            volumes=volumes,
            devices={role: volume.block_device for role, volume in volumes.items()},
            roles=lambda driver_pids: _roles(instance, volumes, driver_pids) | _of_relay(distance),
            stop=lambda: _stop(cluster, watch),
            environment={} if cluster.password is None else {"PGPASSWORD": cluster.password},
            reached=_reached(cluster, distance),
            relay=distance,
            rtt_ms=None if resolved.arm.client.hosts else resolved.arm.client.rtt_ms,
            server_died=acts.server_died,
            act=acts,
            end_acts=acts.end,
        )


@contextlib.contextmanager
def existing(resolved: ResolvedArm, *, watch: Stopwatch) -> Iterator[Subject]:
    """An existing server: sampled, measured, and not changed except by the workload's writes."""
    server = resolved.server
    assert server is not None
    with watch.stage("look"):
        view = look(server.dsn)
        workload = resolved.arm.workload
        baseline = workload.baseline(server, full=workload.full_check)
    yield Subject(
        server=server,
        world=record.WorldRecord(
            kind="real",
            volume=dict(resolved.volumes["data"].document) if "data" in resolved.volumes else {},
            volumes={role: _volume(resolved, role, {}) for role in resolved.volumes},
            file_system=view.file_system,
            mount_options=view.mount_options,
            server=server.record,
            host=HostRecord.of_this_machine(),
        ),
        postgres=resolved.postgres,
        volumes={},
        devices=view.devices,
        roles=lambda driver_pids: view.roles | _harness(driver_pids),
        stop=lambda: None,
        baseline=baseline,
        environment=server.environment,
        visibility=view.visibility,
    )


def _cluster(resolved: ResolvedArm, data_dir: Path, database: str, listen: str | None) -> Cluster:
    """The server; on a port of this machine too, with a password of its own, if the driver is at a distance or on another host."""
    own, client = resolved.arm.workload.own_database, resolved.arm.client
    role = SUPERUSER if own is None else own.user
    if client.rtt_ms == 0 and not client.hosts:
        return Cluster(resolved.binaries, data_dir, database=database, role=role)
    address = listen if client.hosts and listen is not None else HOST
    port = preflight.free_port(address)
    logins = resolved.arm.workload.roles(role)
    certify = certificates.make_server if client.hosts else None
    return Cluster(
        resolved.binaries,
        data_dir,
        port=port,
        tcp=address,
        database=database,
        role=role,
        logins=logins,
        certify=certify,
    )


def _distance(resolved: ResolvedArm, cluster: Cluster) -> contextlib.AbstractContextManager[Relay]:
    """The relay, beside the driver on its CPUs. Its time is the host's, in which a slowed round trip takes longer."""
    rtt_ms = resolved.arm.client.rtt_ms * resolved.arm.world.dilation
    cpus = resolved.arm.workload.driver_cpus
    return relaying(cluster.port, rtt_ms, log=cluster.run_dir / "relay.log", cpus=cpus)


def _reached(cluster: Cluster, distance: Relay | None) -> ReachedServer | None:
    from psycopg.conninfo import make_conninfo

    if distance is not None:
        # The relay is on this machine, and the server offers no TLS: asking for it would cost a round trip for nothing.
        dsn = make_conninfo(
            host=HOST, port=distance.port, user=cluster.role, dbname=cluster.database, sslmode="disable"
        )
        return ReachedServer(dsn, cluster.binaries, cluster.password)
    if cluster.tcp is not None:
        # Drivers on other hosts. The password is never sent (SCRAM).
        how = _ENCRYPTED if cluster.encrypted else {"sslmode": "disable"}
        dsn = make_conninfo(host=cluster.tcp, port=cluster.port, user=cluster.role, dbname=cluster.database, **how)
        return ReachedServer(dsn, cluster.binaries, cluster.password)
    if cluster.role == SUPERUSER:
        return None
    return ReachedServer(cluster.dsn_of(cluster.role), cluster.binaries, None)


def _of_relay(distance: Relay | None) -> dict[str, Role]:
    return {} if distance is None else {"relay": Role(pids=(distance.pid,))}


def _world(resolved: ResolvedArm, volumes: dict[str, volume.AttachedVolume]) -> record.WorldRecord:
    facts = {
        role: _volume(resolved, role, {name: fact for name, fact in attached.facts.items() if name != "spec"})
        for role, attached in volumes.items()
    }
    return record.WorldRecord(
        kind="emulated",
        dilation=resolved.arm.world.dilation,
        volume=facts["data"].spec,
        attach=facts["data"].attach,
        volumes=facts,
        file_system=resolved.arm.world.file_system,
        mount_options=resolved.arm.world.mount_options,
        instance=resolved.instance,
        host=HostRecord.of_this_machine(cpus_awake=awake.decided(resolved.arm.world.cpus_awake)),
    )


def _volume(resolved: ResolvedArm, role: str, attach: dict[str, Any]) -> record.VolumeRecord:
    spec = resolved.volumes[role]
    price = None
    if spec.prices is not None:
        price = record.PriceRecord(
            usd_per_gib_month=spec.prices.gib_month_usd, limits_follow_size=spec.prices.limits_follow_size
        )
    return record.VolumeRecord(spec=dict(spec.document), attach=attach, price=price)


def _stop(cluster: Cluster, watch: Stopwatch) -> None:
    with watch.stage("stop"):
        # The volume's content is thrown away, so the server need not write its buffers back first.
        cluster.stop("immediate")


def _detach(attached: AttachedPlacement, watch: Stopwatch, logs: Path) -> None:
    for role, attached_volume in attached.volumes.items():
        if attached_volume.daemon.ending():  # its log goes with it
            with contextlib.suppress(OSError):
                (logs / f"volume-{role}.log").write_bytes(attached_volume.log_path.read_bytes())
    with watch.stage("detach"):
        attached.detach()


def _close(
    cluster: Cluster, log: Path, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
) -> None:
    with contextlib.suppress(OSError):
        log.write_bytes(cluster.log_path.read_bytes())
    try:
        cluster.close()
    except PgdynoError:
        if error is None:  # the first error is the one to tell; on a dead volume a server hardly ends
            raise


def _roles(
    instance: InstanceGroup, volumes: dict[str, volume.AttachedVolume], driver_pids: tuple[int, ...]
) -> dict[str, Role]:
    groups = {name: Path(path) for name, path in instance.paths.items() if path is not None}
    return {
        "server": Role(cgroup_cpu=groups.get("cgroup_cpu"), cgroup_memory=groups.get("cgroup_memory")),
        "daemon": Role(pids=tuple({attached.daemon.pid: None for attached in volumes.values()})),
        **_harness(driver_pids),
    }


def _harness(driver_pids: tuple[int, ...]) -> dict[str, Role]:
    # This process samples the server's counters, so it is part of the probe.
    # Drivers on other hosts are not.
    driver = {"driver": Role(pids=driver_pids)} if driver_pids else {}
    return driver | {"probe": Role(pids=(os.getpid(),))}
