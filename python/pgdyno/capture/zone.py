"""``log_timezone``: how far the names of a zone are ahead of UTC, as a server writes them into its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..base.errors import InputError

_FIRST_YEAR = 1996
_LAST_YEAR = 2038


def offsets(name: str) -> dict[str, int]:
    """Seconds ahead of UTC by the names that a zone has in its seasons, the latest of each; ``name`` is as in ``log_timezone``."""
    import zoneinfo

    try:
        zone = zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"--log-timezone: there is no zone {name}",
            remedy="give it as `SHOW log_timezone` prints it, as Asia/Kolkata",
            code="capture.zone.unknown",
            data={"zone": name},
        ) from None
    offsets: dict[str, int] = {}
    at = datetime(_FIRST_YEAR, 1, 15, tzinfo=UTC)
    while at.year < _LAST_YEAR:
        there = at.astimezone(zone)
        offset, letters = there.utcoffset(), there.tzname()
        if offset is not None and letters is not None and letters[:1].isalpha():
            offsets[letters] = int(offset.total_seconds())
        at += timedelta(days=30)
    return offsets
