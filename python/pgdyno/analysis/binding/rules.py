"""The limits that can bind, and the rules that find the one of a second, in the order of what explains the others.

A driver that cannot send more, and clients that want no more, come first: then nothing else can be concluded. A volume at its
limit makes sessions wait for reads, for commits, and for locks that others hold while they wait; so it comes before
those. A rule that holds by one source alone is *not sure*; a second one that agrees makes it so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from pgdyno.analysis.binding.evidence import KnownConditions, Second, ThrottledShares
from pgdyno.analysis.binding.sessions import SessionStates

from .device import AT_LIMIT, LEFT_ABOVE, BoughtInstance, DeviceActivity, ProvisionedVolume

Limit = Literal[
    "volume_iops",
    "volume_throughput",
    "burst_bucket",
    "instance_bandwidth",
    "volume_latency",
    "commit_latency",
    "checkpoints",
    "server_cpu",
    "locks",
    "client",
    "harness",
    "synchronous_standby",
    "connections",
    "no_answer",
]
"""What keeps the transactions from being more: lifting anything else would change little."""
Confidence = Literal["high", "low", "unknown"]
"""``high``: independent sources agree in most seconds. ``low``: one speaks for it. ``unknown``: nothing is said."""

LIMITS: Final[tuple[Limit, ...]] = get_args(Limit)
OF_WATCHED: Final[frozenset[Limit]] = frozenset({"synchronous_standby", "connections", "no_answer"})
"""Limits of servers in use: no run of pgdyno's own has a standby, or clients that are turned away, or continues without its server."""
OF_RUNS: Final[tuple[Limit, ...]] = tuple(limit for limit in LIMITS if limit not in OF_WATCHED)
"""The others."""
TITLES: Final[dict[Limit, str]] = {
    "volume_iops": "volume IOPS",
    "volume_throughput": "volume throughput",
    "burst_bucket": "burst bucket",
    "instance_bandwidth": "instance bandwidth",
    "volume_latency": "volume latency",
    "commit_latency": "commit latency",
    "checkpoints": "checkpoints",
    "server_cpu": "server CPU",
    "locks": "locks",
    "client": "client",
    "harness": "test harness",
    "synchronous_standby": "synchronous standby",
    "connections": "connections",
    "no_answer": "no answer",
}
CAPS: Final[frozenset[Limit]] = frozenset({"volume_iops", "volume_throughput", "burst_bucket", "instance_bandwidth"})
"""Limits of what was bought: rates that a volume or an instance does not exceed."""


@dataclass(frozen=True)
class BindingLimit:
    """The limit that bound in one second."""

    limit: Limit
    sure: bool
    """Whether a second, independent source says so too."""
    role: str | None = None
    """The volume that it is a limit of, by its role; None where it is not a limit of a volume."""
    share: float = 1.0
    """Part of the second in which it bound, where the provider counts that."""


FAR_BELOW = 0.80
"""Share of what was bought below which a session that waits here does not wait for the limit."""
QUEUED = 1.5
"""Times the usual latency. The path through a host adds a tenth or two, a queue at a limit doubles it at once."""
QUEUED_BELOW_LIMIT = 3.0
"""Times the usual latency, below the volume's maximum: no limit explains it but that the credits are gone."""
LARGE_BYTES = 64 << 10
"""Mean request from which a throughput limit explains more than an IOPS limit that is reached too: a volume counts such
requests in sequence as fewer than the kernel does."""
MOST = 0.5
"""Share of the sessions that could be at work: less than half of them do not decide how many transactions there are."""
CLEARLY = 0.6
"""Share of the same sessions that leaves no room for a second cause of equal size."""
SOME = 0.3
"""Share of all sessions: a state that has less of their time cannot hold back a third of the transactions."""
FEW_ACTIVE = 0.5
"""Sessions at work on average: with fewer, none was for most of the second, and what it waited for delayed no other session."""
HARDLY = 0.2
"""Other processes of the server that wait for a volume, on average: seen in two looks of ten, something may be late there."""
TELLS_APART = 0.05
"""Two limits whose used shares are nearer to each other are reached together, as :data:`AT_LIMIT` has it."""
TOLD_APART = 0.10
"""Share of a second: two limits that were exceeded for as long as each other, but for this, are not distinguishable."""
NO_IDLE = 0.10
"""Idle share of the machine below which work queues for CPU, as the checks of validity have it."""
SPARE_IDLE = 0.20
"""Idle share of the machine from which there was CPU for more."""
SERVER_BUSY = 0.85
"""Busy share of the CPUs that the server may use: from here on sessions queue for them, as the check of dilation has it."""
DRIVER_BUSY = 0.90
"""Busy share of the driver's threads, as the check of the driver has it."""
MORE_THAN_THE_REST = 1.25
"""Times what the test harness and other processes use: then the server is the one that the CPU is short of."""
EXCEEDED = 0.5
"""Share of a second in which requests waited for a limit, by the provider's count, from which it is reached: what a check calls
"consistently" (:data:`pgdyno.advise.metrics.cloudwatch.CONSISTENTLY_SHARE`), with a published run under full saturation at 0.7."""
NOT_EXCEEDED = 0.05
"""Share below which the provider contradicts a limit that is computed from what was said to be bought."""
POOL_WAIT_MS = 50.0
"""What a question through a connection pooler takes beyond the network's part: its answer takes the server a few milliseconds."""
NO_VOLUME_MS = 100.0
"""What a request takes, on average, from which something is wrong with a volume, whatever its load: an idle magnetic disk takes a tenth."""
DEVICE_READS = 0.5
"""Reads in the device (Little's law) over sessions that wait for reads; below it the page cache answers."""


def judge(second: Second, given: KnownConditions) -> BindingLimit | None:
    """What bound in a second, or None where nothing shown explains it."""
    for rule in RULES:
        finding = rule(second, given)
        if finding is not None:
            return finding
    return None


def harness(second: Second, given: KnownConditions) -> BindingLimit | None:
    """The driver computes all the time, or the test harness and other processes use up the machine."""
    cpu, sessions = second.cpu, second.sessions
    if cpu is None:
        return None
    if cpu.driver_busy >= DRIVER_BUSY:
        waits_for_it = sessions is not None and sessions.client >= SOME * sessions.all
        return BindingLimit("harness", sure=waits_for_it)
    rest = cpu.harness + cpu.other
    if cpu.idle >= NO_IDLE or rest <= (cpu.server or 0.0):
        return None
    more = rest > MORE_THAN_THE_REST * (cpu.server or 0.0)
    if given.driven:
        return BindingLimit("harness", sure=more)
    if sessions is None:
        return BindingLimit("harness", sure=False)
    # A session without CPU waits for nothing that PostgreSQL knows of, or for a client on the same host that has none either.
    if sessions.all <= 0 or sessions.cpu + sessions.client < MOST * sessions.all:
        return None
    return BindingLimit("harness", sure=more and sessions.cpu >= MOST * sessions.all)


def client(second: Second, given: KnownConditions) -> BindingLimit | None:
    """Sessions wait for statements, while the machine has CPU to spare."""
    if not given.driven:
        return None
    sessions, cpu = second.sessions, second.cpu
    if sessions is None or sessions.all <= 0 or sessions.client < MOST * sessions.all or _short_of_cpu(second):
        return None
    spare = cpu is not None and cpu.idle >= SPARE_IDLE
    return BindingLimit(
        "client", sure=spare and sessions.client >= CLEARLY * sessions.all and not any(caps(second, given))
    )


def unasked(second: Second, given: KnownConditions) -> BindingLimit | None:
    """A server that is watched: hardly a session is at work, or most wait for their client; and no limit is reached.

    Clients that come back within a second may want to come back sooner: if they are on this host, and short of its CPU, they
    cannot. That is known where its CPU was seen. Where hardly one comes back, none wants more.
    """
    sessions, cpu = second.sessions, second.cpu
    if given.driven or sessions is None or any(caps(second, given)):
        return None
    few, come_back = _active(sessions) < FEW_ACTIVE, sessions.client >= FEW_ACTIVE
    if second.others_at_disk >= FEW_ACTIVE or (not few and sessions.client < MOST * sessions.all):
        return None
    taken = second.connections is not None and second.connections >= 1
    if _short_of_cpu(second) and (not few or (come_back and not taken)):
        return None
    if taken:
        return BindingLimit("connections", sure=True)
    if given.pooled:
        # Clients that wait in the pooler for a session are not seen, but for the watch itself, which waits as they do.
        waited = second.pool_wait_ms is not None and second.pool_wait_ms >= POOL_WAIT_MS and not _short_of_cpu(second)
        return BindingLimit("connections" if waited else "client", sure=False)
    spare = cpu is not None and cpu.idle >= SPARE_IDLE
    nothing_asked = few and not come_back
    asked_slowly = spare and (few or sessions.client >= CLEARLY * sessions.all)
    return BindingLimit("client", sure=second.others_at_disk < HARDLY and (nothing_asked or asked_slowly))


def volume(second: Second, given: KnownConditions) -> BindingLimit | None:
    """A volume or the instance is at a limit of what was bought, and sessions wait for it."""
    results = sorted(exceeded(second, given), key=lambda cap: -cap[1])
    result = results[0] if results else max(caps(second, given), key=lambda cap: cap[1], default=None)
    if result is None:
        return None
    cap, share = result
    rivals = [other for other, of_it in results if other.limit != cap.limit and of_it > share - TOLD_APART]
    known = cap.sure and cap.role not in given.inferred and not rivals
    part = min(1.0, share) if results else 1.0
    sessions = second.sessions
    if sessions is None:
        # The provider saw requests wait; a rate that equals what was bought may be all that is wanted.
        return BindingLimit(cap.limit, sure=known and bool(results), role=cap.role, share=part)
    if not given.driven and _active(sessions) < FEW_ACTIVE:
        # A base backup or autovacuum waits for it, or nobody of the server does.
        return BindingLimit(cap.limit, sure=known and second.others_at_disk >= FEW_ACTIVE, role=cap.role, share=part)
    if sessions.at_work > 0 and sessions.at_disk < MOST * sessions.at_work:
        return None
    return BindingLimit(cap.limit, sure=known and sessions.at_disk > 0, role=cap.role, share=part)


def locks(second: Second, _: KnownConditions) -> BindingLimit | None:
    """Sessions wait for each other, and not for what the holders of the locks wait for."""
    sessions = second.sessions
    if sessions is None or sessions.all <= 0:
        return None
    active = _active(sessions)
    if active < MOST * sessions.all or sessions.lock < MOST * active:
        return None
    return BindingLimit("locks", sure=bool(second.devices) and sessions.lock >= CLEARLY * active)


def server_cpu(second: Second, given: KnownConditions) -> BindingLimit | None:
    """The server has no CPU left, or the machine has none and the server uses most of it. The baseline of a burstable instance counts."""
    cpu, sessions = second.cpu, second.sessions
    if cpu is None or cpu.server is None or cpu.server_busy is None:
        return None
    rest = cpu.harness + cpu.other
    own = cpu.server_busy >= SERVER_BUSY * given.cpu_share
    if not own and (cpu.idle >= NO_IDLE or cpu.server < rest):
        return None
    computing = sessions is not None and sessions.at_work > 0 and sessions.cpu >= MOST * sessions.at_work
    return BindingLimit("server_cpu", sure=computing and (own or cpu.server >= MORE_THAN_THE_REST * rest))


def waiting(second: Second, given: KnownConditions) -> BindingLimit | None:
    """Nothing is used up: what sessions spend most of their time on."""
    sessions = second.sessions
    if sessions is None or sessions.all <= 0:
        return None
    parts: dict[Limit, float] = {
        "commit_latency": sessions.commit,
        "volume_latency": sessions.read + sessions.write,
        "locks": sessions.lock,
        "server_cpu": sessions.cpu,
        "synchronous_standby": sessions.standby,
    }
    if _has_spare_cores(second, given):
        del parts["server_cpu"]
    limit, most = max(parts.items(), key=lambda part: part[1])
    if most < SOME * sessions.all:
        return None
    if limit == "synchronous_standby":
        # The server itself says that its own volumes are not what it waits for.
        return BindingLimit(limit, sure=most >= MOST * sessions.all)
    sure = most >= MOST * sessions.all and _below_limits(second, given)
    if limit == "commit_latency":
        return BindingLimit(limit, sure, "wal" if "wal" in second.devices else "data")
    if limit == "volume_latency":
        role, device = _with_longest_queue(second)
        in_device = device is not None and (device.reading or 0.0) >= DEVICE_READS * sessions.read
        slow = None if device is None else slowed(device, given.bought.get(role))
        return BindingLimit(limit, sure and in_device and (slow is None or slow < QUEUED_BELOW_LIMIT), role)
    return BindingLimit(limit, sure=False)


def others(second: Second, given: KnownConditions) -> BindingLimit | None:
    """A server that is watched: no client's session waits, and a base backup, autovacuum or replay does, for a volume.

    Whether a limit of that volume is why, only who sees the volume can tell.
    """
    sessions = second.sessions
    if given.driven or sessions is None or second.others_at_disk < FEW_ACTIVE or _active(sessions) >= FEW_ACTIVE:
        return None
    role, _ = _with_longest_queue(second)
    return BindingLimit("volume_latency", sure=False, role=role)


def slow_volume(second: Second, given: KnownConditions) -> BindingLimit | None:
    """A volume whose requests take far too long, where no session was seen that would wait for them."""
    known = [
        (role, device.request_ms, device) for role, device in second.devices.items() if device.request_ms is not None
    ]
    if given.driven or second.sessions is not None or not known:
        return None
    role, request_ms, device = max(known, key=lambda item: item[1])
    slow = slowed(device, given.bought.get(role))
    if request_ms < NO_VOLUME_MS or (slow is not None and slow < QUEUED_BELOW_LIMIT):
        return None
    return BindingLimit("volume_latency", sure=False, role=role)


RULES: tuple[Callable[[Second, KnownConditions], BindingLimit | None], ...] = (
    unasked,
    harness,
    client,
    volume,
    locks,
    server_cpu,
    waiting,
    others,
    slow_volume,
)


def caps(second: Second, given: KnownConditions) -> Iterator[tuple[BindingLimit, float]]:
    """Every limit that is reached: by the provider's own count, and of what was bought with the share of it that is used."""
    yield from exceeded(second, given)
    for role, device in second.devices.items():
        bought = given.bought.get(role)
        if bought is not None:
            yield from _of_volume(role, device, bought, second.exceeded.get(role))
    if given.instance is not None and second.devices:
        yield from _of_instance(second, given, given.instance)


def exceeded(second: Second, given: KnownConditions) -> Iterator[tuple[BindingLimit, float]]:
    """Every limit that the provider says was exceeded, with the share of the second in which it was."""
    for role, shares in second.exceeded.items():
        yield from _told(role, shares, second.devices.get(role), given.bought.get(role))


def slowed(device: DeviceActivity, bought: ProvisionedVolume | None) -> float | None:
    """How many times longer than usual requests took; None where that, or the usual latency, is not known."""
    if bought is None or bought.usual is None or not device.iops or not device.request_ms:
        return None
    usual_ms = bought.usual.ms(device.request_bytes, device.write_share)
    return device.request_ms / usual_ms if usual_ms > 0 else None


def _told(
    role: str, shares: ThrottledShares, device: DeviceActivity | None, bought: ProvisionedVolume | None
) -> Iterator[tuple[BindingLimit, float]]:
    """Limits that the provider says were exceeded. Whether it is one of credits that are gone, what was bought tells."""
    for share in (shares.instance_iops, shares.instance_throughput):
        if share >= EXCEEDED:
            yield BindingLimit("instance_bandwidth", sure=True), share
    limits: tuple[tuple[Limit, float], ...] = (("volume_iops", shares.iops), ("volume_throughput", shares.throughput))
    for limit, share in limits:
        if share < EXCEEDED:
            continue
        rate = None if bought is None else bought.iops if limit == "volume_iops" else bought.mib_per_s
        if device is not None and bought is not None and rate is not None and rate.bursts:
            size = bought.used_throughput(device.mib_per_s)
            used = bought.used_iops(device) if limit == "volume_iops" else size
            if used is not None and used < AT_LIMIT:
                yield BindingLimit("burst_bucket", sure=True, role=role), share
                continue
        yield BindingLimit(limit, sure=bought is not None, role=role), share


def _of_volume(
    role: str, device: DeviceActivity, bought: ProvisionedVolume, shares: ThrottledShares | None
) -> Iterator[tuple[BindingLimit, float]]:
    slow = slowed(device, bought)
    contradicted = shares is not None and max(shares.iops, shares.throughput) < NOT_EXCEEDED
    queued = not contradicted and (slow is None or slow >= QUEUED)
    iops = bought.used_iops(device) or 0.0
    size = bought.used_throughput(device.mib_per_s) or 0.0
    if size >= AT_LIMIT and iops >= AT_LIMIT:
        fewest = _fewest_iops(device, bought)
        queued = queued and abs(fewest - size) >= TELLS_APART
        yield BindingLimit("volume_iops" if fewest >= size else "volume_throughput", queued, role), max(fewest, size)
    elif size >= AT_LIMIT:
        yield BindingLimit("volume_throughput", queued, role), size
    elif iops >= AT_LIMIT:
        yield BindingLimit("volume_iops", queued, role), iops
    for rate, used, fewest in ((bought.iops, iops, _fewest_iops(device, bought)), (bought.mib_per_s, size, size)):
        if rate is None or not rate.bursts or used >= AT_LIMIT or (slow is not None and slow < QUEUED_BELOW_LIMIT):
            continue
        left, least = used * rate.maximum / rate.sustained, fewest * rate.maximum / rate.sustained
        if AT_LIMIT <= left <= LEFT_ABOVE:
            yield BindingLimit("burst_bucket", slow is not None and not contradicted, role), left
        elif slow is not None and least <= LEFT_ABOVE < left:
            yield BindingLimit("burst_bucket", sure=False, role=role), AT_LIMIT


def _fewest_iops(device: DeviceActivity, bought: ProvisionedVolume) -> float:
    """Share of the most IOPS that is used at least: of large requests, however many in sequence were merged."""
    used = bought.least_used_iops(device) if device.request_bytes >= LARGE_BYTES else bought.used_iops(device)
    return used or 0.0


def _of_instance(
    second: Second, given: KnownConditions, instance: BoughtInstance
) -> Iterator[tuple[BindingLimit, float]]:
    known = [slowed(device, given.bought.get(role)) for role, device in second.devices.items() if device.iops]
    slow = max((value for value in known if value is not None), default=None)
    queued = slow is None or slow >= QUEUED
    waits_for_no_volume = slow is not None and slow >= QUEUED_BELOW_LIMIT
    iops = sum(device.iops for device in second.devices.values())
    mib_per_s = sum(device.mib_per_s for device in second.devices.values())
    for rate, used in ((instance.iops, iops), (instance.mib_per_s, mib_per_s)):
        if used >= AT_LIMIT * rate.maximum:
            yield BindingLimit("instance_bandwidth", queued), used / rate.maximum
        elif rate.bursts and AT_LIMIT <= used / rate.sustained <= LEFT_ABOVE and waits_for_no_volume:
            # Below its maximum: then its reserve is used up.
            yield BindingLimit("instance_bandwidth", sure=True), used / rate.sustained


def _with_longest_queue(second: Second) -> tuple[str, DeviceActivity | None]:
    """The volume with most requests in it, by its role; the data's where none was seen."""
    known = second.devices.items()
    return max(known, key=lambda item: item[1].queue_length or 0.0, default=("data", None))


def _active(sessions: SessionStates) -> float:
    """Sessions that do not wait for their client."""
    return sessions.all - sessions.client


def _short_of_cpu(second: Second) -> bool:
    """Whether work queues for the machine's CPU or for the server's."""
    cpu = second.cpu
    return cpu is not None and (cpu.idle < NO_IDLE or (cpu.server_busy or 0.0) >= SERVER_BUSY)


def _has_spare_cores(second: Second, given: KnownConditions) -> bool:
    """Whether the server used less than half of the CPU time that its computing sessions could have had.

    Such a session waits for something that PostgreSQL has no name for. One that computes alone on many cores uses one of them whole.
    """
    cpu, sessions = second.cpu, second.sessions
    if cpu is None or cpu.server_busy is None or sessions is None or cpu.idle < NO_IDLE:
        return False
    if given.cores is None:
        return cpu.server_busy < MOST
    return cpu.server_busy * given.cores < MOST * min(sessions.cpu, given.cores)


def _below_limits(second: Second, given: KnownConditions) -> bool:
    """Whether every device was seen, is far below what was bought, and the machine had CPU to spare.

    A volume that is slow above the rate that it sustains may have no credits left.
    """
    if not second.devices or second.cpu is None or second.cpu.idle < SPARE_IDLE:
        return False
    for role, device in second.devices.items():
        bought = given.bought.get(role)
        if bought is None or role in given.inferred:
            return False
        slow = slowed(device, bought)
        shares = ((bought.iops, bought.used_iops(device)), (bought.mib_per_s, bought.used_throughput(device.mib_per_s)))
        for rate, used in shares:
            if rate is None or used is None:
                continue
            held = used * rate.maximum / rate.sustained if slow is None or slow >= QUEUED_BELOW_LIMIT else used
            if held > FAR_BELOW:
                return False
    return not any(caps(second, given))
