"""Replays in words: did the server keep up, what became of the statements, and what each took beside production."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pgdyno.analysis.likeness import unlike
from pgdyno.analysis.reading import WORDS, remarks
from pgdyno.analysis.replay import MOST_SHARE, NO_ROWS, replay_of, trust_of
from pgdyno.report.asked import HOSTS, clock
from pgdyno.report.section import Grid, Heading, Matrix, Note, Section, Sentences
from pgdyno.report.words import Row, interval
from pgdyno.text import UNKNOWN, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgdyno.analysis.compare import Comparison
    from pgdyno.analysis.replay import ArmReplay
    from pgdyno.store.work_record import ReplayedKeys, ReplayRecord

STATEMENTS_SHOWN = 20
"""Shapes in the table of the page; the JSON document has all that were recorded."""
_LETTERS = 90
_NOTE = (
    "A statement is due at its captured time; what it waits for the one before it in its session counts as lateness and as response"
    " time. Ends are counts of the first replicate. A statement that failed as in production ended well."
)
_STATEMENTS_NOTE = (
    "Times are means in milliseconds: of production the logged duration, of each arm from when a statement was due until its answer,"
    " with the 95 % interval over replicates. Literals are shown as ?."
)
_LIKENESS_NOTE = (
    "By pg_stat_statements here and in production, of the first replicate. Calls, and rows and WAL records of a call, are compared to 5 %, blocks"
    " to 20 %: a dump loses bloat, a base backup keeps it."
)


def section(comparison: Comparison) -> Section | None:
    """The replays of each arm."""
    if all(replay_of(arm) is None for arm in comparison.arms):
        return None
    return Section(
        "replay",
        "Replay",
        (
            *(
                [Sentences(tuple(said))]
                if (
                    said := [
                        *reading_words(comparison),
                        *copied_words(comparison),
                        *trust_words(comparison),
                        *clock_words(comparison),
                    ]
                )
                else []
            ),
            Matrix(tuple(rows(comparison))),
            Note(_NOTE),
            Heading("Statements beside production"),
            _each(comparison),
            Note(_STATEMENTS_NOTE),
            *_other_work(comparison),
        ),
        brief=True,
    )


def reading_words(comparison: Comparison) -> list[str]:
    """What the capture lacks of its source; empty of one that is whole."""
    runs = [one.runs[0] for arm in comparison.arms if (one := replay_of(arm)) is not None]
    told = (remark for run in runs if run.reading is not None for remark in remarks(run.reading))
    return [f"{remark[0].upper()}{remark[1:]}." for remark in dict.fromkeys(told)]


def copied_words(comparison: Comparison) -> list[str]:
    """What became of COPYs whose rows the capture does not have; empty where there are none."""
    runs = [one.runs[0] for arm in comparison.arms if (one := replay_of(arm)) is not None]
    made = max(run.copies_made for run in runs)
    left = max(run.left_out.get(NO_ROWS, 0) for run in runs)
    found = []
    if made:
        found.append(f"Rows of {made:,} COPYs were made by the statistics of their columns, as a log has none.")
    if left:
        found.append(f"{left:,} COPYs were left out, as a log has none of their rows.")
    return found


def trust_words(comparison: Comparison) -> list[str]:
    """How the arm with production's own volume did beside production: a reader's measure of how far to trust the rest."""
    found = trust_of(comparison.arms)
    if found is None:
        return []
    if found.arm is None:
        return [
            f"Production has {found.spec}, and no arm emulates it: how far these figures are from production's is not known."
        ]
    if found.median is None or found.p99 is None or found.statements is None:
        return [f"{found.arm.label} emulates what production has; no statement was timed on both."]
    least, most = found.statements
    said = (
        f"{found.arm.label} emulates what production has, so the other arms can be trusted as far as it is near: the median statement"
        f" took {interval(found.median)} times as long as in production, the 99th percentile {interval(found.p99)} times;"
        f" the means of the {found.counted:,} statements with {MOST_SHARE:.0%} of production's time are {number(least)} to"
        f" {number(most)} times production's"
    )
    return [said]


def clock_words(comparison: Comparison) -> list[str]:
    """What the servers took for the time."""
    clocks = {
        arm.label: clock(arm.replicates[0].figures.record) for arm in comparison.arms if replay_of(arm) is not None
    }
    told = list(dict.fromkeys(clocks.values()))
    if told == [""] or not told:
        return []
    if len(told) == 1:
        return [f"The servers' clock was {told[0]}."]
    return [f"The clock of {label} was {words or HOSTS}." for label, words in clocks.items()]


def rows(comparison: Comparison) -> list[Row]:
    """Whether each arm kept up, and what became of its statements."""
    found = [
        Row("kept up", _of(comparison, lambda one: "yes" if one.kept_up else "NO"), strong=True),
        Row("took, seconds", _of(comparison, lambda one: number(_mean(one, lambda run: run.took_s)))),
        Row("was to take, seconds", _of(comparison, lambda one: number(one.runs[0].due_s))),
        Row(
            "statements sent late, p99, ms",
            _of(comparison, lambda one: number(_mean(one, lambda run: run.behind.p99_ms))),
        ),
        Row("statements sent late, at most, s", _of(comparison, lambda one: number(one.behind_s_max))),
        Row(
            "mean response time, ms",
            tuple(interval(arm.headline) for arm in comparison.arms),
        ),
        Row("mean service time, ms", _of(comparison, lambda one: number(_mean(one, lambda run: run.service.mean_ms)))),
        Row("the same in production, ms", _of(comparison, lambda one: number(one.runs[0].recorded.mean_ms))),
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
    found += [Row(title, _of(comparison, partial(_count, of))) for title, of in ends.items()]
    of_keys: dict[str, Callable[[ReplayedKeys], int]] = {
        "keys learned": lambda keys: keys.learned,
        "places where keys were exchanged": lambda keys: keys.exchanged,
        "places that may have a key": lambda keys: keys.doubtful,
        "statements that waited for a key": lambda keys: keys.waited,
        "keys waited for in vain": lambda keys: keys.given_up,
    }
    found += [Row(title, _of(comparison, partial(_count_of_keys, of))) for title, of in of_keys.items()]
    if any(one.runs[0].likeness is not None for arm in comparison.arms if (one := replay_of(arm)) is not None):
        found.append(Row("statements with other work than in production", _of(comparison, _unlike_count)))
    reasons = dict.fromkeys(
        reason for arm in comparison.arms if (one := replay_of(arm)) is not None for reason in one.runs[0].left_out
    )
    found += [Row(f"left out: {reason}", _of(comparison, partial(_left_out, reason))) for reason in reasons]
    lost = dict.fromkeys(
        reason
        for arm in comparison.arms
        if (one := replay_of(arm)) is not None and (of := one.runs[0].reading) is not None
        for reason in of.statements
    )
    found += [
        Row(f"not in the capture: {WORDS.get(reason, reason)}", _of(comparison, partial(_not_captured, reason)))
        for reason in lost
    ]
    return found


def _count(of: Callable[[ReplayRecord], int], one: ArmReplay) -> str:
    return f"{of(one.runs[0]):,}"


def _count_of_keys(of: Callable[[ReplayedKeys], int], one: ArmReplay) -> str:
    keys = one.runs[0].keys
    return UNKNOWN if keys is None else f"{of(keys):,}"


def _not_captured(reason: str, one: ArmReplay) -> str:
    found = one.runs[0].reading
    return UNKNOWN if found is None else f"{found.statements.get(reason, 0):,}"


def _left_out(reason: str, one: ArmReplay) -> str:
    return f"{one.runs[0].left_out.get(reason, 0):,}"


def lines(comparison: Comparison) -> list[str]:
    """A line for each arm, for the terminal; empty of other workloads."""
    if all(replay_of(arm) is None for arm in comparison.arms):
        return []
    found = [*reading_words(comparison), *copied_words(comparison), *trust_words(comparison), *clock_words(comparison)]
    for arm in comparison.arms:
        one = replay_of(arm)
        if one is None:
            continue
        first = one.runs[0]
        kept = (
            "kept up"
            if one.kept_up
            else f"was behind: {number(one.late_s.mean)} s longer than the {number(first.due_s)} s"
        )
        found.append(
            f"{arm.label}: {kept}, statements at most {number(one.behind_s_max)} s late; of {first.statements:,} statements"
            f" {first.executed:,} executed, {first.failed_as_recorded:,} failed as recorded, {first.newly_failed:,} newly,"
            f" {sum(first.left_out.values()):,} left out; a statement took {number(first.service.mean_ms)} ms,"
            f" {number(first.recorded.mean_ms)} ms in production"
        )
    return found


def _each(comparison: Comparison) -> Grid:
    """A row for each shape of statement: production's time, and that of each arm."""
    arms = [(arm, replay_of(arm)) for arm in comparison.arms]
    every = [one.statements for _, one in arms if one is not None]
    shapes = list(dict.fromkeys(shape for one in every for shape in one))[:STATEMENTS_SHOWN]
    heads = ("statement", "calls", "production", *(arm.label for arm, _ in arms))
    cells = []
    for shape in shapes:
        first = next(one[shape] for one in every if shape in one)
        recorded = UNKNOWN if first.recorded_ms is None else number(first.recorded_ms)
        times = (
            UNKNOWN if one is None or shape not in one.statements else interval(one.statements[shape].response_ms)
            for _, one in arms
        )
        cells.append((_short(shape), f"{first.calls:,.0f}", recorded, *times))
    return Grid(heads, tuple(cells))


def _unlike_count(one: ArmReplay) -> str:
    found = one.runs[0].likeness
    return UNKNOWN if found is None else f"{len(unlike(found)):,} of {len(found.statements):,}"


def _other_work(comparison: Comparison) -> Iterator[Heading | Grid | Note]:
    """A row for each statement that did other work than in production, with the arm and the multiples of its figures."""
    cells = []
    for arm in comparison.arms:
        one = replay_of(arm)
        found = None if one is None else one.runs[0].likeness
        for each in () if found is None else unlike(found):
            multiples = ", ".join(f"{ratio:.2f} × {name}" for name, ratio in each.ratios.items())
            cells.append((_short(each.statement), f"{each.calls:,}", arm.label, multiples))
    if cells:
        yield Heading("Other work than in production")
        yield Grid(("statement", "calls in production", "arm", "here"), tuple(cells[:STATEMENTS_SHOWN]))
        yield Note(_LIKENESS_NOTE)


def _short(shape: str) -> str:
    return shape if len(shape) <= _LETTERS else f"{shape[: _LETTERS - 1]}…"


def _mean(one: ArmReplay, of: Callable[[ReplayRecord], float]) -> float:
    return sum(of(run) for run in one.runs) / len(one.runs)


def _of(comparison: Comparison, words: Callable[[ArmReplay], str]) -> tuple[str, ...]:
    return tuple(UNKNOWN if (one := replay_of(arm)) is None else words(one) for arm in comparison.arms)
