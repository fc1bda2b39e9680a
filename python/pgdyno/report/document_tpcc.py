"""Transactions derived from TPC-C in the JSON that ``compare``, ``run`` and ``report`` print: a part of :mod:`pgdyno.report.document`."""

from __future__ import annotations

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.tpcc import tpcc_of
from pgdyno.report.part import DocumentPart, Share


class TpccOf(DocumentPart):
    """An arm over its replicates; no result of TPC-C."""

    nopm: float
    """New-Orders per minute, counted at the client."""
    tpm: float
    """Transactions per minute, counted at the client."""
    tpm_of_server: float | None
    """Commits and rollbacks of all databases of the server per minute, as HammerDB counts; null where they were not sampled."""
    other_share: Share | None
    """Share of these that the clients did not make."""
    tpm_printed: float | None
    """The same as HammerDB printed it; null where it did not drive."""
    tpm_per_nopm: float | None
    tpm_per_nopm_error: float | None
    """Its standard error, by the number of transactions."""
    tpm_per_nopm_by_mix: float | None
    """What the mix gives; null where no check of it was made."""
    nopm_per_warehouse: float
    paced: bool
    """Whether it is at most what users with the specification's keying and think times ask for: 12.86."""
    warehouses: int
    warehouses_used: float | None
    """Warehouses with a New-Order, by the tables; mean of the replicates. Null where they were not asked."""
    time_share: dict[str, Share]
    """Type of transaction -> its share of the time that clients waited for transactions."""


def tpcc_document(arm: ArmSummary) -> TpccOf | None:
    """Null of other workloads."""
    tpcc = tpcc_of(arm)
    return None if tpcc is None else TpccOf.model_validate(tpcc)
