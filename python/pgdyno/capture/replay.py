"""Sends the statements of a capture to an existing server, and judges what came of them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pgdyno import _engine, endpoint
from pgdyno.errors import InputError
from pgdyno.postgres import remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Pace = Literal["due", "gaps"]
"""A statement is sent at its time, or so long after the answer before it as the application waited."""
SHARE_MOST = 0.01
"""Of statements or of recorded time: a replay that loses more is not the captured load (issue 21, point 10)."""
_LIMIT = 10.0
"""A replay may take this multiple of the captured time, and a minute more; then it is ended."""


@dataclass(frozen=True)
class Replay:
    """What came of a replay."""

    summary: Mapping[str, Any]
    """As the engine says it; no value is in it."""

    @property
    def left_out(self) -> int:
        """Statements that were not sent, for a reason."""
        return int(sum(self.summary["left_out"].values()))

    def reasons(self) -> Iterator[str]:
        """Why it was not the captured load; nothing if it was."""
        statements, recorded_us = max(1, self.summary["statements"]), max(1, self.summary["recorded_us"])
        if self.summary["ended_by"]:
            yield f"it did not reach its end: {self.summary['ended_by']}"
        if self.summary["not_begun"]:
            yield f"{self.summary['not_begun']:,} statements were not begun"
        if (share := self.summary["newly_failed"] / statements) > SHARE_MOST:
            yield f"{share:.1%} of the statements failed that had not failed so in production"
        if (share := self.summary["no_longer_failed"] / statements) > SHARE_MOST:
            yield f"{share:.1%} of the statements did not fail as they had in production"
        if (share := self.left_out / statements) > SHARE_MOST:
            yield f"{share:.1%} of the statements were left out"
        if (share := self.summary["left_out_us"] / recorded_us) > SHARE_MOST:
            yield f"statements with {share:.1%} of the recorded time were left out"

    def document(self) -> dict[str, Any]:
        """As JSON."""
        reasons = list(self.reasons())
        return {**self.summary, "valid": not reasons, "reasons": reasons}


def replay(
    capture: str,
    dsn: str,
    *,
    speed: float = 1.0,
    pace: Pace = "due",
    users: Mapping[str, str] | None = None,
    databases: Mapping[str, str] | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Replay:
    """Send the statements of ``capture`` to the server of ``dsn``, as their users and in their databases.

    ``users`` and ``databases`` give others in their places. :class:`InputError` or :class:`~pgdyno.errors.HostError` when one
    of them cannot connect; then nothing was sent.
    """
    shown = _engine.run_json(["capture", "show"], {"capture": capture})
    endpoints = list(_endpoints(shown["places"], dsn, users or {}, databases or {}))
    captured_s = (shown["last_us"] - shown["first_us"]) / 1e6
    asked = {
        "capture": capture,
        "endpoints": endpoints,
        "speed": speed,
        "pace": pace,
        "limit_s": captured_s / speed * _LIMIT + 60.0,
    }
    summary: Mapping[str, Any] = {}
    with contextlib.closing(_engine.lines(["capture", "replay"], asked)) as lines:
        for line in lines:
            if "progress" in line and progress is not None:
                progress(line["progress"]["share"], f"replay: {line['progress']['answered']:,} statements")
            summary = line.get("summary", summary)
    return Replay(summary)


def _endpoints(
    places: list[Mapping[str, Any]], dsn: str, users: Mapping[str, str], databases: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """How each user reaches each database; each is tried."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    _require_known(users, {place["user"] for place in places}, "user")
    _require_known(databases, {place["database"] for place in places}, "database")
    given = conninfo_to_dict(dsn)
    for place in places:
        user = users.get(place["user"], place["user"]) or given.get("user")
        database = databases.get(place["database"], place["database"]) or given.get("dbname")
        named = {key: value for key, value in (("user", user), ("dbname", database)) if value}
        own = make_conninfo(dsn, **named)
        with remote.connect(own) as connection:
            server = endpoint.of_session(connection, own).order("pgdyno replay")
        yield {"user": place["user"], "database": place["database"], "server": server}


def _require_known(named: Mapping[str, str], there: set[str], what: str) -> None:
    for name in named:
        if name not in there:
            raise InputError(
                f"the capture has no statement of the {what} {name}",
                remedy=f"it has those of {', '.join(sorted(there)) or 'none'}",
            )
