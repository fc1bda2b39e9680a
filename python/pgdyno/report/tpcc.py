"""Transactions derived from TPC-C: New-Orders and transactions per minute, who counted them, and how real the load was."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.tpcc import PACED_MAX, ArmTpcc, tpcc_of
from pgdyno.report import volumes
from pgdyno.report.section import Matrix, Note, Section

from ..base.text import UNKNOWN, number, percent
from .response import percentiles
from .section import FigureRow

_NOTE = (
    "Counted at the client during the measured phase. HammerDB counts TPM on the server: commits and rollbacks of"
    f" all its databases, by any session. Above {PACED_MAX:g} New-Orders a minute, each warehouse gets more load"
    " than real users would generate, so a few hot warehouses stay cached. The figures are not results of TPC-C"
    " and must not be compared with any."
)
_BY_HAMMERDB = (
    "HammerDB was the driver. It counts only New-Orders in the measured minutes, so the other types are estimated"
    " from their share of everything it ran. Its percentiles come from its time profile, which includes the"
    " ramp-up; between 25, 50, 75, 95 and 99 % nothing is known."
)
_NAMES = {
    "new_order": "New-Order",
    "payment": "Payment",
    "delivery": "Delivery",
    "stock_level": "Stock-Level",
    "order_status": "Order-Status",
}


def tpcc_section(comparison: Comparison) -> Section | None:
    """Nothing of other workloads."""
    results = tpcc_rows(comparison)
    if not results:
        return None
    notes = [Note(_NOTE), *([Note(_BY_HAMMERDB)] if _by_hammerdb(comparison) else [])]
    return Section("tpcc", "Derived from TPC-C", (Matrix(tuple(results)), *notes), brief=True)


def is_tpcc(comparison: Comparison) -> bool:
    """True if the workload is derived from TPC-C."""
    return any(tpcc_of(arm) is not None for arm in comparison.arms)


def tpcc_rows(comparison: Comparison) -> list[FigureRow]:
    """The figures of each arm."""
    every = [tpcc_of(arm) for arm in comparison.arms]
    if not any(every):
        return []

    def row(title: str, words: Callable[[ArmTpcc], str], *, strong: bool = False) -> FigureRow:
        return FigureRow(title, tuple(UNKNOWN if tpcc is None else words(tpcc) for tpcc in every), strong)

    values = [
        row("New-Orders per minute (NOPM)", lambda item: number(item.nopm), strong=True),
        row("transactions per minute (TPM)", lambda item: number(item.tpm), strong=True),
        row("TPM by the server's counters, as HammerDB counts", lambda item: number(item.tpm_of_server)),
        row("of these, not by the clients", lambda item: percent(item.other_share)),
        row("TPM as HammerDB printed it", lambda item: number(item.tpm_printed)),
        row("TPM/NOPM, with its standard error", _ratio),
        row("from what the mix gives", _off),
        row("New-Orders per minute and warehouse", _per_warehouse),
        row("warehouses in use", _used),
    ]
    for name in dict.fromkeys(name for tpcc in every if tpcc is not None for name in tpcc.time_share):
        title = _NAMES.get(name, name)
        values.append(row(f"{title}: share of the time", partial(_share, name)))
        times = (percentiles(arm.scripts_ms.get(name)) for arm in comparison.arms)
        values.append(FigureRow(f"{title}: p50 / p95 / p99, ms", tuple(times)))
    values += volumes.mean_rows(comparison)
    return [value for value in values if any(cell != UNKNOWN for cell in value.cells)]


def tpcc_lines(comparison: Comparison) -> list[str]:
    """A line for each arm, for the terminal; empty of other workloads."""
    lines = []
    for arm in comparison.arms:
        tpcc = tpcc_of(arm)
        if tpcc is not None:
            server = "" if tpcc.tpm_of_server is None else f" ({number(tpcc.tpm_of_server)} by the server's counters)"
            mix = "" if tpcc.tpm_per_nopm_by_mix is None else f", by the mix {tpcc.tpm_per_nopm_by_mix:.3f}"
            used = "" if tpcc.warehouses_used is None else f"; {_used(tpcc)} warehouses in use"
            latencies = "".join(
                f"; {words}" for volume in arm.volumes.values() if (words := volumes.mean_words(volume))
            )
            lines.append(
                f"{arm.label}: {number(tpcc.nopm)} NOPM, {number(tpcc.tpm)} TPM{server}, TPM/NOPM {_ratio(tpcc)}{mix};"
                f" {_per_warehouse(tpcc)} New-Orders a minute and warehouse{used}{latencies}"
            )
    return lines


def _by_hammerdb(comparison: Comparison) -> bool:
    drivers = (replicate.figures.record.driver for arm in comparison.arms for replicate in arm.replicates)
    return any(driver is not None and driver.engine == "hammerdb" for driver in drivers)


def _share(name: str, tpcc: ArmTpcc) -> str:
    return percent(tpcc.time_share.get(name))


def _ratio(tpcc: ArmTpcc) -> str:
    if tpcc.tpm_per_nopm is None or tpcc.tpm_per_nopm_error is None:
        return UNKNOWN
    return f"{tpcc.tpm_per_nopm:.3f} ± {tpcc.tpm_per_nopm_error:.3f}"


def _off(tpcc: ArmTpcc) -> str:
    if tpcc.errors_off is None or tpcc.tpm_per_nopm_by_mix is None:
        return UNKNOWN
    return f"{tpcc.errors_off:.1f} standard errors from {tpcc.tpm_per_nopm_by_mix:.3f}"


def _per_warehouse(tpcc: ArmTpcc) -> str:
    return number(tpcc.nopm_per_warehouse) + (" (paced)" if tpcc.paced else " (not paced)")


def _used(tpcc: ArmTpcc) -> str:
    return UNKNOWN if tpcc.warehouses_used is None else f"{tpcc.warehouses_used:g} of {tpcc.warehouses:,}"
