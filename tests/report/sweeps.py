"""Sweeps that nobody ran: many cells from two runs, whose throughput follows a law that a test knows."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from pgdyno.analysis.compare import Comparison, compared, summarise
from pgdyno.results.reader import StoredRun, open_run

from ..analysis.synthetic import GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from pgdyno.analysis.run import RunFigures

VOLUMES = ("gp3", "io2bx:iops=16000")
CLIENTS = (16, 32, 48, 64, 80, 96)
COUNTS = tuple(range(100, 1100, 100))
LAWS = ((180.0, 0.05, 0.0006), (300.0, 0.02, 0.0002))
"""(transactions of one client, contention, coherence) of either volume."""


@dataclass(frozen=True)
class Kept(StoredRun):
    """A run whose tables are read once: hundreds of cells stand on the same two directories."""

    def table(self, name: str) -> pa.Table:
        """From memory, after the first time."""
        return _read(self.path, name)


@cache
def _read(path: Path, name: str) -> pa.Table:
    return open_run(path).table(name)


def law(volume: int, clients: float) -> float:
    """Transactions per second of so many clients, before what their number of transactions does to it."""
    rate, contention, coherence = LAWS[volume]
    return rate * clients / (1 + contention * (clients - 1) + coherence * clients * (clients - 1))


def swept(
    root: Path,
    clients: Sequence[int] = CLIENTS,
    counts: Sequence[int] = COUNTS,
    replicates: int = 1,
    scatter: float = 0.02,
    seed: int = 5,
) -> Comparison:
    """Both volumes at every number of clients and, if there are several, of transactions."""
    plan = Plan(arms=(GP3, IO2BX), replicates=1, measure_s=20, seed=seed)
    base = summarise(make_experiment(root, plan))
    factors = {"world.volume": VOLUMES, "workload.clients": tuple(map(str, clients))}
    if len(counts) > 1:
        factors["workload.transactions"] = tuple(map(str, counts))
    draw = random.Random(seed)
    figures: list[RunFigures] = []
    arms: list[str] = []
    for index, levels in enumerate(product(*factors.values())):
        arms.append(" · ".join(levels))
        volume, number = VOLUMES.index(levels[0]), int(levels[1])
        less = 1 - 0.2 * int(levels[2]) / max(counts) if len(levels) > 2 else 1.0
        for block in range(1, replicates + 1):
            tps = law(volume, number) * less * draw.gauss(1, scatter)
            run = base.arms[volume].replicates[0].figures
            changes = {
                "arm": arms[-1],
                "arm_index": index,
                "factors": dict(zip(factors, levels, strict=True)),
                "block": block,
                "account": run.record.account.model_copy(update={"succeeded": round(tps * run.record.measure.seconds)}),
                "workload": run.record.workload | {"clients": number},
            }
            result = Kept(run.run.path, run.record.model_copy(update=changes))
            latency = run.latency_ms.scaled(run.work_per_s / tps * number / 32)
            figures.append(replace(run, run=result, latency_ms=latency))
    record = base.experiment.model_copy(
        update={"kind": "run", "arms": tuple(arms), "factors": factors, "replicates": replicates}
    )
    return compared(record, figures, base.paths)
