"""What the engine says of a replay, as the record of a run. No value of the capture is in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pgdyno.store.work_record import (
    ComparedStatement,
    DoubtfulPlace,
    LikenessRecord,
    ReadingRecord,
    ReplayedError,
    ReplayedKeys,
    ReplayedStatement,
    ReplayRecord,
    SequenceFit,
    Times,
    Work,
)
from pgdyno.workload.replay.counted import Counts, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
            ReplayedError(**one) for one in sorted(summary["errors"], key=lambda one: -one["count"])[:STATEMENTS_MAX]
        ),
        by_statement=tuple(_statement(one, dilation) for one in _most(summary["by_statement"])),
    )


def _times(figures: Mapping[str, Any], dilation: int) -> Times:
    told = {f"{name}_ms": figures[name] / 1e3 / dilation for name in ("mean", "p50", "p99", "max")}
    return Times(count=figures["count"], **told)


def _keys(said: Mapping[str, Any] | None, dilation: int) -> ReplayedKeys | None:
    if said is None:
        return None
    counts = {name: count for name, count in said.items() if name not in ("waited_us", "fits", "doubtful_places")}
    sequences = tuple(SequenceFit(**one) for one in said["fits"])
    return ReplayedKeys(
        **counts,
        doubtful_places=tuple(DoubtfulPlace(**one) for one in said["doubtful_places"]),
        sequences=sequences,
        waited_s=said["waited_us"] / 1e6 / dilation,
    )


def _statement(one: Mapping[str, Any], dilation: int) -> ReplayedStatement:
    timed = one["timed"]
    return ReplayedStatement(
        statement=one["statement"],
        calls=one["calls"],
        response_ms=one["response_us"] / one["calls"] / 1e3 / dilation,
        timed=timed,
        service_ms=one["us"] / timed / 1e3 / dilation if timed else None,
        recorded_ms=one["recorded_us"] / timed / 1e3 if timed else None,
    )


def _most(statements: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those with the most time, the first the one with the most; the others as one at the end."""
    ordered = sorted(statements, key=lambda one: -max(one["us"], one["recorded_us"]))
    most, others = ordered[:STATEMENTS_MAX], ordered[STATEMENTS_MAX:]
    if not others:
        return most
    names = ("calls", "response_us", "timed", "us", "recorded_us")
    return [*most, {"statement": OTHERS} | {name: sum(one[name] for one in others) for name in names}]


NOTHING = Counts(calls=0, rows=0, exec_ms=0.0, wal_records=0, wal_images=0, wal_bytes=0, blocks=0)


def likeness_of(
    production: Mapping[str, Counts], here: Mapping[str, Counts], left_out: Iterable[str], *, whole: bool
) -> LikenessRecord:
    """Production's statements beside this run's, both by shape.

    Those that were ``left_out`` are not compared, nor those of the system's catalogs, which are of each server: those of
    ``pgdyno capture stats`` are among them.
    """
    not_sent = {shape_of(text) for text in left_out}
    wanted = (one for one in production if one not in not_sent and _CATALOG not in one)
    shapes = sorted(wanted, key=lambda one: -production[one].exec_ms)
    found = [(one, production[one], here.get(one, NOTHING)) for one in shapes[:STATEMENTS_MAX]]
    if others := shapes[STATEMENTS_MAX:]:
        found.append(
            (OTHERS, _sum([production[one] for one in others]), _sum([here.get(one, NOTHING) for one in others]))
        )
    return LikenessRecord(
        whole=whole,
        statements=tuple(
            ComparedStatement(statement=shape, production=Work(**asdict(there)), here=Work(**asdict(own)))
            for shape, there, own in found
        ),
    )


def _sum(counts: Sequence[Counts]) -> Counts:
    return Counts(**{name: sum(getattr(one, name) for one in counts) for name in asdict(NOTHING)})
