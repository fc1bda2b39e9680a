"""Figures as text: what the table and the page have in common."""

from __future__ import annotations

import math

from ...base.specification import Rate
from ...base.text import UNKNOWN, duration, gib, money, percent
from .advice import Advice
from .capped import USUAL_MS
from .demand import MIB
from .fit import Fit
from .instances import InstanceChoice
from .search import Collapse, VolumeChoice


def share(part: float) -> str:
    """Room above the percentile, ``+23 %``."""
    return UNKNOWN if math.isinf(part) else f"{'+' if part >= 0 else '-'}{percent(abs(part))}"


def rate(limit: Rate, scale: float = 1.0) -> str:
    """A limit; ``300 (3,000)`` is 300 sustained and 3,000 on credits."""
    if math.isinf(limit.sustained):
        return "no limit"
    sustained = f"{limit.sustained / scale:,.0f}"
    return f"{sustained} ({limit.maximum / scale:,.0f})" if limit.bursts else sustained


def nearest(fit: Fit) -> str:
    """The limit that is met first and the room before it, without credits."""
    room = f"{share(fit.headroom)} {fit.nearest}"
    if not fit.on_credits:
        return room
    if fit.empty_after_s is None:
        return f"{room} without credits, which last"
    return f"{room} without credits, which end after {duration(fit.empty_after_s)}"


def volume_rows(advice: Advice) -> list[list[str]]:
    """One row for each choice: what, price, limits of all members together, the nearest limit, what it is lost by."""
    return [
        [
            choice.spec,
            money(choice.usd_per_month),
            _iops(choice),
            rate(choice.member.charged_bytes, MIB / choice.members),
            nearest(choice.fit),
            grown(choice, advice.size_bytes),
        ]
        for choice in advice.choices
    ]


def _iops(choice: VolumeChoice) -> str:
    """The limit of all members. An HDD volume charges whole units of bytes, so its throughput is a number of requests of that size."""
    member = choice.member
    if math.isinf(member.charged_iops.sustained) and member.charge.whole_units:
        unit_bytes = member.charge.unit_bytes
        return f"{rate(member.charged_bytes, unit_bytes / choice.members)} of {unit_bytes // MIB} MiB"
    return rate(member.charged_iops, member.charge.read_tokens / choice.members)


CLASS_PREFIX = "db."
"""What the names of RDS's classes begin with."""
VOLUME_HEADER = ["Volume", "a month", "IOPS", "MiB/s", "Room", ""]
INSTANCE_HEADER = ["Instance", "vCPUs", "Memory", "a month", "IOPS", "MiB/s", "Room"]


def headline(advice: Advice) -> str:
    """What to buy, in one sentence."""
    if not advice.choices:
        return "No volume of the catalogue carries this load"
    best = advice.choices[0]
    what = best.member.title if best.members == 1 else f"A RAID-0 of {best.members} x {best.member.title},"
    price = "" if best.usd_per_month is None else f" for {money(best.usd_per_month)} a month"
    least = "At least: " if advice.capped is not None else ""
    return f"{least}{what} carries {'what was measured' if least else 'it'}{price}"


def capped_sentence(advice: Advice) -> str | None:
    """The first thing to say of a recording that stood at its limit; None where it did not."""
    capped, demand = advice.capped, advice.demand
    if capped is None:
        return None
    stood = "stood" if capped.is_certain else "probably stood"
    least = f"at least {demand.needed_iops:,.0f} IOPS and {demand.needed_mib_per_s:,.1f} MiB/s"
    wanted = ""
    if capped.wanted_iops is not None:
        wanted = f"; what waited needs up to {capped.wanted_iops:,.0f} IOPS at {USUAL_MS:g} ms a request"
    return f"this recording {stood} at its limit: {least}{wanted}; buy a step, measure again"


STEP_HEADER = ["Step", "IOPS", "MiB/s", "Volume", "a month"]


def step_rows(advice: Advice) -> list[list[str]]:
    """What to buy next where the recording stood at its limit: one row for each volume."""
    return [
        [
            "measured" if step.times == 1 else f"{step.times:g} times",
            f"{step.needed_iops:,.0f}",
            f"{step.needed_mib_per_s:,.1f}",
            step.spec,
            money(step.usd_per_month),
        ]
        for step in (advice.capped.steps if advice.capped is not None else ())
    ]


def grown(choice: VolumeChoice, size_bytes: int | None) -> str:
    """That a volume is larger than what must fit on it, which is how it comes to its limits."""
    more = choice.size_bytes - (size_bytes or choice.size_bytes)
    return f"grown by {gib(more)}" if more >= choice.members << 30 else ""


def instance_label(choice: InstanceChoice) -> str:
    """Its name; of a class of RDS, whose limits these are."""
    if not choice.name.startswith(CLASS_PREFIX):
        return choice.name
    return f"{choice.name} (limits of EC2's {choice.name.removeprefix(CLASS_PREFIX)}: of db.* AWS publishes the maximum bandwidth alone)"


def lists_instances(advice: Advice) -> bool:
    """Whether types of EC2 are what could be bought: not for a database of RDS, nor for what another provider measured."""
    return not advice.demand.measured.among and (advice.now is None or not advice.now.name.startswith(CLASS_PREFIX))


def instance_row(choice: InstanceChoice) -> list[str]:
    """What an instance is, its limits, and the nearest of them."""
    return [
        choice.name,
        str(choice.vcpus),
        gib(choice.memory_bytes),
        money(choice.usd_per_month),
        rate(choice.iops),
        rate(choice.throughput, MIB),
        nearest(choice.fit),
    ]


def measured_lines(advice: Advice) -> list[tuple[str, str]]:
    """What was measured and what is to be carried: name and text."""
    demand = advice.demand
    measured = demand.measured
    lines = [
        (
            "measured",
            f"{measured.device}, {measured.origin}: {len(measured.samples):,} intervals, {duration(measured.seconds)}",
        ),
        ("", f"{percent(demand.read_share)} reads, {demand.request_kib:,.1f} KiB each"),
    ]
    for name, item, digits in (("IOPS", demand.iops, 0), ("MiB/s", demand.mib_per_s, 1)):
        mean, median, high, most = (
            f"{value:,.{digits}f}" for value in (item.mean, item.median, item.at_percentile, item.maximum)
        )
        lines.append((name, f"mean {mean}, median {median}, p{demand.percentile:g} {high}, most {most}"))
    carry = f"{demand.needed_iops:,.0f} IOPS and {demand.needed_mib_per_s:,.1f} MiB/s"
    lines.append(
        (
            "to carry",
            f"{carry}: the {demand.percentile:g}th percentile and {percent(demand.headroom)} more",
        )
    )
    return lines


def collapse_sentence(collapse: Collapse) -> str:
    """When a volume that lives on credits has none left."""
    member, end_s = collapse.member, collapse.fit.empty_after_s
    left = _limits(member.charged_iops.sustained, member.charged_bytes.sustained)
    if not collapse.reaches:
        most = _limits(member.charged_iops.maximum, member.charged_bytes.maximum)
        lasts = "" if end_s is None else f", and that for {duration(end_s)} of this load; then {left}"
        return f"{member.spec} has at most {most} on credits{lasts}"
    steady = f"; without a pause what is to be carried lasts {duration(collapse.steady_s)}" if collapse.steady_s else ""
    if end_s is None:
        return f"{member.spec} never runs out of credits under this load{steady}"
    return f"{member.spec} is out of credits after {duration(end_s)} of this load, and is left with {left}{steady}"


def _limits(ops_per_s: float, bytes_per_s: float) -> str:
    """The limits that there are."""
    limits = [(ops_per_s, "IOPS"), (bytes_per_s / MIB, "MiB/s")]
    return " and ".join(f"{value:,.0f} {unit}" for value, unit in limits if not math.isinf(value))
