"""The evidence of a verdict in words: figures of the seconds in which the limit bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pgdyno.analysis.binding.evidence import Evidence
from pgdyno.analysis.binding.rules import NO_IDLE, SERVER_BUSY, SPARE_IDLE
from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding

from ...base.specification import Rate
from ...base.text import number, percent
from .device import DeviceActivity, ProvisionedVolume
from .evidence import Circumstances
from .rules import Limit
from .verdict import SecondMeans, mean_second, means_of

SEEN = 0.05
"""Sessions on average below which a state is not worth a word."""


def evidence_words(run: RunBinding, verdict: BindingVerdict, around: Circumstances) -> list[str]:
    """Evidence for the limit, the strongest first; empty if no limit stands out. Sentences' ends without full stops."""
    limit = verdict.limit
    if limit is None:
        return []
    means = means_of(run, limit)
    makers: dict[Limit, Callable[[Evidence, SecondMeans, BindingVerdict, Circumstances], Iterator[str]]] = {
        "volume_iops": _at_cap,
        "volume_throughput": _at_cap,
        "burst_bucket": _at_cap,
        "instance_bandwidth": _instance,
        "volume_latency": _below_cap,
        "commit_latency": _below_cap,
        "checkpoints": _checkpoints,
        "server_cpu": _cpu,
        "locks": _locks,
        "client": _client,
        "harness": _harness,
        "synchronous_standby": _standby,
        "connections": _connections,
        "no_answer": lambda *_: iter(()),
    }
    return list(makers[limit](run.evidence, means, verdict, around))


def unexplained_words(run: RunBinding) -> list[str]:
    """Activity of the sessions if no limit stands out, so that a reader sees something in its place."""
    means = mean_second(run.evidence.seconds)
    sessions, cpu = means.sessions, means.cpu
    words = []
    if sessions is not None and sessions.all > 0:
        states = {
            "computed or waited for nothing that has a name": sessions.cpu,
            "waited for another session": sessions.lock,
            "waited for commits": sessions.commit,
            "waited for reads": sessions.read,
            "waited for their client": sessions.client,
        }
        most = sorted(((count, what) for what, count in states.items() if count >= SEEN), reverse=True)
        parts = [f"{number(count, 2)} {what}" for count, what in most]
        words.append(_of_sessions(parts, sessions.all) if parts else "no session was at work")
    if cpu is not None and cpu.server_busy is not None:
        words.append(f"the server used {percent(cpu.server_busy)} of its CPUs")
    return words


def _at_cap(evidence: Evidence, means: SecondMeans, verdict: BindingVerdict, _: Circumstances) -> Iterator[str]:
    device = means.devices.get(verdict.role or "")
    bought = evidence.given.bought.get(verdict.role or "")
    if device is None or bought is None:
        return
    if verdict.role in evidence.given.inferred:
        yield f"{number(device.iops)} IOPS and {number(device.mib_per_s)} MiB/s"
        yield from _slow(evidence, device, verdict.role)
        yield from _at_disk(means)
        return
    if verdict.limit != "volume_throughput" and bought.iops is not None:
        yield f"{_iops(device, bought)} of {_rate(bought.iops)} bought" + _left(verdict.limit, bought.iops)
    if verdict.limit != "volume_iops" and bought.mib_per_s is not None:
        yield f"{number(device.mib_per_s)} MiB/s of {_rate(bought.mib_per_s)} bought"
    yield from _slow(evidence, device, verdict.role)
    yield from _at_disk(means)


def _instance(evidence: Evidence, means: SecondMeans, _: BindingVerdict, __: Circumstances) -> Iterator[str]:
    instance = evidence.given.instance
    if instance is None:
        return
    iops = sum(device.iops for device in means.devices.values())
    mib_per_s = sum(device.mib_per_s for device in means.devices.values())
    yield (
        f"{number(iops)} of {_rate(instance.iops)} IOPS and {number(mib_per_s)} of {_rate(instance.mib_per_s)} MiB/s that"
        f" {instance.type} has for all of its volumes"
    )
    for role, device in means.devices.items():
        yield from _slow(evidence, device, role)
    yield from _at_disk(means)


def _below_cap(evidence: Evidence, means: SecondMeans, verdict: BindingVerdict, _: Circumstances) -> Iterator[str]:
    yield from _at_disk(means)
    device = means.devices.get(verdict.role or "")
    bought = evidence.given.bought.get(verdict.role or "")
    if device is None:
        return
    if bought is not None and bought.iops is not None:
        yield f"the volume did {_iops(device, bought)} of {_rate(bought.iops)}: it was not at its limit"
    yield from _slow(evidence, device, verdict.role)


def _checkpoints(evidence: Evidence, means: SecondMeans, _: BindingVerdict, __: Circumstances) -> Iterator[str]:
    checkpoints = evidence.checkpoints
    text = f", {checkpoints.requested} of them because max_wal_size was reached" if checkpoints.requested else ""
    yield f"{checkpoints.started} checkpoints began in {checkpoints.seconds:,.0f} s{text}"
    inside = sum(checkpoints.inside) / max(1, len(checkpoints.inside))
    yield f"a checkpoint was running {percent(inside)} of the time"
    if checkpoints.written_share is not None:
        yield f"{percent(checkpoints.written_share)} of all bytes written were checkpoint pages and full pages in WAL"
    yield from _at_disk(means)


def _cpu(evidence: Evidence, means: SecondMeans, _: BindingVerdict, __: Circumstances) -> Iterator[str]:
    cpu, sessions, cores = means.cpu, means.sessions, evidence.given.cores
    if cpu is not None and cpu.server_busy is not None:
        yield f"the server used {percent(cpu.server_busy)} of its CPUs, and {percent(cpu.idle)} of the machine was idle"
    if sessions is not None:
        yield f"{number(sessions.cpu)} of {number(sessions.all)} sessions were computing"
    few = cpu is not None and cpu.server_busy is not None and cpu.server_busy < SERVER_BUSY and cpu.idle >= NO_IDLE
    if few and sessions is not None and cores is not None and sessions.cpu < cores:
        yield f"each of them had one of {cores:g} cores: faster cores would help, more would not"


def _locks(_: Evidence, means: SecondMeans, __: BindingVerdict, around: Circumstances) -> Iterator[str]:
    sessions = means.sessions
    if sessions is None:
        return
    yield f"{number(sessions.lock)} of {number(sessions.all)} sessions waited for a lock that another session held"
    if around.lock is not None:
        yield f"most of them waited for {around.lock}"
    if sessions.at_work > 0 and sessions.commit > sessions.at_work / 2:
        yield "sessions that hold a lock mostly wait for their commit"


def _client(evidence: Evidence, means: SecondMeans, _: BindingVerdict, around: Circumstances) -> Iterator[str]:
    sessions, cpu = means.sessions, means.cpu
    if sessions is not None and evidence.given.driven:
        yield f"{number(sessions.client)} of {number(sessions.all)} sessions waited for the client"
    elif sessions is not None:
        yield (
            f"{number(sessions.all - sessions.client, 2)} sessions were active on average, and {number(sessions.client, 2)} more"
            " waited for their client"
        )
    if cpu is not None and (evidence.given.driven or cpu.idle >= SPARE_IDLE):
        yield f"{percent(cpu.idle)} of the machine's CPU was idle"
    if around.all_done:
        yield "every scheduled transaction was done"


def _harness(evidence: Evidence, means: SecondMeans, _: BindingVerdict, __: Circumstances) -> Iterator[str]:
    cpu = means.cpu
    if cpu is None:
        return
    server = "" if cpu.server is None else f", the server {percent(cpu.server)}"
    if not evidence.given.driven:
        yield f"other processes of this host used {percent(cpu.harness + cpu.other)} of the CPU{server}"
        return
    yield f"the driver's threads were busy {percent(cpu.driver_busy)} of the time"
    yield f"the test harness and other processes used {percent(cpu.harness + cpu.other)} of the CPU{server}"


def _standby(_: Evidence, means: SecondMeans, __: BindingVerdict, ___: Circumstances) -> Iterator[str]:
    sessions = means.sessions
    if sessions is not None:
        yield f"{number(sessions.standby)} of {number(sessions.all)} sessions waited for a standby to confirm their commit"
    yield from _at_disk(means)


def _connections(evidence: Evidence, means: SecondMeans, __: BindingVerdict, ___: Circumstances) -> Iterator[str]:
    sessions = means.sessions
    waited = [second.pool_wait_ms for second in evidence.seconds if second.pool_wait_ms is not None]
    full = any((second.connections or 0.0) >= 1 for second in evidence.seconds)
    if waited and not full:
        yield f"pgdyno's own queries waited {number(sum(waited) / len(waited))} ms on average for a connection from the pooler: its pool is full"
    else:
        yield "all connections that max_connections leaves to ordinary roles were in use"
    if sessions is not None:
        yield f"{number(sessions.all - sessions.client, 2)} sessions were active on average"


def _iops(device: DeviceActivity, bought: ProvisionedVolume) -> str:
    """IOPS as the provider counts them, with the kernel's requests if those are fewer."""
    counted = number(bought.counted_iops(device))
    if counted == number(device.iops):
        return f"{counted} IOPS"
    return f"about {counted} IOPS ({number(device.iops)} requests in units of {bought.unit_bytes >> 10} KiB)"


def _slow(evidence: Evidence, device: DeviceActivity, role: str | None) -> Iterator[str]:
    bought = evidence.given.bought.get(role or "")
    if not device.iops or not device.request_ms:
        return
    took = f"I/O latency averaged {number(device.request_ms)} ms"
    if bought is None or bought.usual is None:
        yield took
        return
    usual_ms = bought.usual.ms(device.request_bytes, device.write_share)
    yield f"{took} ({number(usual_ms)} ms on an idle volume)"


def _at_disk(means: SecondMeans) -> Iterator[str]:
    sessions = means.sessions
    if sessions is None:
        return
    parts = {"reads": sessions.read, "writes": sessions.write, "commits": sessions.commit}
    waits = [(number(count, 2), what) for what, count in parts.items() if count >= SEEN]
    if waits:
        (count, what), *further = waits
        texts = [f"{count} of {number(sessions.all)} sessions waited for {what}", *(f"{c} for {w}" for c, w in further)]
        yield f"on average {' and '.join(texts)}"


def _of_sessions(parts: list[str], sessions: float) -> str:
    """``on average 7.3 of 16.0 sessions waited for reads, 2.1 waited for commits``."""
    count, _, what = parts[0].partition(" ")
    return ", ".join([f"on average {count} of {number(sessions)} sessions {what}", *parts[1:]])


def _rate(rate: Rate) -> str:
    return f"{rate.maximum:,.0f}"


def _left(limit: Limit | None, rate: Rate) -> str:
    return f", and {rate.sustained:,.0f} are left without credits" if limit == "burst_bucket" else ""
