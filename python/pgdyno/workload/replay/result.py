"""What the engine says of a replay, as the record of a run. No value of the capture is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pgdyno.workload.replay.counted import Counts, shape_of

from ...results.work_record import (
    ComparedStatement,
    DoubtfulPlace,
    LikenessRecord,
    ReadingRecord,
    ReplayedError,
    ReplayedKeys,
    ReplayedStatement,
    ReplayRecord,
    SequenceFit,
    StatementWork,
    TimeDistribution,
)

STATEMENTS_MAX = 200
"""Shapes that a record has, by their time here or in production; an application has some hundred that matter, and one that writes
values into names has thousands."""
OTHERS = "(other statements)"
_CATALOG = "pg_catalog."
_COUNTS = (
    "statements",
    "executed",
    "failed_as_recorded",
    "newly_failed",
    "no_longer_failed",
    "not_begun",
    "not_asked",
    "sessions",
    "lanes",
    "connections_lost",
    "copies_made",
    "log_entries",
    "log_lost",
)


def record_of(
    summary: Mapping[str, Any], speed: float, dilation: int = 1, *, accept_losses: bool = False
) -> ReplayRecord:
    """The engine's summary in the subject's time, which is ``dilation`` times slower; ``speed`` is the subject's too."""
    return ReplayRecord(
        **{name: summary[name] for name in _COUNTS},
        left_out=summary["left_out"],
        left_out_statements=dict(Counter(summary["left_out_statements"]).most_common(STATEMENTS_MAX)),
        recorded_s=summary["recorded_us"] / 1e6,
        left_out_s=summary["left_out_us"] / 1e6,
        reading=ReadingRecord(**summary["reading"], accepted=accept_losses),
        captured_s=summary["captured_s"],
        due_s=summary["captured_s"] / speed,
        took_s=summary["took_s"] / dilation,
        ended_by=summary["ended_by"] or "",
        response=_times(summary["response_us"], dilation),
        service=_times(summary["service_us"], dilation),
        recorded=_times(summary["recorded_service_us"], 1),
        behind=_times(summary["behind_us"], dilation),
        keys=_keys(summary["keys"], dilation),
        errors=tuple(
            ReplayedError(**other)
            for other in sorted(summary["errors"], key=lambda error: -error["count"])[:STATEMENTS_MAX]
        ),
        by_statement=tuple(_statement(document, dilation) for document in _most(summary["by_statement"])),
    )


def _times(figures: Mapping[str, Any], dilation: int) -> TimeDistribution:
    document = {f"{name}_ms": figures[name] / 1e3 / dilation for name in ("mean", "p50", "p99", "max")}
    return TimeDistribution(count=figures["count"], **document)


def _keys(document: Mapping[str, Any] | None, dilation: int) -> ReplayedKeys | None:
    if document is None:
        return None
    counts = {name: count for name, count in document.items() if name not in ("waited_us", "fits", "doubtful_places")}
    sequences = tuple(SequenceFit(**fit) for fit in document["fits"])
    return ReplayedKeys(
        **counts,
        doubtful_places=tuple(DoubtfulPlace(**doubtful_place) for doubtful_place in document["doubtful_places"]),
        sequences=sequences,
        waited_s=document["waited_us"] / 1e6 / dilation,
    )


def _statement(document: Mapping[str, Any], dilation: int) -> ReplayedStatement:
    timed = document["timed"]
    return ReplayedStatement(
        statement=document["statement"],
        calls=document["calls"],
        response_ms=document["response_us"] / document["calls"] / 1e3 / dilation,
        timed=timed,
        service_ms=document["us"] / timed / 1e3 / dilation if timed else None,
        recorded_ms=document["recorded_us"] / timed / 1e3 if timed else None,
    )


def _most(statements: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those with the most time, the first the one with the most; the others as one at the end."""
    ordered = sorted(statements, key=lambda statement: -max(statement["us"], statement["recorded_us"]))
    most, others = ordered[:STATEMENTS_MAX], ordered[STATEMENTS_MAX:]
    if not others:
        return most
    names = ("calls", "response_us", "timed", "us", "recorded_us")
    return [*most, {"statement": OTHERS} | {name: sum(document[name] for document in others) for name in names}]


NOTHING = Counts(calls=0, rows=0, exec_ms=0.0, wal_records=0, wal_images=0, wal_bytes=0, blocks=0)


def likeness_of(
    production: Mapping[str, Counts], here: Mapping[str, Counts], left_out: Iterable[str], *, whole: bool
) -> LikenessRecord:
    """Production's statements beside this run's, both by shape.

    Those that were ``left_out`` are not compared, nor those of the system's catalogs, which are of each server: those of
    ``pgdyno capture stats`` are among them.
    """
    not_sent = {shape_of(text) for text in left_out}
    wanted = (text for text in production if text not in not_sent and _CATALOG not in text)
    shapes = sorted(wanted, key=lambda text: -production[text].exec_ms)
    counts = [(shape, production[shape], here.get(shape, NOTHING)) for shape in shapes[:STATEMENTS_MAX]]
    if others := shapes[STATEMENTS_MAX:]:
        counts.append(
            (OTHERS, _sum([production[item] for item in others]), _sum([here.get(item, NOTHING) for item in others]))
        )
    return LikenessRecord(
        whole=whole,
        statements=tuple(
            ComparedStatement(
                statement=shape, production=StatementWork(**asdict(there)), here=StatementWork(**asdict(own))
            )
            for shape, there, own in counts
        ),
    )


def _sum(counts: Sequence[Counts]) -> Counts:
    return Counts(**{name: sum(getattr(count, name) for count in counts) for name in asdict(NOTHING)})
