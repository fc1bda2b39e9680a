"""Sections on filling the tables, and on a load that was the workload itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.loads import LOAD_METRICS, LoadedVolume, LoadFigures
from pgdyno.report import figures, volumes
from pgdyno.report.binding import verdict_words
from pgdyno.report.section import Drawing, Grid, Matrix, Note, Part, Section

from ..analysis.loads import ArmLoad, agrees, load_of, request_kib, shares_of
from ..analysis.statistics import t_interval
from ..base.text import UNKNOWN, interval, number, percent, size
from .figures.course import DRAWN_MAX
from .section import FigureRow, most_waited

_STEPS = {
    "transfer": "copying, seconds",
    "put_back": "rebuilding indexes, seconds",
    "vacuum": "vacuum and analyze, seconds",
    "checkpoint": "last commit and checkpoint, seconds",
}
NOT_BOUND_SHARE = 0.05
"""Share of the time: a limit for which requests waited less than this is not what the load waited for."""


_NOTE = (
    "From the start of COPY until the final checkpoint has everything on the volume. Steps of tables are summed"
    " where tables are loaded one after another; where they are loaded at the same time, the longest counts. The"
    " loader names its limit while it copies, by what its sessions wait for; the counters are those of the section"
    " above."
)


def bulk_load_section(comparison: Comparison) -> Section | None:
    """Time and work of each arm's load."""
    if not is_bulk_load(comparison):
        return None
    further = (Note(text) for text in bulk_load_notes(comparison))
    return Section("load", "The load", (Matrix(tuple(bulk_load_rows(comparison))), Note(_NOTE), *further), brief=True)


def is_bulk_load(comparison: Comparison) -> bool:
    """True if the workload is a load."""
    return any(load_of(arm) is not None for arm in comparison.arms)


def bulk_load_rows(comparison: Comparison) -> list[FigureRow]:
    """The figures of each arm's loads; empty of other workloads."""
    loads = [load_of(arm) for arm in comparison.arms]
    if not any(loads):
        return []
    steps = dict.fromkeys(step for load in loads if load is not None for step in load.steps_s)
    rows = [
        FigureRow("rows", tuple(_of(load, lambda item: f"{item.rows:,}") for load in loads)),
        FigureRow(
            "rows per second", tuple(_of(load, lambda item: number(item.rows_per_s)) for load in loads), strong=True
        ),
        FigureRow(
            "files, uncompressed, MiB/s", tuple(_of(load, lambda item: number(item.input_mib_per_s)) for load in loads)
        ),
        *(FigureRow(_STEPS.get(step, step), tuple(_step(load, step) for load in loads)) for step in steps),
        FigureRow("sessions that copied", tuple(_of(load, lambda item: f"{item.connections:,}") for load in loads)),
        FigureRow(
            "written to the volumes for each byte of the files",
            tuple(_of(load, lambda item: number(item.written_per_input_byte)) for load in loads),
        ),
        FigureRow(
            "mean request to the data's volume, KiB", tuple(number(_request_kib(arm)) for arm in comparison.arms)
        ),
        FigureRow("limit while copying, by the loader", tuple(_of(load, _said) for load in loads)),
        FigureRow(
            "limit of the whole load, by the counters", tuple(_bound(comparison, arm) for arm in comparison.arms)
        ),
        FigureRow(
            "both agree",
            tuple(_agree(comparison, arm, load) for arm, load in zip(comparison.arms, loads, strict=True)),
        ),
        FigureRow(
            "above a limit, by the volume's own count",
            tuple(most_waited(arm.data.time_above_limit) for arm in comparison.arms),
        ),
    ]
    return [row for row in rows if any(cell != UNKNOWN for cell in row.cells)]


def bulk_load_lines(comparison: Comparison) -> list[str]:
    """A line for each arm, for the terminal; empty of other workloads."""
    lines = []
    for arm in comparison.arms:
        load = load_of(arm)
        if load is not None:
            rate = "" if load.input_mib_per_s is None else f" ({number(load.input_mib_per_s)} MiB/s of files)"
            text = _said(load)
            limit = "" if text == UNKNOWN else f"; limit while it copied: {text}"
            lines.append(f"{arm.label}: {number(load.seconds.mean)} s for {load.rows:,} rows{rate}{limit}")
    return lines


def bulk_load_notes(comparison: Comparison) -> list[str]:
    """For each arm whose IOPS did not bind: with which requests they would."""
    return [sentence for arm in comparison.arms if (sentence := iops_note(arm))] if is_bulk_load(comparison) else []


def iops_note(arm: ArmSummary) -> str:
    """``gp2: its 750 IOPS did not bind``, with why; empty where they did, or where it is not known."""
    limit, iops, mib_per_s = arm.data.limits.get("iops"), arm.data.iops, arm.data.mib_per_s
    share = arm.data.time_above_limit.get("iops")
    size_kib = request_kib(iops, mib_per_s)
    if not limit or iops is None or mib_per_s is None or size_kib is None or share is None or share >= NOT_BOUND_SHARE:
        return ""
    return (
        f"{arm.label}: its {limit:,} IOPS did not bind; it completed {number(iops)} a second of {number(size_kib)} KiB on average."
        f" At the same throughput they would bind with requests below {number(mib_per_s * 1024 / limit)} KiB."
    )


def _of(load: ArmLoad | None, words: Callable[[ArmLoad], str]) -> str:
    return UNKNOWN if load is None else words(load)


def _step(load: ArmLoad | None, step: str) -> str:
    return UNKNOWN if load is None else number(load.steps_s.get(step))


def _said(load: ArmLoad) -> str:
    return ", ".join(f"{name} {percent(share)}" for name, share in shares_of(load.limits)) or UNKNOWN


def _bound(comparison: Comparison, arm: ArmSummary) -> str:
    return verdict_words(comparison.bindings[arm.index].verdict)


def _agree(comparison: Comparison, arm: ArmSummary, load: ArmLoad | None) -> str:
    same = None if load is None else agrees(load.limit, comparison.bindings[arm.index].verdict.limit)
    return UNKNOWN if same is None else "yes" if same else "no"


def _request_kib(arm: ArmSummary) -> float | None:
    return request_kib(arm.data.iops, arm.data.mib_per_s)


_FILLING_NOTE = (
    "Each run uses a clone of a data set (of the latest load, if there were several). Step times: how long at"
    " least one session worked on the step. Above a limit: the limit that requests waited for most, and the share"
    " of that time in which at least one did."
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
    parts: list[Part] = [table, Note(_FILLING_NOTE)]
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
    """Titles of the loads."""
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
