"""The reference's page on full_page_writes off: the verdict on each cell, and how pages reached the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.crash.cells import torn
from tools.crash.page import joined, pairs
from tools.fidelity.claim import Claim
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.crash.cells import Cell
    from tools.crash.record import Found, Record

CUTS = 2_000
CAUGHT_WITHIN_MINUTES = 5.0
PLAIN = "pieces-4096"
"""Tearing at 4 KiB without any prevention."""
PROTECTED = {
    "+strict": ("whole_in_small",),
    "+units": ("whole_in_small", "whole_in_unit"),
}
"""How a page must reach the device that a reading of torn-write prevention keeps whole, by the reading's end."""


def judge(record: Record) -> list[Claim]:
    """The claims on the matrix."""
    matrix = pairs(record, torn())
    decided = [item for _, item in matrix if item is not None and (item.failed or item.cuts >= CUTS)]
    plain = [item for _, item in matrix if item is not None and item.reading == PLAIN]
    slowest = max((_minutes(item) for item in plain if item.failed), default=None)
    apart = _told_apart(record)
    return [
        Claim(
            "each cell has its verdict",
            f"a torn page, or {CUTS:,} cuts without one",
            f"{len(decided)} of {len(matrix)} cells",
            len(decided) == len(matrix),
        ),
        Claim(
            "tearing at 4 KiB is caught",
            f"in less than {CAUGHT_WITHIN_MINUTES:g} minutes in each of {len([cell for cell in torn() if cell.reading == PLAIN])}",
            f"in {len([item for item in plain if item.failed])}"
            + (f", the slowest after {slowest:.1f} minutes" if slowest is not None else ""),
            bool(plain)
            and all(item.failed for item in plain)
            and len(plain) == len([cell for cell in torn() if cell.reading == PLAIN])
            and (slowest or 0.0) < CAUGHT_WITHIN_MINUTES,
        ),
        Claim(
            "the two readings of prevention are told apart",
            "one of them fails where the other does not",
            ", ".join(apart) or "nowhere",
            bool(apart),
        ),
    ]


def render(record: Record, judged: Sequence[Claim]) -> str:
    """The page."""
    return joined(
        "full_page_writes off, measured",
        "torn",
        record,
        judged,
        "`full_page_writes = off`, in each way of writing data, file system and reading of what may be left of a write. A cell ends with the"
        " first cut that fails. *Cannot be promised* is a cell without a failure where some pages reached the device in a way that its reading"
        " does not keep whole: another run may tear them.",
        md.table(
            ["cell", "verdict", "what failed first"],
            [
                [
                    cell.name,
                    verdict(item) if item else record.skipped.get(cell.name, "not measured"),
                    item.first_failure if item else "",
                ]
                for cell, item in pairs(record, torn())
            ],
        ),
        "## How pages reached the device",
        "All pages of 8 KiB that the server wrote in the recording, by the request that brought them. This needs no luck: a page that"
        " is across two units or two requests is not protected by any reading.",
        md.table(
            [
                "recorded on",
                "pages",
                "aligned request of 8 or 16 KiB",
                "inside an aligned 16 KiB of a larger one",
                "across such units",
                "two requests",
            ],
            _audits(record),
        ),
    )


def verdict(result: Found) -> str:
    """The verdict on a cell, in words."""
    if result.failed:
        return f"torn after {result.cuts:,} cut{'' if result.cuts == 1 else 's'}"
    open_pages = result.audit["pages"] - sum(result.audit[key] for key in _protected(result.reading))
    if open_pages:
        share = open_pages / result.audit["pages"]
        return f"not torn in {result.cuts:,} cuts; cannot be promised: {share:.1%} of pages are not kept whole"
    return f"not torn in {result.cuts:,} cuts"


def _protected(reading: str) -> tuple[str, ...]:
    return next((keys for end, keys in PROTECTED.items() if reading.endswith(end)), ())


def _minutes(result: Found) -> float:
    return result.cuts / result.cuts_per_minute if result.cuts_per_minute else 0.0


def _told_apart(record: Record) -> list[str]:
    """What was recorded on where one reading of prevention fails and the other does not."""
    failed: dict[str, dict[str, bool]] = {}
    for cell, item in pairs(record, torn()):
        if item is not None and _protected(cell.reading):
            failed.setdefault(_where(cell), {})[cell.reading] = bool(item.failed)
    return [where for where, by_reading in failed.items() if len(set(by_reading.values())) == 2]


def _where(cell: Cell) -> str:
    return cell.name.rpartition(", ")[0]


def _audits(record: Record) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for cell, item in pairs(record, torn()):
        where = _where(cell)
        if item is not None and where not in rows:
            pages = item.audit
            keys = ("whole_in_small", "whole_in_unit", "across_units", "across_requests")
            shares = [f"{pages[key] / max(1, pages['pages']):.1%}" for key in keys]
            rows[where] = [where, f"{pages['pages']:,}", *shares]
    return list(rows.values())
