"""Whether a scenario was limited by what was meant to limit it: by the emulator's account, the kernel's, or a control."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgdyno.analysis.binding.consumers import What
    from pgdyno.analysis.binding.rules import Limit
    from tools.diagnose.record import Facts, Reading

HELD_MIN = 0.5
"""Share of the time in which requests waited for the limit: less, and something else bound as often."""
FREE_MAX = 0.25
"""Share of the time above any limit of a volume or the instance, where another limit was meant to bind."""
CONTROL_MIN = 1.25
"""Times the transactions without the limit: it cost a fifth of them."""
BUSY_MIN = 0.85
"""Share of the machine's CPU that was used, where CPU was meant to bind."""
IN_VOLUME_MIN = 0.4
"""Requests in the volume (the integral of its queue over time) over clients, where its latency was meant to bind."""
LEFT_MAX = 0.5
"""Of the requests or bytes without the consumer: with more, it did not have the most of them."""
OF_VOLUMES = frozenset({"volume_iops", "volume_throughput", "burst_bucket"})
"""Limits of a volume alone, whose largest consumer is judged."""
_COUNTERS: dict[Limit, tuple[str, ...]] = {
    "volume_iops": ("exceeded_iops_ns",),
    "burst_bucket": ("exceeded_iops_ns",),
    "volume_throughput": ("exceeded_throughput_ns",),
    "instance_bandwidth": ("instance_exceeded_iops_ns", "instance_exceeded_throughput_ns"),
}
"""Only IOPS burst on the volumes of the draw: a gp2 at its throughput is limited by that, with credits or without."""
CREDITS_S_MAX = 1.0
"""For how long the credits at the begin of a watch last, at the rate of that watch; with more, another limit bound first."""


def refuted(facts: Facts, clients: int) -> str | None:
    """Why the scenario is not what it was meant to be, or None."""
    meant = _COUNTERS.get(facts.limit)
    held = 0.0 if meant is None else _held(facts, meant)
    other = _held(facts, tuple({name for names in _COUNTERS.values() for name in names} - set(meant or ())))
    if meant is not None:
        if held < HELD_MIN:
            return f"requests waited for the limit in {held:.0%} of the time"
        if facts.limit == "burst_bucket" and (left_s := _credits_s(facts)) > CREDITS_S_MAX:
            return f"credits for {left_s:.0f} s were left when the watch began"
        return f"another limit held {other:.0%} of the time, this one {held:.0%}" if other > held else None
    if facts.limit != "checkpoints" and other > FREE_MAX:
        return f"requests waited for a volume's limit in {other:.0%} of the time"
    return _control(facts) or _cpu(facts) or _latency(facts, clients) or _connections(facts)


def consumer_of(facts: Facts) -> What | None:
    """The largest use of the volume that binds; None where it is not known, or the control without it does not say so."""
    return None if facts.consumer_left is None or facts.consumer_left > LEFT_MAX else facts.consumer


def binding_role(readings: Mapping[str, Reading], limit: Limit) -> str:
    """The role of the volume that was above a limit for longest."""
    return max(readings, key=lambda role: max(readings[role].share(name) for name in _COUNTERS[limit]))


def _held(facts: Facts, counters: tuple[str, ...]) -> float:
    return max((reading.share(name) for reading in facts.readings.values() for name in counters), default=0.0)


def _credits_s(facts: Facts) -> float:
    """For how long the credits that were there lasted: all that were used, over the rate."""
    rates = (
        (reading.credits, reading.grown["io_units"] / (reading.end_unix_s - reading.begin_unix_s))
        for reading in facts.readings.values()
        if reading.credits is not None
    )
    return max((left / max(1.0, rate) for left, rate in rates), default=0.0)


def _control(facts: Facts) -> str | None:
    if facts.tps_control is None or facts.tps is None:
        return None
    if facts.tps_control < CONTROL_MIN * facts.tps:
        return f"without it there are {facts.tps_control:,.0f} instead of {facts.tps:,.0f} transactions a second"
    return None


def _cpu(facts: Facts) -> str | None:
    """By the kernel's account: who used the machine."""
    others = 1 - facts.idle - facts.server_cpu
    if facts.limit not in ("server_cpu", "harness"):
        if 1 - facts.idle > BUSY_MIN and others > facts.server_cpu and facts.limit == "volume_latency":
            return f"other processes used {others:.0%} of the machine's CPU"
        return None
    if 1 - facts.idle < BUSY_MIN:
        return f"{facts.idle:.0%} of the machine's CPU was idle"
    most = "server_cpu" if facts.server_cpu > others else "harness"
    if most != facts.limit:
        return f"the server used {facts.server_cpu:.0%} of the machine's CPU, others {others:.0%}"
    return None


def _latency(facts: Facts, clients: int) -> str | None:
    if facts.limit != "volume_latency":
        return None
    waiting = sum(reading.grown.get("queue_time_ns", 0) for reading in facts.readings.values()) / 1e9 / facts.seconds
    if waiting < IN_VOLUME_MIN * clients:
        return f"on average {waiting:.2f} requests of {clients} clients were in a volume"
    return None


def _connections(facts: Facts) -> str | None:
    if facts.limit == "connections" and not facts.refused:
        return "a connection was to be had"
    return None
