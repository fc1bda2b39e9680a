"""A load that was measured, in words: what it took, what bound by the loader's word, and by the counters of host and server."""

from __future__ import annotations

from collections.abc import Callable

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.bulk_load import ArmLoad, agrees, load_of, request_kib, shares_of
from pgdyno.analysis.compare import Comparison
from pgdyno.report.binding import verdict_words
from pgdyno.report.section import Matrix, Note, Section
from pgdyno.report.words import FigureRow, most_waited

from ..base.text import UNKNOWN, number, percent

_STEPS = {
    "transfer": "copying, seconds",
    "put_back": "indexes built again, seconds",
    "vacuum": "vacuum and analyze, seconds",
    "checkpoint": "last commit and checkpoint, seconds",
}
NOT_BOUND_SHARE = 0.05
"""Share of the time: a limit for which requests waited less than this is not what the load waited for."""


_NOTE = (
    "From the start of COPY until the final checkpoint has everything on the volume. Steps of tables are added up where tables are"
    " loaded one after another; where they are loaded at once, the longest counts. The loader names its limit while it copies, by"
    " where its sessions wait; the counters are those of the section above."
)


def bulk_load_section(comparison: Comparison) -> Section | None:
    """What each arm's load took."""
    if not is_bulk_load(comparison):
        return None
    further = (Note(text) for text in bulk_load_notes(comparison))
    return Section("load", "The load", (Matrix(tuple(bulk_load_rows(comparison))), Note(_NOTE), *further), brief=True)


def is_bulk_load(comparison: Comparison) -> bool:
    """Whether loads are what was measured."""
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
        FigureRow("limit while it copied, as the loader said", tuple(_of(load, _said) for load in loads)),
        FigureRow("limit by the counters, over all of it", tuple(_bound(comparison, arm) for arm in comparison.arms)),
        FigureRow(
            "whether both mean the same",
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
