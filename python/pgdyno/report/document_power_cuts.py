"""Power cuts in the JSON that ``compare``, ``run`` and ``report`` print: a part of :mod:`pgdyno.report.document`."""

from __future__ import annotations

from pgdyno.analysis.arm import ArmSummary
from pgdyno.report.part import DocumentPart

from ..analysis.durability import cuts_of, excluded


class FailedCutOf(DocumentPart):
    """A power cut that a database did not survive."""

    id: str
    """Its name for `pgdyno crashtest --replay`."""
    stratum: str
    """What the server did at its instant."""
    failures: dict[str, str]
    """Check that found something -> what it said."""


class PowerCutsOf(DocumentPart):
    """The power cuts of an arm in one reading, all replicates together."""

    reading: str
    """What was left of a write that was not durable."""
    cuts: int
    failed: int
    by_check: dict[str, int]
    """Check -> cuts in which it found something."""
    excluded_1_in: float | None
    """Fewer than one in this number fail, with 95 %; null where one failed or none was made."""
    first_failed: list[FailedCutOf]
    """The first that failed in each replicate; their recordings are kept."""
    audit: list[dict[str, int]]
    """How the pages of 8 KiB that the server wrote reached the device, for each replicate."""
    verdict: str


def power_cuts_document(arm: ArmSummary) -> list[PowerCutsOf]:
    """Empty of experiments without power cuts."""
    return [
        PowerCutsOf(
            reading=cut.reading,
            cuts=cut.cuts,
            failed=cut.failed,
            by_check=cut.by_check,
            excluded_1_in=None if cut.failed or not cut.cuts else excluded(cut.cuts),
            first_failed=[
                FailedCutOf(id=failed.id, stratum=failed.stratum, failures=failed.failures)
                for failed in cut.first_failed
            ],
            audit=[run.audit for run in cut.runs],
            verdict=cut.verdict,
        )
        for cut in cuts_of(arm)
    ]
