"""A bar for each arm, stacked from its parts: the machine's CPU time by role, sessions by type of wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.report.figures.parts import RIGHT_PX, Sheet
from pgdyno.report.theme import Theme
from pgdyno.report.waits import TYPES, waits_by_type

from ...base.text import number, percent

UNASSIGNED = "unassigned"
UNASSIGNED_MIN = 0.002
"""Less than this is rounding."""
ROLES = (
    ("server", "PostgreSQL"),
    ("driver", "driver"),
    ("relay", "relay"),
    ("daemon", "volume daemon"),
    ("probe", "probe"),
    ("other", "other"),
    ("host_steal", "steal"),
    ("host_idle", "idle"),
    (UNASSIGNED, "not assigned"),
)
"""Roles of the CPU in the order of their bars, and their names; ``roleN`` of the theme is the colour of the Nth. Together they are the whole machine."""


def roles(arms: Sequence[ArmSummary]) -> list[tuple[int, str]]:
    """(place, name) of the roles that a key of the bars has: the relay only where there was one."""
    absent = {role for role in ("relay", UNASSIGNED) if not any(_cpu_share(arm, role) for arm in arms)}
    return [(place, name) for place, (role, name) in enumerate(ROLES) if role not in absent]


def _cpu_share(arm: ArmSummary, role: str) -> float:
    """The share of the machine's time. What no process was seen to use is unassigned: interrupts, processes that ended between two looks."""
    if role != UNASSIGNED:
        return arm.cpu_share.get(role, 0.0)
    rest = 1.0 - sum(arm.cpu_share.get(known, 0.0) for known, _ in ROLES)
    return rest if arm.cpu_share and rest >= UNASSIGNED_MIN else 0.0


def cpu(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The machine's CPU time by role."""
    import altair as alt

    parts = {arm.index: {name: _cpu_share(arm, role) for role, name in ROLES} for arm in arms}
    axis = alt.Axis(format="%", title="share of the machine's CPU time", tickCount=5, labelFlush=True)
    x = alt.X("value:Q", stack="zero", scale=alt.Scale(domain=[0, 1], clamp=True), axis=axis)
    return _bars(Sheet(arms, theme), parts, "role", x, lambda value: f"{percent(value)} of the machine", width_px)


def waits(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """Mean number of sessions by type of wait."""
    import altair as alt

    parts = {arm.index: dict(zip(TYPES, waits_by_type(arm).values(), strict=True)) for arm in arms if arm.waits}
    x = alt.X("value:Q", stack="zero", axis=alt.Axis(title="sessions, mean", tickCount=5, labelFlush=True))
    return _bars(Sheet(arms, theme), parts, "wait", x, lambda value: f"{number(value)} sessions", width_px)


def _bars(
    sheet: Sheet,
    parts: Mapping[int, Mapping[str, float]],
    colours: str,
    x: Any,
    words: Callable[[float], str],
    width_px: int,
) -> dict[str, Any]:
    """Bars of ``parts`` (arm -> name of a part -> its value), in the theme's ``colours``."""
    import altair as alt

    theme, plot_px = sheet.theme, width_px - 2 * RIGHT_PX
    arms = [arm for arm in sheet.arms if arm.index in parts]
    rows = [
        {"row": arm.index, "label": arm.label, "place": place, "part": name, "value": value,
         "what": f"{arm.label}: {name} {words(value)}"}
        for arm in arms
        for place, (name, value) in enumerate(parts[arm.index].items())
    ]  # fmt: skip
    names = list(next(iter(parts.values())))
    scale = alt.Scale(domain=names, range=[theme[f"{colours}{place}"] for place in range(len(names))])
    y = alt.Y("row:O", axis=None, sort=None)
    bars = (
        sheet.chart([row for row in rows if row["value"]])
        .mark_bar(size=11 if sheet.many else 18, yOffset=7 if sheet.many else 8, stroke=theme["panel"], strokeWidth=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color("part:N", scale=scale, legend=None),
            order=alt.Order("place:O"),
            description=alt.Description("what:N"),
        )
    )
    labels = (
        sheet.chart([row for row in rows if row["place"] == 0])
        .mark_text(align="left", dy=-8 if sheet.many else -14, fontWeight="bold", limit=plot_px)
        .encode(x=alt.value(0), y=y, text=alt.Text("label:N"))
    )
    height = (36 if sheet.many else 56) * len(arms)
    return sheet.finish(alt.layer(bars, labels).properties(width=plot_px, height=height), RIGHT_PX)
