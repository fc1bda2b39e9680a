"""PostgreSQL's own timers, for a world in which everything takes longer.

A dilated run slows storage and arrivals; a checkpoint every five minutes would come too often beside them, a deadlock
would be looked for too soon. So every setting that is a time is multiplied, whether it is the server's default or what
was asked for. What counts bytes, pages or planner costs is left alone: those are ratios, and stay right.

Not every timer is a setting. A checkpoint's naps between writes (100 ms), the back-off of spinlocks, the snapshot of a
standby every 15 s and the flush of statistics every second are constants of the server, and become that many times
finer in the subject's time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..base.errors import InputError

_MS = {"us": 0.001, "ms": 1.0, "s": 1_000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
_VALUE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*")
_INT_MAX = 2_147_483_647


@dataclass(frozen=True)
class Timer:
    """A setting that is a time."""

    unit: str
    """What a number without a unit means."""
    default: int
    """In that unit; 0 and -1 switch it off, and are not multiplied."""
    max: int
    """The largest that the server takes, in that unit."""
    real: bool = False
    """Whether the server takes a fraction of the unit; rounded, a small time would end as 0, which is off."""
    since: int = 12
    """Major version that has it first."""
    capped: bool = False
    """Whether the largest will do where more were wanted: it bounds how long a peer may be silent, and slows nothing."""
    bare: bool = False
    """Whether the server takes it as a plain number only."""


TIMERS: dict[str, Timer] = {
    "bgwriter_delay": Timer("ms", 200, 10_000),
    "wal_writer_delay": Timer("ms", 200, 10_000),
    "commit_delay": Timer("us", 0, 100_000, bare=True),
    "checkpoint_timeout": Timer("s", 300, 86_400),
    "checkpoint_warning": Timer("s", 30, _INT_MAX),
    "archive_timeout": Timer("s", 0, 1_073_741_823),
    "autovacuum_naptime": Timer("s", 60, 2_147_483),
    "autovacuum_vacuum_cost_delay": Timer("ms", 2, 100, real=True),
    "vacuum_cost_delay": Timer("ms", 0, 100, real=True),
    "deadlock_timeout": Timer("ms", 1_000, _INT_MAX),
    "lock_timeout": Timer("ms", 0, _INT_MAX),
    "statement_timeout": Timer("ms", 0, _INT_MAX),
    "transaction_timeout": Timer("ms", 0, _INT_MAX, since=17),
    "idle_in_transaction_session_timeout": Timer("ms", 0, _INT_MAX),
    "idle_session_timeout": Timer("ms", 0, _INT_MAX, since=14),
    "authentication_timeout": Timer("s", 60, 600, capped=True),
    "client_connection_check_interval": Timer("ms", 0, _INT_MAX, since=14),
    "wal_sender_timeout": Timer("ms", 60_000, _INT_MAX),
    "wal_receiver_timeout": Timer("ms", 60_000, _INT_MAX),
    "wal_receiver_status_interval": Timer("s", 10, 2_147_483),
    "wal_retrieve_retry_interval": Timer("ms", 5_000, _INT_MAX),
    "max_standby_archive_delay": Timer("ms", 30_000, _INT_MAX),
    "max_standby_streaming_delay": Timer("ms", 30_000, _INT_MAX),
    "recovery_min_apply_delay": Timer("ms", 0, _INT_MAX),
    "log_min_duration_statement": Timer("ms", -1, _INT_MAX),
    "log_min_duration_sample": Timer("ms", -1, _INT_MAX, since=13),
    "log_autovacuum_min_duration": Timer("ms", 600_000, _INT_MAX, since=15),
    "log_startup_progress_interval": Timer("ms", 10_000, _INT_MAX, since=15),
    "tcp_user_timeout": Timer("ms", 0, _INT_MAX),
    "wal_summary_keep_time": Timer("min", 14_400, 35_791_394, since=17),
    "idle_replication_slot_timeout": Timer("s", 0, _INT_MAX, since=18),
}
"""Name -> default and range, as ``pg_settings`` of 15.18 and 18.6 has them (``boot_val``, ``max_val``)."""


def dilated(settings: Mapping[str, str], dilation: int, major: int) -> dict[str, str]:
    """``settings`` of a server of version ``major`` with every timer ``dilation`` times longer, those left alone too.

    :class:`InputError` names the timer that the server does not take so long.
    """
    if dilation == 1:
        return dict(settings)
    chosen = {name.lower(): value for name, value in settings.items()}  # the server takes names in any case
    for name, timer in TIMERS.items():
        if timer.since > major:
            continue
        written = chosen.get(name, str(timer.default))
        value_ms = _milliseconds(written, timer)
        if value_ms is None or value_ms <= 0:
            continue  # switched off, or for the server to refuse
        wanted = value_ms * dilation / _MS[timer.unit]
        if not timer.real:
            wanted = round(wanted)
        if wanted > timer.max and not timer.capped:
            raise InputError(
                f"dilation {dilation} needs {name} = {_plain(wanted)} {timer.unit}, and PostgreSQL takes {timer.max}"
                " at most",
                remedy=f"use a dilation of {int(timer.max * _MS[timer.unit] / value_ms)} at most, or a smaller {name}",
            )
        chosen[name] = f"{_plain(min(wanted, timer.max))}{'' if timer.bare else timer.unit}"
    return chosen


def _milliseconds(written: str, timer: Timer) -> float | None:
    match = _VALUE.fullmatch(written)
    return None if match is None else float(match[1]) * _MS[match[2] or timer.unit]


def _plain(number: float) -> str:
    """A number as the server reads it: whole ones without a fraction, none with an exponent."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
