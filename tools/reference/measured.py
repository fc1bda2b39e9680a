"""The pages of the records in ``docs/reference/measured``: each says what its record has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.crash import page as crash_page
from tools.crash import torn_page
from tools.crash.record import Record as Cuts
from tools.measured import committed
from tools.snapshot import page as snapshot_page
from tools.snapshot.record import Record as Sets

if TYPE_CHECKING:
    from collections.abc import Iterator


def pages() -> dict[str, str]:
    """By the name of the page; a bench without a record has none."""
    return dict(_pages())


def _pages() -> Iterator[tuple[str, str]]:
    if (cuts := Cuts.load(committed("crash"))) is not None:
        yield "power-cuts.md", crash_page.render_crash(cuts, crash_page.judge_crash(cuts))
    if (torn := Cuts.load(committed("torn"))) is not None:
        yield "torn-pages.md", torn_page.render(torn, torn_page.judge(torn))
    if (sets := Sets.load(committed("snapshot"))) is not None:
        yield "snapshots.md", snapshot_page.render(sets, snapshot_page.judge(sets))
