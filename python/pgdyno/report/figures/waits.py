"""What the sessions were doing, by type of wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno.analysis.verdict import figures as digits
from pgdyno.report.figures.parts import RIGHT_PX, Sheet
from pgdyno.report.waits import TYPES, by_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.report.theme import Theme


def waits(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """Mean number of sessions by type of wait, a bar for each arm."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - 2 * RIGHT_PX
    rows: list[dict[str, Any]] = [
        {"row": arm.index, "label": arm.label, "place": place, "type": kind, "sessions": sessions,
         "what": f"{arm.label}: {kind} {digits(sessions)} sessions"}
        for arm in arms
        for place, (kind, sessions) in enumerate(by_type(arm).items())
        if arm.waits
    ]  # fmt: skip
    y = alt.Y("row:O", axis=None, sort=None)
    scale = alt.Scale(domain=list(TYPES), range=[theme[f"wait{place}"] for place in range(len(TYPES))])
    bars = (
        sheet.chart([row for row in rows if row["sessions"] > 0])
        .mark_bar(size=11 if sheet.many else 18, yOffset=7 if sheet.many else 8, stroke=theme["panel"], strokeWidth=1)
        .encode(
            x=alt.X("sessions:Q", stack="zero", axis=alt.Axis(title="sessions, mean", tickCount=5, labelFlush=True)),
            y=y,
            color=alt.Color("type:N", scale=scale, legend=None),
            order=alt.Order("place:O"),
            description=alt.Description("what:N"),
        )
    )
    labels = (
        sheet.chart([row for row in rows if row["place"] == 0])
        .mark_text(align="left", dy=-8 if sheet.many else -14, fontWeight="bold", limit=plot_px)
        .encode(x=alt.value(0), y=y, text=alt.Text("label:N"))
    )
    height = (36 if sheet.many else 56) * sum(bool(arm.waits) for arm in arms)
    return sheet.finish(alt.layer(bars, labels).properties(width=plot_px, height=height), RIGHT_PX)
