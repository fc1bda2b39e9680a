"""How the tables were filled: a column for each data set."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pgdyno.analysis.interval import t_interval
from pgdyno.analysis.loads import LOAD_METRICS
from pgdyno.report import figures, volumes
from pgdyno.report.figures.loading import DRAWN_MAX
from pgdyno.report.section import Drawing, Grid, Note, Part, Section
from pgdyno.report.words import Row, most_waited
from pgdyno.text import UNKNOWN, interval, number, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pgdyno.analysis.compare import Comparison
    from pgdyno.analysis.loads import LoadedVolume, LoadFigures

_NOTE = (
    "Every run works on a clone of a data set, the last one where its load was repeated. Steps: the time in which at least one session"
    " was at it. Above a limit: the limit for which requests waited most, and the share of that time in which one did."
)


def section(comparison: Comparison) -> Section | None:
    """A column for each load, and what volumes wrote meanwhile."""
    loads = comparison.loads
    if not loads:
        return None
    found = rows(comparison)
    table = Grid(
        ("", *heads(comparison)),
        tuple((row.title, *row.cells) for row in found),
        strong=frozenset(place for place, row in enumerate(found) if row.strong),
    )
    parts: list[Part] = [table, Note(_NOTE)]
    if any(volume.course_mib_per_s for one in loads for volume in one.volumes):
        of = f", of the first {DRAWN_MAX} loads" if len(loads) > DRAWN_MAX else ""
        caption = f"What each volume wrote, MiB per second{of}."
        parts.append(
            Drawing("loading", "What volumes wrote while tables were filled", caption, partial(figures.loading, loads))
        )
    return Section("loading", "How the tables were filled", tuple(parts))


def lines(comparison: Comparison) -> list[str]:
    """A line for each load on an arm's own volumes, for the terminal; the last of those that a resumed experiment repeated."""
    labels = {arm.volume: arm.label for arm in comparison.arms}
    limited: dict[str, list[LoadFigures]] = {}
    for one in comparison.loads:
        if one.record.limited:
            limited.setdefault(one.record.title, []).append(one)
    found = []
    for repeated in limited.values():
        one = repeated[-1]
        specs = [labels.get(spec, spec) for spec in one.record.volumes.values()]
        pace = f"{one.rows:,} rows in {number(one.seconds)} s"
        written = [
            f"{words}, {number(volume.write_mib_per_s)} MiB/s written"
            for volume in one.volumes
            if (words := volumes.mean_words(volume))
        ]
        found.append("; ".join([f"{' and '.join(specs)}: {pace}", *written, *_repeated(repeated)]))
    return found


def _repeated(loads: Sequence[LoadFigures]) -> Iterator[str]:
    """The interval that several loads have, which one does not."""
    metric = LOAD_METRICS["load_write_ms_mean"]
    known = [value for one in loads if (value := metric.of(one)) is not None]
    if len(known) > 1:
        found = t_interval(known)
        yield f"the last of {len(known)}, whose writes took {number(found.mean)} ms ({interval(found.low, found.high)})"


def heads(comparison: Comparison) -> list[str]:
    """What each load was of."""
    return [one.record.title for one in comparison.loads]


def rows(comparison: Comparison) -> list[Row]:
    """The figures of each load, in the order in which they were made."""
    loads = comparison.loads
    steps = dict.fromkeys(step for one in loads for step in one.record.seconds)
    found = [
        Row("rows", tuple(f"{one.rows:,}" for one in loads)),
        Row("seconds", tuple(number(one.seconds) for one in loads), strong=True),
        Row("rows per second", tuple(number(one.rows_per_s) for one in loads), strong=True),
        Row("rows while they were copied, MiB/s", tuple(number(one.row_mib_per_s) for one in loads)),
        Row("filled by", tuple(_loader(one) for one in loads)),
        Row("limits", tuple(_limits(one) for one in loads)),
        Row("checked", tuple(_checked(one) for one in loads)),
        *(Row(f"{step}, seconds", tuple(number(one.record.seconds.get(step)) for one in loads)) for step in steps),
        *(row for role in _roles(loads) for row in _volume_rows(loads, role)),
    ]
    return [row for row in found if any(cell != UNKNOWN for cell in row.cells)]


def _loader(one: LoadFigures) -> str:
    if one.record.loader == "pgbench":
        return "pgbench -i"
    sessions = one.record.sessions
    if one.record.loader == "restore":
        return f"restored, {sessions} session{'s' if sessions > 1 else ''}"
    return f"pgdyno, {sessions} session{'s' if sessions > 1 else ''}"


def _limits(one: LoadFigures) -> str:
    """Where it was done: a load without limits says nothing of a volume."""
    if not one.record.limited:
        return "none: not a volume's pace"
    volumes = ", ".join(one.record.volumes.values())
    memory = "" if one.record.memory_bytes is None else f", {size(one.record.memory_bytes)} of memory"
    return volumes + memory


def _checked(one: LoadFigures) -> str:
    return "; ".join(check.detail for check in one.record.checks) or UNKNOWN


def _roles(loads: Sequence[LoadFigures]) -> list[str]:
    return list(dict.fromkeys(volume.role for one in loads for volume in one.volumes))


def _volume_rows(loads: Sequence[LoadFigures], role: str) -> list[Row]:
    of_role = [next((volume for volume in one.volumes if volume.role == role), None) for one in loads]
    return [
        Row(f"{role} volume: written", tuple(_written(one) for one in of_role)),
        Row(
            f"{role} volume: written, MiB/s", tuple(number(one.write_mib_per_s) if one else UNKNOWN for one in of_role)
        ),
        Row(f"{role} volume: IOPS", tuple(number(one.iops) if one else UNKNOWN for one in of_role)),
        Row(
            f"{role} volume: writes, mean, ms",
            tuple(number(one.write_ms_mean) if one else UNKNOWN for one in of_role),
        ),
        Row(
            f"{role} volume: reads, mean, ms",
            tuple(number(one.read_ms_mean) if one else UNKNOWN for one in of_role),
        ),
        Row(
            f"{role} volume: above a limit", tuple(most_waited(one.time_above_limit if one else {}) for one in of_role)
        ),
    ]


def _written(one: LoadedVolume | None) -> str:
    return UNKNOWN if one is None or one.write_bytes is None else size(round(one.write_bytes))
