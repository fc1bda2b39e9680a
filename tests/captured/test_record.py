"""The record of what captures and replays cost: what its claims say of it, its page, and the logs that it is measured with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from tools.captured import claim, log, page
from tools.captured.measure import REPLAYED
from tools.captured.record import Beside, Reading, Record, Relayed, Sent, Tool
from tools.driver.record import SETTLED_S, Memory, Pair, Sample

from ..support.claims import broken

if TYPE_CHECKING:
    from pathlib import Path


def pair(load: str, ratio: float) -> Pair:
    replayed, driven = (Sample(cpu_s=cost * 1e-6 * 10_000, transactions=10_000) for cost in (30.0 * ratio, 30.0))
    return Pair(load=load, native=replayed, original=driven, native_first=True)


def sent(lanes: int = 8, cpu_s: float = 2.0, late_us: float = 200.0, failed: int = 0) -> Sent:
    return Sent(
        lanes=lanes,
        statements=50_000,
        newly_failed=failed,
        cpu_s=cpu_s,
        took_s=10.0,
        late_us_p99=late_us,
        peak_kib=30_000,
    )


def record(
    *,
    mb_per_s: float = 150.0,
    read_mib: int = 120,
    ratio: float = 1.0,
    fastest_cpu_s: float = 2.0,
    late_us: float = 200.0,
    failed: int = 0,
    grown_kib: int = 0,
    others: float = 0.0,
) -> Record:
    return Record(
        begin=datetime(2026, 11, 26, 7, 30, tzinfo=UTC),
        cores=2,
        kernel="6.1",
        build_hash="0123456789abcdef",
        versions=["PostgreSQL and pgbench 18.6"],
        seconds=8,
        other_cores=others,
        reading=Reading(megabytes=150.0, cpu_s=150.0 / mb_per_s, took_s=2.0, peak_kib=read_mib * 1024),
        pairs=[pair(load.name, ratio * change) for load in REPLAYED for change in (0.98, 1.0, 1.02)],
        timed=[pair(load.name, 2 * ratio * change) for load in REPLAYED for change in (0.98, 1.0, 1.02)],
        fastest=sent(cpu_s=fastest_cpu_s),
        idle=sent(late_us=late_us),
        many=sent(lanes=2000, failed=failed),
        memory=Memory(resident_kib=[*[20_000] * (SETTLED_S + 50), *[20_000 + grown_kib] * 50]),
        relayed=[Relayed(load=load.name, statements=30_000, cpu_s=1.0) for load in REPLAYED],
        direct_ms=0.05,
        relayed_ms=0.12,
    )


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (record(), set()),
        (record(mb_per_s=99), {"reading"}),
        (record(read_mib=201), {"memory of reading"}),
        (record(ratio=1.2), {f"CPU of {load.name}" for load in REPLAYED}),
        (record(fastest_cpu_s=2.6), {"statements for each core"}),
        (record(late_us=1001), {"lateness"}),
        (record(failed=1), {"lanes"}),
        (record(grown_kib=2000), {"memory"}),
    ],
)
def test_a_claim_is_broken_by_its_own_figure(changed: Record, names: set[str]) -> None:
    assert broken(claim.judge(changed), claim.NAMES) == names


def test_the_page_has_every_claim_and_says_what_else_the_machine_did() -> None:
    text = page.render(record(), claim.judge(record(ratio=1.2)))
    assert text.count("**no**") == len(REPLAYED)
    assert all(f"| {name} |" in text for name in claim.NAMES)
    assert "| `tpcb-like` | 30.0 | 30.0 | 1.00 |" in text and "| `tpcb-like` | 60.0 | 30.0 | 2.00 |" in text
    assert "70 µs more" in text and "Other processes" not in text
    assert "**Other processes took 1.2 of 2 cores**" in page.render(record(others=1.2), claim.judge(record()))


def test_another_tool_is_on_the_page_where_it_was_measured() -> None:
    figures = {"orders_missing": 0, "cpu_s": 0.5, "took_s": 20.1, "late_s_max": 0.02}
    tools = [
        Tool(name="pgdyno 1", statements=20_000, errors=40, **figures),
        Tool(name="pgreplay 9", statements=20_100, errors=1_777, **figures | {"orders_missing": 321}),
        Tool(name="broken", statements=0, errors=0, said="Segmentation fault", **figures),
    ]
    result = Beside(transactions=8_000, statements=20_000, failed=40, seconds=20, tools=tools)
    text = page.render(record().model_copy(update={"beside": result}), claim.judge(record()))
    assert "| pgdyno 1 | 20,000 | 40 | 0 | 25 |" in text
    assert "| pgreplay 9 | 20,100 | 1,777 | 321 | 25 |" in text
    assert "| broken | none: Segmentation fault |" in text
    assert "pgreplay is not installed here" in page.render(record(), claim.judge(record()))


def read(source: Path, output: Path) -> dict[str, object]:
    lines = list(engine.lines(["capture", "read"], {"logs": [str(source)], "output": str(output), "prefix": None}))
    account: dict[str, object] = lines[-1]["summary"]
    return account


def test_the_logs_have_what_is_measured(tmp_path: Path) -> None:
    assert log.large(tmp_path / "large.csv", 1) == pytest.approx(1, abs=0.01)
    assert read(tmp_path / "large.csv", tmp_path / "large.capture")["missing"] == 0
    log.lookups(tmp_path / "some.csv", ("bench", "app"), 5, 100, 1, 1000)
    document = read(tmp_path / "some.csv", tmp_path / "some.capture")
    assert (document["calls"], document["missing"], document["not_ended"], document["begun_before"]) == (100, 0, 0, 0)
