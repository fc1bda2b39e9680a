"""Findings that the guide answers: the sentence stands there."""

from __future__ import annotations

from tests.rude.row import Answered

ROWS = (
    Answered(
        "A20",
        "docs/concept/twin.md",
        "**What it does not detect.** Separate limits on reads and writes, credits for more than ten seconds, caches in the"
        " device that are larger than the region",
    ),
    Answered("A29", "docs/guide/run.md", "the finished runs stay in the experiment's directory"),
)
