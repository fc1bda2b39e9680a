"""The load over time, with the percentile that has to be carried and what a limit must be."""

from __future__ import annotations

from typing import Any

from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX
from pgdyno.report.theme import Theme

from .demand import MIB, Demand, Series

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
    """A panel of IOPS and one of MiB/s. Each point is the most of its stretch of time, so that no peak is lost."""
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
