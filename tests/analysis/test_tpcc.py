"""Figures of transactions derived from TPC-C: who counted what, and whether the mix was the mix."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis import tpcc
from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.analysis.distribution import ValueCounts
from pgdyno.base.text import number
from pgdyno.report.document_workload import tpcc_document
from pgdyno.report.export import markdown
from pgdyno.report.page import html
from pgdyno.report.terminal import table
from pgdyno.report.tpcc import tpcc_lines, tpcc_rows
from pgdyno.results.record import Account, Check

from .synthetic import GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 20
BY_TYPE = {"new_order": 10_000, "payment": 10_000, "delivery": 1_000, "stock_level": 1_000, "order_status": 1_000}
TIMES = {"new_order": 60, "payment": 20, "delivery": 10, "stock_level": 6, "order_status": 4}
"""Milliseconds that clients waited, in all."""


def compared(tmp_path: Path, by_type: dict[str, int] = BY_TYPE, rolled_back: int = 0, **workload: Any) -> Comparison:
    """Two arms whose runs did these transactions on 8 warehouses, 3 of them in use."""
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(GP3, IO2BX), replicates=1, measure_s=SECONDS)))
    succeeded = sum(by_type.values())
    account = Account(
        scheduled=succeeded + rolled_back, skipped=0, succeeded=succeeded, rolled_back=rolled_back, failed=0
    )
    check = Check(name="tpcc_new_orders", ok=True, detail="as counted", figures={"warehouses_used": 3})
    by_mix = 2.3 if workload.get("profile") != "spec" else 22.9 / 9.9
    mixed = Check(name="tpcc_mix", ok=True, detail="mixed", figures={"tpm_per_nopm_by_mix": by_mix})
    document = {"kind": "tpcc", "profile": "hammerdb", "warehouses": 8, "clients": 4} | workload
    times = {name: ValueCounts.of([(1.0, count)]) for name, count in TIMES.items()}
    arms = []
    for arm in comparison.arms:
        (replicate,) = arm.replicates
        record = replicate.figures.record.model_copy(
            update={
                "workload": document,
                "account": account,
                "succeeded_by_type": by_type,
                "checks": (check, mixed),
                "metric": "nopm",
                "driver": None,
            }
        )
        figures = replace(replicate.figures, run=replace(replicate.figures.run, record=record), scripts_ms=times)
        arms.append(replace(arm, replicates=(replace(replicate, figures=figures),)))
    return replace(comparison, arms=tuple(arms))


def test_the_clients_count_and_the_servers_stand_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpcc, "growth_of", lambda run, table, names: {names[0]: 25_000.0})
    arm_tpcc = tpcc.tpcc_of(compared(tmp_path).arms[0])
    assert arm_tpcc is not None
    assert (arm_tpcc.nopm, arm_tpcc.tpm, arm_tpcc.tpm_of_server) == (30_000, 69_000, 75_000)
    assert arm_tpcc.other_share == pytest.approx(2_000 / 25_000)
    assert (arm_tpcc.tpm_per_nopm, arm_tpcc.tpm_per_nopm_by_mix) == (2.3, 2.3)
    # Of 23,000 transactions: 2.3 · sqrt(1.3/23,000).
    assert arm_tpcc.tpm_per_nopm_error == pytest.approx(2.3 * math.sqrt(1.3 / 23_000))
    assert (arm_tpcc.nopm_per_warehouse, arm_tpcc.paced, arm_tpcc.warehouses_used) == (3_750, False, 3)
    assert arm_tpcc.time_share == {name: count / 100 for name, count in TIMES.items()}


def test_what_was_not_sampled_is_a_dash(tmp_path: Path) -> None:
    comparison = compared(tmp_path)
    arm_tpcc = tpcc.tpcc_of(comparison.arms[0])
    assert arm_tpcc is not None
    assert (arm_tpcc.tpm_of_server, arm_tpcc.other_share) == (None, None)
    assert not any("server's counters" in row.title for row in tpcc_rows(comparison))
    assert "server's counters" not in tpcc_lines(comparison)[0]
    # Beside them what other reports of this workload are about: the volume's latency.
    volume = comparison.arms[0].volumes["data"]
    means = {row.title: row.cells[0] for row in tpcc_rows(comparison) if row.title.startswith("data volume: ")}
    assert means == {
        f"data volume: {words}, mean, ms": number(mean)
        for words, mean in (("reads", volume.read_ms_mean), ("writes", volume.write_ms_mean))
        if mean is not None
    }
    assert f"writes {number(volume.write_ms_mean)} ms in the mean" in tpcc_lines(comparison)[0]
    assert tpcc.tpcc_of(summarise(make_experiment(tmp_path / "other", Plan(arms=(GP3,), replicates=1))).arms[0]) is None


def test_a_ratio_is_as_far_from_the_mixs_as_its_standard_errors_say(tmp_path: Path) -> None:
    """The pair that the document publishes for gp3 is 23 standard errors off."""
    skewed = compared(tmp_path / "skewed", BY_TYPE | {"stock_level": 3_000})
    (ratio,) = (row for row in tpcc_rows(skewed) if row.title.startswith("TPM/NOPM, with"))
    assert ratio.cells[0] == "2.500 ± 0.019"
    (off,) = (row for row in tpcc_rows(skewed) if row.title == "from what the mix gives")
    assert off.cells[0] == "10.3 standard errors from 2.300"
    # Orders that the profile spec rolls back on purpose are in neither.
    spec = compared(tmp_path / "spec", BY_TYPE | {"new_order": 9_900}, 100, profile="spec")
    arm_tpcc = tpcc.tpcc_of(spec.arms[0])
    assert arm_tpcc is not None
    assert arm_tpcc.errors_off == pytest.approx(0, abs=1e-9)


def test_users_of_the_specification_are_paced(tmp_path: Path) -> None:
    few = compared(tmp_path, {"new_order": 32, "payment": 32, "delivery": 3, "stock_level": 3, "order_status": 3})
    (each,) = (row for row in tpcc_rows(few) if row.title == "New-Orders per minute and warehouse")
    assert each.cells[0] == "12.0 (paced)"


def test_every_writer_has_it(tmp_path: Path) -> None:
    comparison = compared(tmp_path)
    assert "Derived from TPC-C" in html(comparison)
    text = markdown(comparison)
    assert "## Derived from TPC-C" in text
    assert "| 3,750 (not paced) | 3 of 8 | 60 % |" in text
    result = table(comparison)
    assert "derived from TPC-C" in result
    assert "30,000 NOPM, 69,000 TPM" in " ".join(result.split())
    document = tpcc_document(comparison.arms[1])
    assert document is not None
    assert (document.nopm, document.warehouses_used, document.paced) == (30_000, 3, False)
    for written in (html(comparison), text, result):
        assert not any(word in written for word in ("tpmC", "QphH"))
