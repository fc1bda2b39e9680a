"""Sessions that others wait for, by pg_blocking_pids: who they are, what they hold and for how long, and the statement that ends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...base.text import duration
from ...results import StoredRun

TABLE = "probe/blockers"
STANDS_S = 2.0
"""Age of a transaction from which others wait for that one: locks that are held for less are those of a busy server."""
SHOWN_MAX = 3


@dataclass(frozen=True)
class Blocker:
    """A session that holds what others wait for, as it was seen last."""

    pid: int
    """0: a transaction that was prepared and has no session."""
    application: str | None
    user: str | None
    database: str | None
    client: str | None
    """Address; None of a local one, or where it may not be seen."""
    state: str | None
    """``idle in transaction``, ``active``, ...; None where it may not be seen."""
    transaction_s: float | None
    """Age of its transaction."""
    state_s: float | None
    """How long it has been in that state."""
    lock: str
    """``a row of public.orders (ExclusiveLock of its transaction)``."""
    waiting: int
    """Sessions that waited for locks then, most of them for this one."""
    longest_wait_s: float

    @property
    def is_idle(self) -> bool:
        """Whether its client does nothing while others wait."""
        return (self.state or "").startswith("idle in transaction")

    @property
    def statement(self) -> str:
        """What ends it."""
        if self.pid == 0:
            return "SELECT gid, prepared, owner FROM pg_prepared_xacts; ROLLBACK PREPARED 'gid'"
        return f"SELECT pg_terminate_backend({self.pid})"

    @property
    def name(self) -> str:
        """``session 4711 (application "app", user monitor, database shop)``."""
        if self.pid == 0:
            return "a prepared transaction, which has no session,"
        parts = [
            f"application {self.application}" if self.application else "",
            f"user {self.user}" if self.user else "",
            f"database {self.database}" if self.database else "",
            f"from {self.client}" if self.client else "",
        ]
        known = ", ".join(part for part in parts if part)
        return f"session {self.pid}" + (f" ({known})" if known else "")


def blockers_of(run: StoredRun) -> tuple[Blocker, ...]:
    """Those that held a lock for long, the one that was seen most often first."""
    table = run.table(TABLE)
    of_pid: dict[int, list[dict[str, Any]]] = {}
    for row in table.to_pylist() if table.num_rows else []:
        of_pid.setdefault(row["pid"], []).append(row)
    numbers = [(len(rows), _blocker(rows[-1])) for rows in of_pid.values()]
    standing = [
        (seen, item)
        for seen, item in numbers
        if max(item.transaction_s or 0.0, item.longest_wait_s if item.pid == 0 else 0.0) >= STANDS_S
    ]
    ordered = sorted(standing, key=lambda item: (-item[0], -(item[1].transaction_s or 0.0)))
    return tuple(item for _, item in ordered[:SHOWN_MAX])


def blocker_words(blocker: Blocker) -> str:
    """Who holds what, since when, and how many wait."""
    idle = f" and is {blocker.state}" if blocker.is_idle else f" and is {blocker.state}" if blocker.state else ""
    since = "" if blocker.state_s is None or not blocker.state else f", for {duration(blocker.state_s)}"
    age = "" if blocker.transaction_s is None else f"; its transaction is {duration(blocker.transaction_s)} old"
    return (
        f"{blocker.name} holds {blocker.lock}{idle}{since}{age}; {blocker.waiting:,} {'session waits' if blocker.waiting == 1 else 'sessions wait'}"
        f" for locks, for up to {duration(blocker.longest_wait_s)}"
    )


def ending_words(blockers: Sequence[Blocker]) -> str | None:
    """The statement that ends the first of them, as a choice; None without one."""
    if not blockers:
        return None
    blocker = blockers[0]
    if blocker.pid == 0:
        return f"end the prepared transaction, if its work may be lost: {blocker.statement}"
    then = ""
    if blocker.is_idle:
        then = "; idle_in_transaction_session_timeout would end such a session by itself"
    return f"end the session that holds the lock, if its work may be rolled back: {blocker.statement}{then}"


def _blocker(row: dict[str, Any]) -> Blocker:
    return Blocker(
        pid=row["pid"],
        application=row["application_name"] or None,
        user=row["usename"],
        database=row["datname"],
        client=row["client_addr"],
        state=row["state"],
        transaction_s=_seconds(row["transaction_ms"]),
        state_s=_seconds(row["state_ms"]),
        lock=_lock(row),
        waiting=row["waiting"] or 0,
        longest_wait_s=_seconds(row["longest_wait_ms"]) or 0.0,
    )


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else max(0.0, ms / 1e3)


def _lock(row: dict[str, Any]) -> str:
    """What is held, in words."""
    kind, relation = row["lock_type"], row["relation"]
    mode = f" ({row['lock_mode']})" if row["lock_mode"] else ""
    if kind in ("transactionid", "tuple"):
        return f"a row of {relation}" if relation else "a row that it changed"
    if kind == "relation":
        return f"{relation or 'a table of another database'}{mode}"
    if kind == "advisory":
        return f"an advisory lock{mode}"
    return f"a lock of type {kind}{mode}" if kind else "a lock"
