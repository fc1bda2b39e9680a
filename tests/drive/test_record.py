"""The record of the driver's cost: what it comes to, what its claims say of it, and its page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tools.driver import claim, page
from tools.driver.load import LOADS, Tool, transactions_in
from tools.driver.record import SETTLED_S, Idle, Memory, Pair, Record, Sample, compare

from ..support.claims import broken

if TYPE_CHECKING:
    from pathlib import Path


def pair(load: str, native_us: float, original_us: float) -> Pair:
    samples = [Sample(cpu_s=cost * 1e-6 * 10_000, transactions=10_000) for cost in (native_us, original_us)]
    return Pair(load=load, native=samples[0], original=samples[1], native_first=True)


def idle(rate_per_s: int, succeeded: int, cpu_s: float) -> Idle:
    return Idle(
        rate_per_s=rate_per_s,
        scheduled=rate_per_s * 3,
        succeeded=succeeded,
        cpu_s=cpu_s,
        duration_s=3.0,
        lag_us_p99=12.0,
    )


def record(ratio: float = 0.7, grown_kib: int = 0, per_core_s: int = 900_000) -> Record:
    steady = [20_000] * (SETTLED_S + 50)
    return Record(
        begin=datetime(2026, 11, 22, 3, 30, tzinfo=UTC),
        cores=2,
        kernel="6.1",
        build_hash="0123456789abcdef",
        versions=["PostgreSQL and pgbench 18.6"],
        seconds=5,
        pairs=[pair(load.name, 10.0 * ratio * change, 10.0) for load in LOADS for change in (0.95, 1.0, 1.05)],
        left_out=[],
        idle=[idle(200_000, 600_000, 1.2), idle(1_000_000, per_core_s * 3, 3.0)],
        memory=Memory(resident_kib=[*steady, *[20_000 + grown_kib] * 50]),
    )


def test_a_ratio_is_the_geometric_mean_with_its_interval() -> None:
    result = compare([pair("a", 8.0, 10.0), pair("a", 12.5, 10.0)])
    assert result.ratio == pytest.approx(1.0)
    assert result.low < 0.1 < 10.0 < result.high, "two pairs that differ by half say little"
    same = compare([pair("a", 8.0, 10.0)] * 3)
    assert (same.low, same.ratio, same.high) == pytest.approx((0.8, 0.8, 0.8))


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (record(), set()),
        (record(ratio=0.9), {"CPU of oltp_read_write"}),
        (record(ratio=1.2), {f"CPU of {load.name}" for load in LOADS}),
        (record(grown_kib=2000), {"memory"}),
        (record(per_core_s=100_000), {"idle transactions for each core"}),
    ],
)
def test_a_claim_is_broken_by_its_own_figure(changed: Record, names: set[str]) -> None:
    assert broken(claim.judge(changed), claim.NAMES) == names


def test_what_was_left_out_is_said_and_not_judged() -> None:
    whole = record()
    part = whole.model_copy(
        update={
            "pairs": [pair for pair in whole.pairs if pair.load != "oltp_read_write"],
            "left_out": ["oltp_read_write: sysbench is not installed"],
        }
    )
    judged = claim.judge(part)
    assert "CPU of oltp_read_write" not in {item.name for item in judged}
    assert "Left out: oltp_read_write: sysbench is not installed." in page.render(part, judged)


def test_the_page_has_every_claim_and_each_row_its_columns() -> None:
    text = page.render(record(), claim.judge(record(ratio=0.9)))
    assert text.count("**no**") == 1
    for name in claim.NAMES:
        assert f"| {name} |" in text
    columns = 0
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = 0
        elif columns:
            assert line.count(" | ") == columns, line
        else:
            columns = line.count(" | ")


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    assert Record.latest(tmp_path) is None
    record().save(tmp_path)
    assert Record.latest(tmp_path) == record()


@pytest.mark.parametrize(
    ("tool", "printed", "count"),
    [
        ("pgbench", "number of transactions actually processed: 4711\n", 4711),
        ("sysbench", "SQL statistics:\n    transactions:                        815    (81.4 per sec.)\n", 815),
        ("pgdyno", '{"ready": {}}\n{"summary": {"succeeded": 7}}\n', 7),
    ],
)
def test_each_tool_says_how_many_transactions_it_did(tool: Tool, printed: str, count: int) -> None:
    assert transactions_in(tool, printed) == count
