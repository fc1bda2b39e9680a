"""Each check at its thresholds: what it says and how serious it is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.figures import volume_counters
from pgdyno.analysis.finding import worst
from pgdyno.analysis.validity import findings, lost_samples
from pgdyno.results import open_experiment
from pgdyno.results.record import Check

from .synthetic import GP3, GP3_WAITS, IO2BX, REAL, WARMUP_S, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.finding import CheckResult


def checked(root: Path, arm: Arm) -> dict[str, CheckResult]:
    """The findings of one run of an arm, by check."""
    comparison = summarise(make_experiment(root, Plan(arms=(arm,), replicates=1, measure_s=20)))
    return {finding.check: finding for finding in comparison.arms[0].replicates[0].findings}


def test_a_sound_run_passes_everything(tmp_path: Path) -> None:
    results = checked(tmp_path, GP3)
    # Twenty seconds with a checkpoint in them are too few to call a run steady.
    assert results.pop("steady state").level == "unknown"
    assert {finding.level for finding in results.values()} == {"ok"}
    assert set(results) >= {"lateness", "driver", "test harness", "steal", "samples", "transactions", "account"}


@pytest.mark.parametrize(
    ("changes", "check", "level", "figure"),
    [
        ({"late_share": 0.10, "late_by_us": 100.0}, "lateness", "ok", "10 % of "),
        ({"late_share": 0.05, "late_by_us": 6000.0}, "lateness", "warn", "of the transactions' time"),
        ({"late_share": 0.10, "late_by_us": 9000.0}, "lateness", "invalid", "of the transactions' time"),
        ({"overrun_share": 0.02}, "store behind the volume", "warn", "2.0 %"),
        ({"overrun_share": 0.06}, "store behind the volume", "invalid", "6.0 %"),
        ({"device_share": 0.85}, "device", "invalid", "0.85 times what the model said"),
        ({"device_share": 1.1}, "device", "ok", "1.10 times"),
        ({"device_share": 1.3}, "device", "warn", "1.30 times"),
        ({"in_flight": 128}, "device's queue", "warn", "100 % of samples"),
        ({"storage_only": True}, "instance", "unknown", "r6g.4xlarge has 16 vCPUs, this host 2 cores"),
        ({"driver_share": 0.44}, "driver", "ok", "88 %"),
        ({"driver_share": 0.46}, "driver", "invalid", "92 %"),
        ({"driver_share": 0.20}, "test harness", "warn", "28 %"),
        ({"other_share": 0.16}, "host", "warn", "took 16 %"),
        ({"other_share": 0.40}, "host", "warn", "took 40 %"),
        ({"other_share": 0.60}, "host", "invalid", "took 60 % of its CPU, with 2.1 % idle"),
        ({"steal_share": 0.06}, "steal", "warn", "6.0 %"),
        ({"steal_share": 0.16}, "steal", "invalid", "16 %"),
        ({"failed": 3}, "transactions", "warn", "3 of"),
        ({"failed": 2000}, "transactions", "invalid", "2,000 of"),
        ({"lost_seconds": frozenset({WARMUP_S + 3, WARMUP_S + 7})}, "samples", "warn", "10 %"),
        ({"lost_seconds": frozenset(range(WARMUP_S + 3, WARMUP_S + 11))}, "samples", "invalid", "40 %"),
    ],
)
def test_thresholds(tmp_path: Path, changes: dict[str, Any], check: str, level: str, figure: str) -> None:
    results = checked(tmp_path, replace(GP3, **changes))
    assert results[check].level == level
    assert figure in results[check].figure


def test_a_test_harness_that_takes_most_of_a_busy_machine_is_invalid(tmp_path: Path) -> None:
    """With the server's 22 % and the rest, nothing stays idle."""
    results = checked(tmp_path, replace(GP3, driver_share=0.60))
    assert results["test harness"].level == "invalid"


def test_every_volume_has_its_own_checks(tmp_path: Path) -> None:
    late = replace(IO2BX, write_ms=4.0, late_share=0.3, late_by_us=50_000.0, in_flight=128)
    results = checked(tmp_path, replace(GP3, others=(("wal", late),)))
    assert results["lateness"].level == "ok"
    assert results["lateness, wal volume"].level == "invalid"
    assert "device's queue" not in results
    assert results["device's queue, wal volume"].level == "warn"
    assert results["samples, wal volume"].level == "ok"


def test_late_writes_count_where_commits_wait_for_them(tmp_path: Path) -> None:
    late = replace(IO2BX, late_share=0.3, late_by_us=50_000.0)
    assert checked(tmp_path / "1", replace(GP3, others=(("wal", late),)))["lateness, wal volume"].level == "invalid"
    results = checked(tmp_path / "2", replace(GP3, others=(("temp", late),)))
    assert results["lateness, temp volume"].level == "ok"


def test_a_slow_store_that_hardly_anything_waited_for_does_not_make_the_run_invalid(tmp_path: Path) -> None:
    idle = replace(IO2BX, write_ms=0.3, overrun_share=0.3)
    result = checked(tmp_path, replace(GP3, others=(("temp", idle),)))["store behind the volume, temp volume"]
    assert result.level == "warn"
    assert result.figure.endswith("of all volumes' latency")


def test_what_a_real_server_hides_is_unknown_and_not_invalid(tmp_path: Path) -> None:
    results = checked(tmp_path, REAL)
    assert {"lateness", "store behind the volume"} & set(results) == set()
    assert results["samples"].level == "unknown"
    assert results["samples"].figure.endswith("the server runs on another host (db.example.org)")
    assert worst([finding.level for finding in results.values()]) != "invalid"


def test_a_volume_that_is_hardly_used_is_not_judged_by_its_few_requests(tmp_path: Path) -> None:
    results = checked(tmp_path, replace(GP3, tps=0.5, late_share=0.5, device_share=0.2))
    assert results["lateness"].level == "ok"
    assert "too few to judge" in results["lateness"].figure
    assert "device" not in results


def test_null_volume_has_nothing_to_be_late_to(tmp_path: Path) -> None:
    results = checked(tmp_path, replace(GP3, spec="null", kind="null", late_share=1.0))
    assert "lateness" not in results


def test_failed_invariant_makes_the_run_invalid(tmp_path: Path) -> None:
    broken = Check(name="balances", ok=False, detail="accounts sum to 5, history to 6")
    results = checked(tmp_path, replace(GP3, checks=(broken,)))
    assert results["workload's invariants"].level == "invalid"
    assert "accounts sum to 5" in results["workload's invariants"].figure


def test_no_samples_of_the_volume_make_the_run_invalid(tmp_path: Path) -> None:
    results = checked(tmp_path, replace(GP3, lost_seconds=frozenset(range(1, 200))))
    assert results["samples"].level == "invalid"
    assert results["lateness"].level == "invalid"


@pytest.mark.parametrize("lost", [frozenset(), frozenset({WARMUP_S + 4})])
def test_a_phase_of_a_second_and_a_half_lacks_what_was_not_sampled_in_it(tmp_path: Path, lost: frozenset[int]) -> None:
    """Wherever it begins: it has one sample or two of a probe that asks once a second."""
    (run,) = open_experiment(make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=20))).runs
    array = volume_counters(run).t_ns
    volume = pq.read_table(run.path / "probe/volume.parquet")
    pq.write_table(volume.take([i for i in range(len(array)) if i not in lost]), run.path / "probe/volume.parquet")
    whole = run.record.measure
    for later_s, length_s in itertools.product((3.0, 3.3, 3.6, 3.9), (1.1, 1.5, 1.9, 2.5)):
        begin_ns = whole.begin_ns + int(later_s * 1e9) + 1
        end_ns = begin_ns + int(length_s * 1e9)
        short = whole.model_copy(update={"begin_ns": begin_ns, "end_ns": end_ns})
        phases = tuple(short if phase == whole else phase for phase in run.record.phases)
        results = lost_samples(replace(run, record=run.record.model_copy(update={"phases": phases})))
        due = {i for i, t_ns in enumerate(array) if begin_ns <= t_ns < end_ns}
        assert results == (None if due == lost else (len(due & lost) / len(due), len(due)))


@pytest.mark.parametrize(("lost", "level"), [(0.0, "ok"), (0.04, "ok"), (0.06, "warn")])
def test_probes_say_what_they_lost_and_cost(tmp_path: Path, lost: float, level: str) -> None:
    result = checked(tmp_path, replace(GP3, waits=GP3_WAITS, lost_looks=lost))["probes"]
    assert result.level == level
    assert result.figure.startswith("wait events: ")
    assert result.figure.endswith("of 300 samples lost, 0.6 % of a core")


def test_gaps_that_the_probes_noted_are_shown(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=20))
    run = next((directory / "runs").iterdir())
    measure = summarise(directory).arms[0].replicates[0].figures.record.measure
    rows = {
        "t_begin_ns": [measure.begin_ns + 10**9, measure.begin_ns - 9 * 10**9],
        "t_end_ns": [measure.begin_ns + 4 * 10**9, measure.begin_ns - 8 * 10**9],
        "what": ["sql.io", "disk"],
        "why": ["connection lost", "before measuring"],
    }
    pq.write_table(pa.table(rows), run / "probe" / "gap.parquet")
    results = [f for f in summarise(directory).arms[0].replicates[0].findings if f.check == "probes"]
    assert [finding.figure for finding in results] == ["sql.io was not sampled for 3.0 s: connection lost"]


@pytest.mark.parametrize(
    ("clients", "asked", "level"),
    [
        (8, {"warehouses": 8}, "ok"),
        (9, {"warehouses": 8}, "warn"),
        (9, {"warehouses": 8, "all_warehouses": True}, None),
    ],
)
def test_clients_that_share_a_warehouse_are_said(
    tmp_path: Path, clients: int, asked: dict[str, Any], level: str | None
) -> None:
    directory = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=20))
    figures = summarise(directory).arms[0].replicates[0].figures
    record = figures.record.model_copy(update={"workload": {"kind": "tpcc", "clients": clients} | asked})
    results = [
        finding
        for finding in findings(replace(figures, run=replace(figures.run, record=record)))
        if finding.check == "row locks"
    ]
    assert [result.level for result in results] == ([] if level is None else [level])
    assert all(result.figure.startswith(f"{clients} clients on 8 warehouses") for result in results)


def test_worst() -> None:
    assert worst([]) == "ok"
    assert worst(["ok", "warn", "unknown"]) == "warn"
    assert worst(["unknown", "ok"]) == "unknown"
