"""The figures of the page, as Vega-Lite specifications that Altair checks. Each is drawn for a width in pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno.analysis.verdict import figures as digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.analysis.compare import ArmSummary
    from pgdyno.analysis.distribution import Distribution
    from pgdyno.analysis.series import Series
    from pgdyno.report.theme import Theme

LABELS_PX = 46
"""Room left of a plot for the labels of its axis; the same everywhere, so that plots stand below each other."""
RIGHT_PX = 14
ROW_PX = 62
TAIL_COUNT_MIN = 10
"""A percentile is drawn while so many transactions were slower: beyond that it is the luck of a few."""

PANELS = (
    ("tps", "Transactions per second", False),
    ("iops", "Volume: requests per second (IOPS)", False),
    ("mib_per_s", "Volume: MiB per second", False),
    ("queue_length", "Volume: queue length", False),
    ("latency_ms_p50", "Response time, median, ms", True),
    ("latency_ms_p99", "Response time, p99, ms", True),
)
"""Column of a series, title of its panel, whether the axis is logarithmic."""

ROLES = (
    ("server", "PostgreSQL"),
    ("driver", "driver"),
    ("daemon", "volume daemon"),
    ("probe", "probe"),
    ("other", "other"),
    ("host_steal", "steal"),
    ("host_idle", "idle"),
)
"""Roles of the CPU in the order of their bars, and their names; ``roleN`` of the theme is the colour of the Nth."""


def tps(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """TPS of each arm: mean and interval, and every replicate as a point, from zero."""
    import altair as alt

    plot_px = width_px - 2 * RIGHT_PX
    means = [_mean_row(arm) for arm in arms]
    points = [_point_row(arm, place) for arm in arms for place in range(len(arm.replicates))]
    most = max([row["high"] for row in means] + [row["tps"] for row in points])
    axis = alt.Axis(
        title="transactions per second",
        tickCount=max(3, width_px // 120),
        format="~s" if most >= 1e5 else ",.0f" if most >= 5 else ",.2~f",
        labelFlush=True,
    )
    x = alt.X("mean:Q", scale=alt.Scale(domain=[0, most * 1.03], nice=False), axis=axis)
    y = alt.Y("row:O", axis=None, sort=None)
    colour = _colour(arms, theme)
    base = alt.Chart(alt.Data(values=means)).encode(y=y)
    interval = base.mark_rule(strokeWidth=2.5, strokeCap="round").encode(x="low:Q", x2="high:Q", color=colour)
    ends = [
        base.mark_tick(thickness=2.5, size=14, opacity=1, aria=False).encode(x=f"{end}:Q", color=colour)
        for end in ("low", "high")
    ]
    mean = base.mark_point(size=110, filled=True, opacity=1).encode(x=x, color=colour, description="what:N")
    every = (
        alt.Chart(alt.Data(values=points))
        .mark_point(size=34, strokeWidth=1.5, opacity=1, filled=False)
        .encode(
            x="tps:Q",
            y=y,
            yOffset=alt.YOffset("offset:Q", scale=alt.Scale(domain=[-1, 1])),
            color=colour,
            description="what:N",
            shape=_shape(),
        )
    )
    names = base.mark_text(align="left", dy=-22, fontWeight="bold", limit=plot_px * 0.55).encode(
        x=alt.value(0), text="label:N"
    )
    values = base.mark_text(align="right", dy=-22).encode(x=alt.value(plot_px), text="figure:N")
    layers = alt.layer(every, interval, *ends, mean, names, values)
    return _finish(layers.properties(width=plot_px, height=ROW_PX * len(arms) + 12), theme, RIGHT_PX)


def percentiles(
    curves: Sequence[tuple[int, Distribution, str]], arms: Sequence[ArmSummary], width_px: int, theme: Theme
) -> dict[str, Any]:
    """Latency (log) by percentile (log of the share above it). A curve: arm, distribution, ``main``, ``thin``, ``dashed``."""
    import altair as alt

    rows = [
        {"curve": f"{number}", "arm": str(arm), "style": style, "above": above, "ms": ms}
        for number, (arm, distribution, style) in enumerate(curves)
        for above, ms in percentile_points(distribution)
    ]
    most = max([row["above"] for row in rows], default=100.0)
    marks = [(above, label) for above, label in _PERCENTILES if above <= max(100.0, most) * 1.001]
    labels = "{" + ",".join(f"'{round(above)}':'{label}'" for above, label in marks) + "}[round(datum.value)]"
    height = 260 if width_px > 500 else 230
    x = alt.X(
        "above:Q",
        scale=alt.Scale(type="log", domain=[_PERCENTILES[0][0], max(100.0, most)], nice=False),
        axis=alt.Axis(values=[above for above, _ in marks], labelExpr=labels, labelFlush=True, title=None),
    )
    scale, ticks = _log_scale([row["ms"] for row in rows], height)
    y = alt.Y(
        "ms:Q",
        scale=scale,
        axis=alt.Axis(title=None, values=ticks, minExtent=LABELS_PX, maxExtent=LABELS_PX, labelExpr=_MS_LABELS),
    )
    layers = [
        alt.Chart(alt.Data(values=[row for row in rows if row["style"] == style]))
        .mark_line(aria=False, clip=True, **look)
        .encode(x=x, y=y, detail="curve:N", color=_colour(arms, theme))
        for style, look in _STYLES.items()
    ]
    chart = alt.layer(*layers).properties(width=width_px - LABELS_PX - RIGHT_PX, height=height)
    return _finish(chart, theme)


def timeline(
    lines: Sequence[tuple[int, bool, Series]], arms: Sequence[ArmSummary], width_px: int, theme: Theme
) -> dict[str, Any]:
    """Everything over time on one axis. A line: arm, whether it is its arm's representative (the others are thin), series."""
    import altair as alt

    plot_px = width_px - LABELS_PX - RIGHT_PX
    seconds = max(series.t_s[-1] + series.bin_seconds / 2 for _, _, series in lines)
    x = alt.X("t_s:Q", scale=alt.Scale(domain=[0, seconds], nice=False))
    checkpoints = _checkpoint_rows(lines, seconds)
    shown = [panel for panel in PANELS if any(_known(series, panel[0]) for _, _, series in lines)]
    panels = [_checkpoint_lane(checkpoints, arms, x, plot_px, theme)] if checkpoints else []
    for column, title, logarithmic in shown:
        axis = x.axis(
            alt.Axis(title="seconds since measuring began", tickCount=max(4, width_px // 90), labelFlush=True)
            if column == shown[-1][0]
            else alt.Axis(title=None, labels=False, tickCount=max(4, width_px // 90))
        )
        rows = _line_rows(lines, column)
        panels.append(
            alt.layer(
                _checkpoint_rules(checkpoints, arms, axis, theme),
                *_lines(rows, arms, axis, logarithmic, theme),
            ).properties(width=plot_px, height=92 if width_px > 500 else 78, title=title)
        )
    chart = alt.vconcat(*panels, spacing=14).resolve_scale(x="shared", color="independent")
    return _finish(chart, theme)


def cpu(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The machine's CPU time by role, a bar for each arm."""
    import altair as alt

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
        alt.Chart(alt.Data(values=rows))
        .mark_bar(size=18, yOffset=8, stroke=theme["panel"], strokeWidth=1)
        .encode(
            x=alt.X(
                "share:Q",
                stack="zero",
                scale=alt.Scale(domain=[0, 1], clamp=True),
                axis=alt.Axis(format="%", title="share of the machine's CPU time", tickCount=5, labelFlush=True),
            ),
            y=y,
            color=alt.Color("role:N", scale=scale, legend=None),
            order="place:O",
            description="what:N",
        )
    )
    named = [row for row in rows if row["place"] == 0]
    labels = (
        alt.Chart(alt.Data(values=named))
        .mark_text(align="left", dy=-14, fontWeight="bold")
        .encode(x=alt.value(0), y=y, text="label:N")
    )
    return _finish(alt.layer(bars, labels).properties(width=plot_px, height=56 * len(arms)), theme, RIGHT_PX)


_PERCENTILES = (
    (10 / 9, "p10"), (2.0, "p50"), (10.0, "p90"), (100.0, "p99"), (1e3, "p99.9"), (1e4, "p99.99"), (1e5, "p99.999"),
)  # fmt: skip
"""Where the axis of percentiles is labelled: one request in so many is slower. It begins at the first."""
_STYLES: dict[str, dict[str, Any]] = {
    "thin": {"strokeWidth": 1, "opacity": 0.35},
    "dashed": {"strokeWidth": 2, "strokeDash": [5, 4]},
    "main": {"strokeWidth": 2},
}
_TICK_PX = 20
"""Room that a label of a vertical axis needs."""
_MS_LABELS = "datum.value >= 1000 ? format(datum.value, ',') : format(datum.value, '~g')"


def percentile_points(distribution: Distribution, points: int = 160) -> list[tuple[float, float]]:
    """(1 / share above, ms) evenly spaced on the log axis, as far as :data:`TAIL_COUNT_MIN` values are above."""
    import numpy as np

    if distribution.total < TAIL_COUNT_MIN * 2:
        return []
    found = []
    for above in np.geomspace(_PERCENTILES[0][0], distribution.total / TAIL_COUNT_MIN, points):
        value = distribution.percentile(100 * (1 - 1 / float(above)))
        if value is not None and value > 0:
            found.append((float(above), value))
    return found


def _mean_row(arm: ArmSummary) -> dict[str, Any]:
    estimate = arm.tps
    low, high = (estimate.mean if end is None else end for end in (estimate.low, estimate.high))
    figure = digits(estimate.mean)
    if estimate.low is not None:
        figure += f"  ({digits(low)} to {digits(high)})"
    return {
        "row": arm.index, "arm": str(arm.index), "label": arm.label, "mean": estimate.mean, "low": max(0.0, low),
        "high": high, "figure": figure, "what": f"{arm.label}: mean {figure} TPS, {estimate.n} replicates",
    }  # fmt: skip


def _point_row(arm: ArmSummary, place: int) -> dict[str, Any]:
    replicate = arm.replicates[place]
    rate = replicate.figures.tps
    block = replicate.figures.record.block
    state = "" if replicate.valid else ", invalid"
    return {
        "row": arm.index, "arm": str(arm.index), "tps": rate, "valid": replicate.valid,
        "offset": 0.62 if place % 2 else 0.38, "what": f"{arm.label}, replicate {block}: {digits(rate, 4)} TPS{state}",
    }  # fmt: skip


def _colour(arms: Sequence[ArmSummary], theme: Theme) -> Any:
    import altair as alt

    domain = [str(arm.index) for arm in arms]
    return alt.Color("arm:N", legend=None, scale=alt.Scale(domain=domain, range=[theme.arm(arm.index) for arm in arms]))


def _shape() -> Any:
    """A circle for a valid replicate, a cross for an invalid one."""
    import altair as alt

    return alt.Shape("valid:N", legend=None, scale=alt.Scale(domain=[True, False], range=["circle", "cross"]))


def _log_scale(values: Sequence[float], height_px: int) -> tuple[Any, list[float]]:
    """A log scale around the values, at least half a decade, and its ticks at 1, 2 and 5 (or 1 alone) of each decade."""
    import math

    import altair as alt

    low, high = min(values, default=1.0), max(values, default=10.0)
    low, high = low / 1.15, max(high * 1.15, low * math.sqrt(10))
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    sets = [[step * 10.0**decade for decade in decades for step in steps] for steps in ((1, 2, 5), (1, 3), (1,))]
    fitting = [[tick for tick in ticks if low <= tick <= high] for ticks in sets]
    ticks = next((ticks for ticks in fitting if len(ticks) * _TICK_PX <= height_px), fitting[-1])
    return alt.Scale(type="log", domain=[low, high], nice=False), ticks


def _line_rows(lines: Sequence[tuple[int, bool, Series]], column: str) -> list[dict[str, Any]]:
    return [
        {"line": str(number), "arm": str(arm), "main": main, "t_s": t_s, "value": float(f"{value:.4g}")}
        for number, (arm, main, series) in enumerate(lines)
        for t_s, value in zip(series.t_s, series.columns[column], strict=True)
        if value is not None
    ]


def _lines(
    rows: Sequence[dict[str, Any]], arms: Sequence[ArmSummary], x: Any, logarithmic: bool, theme: Theme
) -> list[Any]:
    import altair as alt

    values = [row["value"] for row in rows if row["value"] > 0] if logarithmic else []
    extent = {"title": None, "minExtent": LABELS_PX, "maxExtent": LABELS_PX}
    if logarithmic:
        scale, ticks = _log_scale(values, 80)
        axis = alt.Axis(values=ticks, labelExpr=_MS_LABELS, **extent)
    else:
        scale = alt.Scale(zero=True, nice=True)
        axis = alt.Axis(tickCount=3, labelExpr="format(datum.value, datum.value >= 1e5 ? '~s' : ',')", **extent)
    layers = []
    for main, look in ((False, {"strokeWidth": 1, "opacity": 0.3}), (True, {"strokeWidth": 1.8})):
        kept = [row for row in rows if row["main"] is main and (row["value"] > 0 or not logarithmic)]
        if kept:
            layers.append(
                alt.Chart(alt.Data(values=kept))
                .mark_line(aria=False, clip=True, **look)
                .encode(x=x, y=alt.Y("value:Q", scale=scale, axis=axis), detail="line:N", color=_colour(arms, theme))
            )
    return layers


def _known(series: Series, column: str) -> bool:
    return any(value is not None for value in series.columns[column])


def _checkpoint_rows(lines: Sequence[tuple[int, bool, Series]], seconds: float) -> list[dict[str, Any]]:
    """The checkpoints of the representative lines; one without a seen end is drawn as an instant."""
    rows = []
    for arm, main, series in lines:
        for start, end in series.checkpoints if main else ():
            until = f" to {end:.0f} s" if end is not None else " s (its end was not seen)"
            shown_end = min(seconds, start + 0.006 * seconds if end is None else end)
            rows.append(
                {"arm": str(arm), "t_s": start, "end_s": shown_end, "what": f"checkpoint from {start:.0f}{until}"}
            )
    return rows


def _checkpoint_lane(
    rows: Sequence[dict[str, Any]], arms: Sequence[ArmSummary], x: Any, plot_px: int, theme: Theme
) -> Any:
    import altair as alt

    present = [str(arm.index) for arm in arms if any(row["arm"] == str(arm.index) for row in rows)]
    return (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_bar(size=6, cornerRadius=1)
        .encode(
            x=x.axis(None),
            x2="end_s:Q",
            y=alt.Y("arm:O", axis=None, scale=alt.Scale(domain=present)),
            color=_colour(arms, theme),
            description="what:N",
        )
        .properties(width=plot_px, height=10 * len(present), title="Checkpoints")
    )


def _checkpoint_rules(rows: Sequence[dict[str, Any]], arms: Sequence[ArmSummary], x: Any, theme: Theme) -> Any:
    import altair as alt

    return (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_rule(strokeDash=[2, 3], opacity=0.55, aria=False)
        .encode(x=x, color=_colour(arms, theme))
    )


def _finish(chart: Any, theme: Theme, left_px: int = 0) -> dict[str, Any]:
    padding = {"left": left_px, "right": RIGHT_PX, "top": 6, "bottom": 4}
    return dict(chart.properties(padding=padding).configure(**theme.config()).to_dict())
