"""Parts that figures share: room, colours of the arms, logarithmic axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from pgdyno.analysis.arm import ArmSummary
from pgdyno.report.theme import Theme

from ...analysis.series import Event
from ..section import COLUMNS_MAX, colour_index

_Level = TypeVar("_Level")

LABELS_PX = 46
"""Room left of a plot for the labels of its axis; the same everywhere, so that plots stand below each other."""
RIGHT_PX = 14
"""Room right of a plot, so that half a label and half a dot fit."""
TICK_PX = 20
"""Room that a label of a vertical axis needs."""
EVENT_LANES, EVENT_LANE_PX, EVENT_LETTER_PX = 6, 12, 5.5
"""Lines of words of events in a panel, their height, and the width of a letter of 10 px, about."""
NARROW_PX = 500
"""Below this width a name and a figure do not fit beside each other."""
_STEPS = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1, 3), (1,))
"""Ticks within a decade, the densest first."""
MS_LABELS = "datum.value >= 1000 ? format(datum.value, ',') : format(datum.value, '~g')"
"""Labels of an axis in milliseconds, from 0.05 to 20,000."""


_checked: ContextVar[bool] = ContextVar("checked", default=True)


@contextmanager
def unchecked() -> Iterator[None]:
    """Draw without what takes longer than drawing: holding each part against Vega-Lite's schema (the tests do hold it), and
    copying a chart with all its parts each time it is layered or changed. One process draws them all.

    What a figure has handed on it never changes, so a copy may share its parts.
    """
    from altair.utils import schemapi

    from pgdyno.report.draw import kept

    token = _checked.set(False)
    base: Any = schemapi.SchemaBase
    whole_copy = base.copy
    try:
        base.copy = _shared_copy
        with schemapi.debug_mode(False), kept():
            yield
    finally:
        base.copy = whole_copy
        _checked.reset(token)


def _shared_copy(chart: Any, deep: bool | Iterable[str] = True, ignore: list[str] | None = None) -> Any:
    """In the place of ``SchemaBase.copy``: a chart of its own whose parts are the same; those named get a list of their own."""
    del ignore  # all parts are kept by reference
    made = object.__new__(type(chart))
    object.__setattr__(made, "_args", chart._args)  # noqa: SLF001 (what that method copies)
    object.__setattr__(made, "_kwds", dict(chart._kwds))  # noqa: SLF001 (the same)
    for name in () if isinstance(deep, bool) else deep:
        part = made._get(name)
        made[name] = part.copy() if hasattr(part, "copy") else part
    return made


def evenly(levels: Sequence[_Level], most: int) -> list[_Level]:
    """All of them, or at most so many that lie evenly, the first and the last among them."""
    if len(levels) <= most:
        return list(levels)
    step = (len(levels) - 1) / (most - 1)
    return [levels[round(place * step)] for place in range(most)]


def variant_colour(index: int, theme: Theme) -> str:
    """Colour of the arms that differ in a sweep's axes alone; the seventh has the first again."""
    return theme.arm(index % COLUMNS_MAX)


def log_scale(values: Sequence[float], height_px: int) -> tuple[Any, list[float]]:
    """A log scale around the values, at least half a decade, and its ticks: round values, as many as have room."""
    import math

    import altair as alt

    low, high = min(values, default=1.0), max(values, default=10.0)
    low, high = low / 1.15, max(high * 1.15, low * math.sqrt(10))
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    sets = [[step * 10.0**decade for decade in decades for step in steps] for steps in _STEPS]
    fitting = [[tick for tick in ticks if low <= tick <= high] for ticks in sets]
    ticks = next((ticks for ticks in fitting if len(ticks) * TICK_PX <= height_px), fitting[-1])
    return alt.Scale(type="log", domain=[low, high], nice=False), ticks


class Sheet:
    """One figure in the making: its charts name their data, which join the specification when it is finished.

    Altair copies a chart, with whatever data it holds, each time it is changed or layered.
    """

    def __init__(self, arms: Sequence[ArmSummary], theme: Theme) -> None:
        self.arms = arms
        self.theme = theme
        self._data: dict[str, list[dict[str, Any]]] = {}

    @property
    def many(self) -> bool:
        """True if there are more arms than colours: then each arm has a row or a panel, and less of it."""
        return len(self.arms) > COLUMNS_MAX

    def colour_of(self, arm: ArmSummary) -> str:
        """Colour of an arm."""
        return self.theme.arm(colour_index(arm.levels, arm.index, len(self.arms)))

    def colour(self) -> Any:
        """Colour by the column ``arm`` (an arm's index as text); the key stands beside the figure, in the page."""
        import altair as alt

        scale = alt.Scale(
            domain=[str(arm.index) for arm in self.arms], range=[self.colour_of(arm) for arm in self.arms]
        )
        return alt.Color("arm:N", legend=None, scale=scale)

    def chart(self, rows: Sequence[dict[str, Any]]) -> Any:
        """A chart of these rows. Not typed further, because marks take their properties as a mapping."""
        import altair as alt

        name = f"data{len(self._data)}"
        self._data[name] = list(rows)
        return alt.Chart(alt.NamedData(name))

    def text(self, base: Any, column: str, x_px: float, **look: Any) -> Any:
        """Text of a column at a place, on a ground of its own: a line of the plot behind it must not cross it."""
        import altair as alt

        under = base.mark_text(stroke=self.theme["ground"], strokeWidth=4, strokeJoin="round", aria=False, **look)
        over = base.mark_text(**look)
        return alt.layer(*(mark.encode(x=alt.value(x_px), text=alt.Text(f"{column}:N")) for mark in (under, over)))

    def finish(self, chart: Any, left_px: int = 0) -> dict[str, Any]:
        """The chart as a specification with its data and the theme's configuration."""
        padding = {"left": left_px, "right": RIGHT_PX, "top": 6, "bottom": 4}
        drawn = chart.properties(padding=padding).configure(**self.theme.config())
        return {**drawn.to_dict(validate=_checked.get()), "datasets": self._data}


def event_rows(events: Sequence[Event], seconds: float) -> list[dict[str, Any]]:
    """The marks of events on an axis of ``seconds``; the same event of several lines once, from its earliest begin to its last end."""
    spans: dict[tuple[float, str], tuple[float, float]] = {}
    for event in events:
        begin, end = spans.get((event.planned_s, event.words), (event.begin_s, event.end_s))
        spans[event.planned_s, event.words] = (min(begin, event.begin_s), max(end, event.end_s))
    return [
        {
            "t_s": round(begin, 2),
            "end_s": round(min(seconds, max(end, begin + 0.003 * seconds)), 2),
            "what": f"{words}, from {begin:.1f} to {end:.1f} s",
            "words": words,
        }
        for (_, words), (begin, end) in spans.items()
        if begin < seconds
    ]


def _in_lanes(rows: Sequence[dict[str, Any]], seconds: float, plot_px: int) -> list[dict[str, Any]]:
    """The rows whose words have room, none over another: from the top down, to the left of their event near the right edge."""
    ends_px = [-1.0] * EVENT_LANES
    placed = []
    for row in sorted(rows, key=lambda row: row["t_s"]):
        width_px = len(row["words"]) * EVENT_LETTER_PX + 6
        at_px = row["t_s"] / seconds * plot_px
        begin_px = at_px if at_px + width_px <= plot_px else at_px - width_px
        lane = next((place for place, end_px in enumerate(ends_px) if end_px < begin_px), None)
        if lane is None or begin_px < 0:
            continue
        ends_px[lane] = begin_px + width_px
        placed.append({**row, "y_px": 2 + lane * EVENT_LANE_PX, "side": "left" if begin_px == at_px else "right"})
    return placed


def event_marks(sheet: Sheet, rows: Sequence[dict[str, Any]], x: Any) -> list[Any]:
    """A band from the begin of each event to its end; nothing without events."""
    import altair as alt

    if not rows:
        return []
    x2, what = alt.X2("end_s:Q"), alt.Description("what:N")
    band = sheet.chart(rows).mark_rect(opacity=0.3, color=sheet.theme["quiet"])
    return [band.encode(x=x, x2=x2, description=what)]


def event_labels(sheet: Sheet, rows: Sequence[dict[str, Any]], x: Any, seconds: float, plot_px: int) -> list[Any]:
    """The words of events over the lines of a panel of ``plot_px`` for ``seconds``, where there is room for them."""
    import altair as alt

    marks = []
    placed = _in_lanes(rows, seconds, plot_px)
    for side, lane_px in dict.fromkeys((row["side"], row["y_px"]) for row in placed):
        chart = sheet.chart([row for row in placed if (row["side"], row["y_px"]) == (side, lane_px)])
        look = {"align": side, "baseline": "top", "dx": 3 if side == "left" else -3, "fontSize": 10, "aria": False}
        # On a ground of its own: a line behind it must not cross it.
        under = chart.mark_text(stroke=sheet.theme["ground"], strokeWidth=4, strokeJoin="round", **look)
        over = chart.mark_text(color=sheet.theme["quiet"], **look)
        marks += [mark.encode(x=x, y=alt.value(lane_px), text=alt.Text("words:N")) for mark in (under, over)]
    return marks
