"""The loads of an experiment in the JSON that ``compare``, ``run`` and ``report`` print: a part of :mod:`pgdyno.report.document`."""

from __future__ import annotations

from typing import Literal

from pgdyno.analysis.loads import LoadFigures
from pgdyno.report.part import DocumentPart, Share


class LoadedVolumeOf(DocumentPart):
    """What one volume did during a load."""

    iops: float | None
    write_mib_per_s: float | None
    write_bytes: float | None
    """From the beginning of the load to its end, the checkpoint's too."""
    read_ms_mean: float | None
    """Mean latency of its reads; null where there were none."""
    write_ms_mean: float | None
    time_above_limit: dict[str, Share]
    """Limit -> share of the load in which requests waited for it; empty for volumes without limits."""
    course_mib_per_s: list[tuple[float, float]]
    """(seconds since filling began, MiB/s written)."""


class LoadOf(DocumentPart):
    """One load: a data set, made once and cloned for each run."""

    title: str
    loader: Literal["native", "pgbench", "restore"]
    sessions: int
    """How many worked at a time, at most."""
    limited: bool
    """Whether it was done on an arm's own volumes with their limits on; otherwise it says nothing of a volume."""
    specs: dict[str, str]
    """Role -> volume of a limited load."""
    dilation: int
    """How many times slower than the host its time went; every figure is in its own time."""
    rows: int
    seconds: float
    """With keys, indexes and the checkpoint at its end."""
    rows_per_s: float | None
    row_mib_per_s: float | None
    """Rows as COPY sends them, while any were copied; null where the loader does not tell it."""
    steps_s: dict[str, float]
    """Step -> seconds in which at least one session was at it."""
    volumes: dict[str, LoadedVolumeOf]
    """By role; those that were sampled."""


def load_of(figures: LoadFigures) -> LoadOf:
    """The document of a load."""
    record = figures.record
    return LoadOf(
        title=record.title,
        loader=record.loader,
        sessions=record.sessions,
        limited=record.limited,
        specs=dict(record.volumes),
        dilation=record.dilation,
        rows=figures.rows,
        seconds=figures.seconds,
        rows_per_s=figures.rows_per_s,
        row_mib_per_s=figures.row_mib_per_s,
        steps_s=dict(record.seconds),
        volumes={volume.role: LoadedVolumeOf.model_validate(volume) for volume in figures.volumes},
    )
