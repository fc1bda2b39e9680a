"""A thread or a descriptor that cannot be had: a replay and a sample end with the reason, and no session stays."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_HOST
from pgdyno.machine.waiting import wait_until

from ..support import limits
from ..support.commands import pgdyno

if TYPE_CHECKING:
    from collections.abc import Callable

    from .shop import Shop

    Limit = Callable[[int, Path], AbstractContextManager[None]]

PATIENCE_S = 20.0
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name IN ('shop', 'pgdyno drive', 'pgdyno replay')"
LIMITS = [
    *((limits.threads, count, "host.threads") for count in (2, 4, 5)),
    *((limits.processes, count, "host.threads") for count in (2, 5)),
    *((limits.files, count, "host.descriptors") for count in (4, 5, 6, 8)),
]


def gone(shop: Shop) -> bool:
    """Whether no session of an engine is left."""
    with shop.cluster.connect() as connection:
        return not connection.execute(SESSIONS.encode()).fetchall()


@pytest.mark.parametrize(("limit", "count", "code"), LIMITS)
def test_a_replay_that_gets_too_little_ends_with_the_reason(
    shop: Shop, tmp_path: Path, limit: Limit, count: int, code: str
) -> None:
    """It has a thread of lanes, and up to sixteen that log in."""
    copy = shop.copy("limited")
    with limit(count, tmp_path):
        ended = shop.replay(copy, "--yes-write", "--speed", "20")
    assert ended.error is not None, ended.out
    assert (ended.error.code, ended.code) == (code, EXIT_HOST), ended.err
    assert wait_until(lambda: gone(shop), PATIENCE_S)


@pytest.mark.parametrize(("limit", "count", "code"), LIMITS)
def test_a_sample_that_gets_too_little_ends_with_the_reason(
    shop: Shop, tmp_path: Path, limit: Limit, count: int, code: str
) -> None:
    copy = shop.copy("limited")
    chosen = ("--yes-write", "--database", f"shop={copy}", "--warmup", "0s", "--duration", "1s", "--clients", "16",
              "--allow-outside", "role:postgres")  # fmt: skip
    with limit(count, tmp_path):
        ended = pgdyno("drive", shop.capture, "--dsn", shop.cluster.dsn, *chosen)
    assert ended.error is not None, ended.out
    assert (ended.error.code, ended.code) == (code, EXIT_HOST), ended.err
    assert wait_until(lambda: gone(shop), PATIENCE_S)
