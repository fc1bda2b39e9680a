"""From a run's tables to its seconds and to a verdict: an experiment that nobody ran."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pgdyno.analysis.binding.arm import bind_arm
from pgdyno.analysis.binding.evidence import evidence_of
from pgdyno.analysis.binding.verdict import bind_run
from pgdyno.analysis.compare import summarise

from ..analysis.synthetic import CLIENTS, GP3, GP3_WAITS, IO2BX, IO2BX_WAITS, REAL, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.binding.verdict import RunBinding
    from pgdyno.analysis.run import RunFigures

# Half of the time above its limit makes a checkpoint cost little, so that nearly all seconds are at 3,000 IOPS.
CAPPED = replace(GP3, waits=GP3_WAITS, above_iops=0.5, spread=0.0, tps=1020)


def figures(root: Path, arm: Arm, measure_s: int = 30) -> RunFigures:
    """One run of an arm."""
    comparison = summarise(make_experiment(root, Plan(arms=(arm,), replicates=1, measure_s=measure_s)))
    return comparison.arms[0].replicates[0].figures


def bound(root: Path, arm: Arm) -> RunBinding:
    """What bound in it."""
    return bind_run(figures(root, arm))


def test_seconds_have_what_was_recorded(tmp_path: Path) -> None:
    evidence = evidence_of(figures(tmp_path, CAPPED))
    assert len(evidence.seconds) == 30
    assert evidence.missing == ()
    assert evidence.given.clients == CLIENTS
    iops = [second.devices["data"].iops for second in evidence.seconds]
    assert sum(iops) / 30 == pytest.approx(3 * 1020, rel=0.02)
    second = evidence.seconds[5]
    assert second.devices["data"].write_share == pytest.approx(1 / 3, abs=0.01)
    assert second.devices["data"].request_ms == pytest.approx((2 * 9.4 + 10.6) / 3, rel=0.02)
    assert second.sessions is not None
    assert second.sessions.all == pytest.approx(CLIENTS)
    assert second.sessions.read == pytest.approx(21.5, abs=0.15)
    assert second.sessions.commit == pytest.approx(5.5, abs=0.2)
    assert second.cpu is not None
    assert second.cpu.server == pytest.approx(0.222, abs=0.01)
    assert second.cpu.harness == pytest.approx(0.08 + 0.07 + 0.005, abs=0.01)
    assert any(evidence.checkpoints.inside)
    assert not all(evidence.checkpoints.inside)


@pytest.mark.parametrize(
    ("backend", "event", "seen"),
    [
        ("walsender", "BaseBackupRead", 1.0),
        ("autovacuum worker", "DataFileRead", 1.0),
        ("startup", "RecoveryPrefetchRead", 1.0),
        ("checkpointer", "DataFileWrite", 0.0),
        ("io worker", "DataFileRead", 0.0),
        ("client backend", "DataFileRead", 0.0),
    ],
)
def test_other_processes_that_wait_for_a_volume_are_counted_apart(
    tmp_path: Path, backend: str, event: str, seen: float
) -> None:
    path = make_experiment(tmp_path, Plan(arms=(CAPPED,), replicates=1, measure_s=10))
    (file,) = path.glob("runs/*/probe/wait_events.parquet")
    table = pq.read_table(file)
    rows = table.filter(pc.equal(table["wait_event"], "CheckpointerMain")).to_pydict()
    looks = len(rows["count"])
    rows |= {"wait_event_type": ["IO"] * looks, "wait_event": [event] * looks, "backend_type": [backend] * looks}
    pq.write_table(pa.concat_tables([table, pa.table(rows, schema=table.schema)]), file)
    evidence = evidence_of(summarise(path).arms[0].replicates[0].figures)
    assert evidence.seconds[5].others_at_disk == pytest.approx(seen)


def test_a_saturated_volume_is_named_with_its_figures(tmp_path: Path) -> None:
    comparison = summarise(
        make_experiment(tmp_path, Plan(measure_s=30).with_arms(CAPPED, replace(IO2BX, waits=IO2BX_WAITS)))
    )
    gp3, io2bx = (bind_arm(arm) for arm in comparison.arms)
    assert (gp3.verdict.limit, gp3.verdict.role, gp3.verdict.confidence) == ("volume_iops", "data", "high")
    assert any(text.endswith("IOPS of 3,000 bought") for text in gp3.evidence)
    assert any(text.startswith("on average 2") and "of 32.0 sessions waited for" in text for text in gp3.evidence)
    assert gp3.remedy is not None
    assert gp3.remedy.usd_per_month is None, "a record without offers has no price to name"
    assert [replicate for replicate, _ in gp3.runs] == [1, 2, 3]
    assert (io2bx.verdict.limit, io2bx.verdict.confidence) != ("volume_iops", "high")


@pytest.mark.parametrize("gone", ["volume", "volume_latency", "instance"])
def test_what_the_emulator_counts_is_not_looked_at(tmp_path: Path, gone: str) -> None:
    arm = replace(CAPPED, instance_above_iops=0.9)
    with_all = bound(tmp_path / "1", arm)
    without = make_experiment(tmp_path / "2", Plan(arms=(arm,), replicates=1, measure_s=30))
    for table in without.glob(f"runs/*/probe/{gone}.parquet"):
        table.unlink()
    binding = bind_run(summarise(without).arms[0].replicates[0].figures)
    assert binding.seconds == with_all.seconds
    assert binding.evidence == with_all.evidence


def test_without_wait_events_nothing_is_said_with_confidence(tmp_path: Path) -> None:
    binding = bound(tmp_path, replace(CAPPED, waits=()))
    assert "what sessions waited for was not sampled" in binding.evidence.missing
    assert (binding.verdict.limit, binding.verdict.confidence) == ("volume_iops", "low")


def test_without_the_device_a_limit_of_it_is_not_named(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, Plan(arms=(CAPPED,), replicates=1, measure_s=30))
    for table in directory.glob("runs/*/probe/*disk.parquet"):
        table.unlink()
    binding = bind_run(summarise(directory).arms[0].replicates[0].figures)
    assert binding.evidence.missing == ("no block device of the server was seen",)
    assert (binding.verdict.limit, binding.verdict.confidence) == ("volume_latency", "low")


def test_a_server_that_existed_already_says_what_was_not_seen(tmp_path: Path) -> None:
    binding = bound(tmp_path, REAL)
    assert {"no block device of the server was seen", "what the volume was bought with is not known"} <= set(
        binding.evidence.missing
    )
    assert binding.verdict.confidence != "high"


def test_a_driver_that_computes_all_the_time_is_the_limit(tmp_path: Path) -> None:
    waits = (("CPU", "", 6.0),)
    binding = bound(tmp_path, replace(IO2BX, waits=waits, driver_share=0.47))
    assert (binding.verdict.limit, binding.verdict.confidence) == ("harness", "high")


def test_sessions_that_wait_for_each_other_are_locks(tmp_path: Path) -> None:
    waits = (("Lock", "transactionid", 25.0), ("Lock", "tuple", 3.0), ("IO", "WALSync", 1.0))
    comparison = summarise(
        make_experiment(tmp_path, Plan(arms=(replace(IO2BX, waits=waits),), replicates=1, measure_s=30))
    )
    locked = comparison.bindings[0]
    assert (locked.verdict.limit, locked.verdict.confidence) == ("locks", "high")
    assert "most of them waited for Lock: transactionid" in locked.evidence
    assert locked.remedy is not None
    assert locked.remedy.spec is None


def test_a_second_that_lost_its_samples_is_not_explained(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, Plan(arms=(CAPPED,), replicates=1, measure_s=30))
    (file,) = directory.glob("runs/*/probe/wait_events.parquet")
    table = pq.read_table(file, partitioning=None)
    measure = summarise(directory).arms[0].replicates[0].figures.record.measure
    begin = table["t_begin_ns"].to_numpy()
    lost = (begin >= measure.begin_ns + 3 * 10**9) & (begin < measure.begin_ns + 5 * 10**9)
    pq.write_table(table.filter(pa.array(~lost)), file)
    binding = bind_run(summarise(directory).arms[0].replicates[0].figures)
    assert [second.sessions is None for second in binding.evidence.seconds[2:6]] == [False, True, True, False]


def test_an_untimed_server_is_told_of_where_a_volume_is_waited_for(tmp_path: Path) -> None:
    text = 'how long reads took, because track_io_timing is off: `postgres.parameters.track_io_timing = "on"`'
    reading = replace(IO2BX, waits=(("IO", "DataFileRead", 28.0), ("CPU", "", 1.0)))
    locked = replace(IO2BX, waits=(("Lock", "transactionid", 28.0),))
    directory = make_experiment(tmp_path, Plan(measure_s=20, replicates=1).with_arms(reading, locked))
    for file in directory.glob("runs/*/postgres/settings.parquet"):
        table = pq.read_table(file, partitioning=None).to_pylist()
        pq.write_table(
            pa.Table.from_pylist(
                [row | {"setting": "off"} if row["name"] == "track_io_timing" else row for row in table]
            ),
            file,
        )
    bindings = summarise(directory).bindings
    assert bindings[0].verdict.limit == "volume_latency"
    assert text in bindings[0].missing
    assert bindings[1].verdict.limit == "locks"
    assert text not in bindings[1].missing
