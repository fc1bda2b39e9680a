"""Replays in words: did the server keep up, what became of the statements, and what each took beside production."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.reading import WORDS, remarks
from pgdyno.analysis.replay import MOST_SHARE, NO_ROWS, ArmReplay, replay_of, trust_of
from pgdyno.report.section import Grid, Heading, Matrix, Note, Section, Sentences

from ..analysis.replay import unlike
from ..base.text import UNKNOWN, number
from ..results.work_record import ReplayedKeys, ReplayRecord
from .configuration import HOSTS, server_clock
from .section import FigureRow, interval

STATEMENTS_SHOWN = 20
"""Shapes in the table of the page; the JSON document has all that were recorded."""
_LETTERS = 90
_NOTE = (
    "A statement is due at its captured time; time spent waiting for the statement before it in its session"
    " counts as lateness and as response time. Outcomes are counts of the first replicate. A statement that failed"
    " in production too is not an error."
)
_STATEMENTS_NOTE = (
    "Times are means in milliseconds: for production the logged duration, for each arm from when a statement was"
    " due until its answer, with the 95 % interval over replicates. Literals are shown as ?."
)
_LIKENESS_NOTE = (
    "From pg_stat_statements here and in production, for the first replicate. Calls, and rows and WAL records per"
    " call, are compared to 5 %, blocks to 20 %: a dump loses bloat, a base backup keeps it."
)


def replay_section(comparison: Comparison) -> Section | None:
    """The replays of each arm."""
    if all(replay_of(arm) is None for arm in comparison.arms):
        return None
    return Section(
        "replay",
        "Replay",
        (
            *(
                [Sentences(tuple(texts))]
                if (
                    texts := [
                        *reading_words(comparison),
                        *copied_words(comparison),
                        *trust_words(comparison),
                        *clock_words(comparison),
                    ]
                )
                else []
            ),
            Matrix(tuple(replay_rows(comparison))),
            Note(_NOTE),
            Heading("Statements beside production"),
            _each(comparison),
            Note(_STATEMENTS_NOTE),
            *_other_work(comparison),
        ),
        brief=True,
    )


def reading_words(comparison: Comparison) -> list[str]:
    """Parts of its source that the capture lacks; empty for a complete capture."""
    runs = [replay.runs[0] for arm in comparison.arms if (replay := replay_of(arm)) is not None]
    results = (remark for run in runs if run.reading is not None for remark in remarks(run.reading))
    return [f"{remark[0].upper()}{remark[1:]}." for remark in dict.fromkeys(results)]


def copied_words(comparison: Comparison) -> list[str]:
    """Fate of COPYs whose rows the capture does not have; empty where there are none."""
    runs = [replay.runs[0] for arm in comparison.arms if (replay := replay_of(arm)) is not None]
    made = max(run.copies_made for run in runs)
    left = max(run.left_out.get(NO_ROWS, 0) for run in runs)
    copied_words = []
    if made:
        copied_words.append(
            f"Rows of {made:,} COPYs were generated from the statistics of their columns, because a log has none."
        )
    if left:
        copied_words.append(f"{left:,} COPYs were left out, because a log has none of their rows.")
    return copied_words


def trust_words(comparison: Comparison) -> list[str]:
    """The arm with production's own volume beside production: a measure of how far to trust the rest."""
    trust = trust_of(comparison.arms)
    if trust is None:
        return []
    if trust.arm is None:
        return [
            f"Production uses {trust.spec}, which no arm emulates: it is not known how close these figures are to production's."
        ]
    if trust.median is None or trust.p99 is None or trust.statements is None:
        return [f"{trust.arm.label} emulates your production volume, but no statement was timed on both."]
    least, most = trust.statements
    text = (
        f"{trust.arm.label} emulates your production volume: the closer it comes to production, the more you can trust the rest."
        " Its median statement"
        f" took {interval(trust.median)} times as long as in production, the 99th percentile {interval(trust.p99)} times;"
        f" the means of the {trust.counted:,} statements with {MOST_SHARE:.0%} of production's time are {number(least)} to"
        f" {number(most)} times production's"
    )
    return [text]


def clock_words(comparison: Comparison) -> list[str]:
    """What the servers took for the time."""
    clocks = {
        arm.label: server_clock(arm.replicates[0].figures.record)
        for arm in comparison.arms
        if replay_of(arm) is not None
    }
    results = list(dict.fromkeys(clocks.values()))
    if results == [""] or not results:
        return []
    if len(results) == 1:
        return [f"The servers' clock was {results[0]}."]
    return [f"The clock of {label} was {words or HOSTS}." for label, words in clocks.items()]


def replay_rows(comparison: Comparison) -> list[FigureRow]:
    """Rows on whether each arm kept up, and on the outcomes of its statements."""
    rows = [
        FigureRow("kept up", _of(comparison, lambda item: "yes" if item.kept_up else "NO"), strong=True),
        FigureRow("took, seconds", _of(comparison, lambda item: number(_mean(item, lambda run: run.took_s)))),
        FigureRow("was to take, seconds", _of(comparison, lambda item: number(item.runs[0].due_s))),
        FigureRow(
            "statements sent late, p99, ms",
            _of(comparison, lambda item: number(_mean(item, lambda run: run.behind.p99_ms))),
        ),
        FigureRow("statements sent late, at most, s", _of(comparison, lambda item: number(item.behind_s_max))),
        FigureRow(
            "mean response time, ms",
            tuple(interval(arm.headline) for arm in comparison.arms),
        ),
        FigureRow(
            "mean service time, ms", _of(comparison, lambda item: number(_mean(item, lambda run: run.service.mean_ms)))
        ),
        FigureRow("the same in production, ms", _of(comparison, lambda item: number(item.runs[0].recorded.mean_ms))),
    ]
    ends: dict[str, Callable[[ReplayRecord], int]] = {
        "statements": lambda run: run.statements,
        "executed": lambda run: run.executed,
        "failed as recorded": lambda run: run.failed_as_recorded,
        "newly failed": lambda run: run.newly_failed,
        "failed in production alone": lambda run: run.no_longer_failed,
        "not begun": lambda run: run.not_begun,
        "not asked for": lambda run: run.not_asked,
    }
    rows += [FigureRow(title, _of(comparison, partial(_count, of))) for title, of in ends.items()]
    of_keys: dict[str, Callable[[ReplayedKeys], int]] = {
        "keys learned": lambda keys: keys.learned,
        "places where keys were exchanged": lambda keys: keys.exchanged,
        "places that may have a key": lambda keys: keys.doubtful,
        "statements that waited for a key": lambda keys: keys.waited,
        "keys waited for in vain": lambda keys: keys.given_up,
    }
    rows += [FigureRow(title, _of(comparison, partial(_count_of_keys, of))) for title, of in of_keys.items()]
    if any(replay.runs[0].likeness is not None for arm in comparison.arms if (replay := replay_of(arm)) is not None):
        rows.append(FigureRow("statements whose work differs from production", _of(comparison, _unlike_count)))
    reasons = dict.fromkeys(
        reason
        for arm in comparison.arms
        if (replay := replay_of(arm)) is not None
        for reason in replay.runs[0].left_out
    )
    rows += [FigureRow(f"left out: {reason}", _of(comparison, partial(_left_out, reason))) for reason in reasons]
    lost = dict.fromkeys(
        reason
        for arm in comparison.arms
        if (replay := replay_of(arm)) is not None and (of := replay.runs[0].reading) is not None
        for reason in of.statements
    )
    rows += [
        FigureRow(f"not in the capture: {WORDS.get(reason, reason)}", _of(comparison, partial(_not_captured, reason)))
        for reason in lost
    ]
    return rows


def _count(of: Callable[[ReplayRecord], int], replay: ArmReplay) -> str:
    return f"{of(replay.runs[0]):,}"


def _count_of_keys(of: Callable[[ReplayedKeys], int], replay: ArmReplay) -> str:
    keys = replay.runs[0].keys
    return UNKNOWN if keys is None else f"{of(keys):,}"


def _not_captured(reason: str, replay: ArmReplay) -> str:
    record = replay.runs[0].reading
    return UNKNOWN if record is None else f"{record.statements.get(reason, 0):,}"


def _left_out(reason: str, replay: ArmReplay) -> str:
    return f"{replay.runs[0].left_out.get(reason, 0):,}"


def replay_lines(comparison: Comparison) -> list[str]:
    """A line for each arm, for the terminal; empty of other workloads."""
    if all(replay_of(arm) is None for arm in comparison.arms):
        return []
    lines = [*reading_words(comparison), *copied_words(comparison), *trust_words(comparison), *clock_words(comparison)]
    for arm in comparison.arms:
        replay = replay_of(arm)
        if replay is None:
            continue
        first = replay.runs[0]
        kept = (
            "kept up"
            if replay.kept_up
            else f"fell behind: {number(replay.late_s.mean)} s longer than the {number(first.due_s)} s"
        )
        lines.append(
            f"{arm.label}: {kept}, statements at most {number(replay.behind_s_max)} s late; of {first.statements:,} statements"
            f" {first.executed:,} executed, {first.failed_as_recorded:,} failed as recorded, {first.newly_failed:,} newly,"
            f" {sum(first.left_out.values()):,} left out; a statement took {number(first.service.mean_ms)} ms,"
            f" {number(first.recorded.mean_ms)} ms in production"
        )
    return lines


def _each(comparison: Comparison) -> Grid:
    """A row for each shape of statement: production's time, and that of each arm."""
    arms = [(arm, replay_of(arm)) for arm in comparison.arms]
    every = [item.statements for _, item in arms if item is not None]
    shapes = list(dict.fromkeys(shape for item in every for shape in item))[:STATEMENTS_SHOWN]
    heads = ("statement", "calls", "production", *(arm.label for arm, _ in arms))
    cells = []
    for shape in shapes:
        first = next(item[shape] for item in every if shape in item)
        recorded = UNKNOWN if first.recorded_ms is None else number(first.recorded_ms)
        times = (
            UNKNOWN if item is None or shape not in item.statements else interval(item.statements[shape].response_ms)
            for _, item in arms
        )
        cells.append((_short(shape), f"{first.calls:,.0f}", recorded, *times))
    return Grid(heads, tuple(cells))


def _unlike_count(replay: ArmReplay) -> str:
    record = replay.runs[0].likeness
    return UNKNOWN if record is None else f"{len(unlike(record)):,} of {len(record.statements):,}"


def _other_work(comparison: Comparison) -> Iterator[Heading | Grid | Note]:
    """A row for each statement that did other work than in production, with the arm and the multiples of its figures."""
    cells = []
    for arm in comparison.arms:
        replay = replay_of(arm)
        record = None if replay is None else replay.runs[0].likeness
        for each in () if record is None else unlike(record):
            multiples = ", ".join(f"{ratio:.2f} × {name}" for name, ratio in each.ratios.items())
            cells.append((_short(each.statement), f"{each.calls:,}", arm.label, multiples))
    if cells:
        yield Heading("Work that differs from production")
        yield Grid(("statement", "calls in production", "arm", "here"), tuple(cells[:STATEMENTS_SHOWN]))
        yield Note(_LIKENESS_NOTE)


def _short(shape: str) -> str:
    return shape if len(shape) <= _LETTERS else f"{shape[: _LETTERS - 1]}…"


def _mean(replay: ArmReplay, of: Callable[[ReplayRecord], float]) -> float:
    return sum(of(run) for run in replay.runs) / len(replay.runs)


def _of(comparison: Comparison, words: Callable[[ArmReplay], str]) -> tuple[str, ...]:
    return tuple(UNKNOWN if (replay := replay_of(arm)) is None else words(replay) for arm in comparison.arms)
