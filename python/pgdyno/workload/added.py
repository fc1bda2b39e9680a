"""Adds what several drivers of one load said: seconds by their instant, histograms bucket by bucket, counts by counts.

What cannot be added is left out: percentiles of lateness belong to one driver, and each has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgdyno.workload import histogram
from pgdyno.workload.native_record import SECOND_NS, DriverOutput, Line

from ..base.errors import PgdynoError

_COUNTS = ("succeeded", "rolled_back", "failed", "skipped_late", "skipped_ended", "retries")
_OF_LINE = (*_COUNTS, "cpu_ns", "connections_lost", "down_ns")
_OF_SUMMARY = (
    "scheduled_with_warmup",
    "settled_in_warmup",
    "process_user_ns",
    "process_system_ns",
    "clients_disconnected",
)
_LATEST = ("connect_ns", "begin_late_ns", "woke_late_ns")
_UNTOLD = {"count": 0}
"""Lateness of several drivers: see the module."""


def said(parts: Sequence[DriverOutput]) -> DriverOutput:
    """What one driver would have said; each part has its summary, and all began at the same instant."""
    readies = [part.ready for part in parts]
    ready = readies[0] | {
        "clients": sum(ready["clients"] for ready in readies),
        "connect_ns": max(ready["connect_ns"] for ready in readies),
    }
    at: dict[int, list[Line]] = {}
    for part in parts:
        for second in part.seconds:
            at.setdefault(second["begin_ns"], []).append(second)
    seconds = [line(at[begin_ns]) | {"warmup": at[begin_ns][0]["warmup"]} for begin_ns in sorted(at)]
    return DriverOutput(ready, seconds, _summary([part.summary for part in parts if part.summary is not None]))


def line(lines: Sequence[Line]) -> Line:
    """Seconds or summaries of the same workload as one, without what only one of these has."""
    return {
        "begin_ns": min(line["begin_ns"] for line in lines),
        "end_ns": max(line["end_ns"] for line in lines),
        **_sums(lines, _OF_LINE),
        "scripts": [_part(same, (*_COUNTS,), ("response_us", "service_us")) for same in _by_place(lines, "scripts")],
        "statements": [_part(same, ("count",), ("service_us",)) for same in _by_place(lines, "statements")],
        "queries": _added([line["queries"] for line in lines]),
        "errors": _added([line["errors"] for line in lines]),
        "lag_us": _UNTOLD,
        "wake_us": _UNTOLD,
    }


def summary_of(part: DriverOutput) -> Line:
    """The summary of a driver that was lost before it could say one: its seconds after the warm-up, of which there are some.

    What it had begun since the last of them is in no account.
    """
    measured = [second for second in part.seconds if not second["warmup"]]
    result = line(measured)
    settled = [sum(second[name] for name in _COUNTS if name != "retries") for second in part.seconds]
    warmup = sum(count for count, second in zip(settled, part.seconds, strict=True) if second["warmup"])
    return result | {
        **_rates(result),
        "connect_ns": part.ready["connect_ns"],
        "begin_late_ns": 0,
        "woke_late_ns": 0,
        **dict.fromkeys(_OF_SUMMARY, 0),
        "scheduled_with_warmup": sum(settled),
        "settled_in_warmup": warmup,
        "inputs": {},
        "reconnects_failed": {},
        "reconnect_error": None,
        "ended_by": None,
        "unit": "us",
    }


def _summary(summaries: Sequence[Line]) -> Line:
    result = line(summaries)
    return result | {
        **_rates(result),
        **_sums(summaries, _OF_SUMMARY),
        **{name: max(summary[name] for summary in summaries) for name in _LATEST},
        "inputs": _added([summary["inputs"] for summary in summaries]),
        "reconnects_failed": _added([summary["reconnects_failed"] for summary in summaries]),
        "reconnect_error": _first(summaries, "reconnect_error"),
        "ended_by": _first(summaries, "ended_by"),
        "unit": "us",
    }


def _first(summaries: Sequence[Line], name: str) -> Any:
    """What the first of them says that says something."""
    return next((summary[name] for summary in summaries if summary[name] is not None), None)


def _rates(line: Line) -> dict[str, float]:
    seconds = max(1, line["end_ns"] - line["begin_ns"]) / SECOND_NS
    return {"tps": line["succeeded"] / seconds, "qps": sum(line["queries"].values()) / seconds}


def _by_place(lines: Sequence[Line], name: str) -> list[list[Line]]:
    """The scripts, or statements, that stand at the same place: drivers of one workload have the same."""
    names = {tuple(entry["name"] for entry in line[name]) for line in lines}
    if len(names) != 1:
        raise PgdynoError(
            f"the drivers of one load ran different {name}",
            remedy="this is a bug in pgdyno if `pgdyno doctor` finds nothing",
        )
    return [list(same) for same in zip(*(line[name] for line in lines), strict=True)]


def _part(same: Sequence[Line], counts: Sequence[str], histograms: Sequence[str]) -> Line:
    return (
        dict(same[0])
        | _sums(same, counts)
        | {name: histogram.added(line[name] for line in same) for name in histograms}
    )


def _sums(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, int]:
    return {name: sum(line[name] for line in lines) for name in names}


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for count in counts for name in count)
    return {name: sum(count.get(name, 0) for count in counts) for name in names}
