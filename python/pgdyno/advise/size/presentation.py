"""The advice for its readers: text for a terminal, one HTML page, and one JSON document."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

from pgdyno import __version__
from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX
from pgdyno.report.render import drawing, rendered, write_whole
from pgdyno.report.theme import Theme

from ...base.specification import Rate
from ...base.text import UNKNOWN, duration, fitted, gib, money, percent
from .advice import Advice
from .capped import USUAL_MS, CapEvidence
from .demand import MIB, Demand, DemandSpread, Fit, Series
from .offers import InstanceChoice
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
        lines.append((name, f"mean {mean}, median {median}, p{demand.percentile:g} {high}, max {most}"))
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


SHOWN_MAX = 12
"""Volumes in the table; JSON and page have all."""


def text(advice: Advice, width: int | None = None) -> str:
    """What was measured, volumes, instances, credits, and what to mind; tables of at most ``width`` columns."""
    first = capped_sentence(advice)
    lines = [] if first is None else [f"{first[0].upper()}{first[1:]}.", ""]
    lines += [f"{name:<10}{text}" for name, text in measured_lines(advice)]
    steps = step_rows(advice)
    lines += ["", *_rows(STEP_HEADER, steps, width)] if len(steps) > 1 else []
    lines += ["", *_volumes(advice, width)]
    instances = [instance_row(instance) for instance in advice.instances]
    if advice.now is not None:
        row = instance_row(advice.now)
        verdict = (
            "carries it"
            if advice.now.fit.carries
            else "carries it on credits alone"
            if advice.now.fit.on_credits
            else "does not carry it"
        )
        lines += ["", f"{instance_label(advice.now)} {verdict}: {row[-3]} IOPS, {row[-2]} MiB/s, {row[-1]}"]
    if lists_instances(advice):
        none = ["no instance type carries it"]
        lines += ["", *(_rows(INSTANCE_HEADER, instances, width) if instances else none)]
    if advice.collapses:
        lines += ["", *(f"{collapse_sentence(collapse)}." for collapse in advice.collapses)]
    if advice.unfit:
        lines += ["", "Not enough:", *(f"  {name}: {why}" for name, why in advice.unfit)]
    return "\n".join([*lines, "", *(f"note: {note}" for note in advice.notes)])


def _volumes(advice: Advice, width: int | None) -> list[str]:
    rows = volume_rows(advice)
    if not rows:
        return ["no volume carries it"]
    more = len(rows) - SHOWN_MAX
    return _rows(VOLUME_HEADER, rows[:SHOWN_MAX], width) + ([f"... and {more} more: --json"] if more > 0 else [])


def _rows(header: list[str], rows: list[list[str]], width: int | None) -> list[str]:
    return fitted([[name.upper() for name in header], *rows], width, range(len(header)))


BINS_MAX = 400
"""Points of a line: more than a page has pixels for would only make it larger."""
UNITS = (
    (2 * 86_400.0, 86_400.0, "days"),
    (2 * 3600.0, 3600.0, "hours"),
    (120.0, 60.0, "minutes"),
    (0.0, 1.0, "seconds"),
)
"""From which length of time on the axis is in which unit."""


def course(demand: Demand, width_px: int, theme: Theme) -> dict[str, Any]:
    """A panel of IOPS and one of MiB/s. Each point is the peak of its interval, so that no peak is lost."""
    import altair as alt

    load = demand.load
    unit_s, unit = next((length, name) for least, length, name in UNITS if load.seconds.sum() >= least)
    figures = (
        ("Operations per second", load.reads_per_s + load.writes_per_s, demand.iops.at_percentile, demand.needed_iops),
        (
            "MiB per second",
            (load.read_bytes_per_s + load.write_bytes_per_s) / MIB,
            demand.mib_per_s.at_percentile,
            demand.needed_mib_per_s,
        ),
    )
    data: dict[str, list[dict[str, Any]]] = {}
    panels = []
    for place, (title, values, percentile, needed) in enumerate(figures):
        data[f"course{place}"] = _points(values, load.seconds, unit_s)
        data[f"rules{place}"] = [
            {"value": percentile, "what": f"p{demand.percentile:g} {percentile:,.0f}", "colour": theme["quiet"]},
            {"value": needed, "what": f"to carry {needed:,.0f}", "colour": theme.arm(0)},
        ]
        panels.append(_panel(place, title, unit if place == len(figures) - 1 else None, width_px, theme))
    chart = alt.vconcat(*panels, spacing=16).resolve_scale(x="shared", y="independent")
    return {**chart.configure(**theme.config()).to_dict(), "datasets": data}


def _panel(place: int, title: str, unit: str | None, width_px: int, theme: Theme) -> Any:
    import altair as alt

    x = alt.X("at:Q", axis=alt.Axis(title=unit, labels=unit is not None, tickCount=max(4, width_px // 90)),
              scale=alt.Scale(nice=False))  # fmt: skip
    y = alt.Y("value:Q", axis=alt.Axis(title=None, tickCount=4, minExtent=LABELS_PX, maxExtent=LABELS_PX),
              scale=alt.Scale(zero=True))  # fmt: skip
    line = alt.Chart(alt.NamedData(f"course{place}")).mark_area(
        aria=False, color=theme.arm(1), opacity=0.35, line={"color": theme.arm(1), "strokeWidth": 1}
    )
    rules = alt.Chart(alt.NamedData(f"rules{place}")).encode(y=y, color=alt.Color("colour:N", scale=None))
    return alt.layer(
        line.encode(x=x, y=y),
        rules.mark_rule(strokeDash=[4, 3]).encode(description="what:N"),
        rules.mark_text(align="right", baseline="bottom", dy=-2).encode(text="what:N", x=alt.value("width")),
    ).properties(width=width_px - LABELS_PX - RIGHT_PX, height=130, title=title)


def _points(values: Series, seconds: Series, unit_s: float) -> list[dict[str, float]]:
    """The most of each of at most :data:`BINS_MAX` stretches, at the stretch's begin."""
    import numpy as np

    begins = np.concatenate(([0.0], np.cumsum(seconds)[:-1])) / unit_s
    step = -(-values.size // BINS_MAX)
    places = np.arange(0, values.size, step)
    tops = np.maximum.reduceat(values, places)
    return [
        {"at": round(float(at), 4), "value": round(float(top), 3)} for at, top in zip(begins[places], tops, strict=True)
    ]


def write_page(advice: Advice, path: Path) -> None:
    """Write the page to ``path``, over what was there. :class:`pgdyno.base.errors.OutputError` when that fails."""
    write_whole(path, html(advice).encode(), "--html")


def html(advice: Advice) -> str:
    """The page as text."""
    return rendered(
        "size.html",
        "pgdyno.advise.size",
        advice=advice,
        words=sys.modules[__name__],
        headline=headline(advice),
        instance_rows=[instance_row(instance) for instance in advice.instances],
        drawing=drawing("course", "The load over time", partial(course, advice.demand)),
        version=__version__,
    )


SCHEMA_VERSION = 1


def document(advice: Advice) -> dict[str, Any]:
    """Everything that the table says, unrounded, and the choices that it leaves out."""
    demand = advice.demand
    measured = demand.measured
    return {
        "schema_version": SCHEMA_VERSION,
        "measured": {
            "origin": measured.origin,
            "device": measured.device,
            "intervals": len(measured.samples),
            "seconds": measured.seconds,
            "reads_and_writes_apart": measured.split_known,
        },
        "demand": {
            "percentile": demand.percentile,
            "headroom": demand.headroom,
            "size_bytes": advice.size_bytes,
            "read_share": demand.read_share,
            "request_kib": demand.request_kib,
            "iops": _spread(demand.iops),
            "mib_per_s": _spread(demand.mib_per_s),
            "needed_iops": demand.needed_iops,
            "needed_mib_per_s": demand.needed_mib_per_s,
            "capped": None if advice.capped is None else _capped(advice, advice.capped),
        },
        "volumes": [_choice(choice) for choice in advice.choices],
        "not_enough": [{"type": name, "why": why} for name, why in advice.unfit],
        "credits": [
            {
                "spec": collapse.member.spec,
                "empty_after_s": collapse.fit.empty_after_s,
                "empty_after_s_without_a_pause": collapse.steady_s,
                "sustained_iops": _finite(collapse.member.charged_iops.sustained),
                "sustained_mib_per_s": _finite(collapse.member.charged_bytes.sustained / MIB),
            }
            for collapse in advice.collapses
        ],
        "instance": None if advice.now is None else _instance(advice.now),
        "instances": [_instance(instance) for instance in advice.instances],
        "notes": list(advice.notes),
    }


def _capped(advice: Advice, evidence: CapEvidence) -> dict[str, Any]:
    """That the load stood at a limit: everything else in the document is the least that will do."""
    return {
        "first": capped_sentence(advice),
        "share": evidence.share,
        "why": evidence.sentence,
        "is_certain": evidence.is_certain,
        "level": evidence.level,
        "unit": evidence.unit or None,
        "wanted_iops": evidence.wanted_iops,
        "steps": [
            {
                "times": step.times,
                "needed_iops": step.needed_iops,
                "needed_mib_per_s": step.needed_mib_per_s,
                "spec": step.spec,
                "usd_per_month": step.usd_per_month,
            }
            for step in evidence.steps
        ],
    }


def _spread(spread: DemandSpread) -> dict[str, float]:
    return {
        "mean": spread.mean,
        "median": spread.median,
        "at_percentile": spread.at_percentile,
        "maximum": spread.maximum,
    }


def _choice(choice: VolumeChoice) -> dict[str, Any]:
    return {
        "spec": choice.spec,
        "type": choice.member.type,
        "members": choice.members,
        "member_spec": choice.member.spec,
        "size_bytes": choice.size_bytes,
        "usd_per_month": choice.usd_per_month,
        "price_region": choice.member.price_region,
        "durability": choice.member.durability,
        "failures_per_year_max": choice.failures_per_year_max,
        "iops": _rate(choice.member.charged_iops, choice.member.charge.read_tokens / choice.members),
        "mib_per_s": _rate(choice.member.charged_bytes, MIB / choice.members),
        **_fit(choice.fit),
    }


def _instance(choice: InstanceChoice) -> dict[str, Any]:
    return {
        "instance": choice.name,
        "vcpus": choice.vcpus,
        "memory_bytes": choice.memory_bytes,
        "arch": choice.arch,
        "usd_per_month": choice.usd_per_month,
        "price_region": choice.price_region,
        "iops": _rate(choice.iops, 1.0),
        "mib_per_s": _rate(choice.throughput, MIB),
        **_fit(choice.fit),
    }


def _rate(rate: Rate, scale: float) -> dict[str, float | None]:
    return {"sustained": _finite(rate.sustained / scale), "maximum": _finite(rate.maximum / scale)}


def _fit(fit: Fit) -> dict[str, Any]:
    return {
        "carries": fit.carries,
        "nearest_limit": fit.nearest,
        "headroom": _finite(fit.headroom),
        "on_credits": fit.on_credits,
        "credits_empty_after_s": fit.empty_after_s,
    }


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
