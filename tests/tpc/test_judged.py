"""When the costs of the workloads derived from TPC-C and TPC-H are as claimed, and what the page says of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pgdyno.base.errors import InputError
from tools.driver.record import Pair, Sample
from tools.tpc import claim, page
from tools.tpc.before import COMMIT, Engine
from tools.tpc.record import (
    BeforeLoads,
    BeforePair,
    Beside,
    Changed,
    LoadPair,
    Loads,
    NopmPair,
    Queries,
    Record,
    TypeBeside,
)

from ..support.claims import broken


def record(load: float = 1.0, driver: float = 1.0, peak_mib: int = 50, cores: float = 0.005) -> Record:
    """One that nobody measured: a load and a driver that take so many times as long as what they are compared with."""
    loads = [
        LoadPair(native_s=10 * load * noise, copy_s=10, native_first=True, peak_kib=peak_mib << 10)
        for noise in (0.99, 1.0, 1.01)
    ]
    pairs = [
        Pair(
            load="tpcc",
            native=Sample(cpu_s=driver * noise, transactions=1000),
            original=Sample(cpu_s=1, transactions=1000),
            native_first=False,
        )
        for noise in (0.99, 1.0, 1.01)
    ]
    return Record(
        begin=datetime(2026, 11, 25, tzinfo=UTC),
        cores=2,
        kernel="6.18",
        build_hash="5c0ffee",
        postgres="18.6",
        loads={name: Loads(tables=name, pairs=loads) for name in claim.LOAD_RATIO_MAX},
        driver=pairs,
        driver_kib=[peak_mib << 10],
        queries=Queries(streams=10, scale_factor=1, queries=220, cpu_s=100 * cores, elapsed_s=100),
    )


def test_memory_that_grows_breaks_its_claim_and_a_long_run_may_be_missing() -> None:
    flat, leaking = [30_000, 50_000, 50_100, 50_200, 50_000, 50_300], [30_000, 40_000, 44_000, 48_000, 52_000, 56_000]
    for minutes, holds in ((flat, True), (leaking, False), ([70_000] * 6, False)):
        judged = claim.judge(record().model_copy(update={"driver_minutes_kib": minutes}))
        assert [item.holds for item in judged if item.name == "memory of the driver over time"] == [holds]
    assert all(item.name != "memory of the driver over time" for item in claim.judge(record()))


@pytest.mark.parametrize(("slower", "holds"), [(1.02, True), (1.04, False), (0.9, True)])
def test_loads_that_take_longer_than_before_break_their_claim(slower: float, holds: bool) -> None:
    pairs = [
        BeforePair(now_s=2 * slower * noise, before_s=2, now_cpu_s=1.5, before_cpu_s=1, now_first=False)
        for noise in (0.995, 1.0, 1.005)
    ]
    loads = {"pgbench, scale 20": BeforeLoads(tables="scale 20", older=COMMIT, pairs=pairs)}
    (judged,) = (item for item in claim.judge(record().model_copy(update={"before": loads})) if "pgbench" in item.name)
    assert (judged.name, judged.bar, judged.holds) == (
        f"load of pgbench, scale 20, against {COMMIT}", "≤ 1.03 × the time before", holds,
    )  # fmt: skip
    assert f"{slower:.4f} (" in judged.found and "CPU of the loader 1.5000" in judged.found
    assert not any("before" in item.bar for item in claim.judge(record())), "nothing is claimed that was not measured"


@pytest.mark.parametrize(
    ("ours", "faults"),
    [
        (Changed(rows={"stock updated": 10.1, "orders inserted": 1}, ids=2, wal_bytes=5050), ()),
        (Changed(rows={"stock updated": 9.7, "orders inserted": 1}, ids=2, wal_bytes=5000), ("stock updated: -3.00%",)),
        (Changed(rows={"stock updated": 10.0, "orders inserted": 1, "item updated": 1}, ids=2, wal_bytes=5000), ("item updated: +inf%",)),
        (Changed(rows={"stock updated": 10.0, "orders inserted": 1}, ids=1, wal_bytes=5150), ("transaction ids: -50.00%", "bytes of WAL: +3.00%")),
    ],
)  # fmt: skip
def test_a_routine_that_changes_something_else_than_hammerdbs_breaks_its_claim(
    ours: Changed, faults: tuple[str, ...]
) -> None:
    theirs = Changed(rows={"stock updated": 10.0, "orders inserted": 1}, ids=2, wal_bytes=5000)
    type_beside = TypeBeside(type="new_order", calls=1000, theirs=theirs, ours=ours)
    (judged,) = (
        each
        for each in claim.judge(record().model_copy(update={"hammerdb": Beside(version="4.12", types=[type_beside])}))
        if each.name.startswith("new_order")
    )
    assert (judged.holds, judged.faults) == (not faults, faults)
    whole = record().model_copy(update={"hammerdb": Beside(version="4.12", types=[type_beside])})
    shown = page.render(whole, claim.judge(whole))
    assert "## Beside HammerDB 4.12" in shown
    assert f"| new_order | stock updated | 10.00 | {ours.rows['stock updated']:.2f} |" in shown


def test_reading_calls_write_nothing_and_nopm_have_their_bands() -> None:
    reads = TypeBeside(
        type="stock_level",
        calls=100,
        theirs=Changed(rows={}, ids=0, wal_bytes=3),
        ours=Changed(rows={}, ids=0.01, wal_bytes=12),
    )
    assert set(reads.apart().values()) == {0.0}
    pairs = [
        NopmPair(bound=bound, theirs=100, ours=ours, theirs_first=True)
        for bound, ours in (("commits", 98), ("commits", 104), ("CPU", 112), ("CPU", 111))
    ]
    judged = claim.judge(record().model_copy(update={"hammerdb": Beside(version="4.12", nopm=pairs)}))
    assert {item.name: item.holds for item in judged if item.name.startswith("NOPM")} == {
        "NOPM beside HammerDB, bound by commits": True,
        "NOPM beside HammerDB, bound by CPU": False,
    }


def test_an_older_engine_is_a_program_or_a_commit() -> None:
    with pytest.raises(InputError, match="neither a program nor a commit"):
        Engine.named("no-such-commit")


def test_each_claim_is_judged() -> None:
    judged = claim.judge(record())
    assert broken(judged, claim.NAMES) == set()
    text = page.render(record(), judged)
    assert all(f"| {item.name} | {item.bar} |" in text for item in judged)


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (record(load=1.18), {"load of TPC-C, 10 warehouses"}),
        (record(load=1.3), {"load of TPC-C, 10 warehouses", "load of TPC-H, scale factor 1"}),
        (record(load=2.1), {"load of TPC-C, 10 warehouses", "load of TPC-H, scale factor 1"}),
        (record(driver=1.12), {"CPU of the driver"}),
        (record(peak_mib=70), {"memory of TPC-C, 10 warehouses", "memory of the driver"}),
        (record(cores=0.011), {"CPU of ten streams"}),
    ],
)
def test_what_costs_more_breaks_its_claim(changed: Record, names: set[str]) -> None:
    assert broken(claim.judge(changed), claim.NAMES) == names
