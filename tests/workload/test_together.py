"""Several drivers of one load: they send what one would, come to one record, and none is lost without being missed."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.kinds.pgbench import ScriptFile
from pgdyno.kinds.registry import workload_of
from pgdyno.workload import native
from pgdyno.workload.clients import clients_of
from pgdyno.workload.clock import SECOND_NS, now_ns
from pgdyno.workload.outcome import shares_of
from pgdyno.workload.process import DriverProcess

from ..drive.driven import PAUSE_MS
from .conftest import DAY_S, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

TPCB = workload_of(scale=2, clients=6, threads=3, engine="native", seed=11, think_ms=PAUSE_MS)
DRAWN = """
\\set value random(1, 1000000000)
INSERT INTO drawn VALUES (:client_id, :value);
"""


def drawn(server: Cluster, drive: Callable[[dict[str, Any]], None]) -> Counter[tuple[int, int]]:
    """What 16 clients of 625 transactions each insert: (client, value)."""
    spec = workload_of(
        kind="script",
        files=[ScriptFile(name="drawn.sql", text=DRAWN, weight=1)],
        scale=1,
        clients=16,
        threads=4,
        engine="native",
    )
    clients = clients_of(spec)
    assert clients is not None
    with server.connect(autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS drawn")
        connection.execute("CREATE UNLOGGED TABLE drawn (client int, value bigint)")
        document = native.document(clients, 0, 60_000, 17) | {"transactions_max": 625}
        drive(document | {"server": server.endpoint.named("pgdyno drive")})
        rows = connection.execute("SELECT client, value FROM drawn").fetchall()
        connection.execute("DROP TABLE drawn")
    return Counter((int(client), int(value)) for client, value in rows)


def test_four_drivers_of_four_clients_send_what_one_of_sixteen_sends(loaded: Cluster, tmp_path: Path) -> None:
    def alone(document: dict[str, Any]) -> None:
        with DriverProcess(document, tmp_path / "alone.err") as driving:
            driving.follow(lambda _: None)

    def shared(document: dict[str, Any]) -> None:
        with native.Drivers(document, shares_of([1, 1, 1, 1], 16, 4), tmp_path) as drivers:
            drivers.begin()
            result = drivers.follow(lambda _: None)
        assert result.lost is None
        assert [part.ready["clients"] for part in result.parts.values()] == [4, 4, 4, 4]

    one, four = drawn(loaded, alone), drawn(loaded, shared)
    assert one.total() == 10_000
    assert {client for client, _ in one} == set(range(16))
    assert four == one


def test_all_drivers_connect_at_the_same_time(loaded: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []

    class Noted(DriverProcess):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            noted.append("started")
            super().__init__(*arguments, **more)

        def connected(self) -> Noted:
            noted.append("waited for")
            return super().connected()

    monkeypatch.setattr(native, "DriverProcess", Noted)
    clients = clients_of(TPCB)
    assert clients is not None
    document = native.document(clients, 0, 1000) | {"server": loaded.endpoint.named("pgdyno drive")}
    with native.Drivers(document, shares_of([1, 1, 1], 6, 3), tmp_path):
        assert noted == ["started"] * 3 + ["waited for"] * 3


def test_a_run_of_several_drivers_is_one_record(loaded: Cluster, tmp_path: Path) -> None:
    baseline = TPCB.baseline(loaded, full=True)
    pids: list[int] = []
    begun: list[str] = []
    outcome = run(
        loaded,
        TPCB,
        tmp_path,
        2.0,
        warmup_s=1.0,
        drivers=(2, 1),
        on_start=lambda *item: pids.extend(item),
        on_measure_begin=lambda: begun.append("begin"),
        on_measure_end=lambda: begun.append("end"),
    )
    proofs = TPCB.proofs(loaded, outcome, baseline=baseline, full=True)
    assert [check for check in (*outcome.checks, *proofs) if not check.ok] == []
    assert "drivers_lasted" in {check.name for check in outcome.checks}
    assert (len(set(pids)), begun) == (2, ["begin", "end"])
    assert list(outcome.drivers) == ["driver 1", "driver 2"]
    first, second = outcome.drivers.values()
    assert (first.threads, second.threads, outcome.driver.threads) == (2, 1, 3)
    assert first.transactions is not None and second.transactions is not None
    assert first.transactions > second.transactions > 0, "four clients and two"
    assert outcome.driver.transactions == first.transactions + second.transactions
    assert outcome.driver.cpu_ns == (first.cpu_ns or 0) + (second.cpu_ns or 0)
    assert outcome.driver.begin_late_ms == max(item.begin_late_ms or 0.0 for item in (first, second))
    rows = [row for row in outcome.throughput.to_pylist() if row["t_begin_ns"] >= outcome.phases[-1].begin_ns]
    assert sum(row["transactions"] for row in rows) == outcome.account.succeeded > 0
    assert (tmp_path / "drive.jsonl").read_text().count("\n") == 4


def test_drivers_whose_clock_is_a_day_ahead_come_to_the_same_record(
    loaded: Cluster, tmp_path: Path, elsewhere: tuple[str, ...]
) -> None:
    outcome = run(loaded, TPCB, tmp_path, 2.0, warmup_s=1.0, drivers=(1, 1, 1), prefix=elsewhere)
    assert [check for check in outcome.checks if not check.ok] == []
    assert outcome.phases[0].begin_ns < now_ns(), "this host's clock"
    rows = [row for row in outcome.throughput.to_pylist() if row["t_begin_ns"] >= outcome.phases[-1].begin_ns]
    assert rows[0]["t_begin_ns"] == outcome.phases[-1].begin_ns
    assert sum(row["transactions"] for row in rows) == outcome.account.succeeded > 0
    for driver in outcome.drivers.values():
        assert driver.clock is not None
        assert abs(driver.clock.ahead_ns - DAY_S * SECOND_NS) <= driver.clock.uncertainty_ns
    assert outcome.driver.clock is None


def test_the_share_of_a_rate_adds_up_to_the_rate(loaded: Cluster, tmp_path: Path) -> None:
    spec = workload_of(
        script="select-only", scale=2, clients=6, threads=3, engine="native", rate_per_s=300, arrivals="fixed"
    )
    outcome = run(loaded, spec, tmp_path, 2.0, drivers=(1, 1, 1))
    assert outcome.account.scheduled == pytest.approx(600, abs=30), "a busy machine may be a tenth of a second behind"
    assert all(driver.wake is not None and driver.lag is not None for driver in outcome.drivers.values())
    assert outcome.driver.wake is None, "percentiles are not added"


def killing(pids: list[int], victim: int, seconds: int) -> Callable[[float, str], None]:
    """Kills a driver when so many seconds have been told."""
    texts: list[str] = []

    def progress(_share: float, text: str) -> None:
        texts.append(text)
        if len(texts) == seconds:
            os.kill(pids[victim], signal.SIGKILL)

    return progress


def test_a_driver_that_is_lost_makes_the_run_invalid_by_name_and_ends_the_others(
    loaded: Cluster, tmp_path: Path
) -> None:
    pids: list[int] = []
    begun = time.monotonic()
    outcome = run(
        loaded,
        TPCB,
        tmp_path,
        60.0,
        drivers=(1, 1, 1),
        on_start=lambda *item: pids.extend(item),
        progress=killing(pids, 1, 2),
    )
    assert time.monotonic() - begun < 60, "the others did not measure to their end"
    failed = {check.name: check.detail for check in outcome.checks if not check.ok}
    assert failed["drivers_lasted"].startswith("driver 2 was lost 2.")
    assert "signal 9" in failed["drivers_lasted"]
    assert "measured_under_load" in failed
    assert list(outcome.drivers) == ["driver 1", "driver 2", "driver 3"]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_driver_that_is_lost_before_anything_was_measured_is_an_error(loaded: Cluster, tmp_path: Path) -> None:
    pids: list[int] = []
    with pytest.raises(PgdynoError, match=r"driver 1 was lost before driver 1 had measured a second: .* signal 9"):
        run(
            loaded,
            TPCB,
            tmp_path,
            60.0,
            warmup_s=30.0,
            drivers=(1, 1),
            on_start=lambda *item: pids.extend(item),
            progress=killing(pids, 0, 1),
        )


def test_a_driver_that_is_lost_before_it_began_is_found(loaded: Cluster, tmp_path: Path) -> None:
    with pytest.raises(PgdynoError, match="driver 2 was lost before"):
        run(
            loaded,
            TPCB,
            tmp_path,
            60.0,
            drivers=(1, 1),
            on_start=lambda *pids: os.kill(pids[1], signal.SIGKILL),
        )


def test_a_statement_that_is_refused_ends_all_with_its_reason(loaded: Cluster, tmp_path: Path) -> None:
    spec = workload_of(
        kind="script",
        files=[ScriptFile(name="bad.sql", text="SELECT nothing FROM nowhere;", weight=1)],
        scale=1,
        clients=4,
        threads=2,
    )
    with pytest.raises(PgdynoError, match=r"bad\.sql"):
        run(loaded, spec, tmp_path, 60.0, drivers=(1, 1))
