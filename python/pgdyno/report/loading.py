"""How the tables were filled: a column for each data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.interval import t_interval
from pgdyno.analysis.loads import LOAD_METRICS, LoadedVolume, LoadFigures
from pgdyno.report import figures, volumes
from pgdyno.report.figures.loading import DRAWN_MAX
from pgdyno.report.section import Drawing, Grid, Note, Part, Section
from pgdyno.report.words import FigureRow, most_waited

from ..base.text import UNKNOWN, interval, number, size

_NOTE = (
    "Every run works on a clone of a data set, the last one where its load was repeated. Steps: the time in which at least one session"
    " was at it. Above a limit: the limit for which requests waited most, and the share of that time in which one did."
)


def filling_section(comparison: Comparison) -> Section | None:
    """A column for each load, and what volumes wrote meanwhile."""
    loads = comparison.loads
    if not loads:
        return None
    results = filling_rows(comparison)
    table = Grid(
        ("", *filling_heads(comparison)),
        tuple((row.title, *row.cells) for row in results),
        strong=frozenset(place for place, row in enumerate(results) if row.strong),
    )
    parts: list[Part] = [table, Note(_NOTE)]
    if any(volume.course_mib_per_s for load in loads for volume in load.volumes):
        of = f", of the first {DRAWN_MAX} loads" if len(loads) > DRAWN_MAX else ""
        caption = f"What each volume wrote, MiB per second{of}."
        parts.append(
            Drawing("loading", "What volumes wrote while tables were filled", caption, partial(figures.loading, loads))
        )
    return Section("loading", "How the tables were filled", tuple(parts))


def filling_lines(comparison: Comparison) -> list[str]:
    """A line for each load on an arm's own volumes, for the terminal; the last of those that a resumed experiment repeated."""
    labels = {arm.volume: arm.label for arm in comparison.arms}
    limited: dict[str, list[LoadFigures]] = {}
    for load_figures in comparison.loads:
        if load_figures.record.limited:
            limited.setdefault(load_figures.record.title, []).append(load_figures)
    lines = []
    for repeated in limited.values():
        load_figures = repeated[-1]
        specs = [labels.get(spec, spec) for spec in load_figures.record.volumes.values()]
        pace = f"{load_figures.rows:,} rows in {number(load_figures.seconds)} s"
        written = [
            f"{words}, {number(volume.write_mib_per_s)} MiB/s written"
            for volume in load_figures.volumes
            if (words := volumes.mean_words(volume))
        ]
        lines.append("; ".join([f"{' and '.join(specs)}: {pace}", *written, *_repeated(repeated)]))
    return lines


def _repeated(loads: Sequence[LoadFigures]) -> Iterator[str]:
    """The interval that several loads have, which one does not."""
    metric = LOAD_METRICS["load_write_ms_mean"]
    known = [value for load in loads if (value := metric.of(load)) is not None]
    if len(known) > 1:
        estimate = t_interval(known)
        yield f"the last of {len(known)}, whose writes took {number(estimate.mean)} ms ({interval(estimate.low, estimate.high)})"


def filling_heads(comparison: Comparison) -> list[str]:
    """What each load was of."""
    return [load.record.title for load in comparison.loads]


def filling_rows(comparison: Comparison) -> list[FigureRow]:
    """The figures of each load, in the order in which they were made."""
    loads = comparison.loads
    steps = dict.fromkeys(step for load in loads for step in load.record.seconds)
    rows = [
        FigureRow("rows", tuple(f"{load.rows:,}" for load in loads)),
        FigureRow("seconds", tuple(number(load.seconds) for load in loads), strong=True),
        FigureRow("rows per second", tuple(number(load.rows_per_s) for load in loads), strong=True),
        FigureRow("rows while they were copied, MiB/s", tuple(number(load.row_mib_per_s) for load in loads)),
        FigureRow("filled by", tuple(_loader(load) for load in loads)),
        FigureRow("limits", tuple(_limits(load) for load in loads)),
        FigureRow("checked", tuple(_checked(load) for load in loads)),
        *(
            FigureRow(f"{step}, seconds", tuple(number(load.record.seconds.get(step)) for load in loads))
            for step in steps
        ),
        *(row for role in _roles(loads) for row in _volume_rows(loads, role)),
    ]
    return [row for row in rows if any(cell != UNKNOWN for cell in row.cells)]


def _loader(figures: LoadFigures) -> str:
    if figures.record.loader == "pgbench":
        return "pgbench -i"
    sessions = figures.record.sessions
    if figures.record.loader == "restore":
        return f"restored, {sessions} session{'s' if sessions > 1 else ''}"
    return f"pgdyno, {sessions} session{'s' if sessions > 1 else ''}"


def _limits(figures: LoadFigures) -> str:
    """Where it was done: a load without limits says nothing of a volume."""
    if not figures.record.limited:
        return "none: not a volume's pace"
    volumes = ", ".join(figures.record.volumes.values())
    memory = "" if figures.record.memory_bytes is None else f", {size(figures.record.memory_bytes)} of memory"
    return volumes + memory


def _checked(figures: LoadFigures) -> str:
    return "; ".join(check.detail for check in figures.record.checks) or UNKNOWN


def _roles(loads: Sequence[LoadFigures]) -> list[str]:
    return list(dict.fromkeys(volume.role for load in loads for volume in load.volumes))


def _volume_rows(loads: Sequence[LoadFigures], role: str) -> list[FigureRow]:
    of_role = [next((volume for volume in load.volumes if volume.role == role), None) for load in loads]
    return [
        FigureRow(f"{role} volume: written", tuple(_written(item) for item in of_role)),
        FigureRow(
            f"{role} volume: written, MiB/s",
            tuple(number(item.write_mib_per_s) if item else UNKNOWN for item in of_role),
        ),
        FigureRow(f"{role} volume: IOPS", tuple(number(item.iops) if item else UNKNOWN for item in of_role)),
        FigureRow(
            f"{role} volume: writes, mean, ms",
            tuple(number(item.write_ms_mean) if item else UNKNOWN for item in of_role),
        ),
        FigureRow(
            f"{role} volume: reads, mean, ms",
            tuple(number(item.read_ms_mean) if item else UNKNOWN for item in of_role),
        ),
        FigureRow(
            f"{role} volume: above a limit",
            tuple(most_waited(item.time_above_limit if item else {}) for item in of_role),
        ),
    ]


def _written(volume: LoadedVolume | None) -> str:
    return UNKNOWN if volume is None or volume.write_bytes is None else size(round(volume.write_bytes))
