"""What volumes wrote while the tables were filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.loads import LoadFigures
from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX, Sheet
from pgdyno.report.theme import Theme

DRAWN_MAX = 6
"""Loads whose course is drawn; the others have their figures in the table."""
_MARKED_MAX = 30
"""Fewer points than this are marked: a load of a second has one, which makes no line."""
_TITLE_PX = 6.2
"""Width of a letter of a panel's title, about."""


def loading(loads: Sequence[LoadFigures], width_px: int, theme: Theme) -> dict[str, Any]:
    """MiB/s written over the time of each load, a panel for each volume."""
    import altair as alt

    sheet = Sheet((), theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    drawn = [(load, volume) for load in loads[:DRAWN_MAX] for volume in load.volumes if volume.course_mib_per_s]
    panels = []
    for place, (item, volume) in enumerate(drawn):
        last = place == len(drawn) - 1
        points = [
            {"t_s": float(f"{t_s:.4g}"), "value": float(f"{value:.4g}")} for t_s, value in volume.course_mib_per_s
        ]
        x = alt.X(
            "t_s:Q",
            scale=alt.Scale(domain=[0, item.seconds], nice=False),
            axis=alt.Axis(
                title="seconds since filling began" if last else None,
                tickCount=max(3, width_px // 90),
                labelFlush=True,
            ),
        )
        y = alt.Y(
            "value:Q",
            scale=alt.Scale(zero=True, nice=True),
            axis=alt.Axis(title=None, tickCount=3, minExtent=LABELS_PX, maxExtent=LABELS_PX),
        )
        title = _wrapped(f"{item.record.title}: {volume.role} volume, MiB/s written", plot_px)
        panels.append(
            sheet.chart(points)
            .mark_line(
                aria=False,
                clip=True,
                strokeWidth=1.8,
                color=theme["role0"],
                point={"color": theme["role0"], "size": 14} if len(points) < _MARKED_MAX else False,
            )
            .encode(x=x, y=y)
            .properties(width=plot_px, height=72, title={"text": title, "fontSize": 11, "fontWeight": "normal"})
        )
    return sheet.finish(alt.vconcat(*panels, spacing=12))


def _wrapped(text: str, width_px: int) -> list[str]:
    """A title in as many lines as it needs."""
    import textwrap

    return textwrap.wrap(text, max(20, int(width_px / _TITLE_PX)), break_long_words=False)
