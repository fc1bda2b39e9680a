"""A record without a machine: every point as the model says, to be spoilt by a test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np

from tools.fidelity import kinds, matrix, measure
from tools.fidelity.cell import Cell
from tools.fidelity.host import Second
from tools.fidelity.latency import Latency
from tools.fidelity.point import PERCENTILES, Daemon, Machine, Paired, Point, Side

BEGIN = datetime(2026, 11, 21, tzinfo=UTC)
MACHINE = Machine(
    build_hash="0123456789abcdef", cores=2, memory_gib=24, kernel="6.18", processor="some CPU", fio="fio-3", qemu="7.2"
)


def side(iops: float, block_kib: int, latency_ns: np.ndarray[Any, Any]) -> Side:
    """Rate and latency from single values."""
    exact = {percent: float(np.percentile(latency_ns, percent)) for percent in PERCENTILES}
    bins = Latency.of_values(latency_ns).bins()
    return Side(iops=iops, mib_per_s=iops * block_kib / 1024, latency_ns=bins, exact_ns=exact)


def point(cell: Cell, number: int = 0) -> Point:
    """A cell whose measurement is what the model says."""
    job = cell.job
    result = {"null": None}.get(cell.volume, 1000.0 if job.block_kib == 256 else 3000.0)
    value = 12_000.0 if cell.volume == kinds.FOUR or cell.instance else result
    rng = np.random.default_rng(number)
    mean_ns = 600e3 if job.depth == 1 else job.depth / (value or 1e5) * 1e9
    draws = 200_000 if cell.part == "rate" else 2_000
    latency = np.full(draws, mean_ns) if "fifo" in cell.volume else rng.gamma(2, mean_ns / 2, draws)
    modelled = side(value or 1e5, job.block_kib, latency)
    pgdyno = cell.world == "pgdyno"
    return Point(
        cell=cell,
        begin=BEGIN + timedelta(minutes=number),
        asked_iops=value,
        measured=modelled.model_copy(update={"exact_ns": None}),
        modelled=modelled if measure.models(cell) else None,
        paired=paired() if measure.pairs(cell) else None,
        daemon=daemon() if pgdyno else None,
        seconds=[second(index, value or 1e5, job.block_kib) for index in range(job.seconds + job.ramp_s)],
    )


def paired(close: int = 1_000, median_error: float = 0.0) -> Paired:
    """A thousand requests, so many of them close to their own modelled time."""
    return Paired(requests=1_000, close=close, median_error=median_error)


def daemon(late: int = 0) -> Daemon:
    """Counters of a daemon that was late ``late`` times in 1,000, by a tenth of the modelled time."""
    return Daemon(
        requests=1_000, late=late, overrun=0, lateness_ns=late * 100, modelled_ns=1_000_000, lateness_p99_ns=1e4,
        cpu_ns_per_request=9e3, path_read_ns=30_000, path_write_ns=25_000, replay_identical=1_000, replay_grants=1_000,
    )  # fmt: skip


def second(index: int, iops: float, block_kib: int, steal_ticks: int = 0) -> Second:
    """One second at a rate."""
    requests = round(iops)
    return Second(
        begin_ns=index * 10**9, length_ns=10**9, requests=requests, bytes=requests * block_kib << 10,
        steal_ticks=steal_ticks, cpu_pressure_us=0,
    )  # fmt: skip


@cache
def record() -> tuple[Point, ...]:
    """All cells of the matrix."""
    return tuple(point(cell, number) for number, cell in enumerate(matrix.cells()))
