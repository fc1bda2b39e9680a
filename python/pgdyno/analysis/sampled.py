"""Samples: whether what was drawn is the mixture of transactions that the application had."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis import reading
from pgdyno.analysis.finding import CheckResult

from ..base.text import percent
from ..results.work_record import SampleRecord

SHARE_MOST = 0.01
"""Share of transactions: the limit that also holds for statements which a replay leaves out."""


def sample_findings(record: SampleRecord) -> Iterator[CheckResult]:
    """The checks of a sample."""
    yield from reading.findings(record.reading)
    share = record.left_out / max(1, record.transactions)
    figure = (
        f"{record.left_out:,} of {record.transactions:,} transactions of the capture ({percent(share)}) are never drawn,"
        " because they have a statement that cannot be sent, or not again"
    )
    if share > SHARE_MOST and not record.reading.accepted:
        yield CheckResult("mixture", "invalid", f"{figure}; {reading.ACCEPT}")
    elif record.left_out:
        yield CheckResult("mixture", "warn", figure)
