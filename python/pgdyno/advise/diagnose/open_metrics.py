"""The verdict of the newest watch of a directory as OpenMetrics, for an alert: which limit binds, how sure, who fills the volume.

A watch that is old is shown with its age, and not as if it were now: an alert compares the instant with the present.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...analysis.binding.rules import LIMITS
from ..metrics.open_metrics import MetricFamily, Sample, lines_of
from .calendar import runs_of
from .diagnosis import Diagnosis, diagnose

PREFIX = "pgdyno_diagnose_"


def _limit(diagnosis: Diagnosis) -> Iterator[Sample]:
    verdict = diagnosis.binding.verdict
    for limit in LIMITS:
        yield (
            "",
            {"limit": limit, "role": (verdict.role or "") if limit == verdict.limit else ""},
            limit == verdict.limit,
        )


def _share(diagnosis: Diagnosis) -> Iterator[Sample]:
    for limit in LIMITS:
        yield "", {"limit": limit}, diagnosis.binding.verdict.shares.get(limit, 0.0)


def _sure(diagnosis: Diagnosis) -> Iterator[Sample]:
    yield "", {}, diagnosis.binding.verdict.confidence == "high"


def _consumers(diagnosis: Diagnosis) -> Iterator[Sample]:
    for consumer in diagnosis.consumers:
        yield "", {"role": diagnosis.consumers_role, "consumer": consumer.what}, min(1.0, consumer.share)


def _begin(diagnosis: Diagnosis) -> Iterator[Sample]:
    record = diagnosis.run.record
    yield "", {}, record.anchor.to_unix_ns(record.measure.begin_ns) / 1e9


def _seconds(diagnosis: Diagnosis) -> Iterator[Sample]:
    yield "", {}, diagnosis.run.record.measure.seconds


FAMILIES: tuple[MetricFamily, ...] = (
    MetricFamily("limit", "gauge", "", "1 for the limit that bound in the newest watch, 0 for the others; client: nothing binds.", _limit, PREFIX),
    MetricFamily("limit_share_ratio", "gauge", "ratio", "Share of the watch's seconds in which each limit bound.", _share, PREFIX),
    MetricFamily("confidence_high", "gauge", "", "Whether the verdict has high confidence.", _sure, PREFIX),
    MetricFamily("consumer_share_ratio", "gauge", "ratio", "Share of each use of the volume that binds, else of the data's.", _consumers, PREFIX),
    MetricFamily("watch_begin_seconds", "gauge", "seconds", "When the newest watch began, since 1970.", _begin, PREFIX),
    MetricFamily("watch_seconds", "gauge", "seconds", "How long it watched.", _seconds, PREFIX),
)  # fmt: skip
"""Every family, in the order of the text. Samples have the label ``server``."""


def lines(directories: Sequence[Path]) -> list[str]:
    """Families of the newest watch of each directory. :class:`~pgdyno.base.errors.InputError` where one has none."""
    newest = [runs_of(path)[-1] for path in directories]
    return lines_of(FAMILIES, [({"server": run.record.arm}, _judged(run.path)) for run in newest])


@functools.lru_cache(maxsize=16)
def _judged(path: Path) -> Diagnosis:
    """Once for each watch, which never changes."""
    return diagnose(path)
