"""Losses of a capture: statements that its log or its clients had, and that the reading did not keep.

A replay sends the statements of the capture, and a sample draws from them. If those are not production's, each figure is of another
load, so the verdict is about both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pgdyno.analysis.finding import CheckResult

from ..base.text import percent
from ..results.work_record import ReadingRecord, SampleRecord

SHARE_MOST = 0.01
"""Share of statements, or of sessions: the limit that also holds for statements which a replay leaves out."""
WORDS = {
    "passwords": "name a password",
    "repeated": "have line numbers that were read before",
    "torn": "are not whole",
    "not_text": "are not text in UTF-8",
    "too_long": "are longer than 64 MiB",
    "cut_entries": "are of entries that are cut",
    "other_languages": "are of messages in another language than English",
    "unknown_severities": "have a severity in another language than English",
    "errors_without_statement": "failed, and the log does not have their text",
    "not_followed": "are executions that a relay cannot follow",
}
"""Reason -> what the statements or records do, or are."""
LINES = {
    "missing": "lines are missing by their numbers",
    "lone_durations": "durations have no statement",
    "implausible": "numbers cannot be",
    "foreign": "lines are of other programs",
}
ACCEPT = "accept it with --accept-losses (in an experiment file: accept_losses = true)"
"""The remedy, where the capture cannot be made again."""


def count(record: ReadingRecord) -> int:
    """Statements that are not in the capture, and records that may have had one."""
    return sum(record.statements.values())


def share(record: ReadingRecord) -> float:
    """Share of statements that are not in the capture."""
    return count(record) / max(1, count(record) + record.kept)


def incomplete_share(record: ReadingRecord) -> float:
    """Share of sessions that were not recorded to their end."""
    return sum(record.incomplete.values()) / max(1, record.sessions)


def losses(record: ReadingRecord) -> Iterator[str]:
    """What makes it another load than production's, whether or not that was accepted."""
    if share(record) > SHARE_MOST:
        lost = count(record)
        yield (
            f"the capture lacks {lost:,} of {lost + record.kept:,} statements of its source ({share(record):.1%}):"
            f" {_named(record.statements, WORDS)}"
        )
    if incomplete_share(record) > SHARE_MOST:
        lost = sum(record.incomplete.values())
        yield (
            f"{lost:,} of {record.sessions:,} sessions were not recorded to their end"
            f" ({', '.join(f'{number:,}: {reason}' for reason, number in record.incomplete.items())})"
        )


def remarks(record: ReadingRecord) -> Iterator[str]:
    """Everything that is not in the capture, and is no reason by itself."""
    if record.unfinished:
        yield "the recording was killed: what came in its last seconds is not in the capture"
    beyond = list(losses(record))
    if beyond and record.accepted:
        yield from (f"{loss}; this was accepted" for loss in beyond)
    if record.statements and share(record) <= SHARE_MOST:
        yield f"the capture lacks {count(record):,} statements of its source: {_named(record.statements, WORDS)}"
    if record.incomplete and incomplete_share(record) <= SHARE_MOST:
        yield f"{sum(record.incomplete.values()):,} sessions were not recorded to their end"
    if record.lines:
        yield f"of its log {_named(record.lines, LINES)}"


def reasons(record: ReadingRecord) -> Iterator[str]:
    """Why a replay of the capture is not production's load; nothing where that was accepted."""
    if not record.accepted:
        yield from losses(record)


def findings(record: ReadingRecord) -> Iterator[CheckResult]:
    """The check of what was sent."""
    for reason in reasons(record):
        yield CheckResult("capture", "invalid", f"{reason}; {ACCEPT}")
    for remark in remarks(record):
        yield CheckResult("capture", "warn", remark)


def _named(counted: Mapping[str, int], words: Mapping[str, str]) -> str:
    return ", ".join(f"{number:,} {words.get(reason, reason)}" for reason, number in counted.items())


def sample_findings(record: SampleRecord) -> Iterator[CheckResult]:
    """The checks of a sample."""
    yield from findings(record.reading)
    share = record.left_out / max(1, record.transactions)
    figure = (
        f"{record.left_out:,} of {record.transactions:,} transactions of the capture ({percent(share)}) are never drawn,"
        " because they have a statement that cannot be sent, or not again"
    )
    if share > SHARE_MOST and not record.reading.accepted:
        yield CheckResult("mixture", "invalid", f"{figure}; {ACCEPT}")
    elif record.left_out:
        yield CheckResult("mixture", "warn", figure)
