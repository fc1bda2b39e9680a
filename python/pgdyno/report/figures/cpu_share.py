"""The machine's CPU time by role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno.report.figures.parts import RIGHT_PX, Sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.report.theme import Theme


ROLES = (
    ("server", "PostgreSQL"),
    ("driver", "driver"),
    ("relay", "relay"),
    ("daemon", "volume daemon"),
    ("probe", "probe"),
    ("other", "other"),
    ("host_steal", "steal"),
    ("host_idle", "idle"),
)
"""Roles of the CPU in the order of their bars, and their names; ``roleN`` of the theme is the colour of the Nth."""


def roles(arms: Sequence[ArmSummary]) -> list[tuple[int, str]]:
    """(place, name) of the roles that a key of the bars has: the relay only where there was one."""
    relayed = any("relay" in arm.cpu_share for arm in arms)
    return [(place, name) for place, (role, name) in enumerate(ROLES) if role != "relay" or relayed]


def cpu(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The machine's CPU time by role, a bar for each arm."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - 2 * RIGHT_PX
    rows = []
    for arm in arms:
        shares = arm.cpu_share
        for place, (role, name) in enumerate(ROLES):
            share = shares.get(role, 0.0)
            what = f"{arm.label}: {name} {share * 100:.1f} % of the machine"
            rows.append(
                {"row": arm.index, "label": arm.label, "place": place, "role": name, "share": share, "what": what}
            )
    y = alt.Y("row:O", axis=None, sort=None)
    scale = alt.Scale(domain=[name for _, name in ROLES], range=[theme[f"role{place}"] for place in range(len(ROLES))])
    bars = (
        sheet.chart(rows)
        .mark_bar(size=11 if sheet.many else 18, yOffset=7 if sheet.many else 8, stroke=theme["panel"], strokeWidth=1)
        .encode(
            x=alt.X(
                "share:Q",
                stack="zero",
                scale=alt.Scale(domain=[0, 1], clamp=True),
                axis=alt.Axis(format="%", title="share of the machine's CPU time", tickCount=5, labelFlush=True),
            ),
            y=y,
            color=alt.Color("role:N", scale=scale, legend=None),
            order=alt.Order("place:O"),
            description=alt.Description("what:N"),
        )
    )
    named = [row for row in rows if row["place"] == 0]
    labels = (
        sheet.chart(named)
        .mark_text(align="left", dy=-8 if sheet.many else -14, fontWeight="bold", limit=plot_px)
        .encode(x=alt.value(0), y=y, text=alt.Text("label:N"))
    )
    height = (36 if sheet.many else 56) * len(arms)
    return sheet.finish(alt.layer(bars, labels).properties(width=plot_px, height=height), RIGHT_PX)
