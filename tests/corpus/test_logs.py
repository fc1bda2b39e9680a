"""Logs as servers, providers, runtimes and people make them, each read into a capture, or refused by its cause."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import PgdynoError
from pgdyno.capture.plan import offsets

from . import cases

if TYPE_CHECKING:
    from pathlib import Path

    from . import Case

_READ_S = 20.0


def read(logs: list[Path], output: Path, prefix: str | None = None, zones: dict[str, int] | None = None) -> Any:
    """The account of a reading."""
    document = {"logs": [str(log) for log in logs], "output": str(output), "prefix": prefix, "zones": zones or {}}
    documents: list[dict[str, Any]] = []
    with contextlib.closing(engine.lines(["capture", "read"], document)) as lines:
        documents.extend(line["summary"] for line in lines if "summary" in line)
    return documents[-1]


def sessions(capture: Path) -> list[dict[str, Any]]:
    """Each session with its statements and values, in the order in which they are in the capture."""
    sessions: list[dict[str, Any]] = []
    shown = engine.run_json(["capture", "show"], {"capture": str(capture), "values": False}, timeout_s=_READ_S)
    for number in range(1, shown["sessions"] + 1):
        document = {"capture": str(capture), "values": True, "session": number}
        sessions.append(engine.run_json(["capture", "show"], document, timeout_s=_READ_S))
    return sessions


def _us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


def _statement(call: dict[str, Any]) -> list[Any]:
    """Text, values, and microseconds or SQLSTATE; empty where the log has neither."""
    return [call["text"], call["values"], call["error"] or ("" if call["us"] is None else call["us"])]


@pytest.mark.parametrize("case", cases("logs"))
def test_a_log_is_read_as_it_was_written_or_refused_for_its_cause(case: Case, tmp_path: Path) -> None:
    expected, output = dict(case.expected), tmp_path / "a.capture"
    logs = [case.path(name) for name in expected.pop("logs")]
    if "written" in expected:
        copy = tmp_path / logs[0].name
        copy.write_bytes(logs[0].read_bytes())
        at = datetime.fromisoformat(expected.pop("written")).timestamp()
        os.utime(copy, (at, at))
        logs = [copy]
    prefix, zone = expected.pop("prefix", None), expected.pop("log_timezone", None)
    zones = None if zone is None else offsets(zone)
    if "error" in expected:
        with pytest.raises(PgdynoError) as refused:
            read(logs, output, prefix, zones)
        assert refused.value.code == expected["error"]
        assert refused.value.data.get("languages") == expected.get("languages")
        assert not output.exists()
        return
    account = read(logs, output, prefix, zones)
    documents = sessions(output)
    calls = sorted((call for session in documents for call in session["calls"]), key=lambda call: call["due_us"])
    seen = {
        "calls": account["calls"],
        "sessions": len(documents),
        "format": account["files"][0][1],
        "first": account["first_us"],
        "last": account["last_us"],
        "statements": [_statement(call) for call in calls],
        "order": [call["text"] for session in documents for call in session["calls"]],
        "transactions": [call["transaction"] for session in documents for call in session["calls"]],
        "zones": [f"{name} {taken['offset_s']} {taken['by']}" for name, taken in account["zones"].items()],
        "languages": list(account["other_languages"]),
        "users": sorted({session["session"]["user"] for session in documents}),
        "applications": sorted({session["session"]["application"] for session in documents}),
        "account": {key: account[key] for key in expected.get("account", {})},
    }
    for key in ("first", "last"):
        if key in expected:
            expected[key] = _us(expected[key])
    assert {key: seen[key] for key in expected} == expected


def test_each_zone_of_the_database_is_read_in_each_season(tmp_path: Path) -> None:
    import zoneinfo

    ambiguous: dict[str, int] = {}
    names = sorted(name for name in zoneinfo.available_timezones() if name not in ("Factory", "localtime"))
    assert len(names) > 400
    for month in (1, 7):
        at = datetime(2026, month, 15, 12, 0, 0, 500_000, tzinfo=UTC)
        written: dict[str, set[float]] = {}
        for name in names:
            there = at.astimezone(zoneinfo.ZoneInfo(name))
            letters, offset = there.tzname(), there.utcoffset()
            assert letters is not None and offset is not None
            written.setdefault(f"{there:%Y-%m-%d %H:%M:%S.500} {letters}", set()).add(offset.total_seconds())
        by_letters: dict[str, list[str]] = {}
        for text in written:
            by_letters.setdefault(text.rsplit(" ", 1)[1], []).append(text)
        # What is one instant has one meaning: all of it is in one log, whose first instant is its last.
        plain = [
            texts[0] for texts in by_letters.values() if len(texts) == 1 and texts[0].rsplit(" ", 1)[1] not in _SEVERAL
        ]
        account = read([_log(tmp_path / f"{month}.log", plain)], tmp_path / f"{month}.capture")
        assert account["calls"] == len(plain) > 50
        assert (account["first_us"], account["last_us"]) == (_us(at.isoformat()) - 1000,) * 2
        assert account["zones"] == {}
        for name in names:
            there = at.astimezone(zoneinfo.ZoneInfo(name))
            letters = there.tzname()
            assert letters is not None
            if letters in _SEVERAL and f"{letters} {there.utcoffset()}" not in ambiguous:
                ambiguous[f"{letters} {there.utcoffset()}"] = 1
                log = _log(tmp_path / f"{month}-{len(ambiguous)}.log", [f"{there:%Y-%m-%d %H:%M:%S.500} {letters}"])
                account = read([log], log.with_suffix(".capture"), zones=offsets(name))
                assert account["first_us"] == _us(at.isoformat()) - 1000, name
                assert account["zones"][letters]["by"] == "given"
    assert len(ambiguous) >= 8


_SEVERAL = ("CDT", "CST", "IST", "PST")
"""Names of several places, of which a log does not say which one it means."""


def _log(path: Path, instants: list[str]) -> Path:
    lines = [f"{text} [{pid}] LOG:  duration: 1.000 ms  statement: SELECT 1\n" for pid, text in enumerate(instants, 1)]
    path.write_text("".join(lines), encoding="utf-8")
    return path
