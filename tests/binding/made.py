"""Seconds that nobody measured: 32 clients on a gp3, with a machine that is half idle."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.binding.device import BoughtInstance, DeviceActivity, ProvisionedVolume, Usual
from pgdyno.analysis.binding.evidence import Cpu, KnownConditions, Second
from pgdyno.analysis.binding.sessions import SessionStates
from pgdyno.base.specification import Rate

CLIENTS = 32
USUAL = Usual(read=((8192.0, 0.56), (262144.0, 1.29)), write=((8192.0, 0.83), (262144.0, 1.63)))
GP3 = ProvisionedVolume("gp3", Rate(3000, 3000), None, Rate(125, 125), USUAL)
FAST = ProvisionedVolume("gp3:iops=16000,throughput=1000", Rate(16000, 16000), None, Rate(1000, 1000), USUAL)
GP2 = ProvisionedVolume("gp2:size=100GiB", Rate(300, 3000), None, Rate(128, 128), USUAL)
ST1 = ProvisionedVolume("st1:size=500GiB", Rate(500, 500), None, Rate(20, 122), USUAL)
SMALL = BoughtInstance("c4.large", Rate(4000, 4000), Rate(59.6, 59.6))
BURSTING = BoughtInstance("r6g.large", Rate(3600, 20000), Rate(75.1, 566.2))
IDLE = Cpu(idle=0.5, harness=0.15, other=0.05, driver_busy=0.2, server=0.3, server_busy=0.3)
FULL = Cpu(idle=0.03, harness=0.22, other=0.05, driver_busy=0.4, server=0.70, server_busy=0.70)
QUIET = SessionStates(client=CLIENTS)


def device(iops: float = 1000.0, ms: float = 0.7, kib: float = 8.0, write_share: float = 0.4) -> DeviceActivity:
    """A second of a block device, by Little's law."""
    reads, writes = iops * (1 - write_share), iops * write_share
    return DeviceActivity(
        reads_per_s=reads,
        writes_per_s=writes,
        read_mib_per_s=reads * kib / 1024,
        write_mib_per_s=writes * kib / 1024,
        request_ms=ms,
        queue_length=iops * ms / 1e3,
        reading=reads * ms / 1e3,
    )


def sessions(clients: float = CLIENTS, **states: float) -> SessionStates:
    """Who is not told of waits for the client."""
    return replace(SessionStates(**states), client=states.get("client", clients - sum(states.values())))


def second(
    waiting: SessionStates | None = QUIET,
    data: DeviceActivity | None = None,
    cpu: Cpu | None = IDLE,
    **others: DeviceActivity,
) -> Second:
    """A second with a data volume, and others by their roles."""
    return Second(sessions=waiting, devices={"data": data or device(), **others}, cpu=cpu)


def given(
    data: ProvisionedVolume = GP3, instance: BoughtInstance | None = None, **others: ProvisionedVolume
) -> KnownConditions:
    """What was bought."""
    return KnownConditions(clients=CLIENTS, bought={"data": data, **others}, instance=instance)
