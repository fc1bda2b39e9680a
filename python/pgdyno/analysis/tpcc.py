"""Runs of transactions derived from TPC-C: the clients' count, the server's count, and the mix."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pgdyno.analysis.arm import ArmSummary

from .figures import growth_of
from .run import NEW_ORDER, NOPM, RunFigures

PACED_MAX: Final = 12.86
"""New-Orders a minute and warehouse that ten users with the specification's keying and think times reach at most (TPC-C 5.11,
4.2.1)."""
_ALL = "xact_of_server"
"""Commits and rollbacks of all databases, in ``probe/database``."""


@dataclass(frozen=True)
class ArmTpcc:
    """One arm over its replicates. A figure is None where no run recorded what it needs."""

    nopm: float
    tpm: float
    tpm_of_server: float | None
    """Commits and rollbacks of all databases of the server, as HammerDB counts."""
    other_share: float | None
    """Share of these that was not the clients'."""
    tpm_printed: float | None
    """The same as HammerDB printed it, where it drove."""
    tpm_per_nopm: float | None
    tpm_per_nopm_error: float | None
    """Standard error of that ratio, by the number of transactions."""
    tpm_per_nopm_by_mix: float | None
    """What the mix gives, as the run's check of it recorded."""
    nopm_per_warehouse: float
    warehouses: int
    warehouses_used: float | None
    """Warehouses with a New-Order in a run, the warm-up's among them; mean of the replicates."""
    time_share: dict[str, float]
    """Type of transaction -> its share of the time that clients waited for transactions."""

    @property
    def paced(self) -> bool:
        """Whether users of the specification could have asked for it."""
        return self.nopm_per_warehouse <= PACED_MAX

    @property
    def errors_off(self) -> float | None:
        """How many standard errors the ratio is from what the mix gives."""
        ratio, error, mix = self.tpm_per_nopm, self.tpm_per_nopm_error, self.tpm_per_nopm_by_mix
        return None if ratio is None or not error or mix is None else abs(ratio - mix) / error


def tpcc_of(arm: ArmSummary) -> ArmTpcc | None:
    """The figures of an arm; None of other workloads."""
    runs = [replicate.figures for replicate in arm.replicates]
    first = runs[0].record
    if first.workload.get("kind") != "tpcc" or not first.succeeded_by_type:
        return None
    minutes = sum(run.record.measure.seconds for run in runs) / 60
    new_orders = sum(run.record.succeeded_by_type.get(NEW_ORDER, 0) for run in runs)
    transactions = sum(run.record.account.succeeded for run in runs)
    warehouses = int(first.workload["warehouses"])
    of_server, other = _mean(map(tpm_of_server, runs)), _mean(map(_other_share, runs))
    nopm = sum(NOPM.of(run.record) * run.record.measure.seconds for run in runs) / 60 / minutes if minutes else 0.0
    return ArmTpcc(
        nopm=nopm,
        tpm=transactions / minutes if minutes else 0.0,
        tpm_of_server=of_server,
        other_share=other,
        tpm_printed=_mean(_of_checks(run, "hammerdb_tpm") for run in runs),
        tpm_per_nopm=transactions / new_orders if new_orders else None,
        tpm_per_nopm_error=_ratio_error(transactions, new_orders) if new_orders else None,
        tpm_per_nopm_by_mix=_of_checks(runs[0], "tpm_per_nopm_by_mix"),
        nopm_per_warehouse=nopm / warehouses,
        warehouses=warehouses,
        warehouses_used=_mean(_of_checks(run, "warehouses_used") for run in runs),
        time_share=_time_share(arm),
    )


def tpm_of_server(run: RunFigures) -> float | None:
    """Commits and rollbacks of all databases per minute; None where they were not sampled."""
    grown, seconds = growth_of(run.run, "probe/database", (_ALL,)).get(_ALL), run.record.measure.seconds
    return None if grown is None or seconds <= 0 else grown * 60 / seconds


def _of_checks(run: RunFigures, name: str) -> float | None:
    """A figure of the run's checks; None where no server was asked."""
    results = (check.figures[name] for check in run.record.checks if name in check.figures)
    return next(results, None)


def _other_share(run: RunFigures) -> float | None:
    """Of what the server ended, what was not a try of a client."""
    of_server, record = tpm_of_server(run), run.record
    if not of_server or record.measure.seconds <= 0:
        return None
    account, retries = record.account, (record.driver.retries if record.driver else None) or 0
    tries = account.succeeded + account.rolled_back + account.failed + retries
    return max(0.0, 1 - tries * 60 / record.measure.seconds / of_server)


def _ratio_error(transactions: int, new_orders: int) -> float:
    """Standard error of the ratio of all transactions to one type with a share p, drawn independently: 1/p · sqrt((1 − p)/(p·n))."""
    ratio = transactions / new_orders
    return ratio * math.sqrt((ratio - 1) / transactions)


def _time_share(arm: ArmSummary) -> dict[str, float]:
    times = {name: distribution.sum for name, distribution in arm.scripts_ms.items()}
    whole = math.fsum(times.values())
    return {name: time / whole for name, time in times.items()} if whole else {}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
