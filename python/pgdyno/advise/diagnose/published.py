"""The rules by which published documents read the same figures, each with its name there, and why it agrees with the verdict or not.

*Whitepaper* is "Optimizing PostgreSQL Running on Amazon EC2 Using Amazon EBS" (AWS), *post* "Optimized bulk loading in Amazon RDS
for PostgreSQL" (AWS Database Blog, 2022), *guide* the Amazon EC2 and RDS User Guides. docs/concept/published_rules.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.analysis.binding.evidence import Evidence
from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding

from ...analysis.binding.device import MIB, DeviceActivity, ProvisionedVolume
from ...analysis.binding.rules import CAPS, TITLES, Limit
from ...analysis.binding.verdict import mean_second
from ...analysis.figures import BLOCK_BYTES
from ...base.specification import VolumeSpec
from ...base.text import duration, number, percent, size
from ...results.record import InstanceRecord, VolumeRecord
from ..metrics import cloudwatch
from ..size.measured import Reserve
from .activity import Slow
from .files import TimeGrid, VolumeSource

WATCHED: dict[Limit, str] = {
    "client": "no bottleneck: the clients send no more work",
    "harness": "other processes of this host",
    "no_answer": "no answer of the server",
}
"""Those that have another name than in a run of pgdyno's own."""


RULE_MS = 1.0
"""The latency at which one request in flight for every 1,000 IOPS is all that there is (Little's law)."""
SLOWEST_MS = 10.0
"""The end of "single-digit millisecond" latency, which the guide promises of SSD volumes: the least that a queue needs."""
_ABOUT_LATENCY: frozenset[Limit] = frozenset({"volume_latency", "commit_latency", "checkpoints"})
_RESERVES: dict[Reserve, tuple[str, Limit]] = {
    "burst": ("BurstBalance", "burst_bucket"),
    "instance_iops": ("EBSIOBalance%", "instance_bandwidth"),
    "instance_throughput": ("EBSByteBalance%", "instance_bandwidth"),
}


@dataclass(frozen=True)
class RuleFinding:
    """One rule of a document's, applied to what was seen."""

    rule: str
    """As the document names it: ``VolumeQueueLength``."""
    source: str
    """The document."""
    figure: str
    """What it says here, a sentence's end."""
    agrees: bool
    """Whether it leads to the verdict's limit, or like it to none."""
    why: str


def findings_of(
    binding: RunBinding,
    volumes: Mapping[str, VolumeRecord],
    sources: Sequence[VolumeSource],
    grid: TimeGrid,
    slow: Slow | None = None,
    instance: InstanceRecord | None = None,
    settings: Mapping[str, str] | None = None,
) -> tuple[RuleFinding, ...]:
    """Every rule whose figures were seen."""
    evidence, verdict = binding.evidence, binding.verdict
    findings: list[RuleFinding] = []
    seen = any(second.sessions is not None for second in evidence.seconds)
    for role, device in mean_second(evidence.seconds).devices.items():
        bought = evidence.given.bought.get(role)
        if bought is None or role in evidence.given.inferred:
            continue
        findings += _of_queue(role, device, bought, verdict, seen=seen)
        findings += _of_rates(role, device, bought, verdict, seen=seen)
        findings += _of_needed(role, device, bought, verdict, _exceeded(evidence, role))
        findings += _of_credits(
            role, device, bought, verdict, volumes.get(role), shows_balance=_tells(sources, "burst")
        )
    for source in sources:
        findings += _of_balances(source, grid, verdict)
    if slow is not None:
        findings.append(_of_slow(slow, verdict))
    if instance is not None and instance.memory_bytes is not None:
        findings += _of_memory(instance.memory_bytes, settings or {}, verdict)
    return tuple(findings)


def _of_queue(
    role: str, device: DeviceActivity, bought: ProvisionedVolume, verdict: BindingVerdict, *, seen: bool
) -> Iterator[RuleFinding]:
    """Whitepaper: a mean VolumeQueueLength above one for every 1,000 provisioned IOPS can cause latency. ``seen``: the sessions were."""
    if bought.iops is None or not device.iops or device.queue_length is None or device.request_ms is None:
        return
    wanted = cloudwatch.queue_length_wanted(bought.iops.maximum)
    long = cloudwatch.is_queue_too_long(device.queue_length, bought.iops.maximum)
    figure = f"{number(device.queue_length)} requests in flight, against {number(wanted)}"
    law = f"a request took {number(device.request_ms)} ms, and the rule supposes {RULE_MS:g} ms (Little's law)"
    capped = verdict.limit in CAPS
    if long:
        agrees = capped or verdict.limit in _ABOUT_LATENCY
        why = "requests queue at the limit" if capped else law
        if not agrees:
            waits = "sessions do not wait for these requests" if seen else "who waits for these requests was not seen"
            why = f"{law}; {waits}: {_title(verdict)}"
    else:
        agrees = not capped
        why = "nothing queues" if agrees else f"{law}; a limit can be reached with few requests in flight"
    yield RuleFinding("VolumeQueueLength, 1 for each 1,000 IOPS" + _of(role), "whitepaper", figure, agrees, why)


def _of_rates(
    role: str, device: DeviceActivity, bought: ProvisionedVolume, verdict: BindingVerdict, *, seen: bool
) -> Iterator[RuleFinding]:
    """Whitepaper: IOPS and throughput must stay below what was provisioned."""
    parts = {"IOPS": bought.used_iops(device), "throughput": bought.used_throughput(device.mib_per_s)}
    known = {what: used for what, used in parts.items() if used is not None}
    if not known:
        return
    most = max(known.values())
    reached, capped = most >= 0.95, verdict.limit in ("volume_iops", "volume_throughput") and verdict.role == role
    why = {
        (True, True): "it is the limit",
        (False, False): "no limit is reached" if verdict.limit in (None, "client") else f"{_title(verdict)} binds",
        (True, False): f"the limit is reached on average, but sessions wait for something else: {_title(verdict)}"
        if seen
        else f"the limit is reached on average, and who waits for it was not seen: {_title(verdict)}",
        (False, True): "the limit is reached in most seconds, not on average",
    }[reached, capped]
    figure = " and ".join(f"{percent(used)} of the {what}" for what, used in known.items())
    yield RuleFinding(
        "IOPS and throughput below the provisioned" + _of(role), "whitepaper", figure, reached == capped, why
    )


def _of_needed(
    role: str, device: DeviceActivity, bought: ProvisionedVolume, verdict: BindingVerdict, exceeded: float | None
) -> Iterator[RuleFinding]:
    """Post: IOPS in use and the disk queue length make the IOPS that are needed, and some more are bought (750 + 2,048, so 4,400)."""
    if verdict.limit not in ("volume_iops", "burst_bucket") or verdict.role != role:
        return
    if not device.request_ms or device.queue_length is None:
        return
    usual_ms = None if bought.usual is None else bought.usual.ms(device.request_bytes, device.write_share)
    low, high = iops_needed(device.iops, device.queue_length, device.request_ms, usual_ms or RULE_MS, exceeded)
    sum_of_both = device.iops + device.queue_length
    fastest = f" to {number(high)} (at {number(usual_ms)} ms, unloaded)" if usual_ms else ""
    yield RuleFinding(
        "IOPS and disk queue length added up" + _of(role),
        "post",
        f"{number(device.iops)} + {number(device.queue_length)} = {number(sum_of_both)} IOPS",
        agrees=low <= sum_of_both <= high,
        why=f"a queue is not a rate; what is in flight needs {number(low)} IOPS (at {number(min(SLOWEST_MS, device.request_ms))} ms"
        f" each){fastest}, by Little's law",
    )


def iops_needed(
    iops: float, queue_length: float, request_ms: float, usual_ms: float, exceeded: float | None = None
) -> tuple[float, float]:
    """IOPS with which the requests in flight take from 10 ms down to what they usually take: queue / latency (Little's law).

    Never less than what was done, and than that and the share of the time in which more was wanted.
    """
    least = iops * (1 + (exceeded or 0.0))
    slowest_ms = min(SLOWEST_MS, request_ms)
    low = max(least, queue_length / slowest_ms * 1e3)
    return low, max(low, queue_length / usual_ms * 1e3)


def _of_credits(
    role: str,
    device: DeviceActivity,
    bought: ProvisionedVolume,
    verdict: BindingVerdict,
    volume: VolumeRecord | None,
    *,
    shows_balance: bool,
) -> Iterator[RuleFinding]:
    """Whitepaper: burst duration = credits / (burst - baseline); here with the rate that was seen, from a full bucket."""
    if volume is None or shows_balance:
        return
    spec = VolumeSpec.of(volume.spec)
    rates = (
        (spec.charged_iops, spec.columns, bought.counted_iops(device), "IOPS"),
        (spec.charged_bytes, spec.columns / MIB, device.mib_per_s, "MiB/s"),
    )
    for rate, scale, used, unit in rates:
        if not rate.bursts:
            continue
        earned, most = rate.sustained * scale, rate.maximum * scale
        lasts_s = cloudwatch.burst_duration_s(rate.capacity * scale, min(used, most), earned)
        if verdict.limit == "burst_bucket" and verdict.role == role:
            figure, agrees, why = f"{number(earned)} {unit} are earned", True, "the credits are gone"
        elif lasts_s is None:
            figure, agrees, why = (
                f"{number(used)} of {number(earned)} {unit} that are earned",
                True,
                "no credits are spent",
            )
        else:
            figure = f"a full bucket lasts {duration(lasts_s)} at {number(used)} {unit}; {number(earned)} are earned"
            agrees, why = True, "it has not ended; what is left of it, BurstBalance tells (--cloudwatch)"
        yield RuleFinding("burst duration" + _of(role), "whitepaper", figure, agrees, why)


def _of_balances(source: VolumeSource, grid: TimeGrid, verdict: BindingVerdict) -> Iterator[RuleFinding]:
    """Guide: BurstBalance, EBSIOBalance% and EBSByteBalance%: what is left, and when it ends if it falls as it did in the file."""
    samples = [sample for sample in grid.samples(source) if sample is not None]
    for reserve, (name, limit) in _RESERVES.items():
        values = [(sample.at_s or 0.0, sample.balance[reserve]) for sample in samples if reserve in sample.balance]
        if not values:
            continue
        (first_s, first), (last_s, last) = values[0], values[-1]
        left_s = cloudwatch.credits_last_s(last, first, last_s - first_s) if last_s > first_s else None
        until = "" if left_s is None else f", and at this rate it ends in {duration(left_s)}"
        empty, binds = last < 0.01, verdict.limit == limit
        why = {
            (True, True): "it is used up, and its baseline is the limit",
            (False, False): "it is not used up",
            (True, False): f"it is used up, and the baseline is not what binds: {_title(verdict)}",
            (False, True): "there is some left on average; a minute is longer than a second at the limit",
        }[empty, binds]
        yield RuleFinding(name + _of(source.role), "guide", f"{percent(last)} left{until}", empty == binds, why)


def _of_slow(slow: Slow, verdict: BindingVerdict) -> RuleFinding:
    """Whitepaper: log_min_duration_statement shows slow statements; here by their mean time, as pg_stat_statements has no single ones,
    and those that have not ended, which neither it nor the log has.
    """
    binds = verdict.limit not in (None, "client")
    why = {
        (True, True): f"slow, and the server is held back by {_title(verdict)}",
        (False, False): f"no statement is slow, and {_title(verdict)}",
        (True, False): "slow because of the work they do: nothing is used up"
        if verdict.limit
        else "slow, and no limit stands out",
        (False, True): f"no statement is slow; {_title(verdict)} limits how many there are",
    }[slow.any, binds]
    return RuleFinding("log_min_duration_statement", "whitepaper", _slow_figure(slow), slow.any == binds, why)


def _slow_figure(slow: Slow) -> str:
    """``3 statements took 1,000 ms or more on average, in 12 calls; 6 had not ended, after up to 14 s``."""
    threshold = f"{number(slow.threshold_ms)} ms or more"
    parts = []
    if slow.statements is not None and slow.statements > 0:
        what = "1 statement" if slow.statements == 1 else f"{slow.statements:,} statements"
        parts.append(f"{what} took {threshold} on average, in {slow.calls:,} call{'' if slow.calls == 1 else 's'}")
    elif slow.statements is not None:
        parts.append(f"no statement took {threshold} on average")
    if slow.running is not None and slow.running.statements > 0:
        parts.append(
            f"{slow.running.statements:,} had not ended, after up to {duration(slow.running.longest_ms / 1e3)}"
        )
    elif slow.running is not None:
        parts.append(
            "none that had not ended had run for as long" if parts else f"no statement had run for {threshold}"
        )
    example = {-1.0: " (the setting is off)", 0.0: " (the setting logs all)"}.get(slow.setting_ms, "")
    return "; ".join(parts) + example


def _of_memory(memory_bytes: int, settings: Mapping[str, str], verdict: BindingVerdict) -> Iterator[RuleFinding]:
    """Whitepaper: leave memory for sorts, hashes, autovacuum and the page cache; connections x work_mem beside shared_buffers."""
    names = ("shared_buffers", "max_connections", "work_mem")
    if not all(name in settings for name in names):
        return
    blocks, connections, work_kib = (int(settings[name]) for name in names)
    may_take = blocks * BLOCK_BYTES + connections * work_kib * 1024
    large, reads = may_take > memory_bytes, verdict.limit in ("volume_iops", "volume_latency", "volume_throughput")
    figure = f"shared_buffers and max_connections x work_mem may take {size(may_take)} of {size(memory_bytes)}"
    why = {
        (True, True): "what sessions take is missing to the page cache, and reads go to the volume",
        (True, False): "they may take more than there is, and what binds is not reads",
        (False, True): "there is memory for them",
        (False, False): "there is memory for them",
    }[large, reads]
    yield RuleFinding(
        "memory for sorts, hashes and connections", "whitepaper", figure, agrees=reads or not large, why=why
    )


def _exceeded(evidence: Evidence, role: str) -> float | None:
    """The mean share of the time in which the provider says that more IOPS were wanted."""
    results = [second.exceeded[role].iops for second in evidence.seconds if role in second.exceeded]
    return sum(results) / len(results) if results else None


def _tells(sources: Sequence[VolumeSource], reserve: Reserve) -> bool:
    return any(reserve in sample.balance for source in sources for sample in source.measured.samples)


def _title(verdict: BindingVerdict) -> str:
    """What binds, as it is called on a server that was watched."""
    if verdict.limit is None:
        return "no limit stands out"
    # Not "nothing binds": clients may wait in a pooler, where they are not seen.
    return (
        "nothing of the server is used up"
        if verdict.limit == "client"
        else WATCHED.get(verdict.limit, TITLES[verdict.limit])
    )


def _of(role: str) -> str:
    return "" if role == "data" else f" of the {role} volume"
