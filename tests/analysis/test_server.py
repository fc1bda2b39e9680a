"""What PostgreSQL counted and what its sessions waited for, from the tables of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.figures import Wait

from .synthetic import GP3, GP3_WAITS, IO2BX, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary


def one_run(root: Path, arm: Arm) -> tuple[ArmSummary, Path]:
    """An arm of one run, and its directory."""
    directory = make_experiment(root, Plan(arms=(arm,), replicates=1, measure_s=20))
    return summarise(directory).arms[0], next((directory / "runs").iterdir())


@pytest.mark.parametrize("version", ["18.6", "17.2", "15.18", "14.9"])
def test_counters_of_every_version(tmp_path: Path, version: str) -> None:
    arm, _ = one_run(tmp_path, replace(GP3, version=version))
    server, tps = arm.server, arm.headline.mean
    assert server["wal_bytes_per_transaction"] == pytest.approx(1800, rel=0.01)
    assert server["wal_mib_per_s"] == pytest.approx(tps * 1800 / 2**20, rel=0.01)
    assert server["wal_syncs_per_s"] == pytest.approx(tps / 4, rel=0.02)
    assert server["buffer_hit_share"] == pytest.approx(0.9, abs=0.001)
    assert server["read_mib_per_s"] == pytest.approx(tps * 2 * 8192 / 2**20, rel=0.01)
    assert server["checkpoints"] == 1
    read = arm.io_mib_per_s(lambda rate: rate.read_mib_per_s)
    if version < "16":
        assert read == {}
    else:
        assert read["client backend", "relation"] == pytest.approx(tps * 2 * 8192 / 2**20, rel=0.01)
        assert (("client backend", "wal") in read) is (version >= "18")


def test_a_row_that_appears_late_began_at_zero(tmp_path: Path) -> None:
    """The probe leaves out rows that count nothing, so that the first sample of one is not its beginning."""
    _, run = one_run(tmp_path, GP3)
    table = pq.read_table(run / "probe" / "io.parquet")
    t_ns = table["t_end_ns"].to_numpy()
    late = pa.array((table["object"].to_numpy(zero_copy_only=False) != "wal") | (t_ns > t_ns.min() + 20 * 10**9))
    pq.write_table(table.filter(late), run / "probe" / "io.parquet")
    written = summarise(run.parents[1]).arms[0].io_mib_per_s(lambda rate: rate.write_mib_per_s)
    last = (
        table.filter(pa.array(table["object"].to_numpy(zero_copy_only=False) == "wal"))["write_bytes"].to_numpy().max()
    )
    assert written["client backend", "wal"] == pytest.approx(last / 2**20 / 20, rel=0.05)


def test_sessions_are_means_over_the_samples_of_the_measure_phase(tmp_path: Path) -> None:
    arm, _ = one_run(tmp_path, replace(GP3, waits=GP3_WAITS))
    assert next(iter(arm.waits)) == Wait("IO", "DataFileRead")
    for kind, event, sessions in GP3_WAITS:
        assert arm.waits[Wait(kind, event or "CPU")] == pytest.approx(sessions, abs=0.02)
    assert not any(wait.type == "Activity" for wait in arm.waits)
    assert Wait("CPU", "CPU").label == "CPU"


def test_samples_in_which_nobody_did_anything_count(tmp_path: Path) -> None:
    _, run = one_run(tmp_path, replace(GP3, waits=(("IO", "DataFileRead", 4.0),)))
    table = pq.read_table(run / "probe" / "wait_events.parquet")
    busy = table.to_pylist()
    half = [{**row, "count": 0 if place % 2 else row["count"]} for place, row in enumerate(busy)]
    pq.write_table(pa.Table.from_pylist(half, table.schema), run / "probe" / "wait_events.parquet")
    waits = summarise(run.parents[1]).arms[0].waits
    assert waits[Wait("IO", "DataFileRead")] == pytest.approx(2.0, abs=0.05)


def test_nobody_looked(tmp_path: Path) -> None:
    arm, run = one_run(tmp_path, IO2BX)
    assert arm.waits == {}
    for name in ("io", "wal", "database", "checkpointer"):
        (run / "probe" / f"{name}.parquet").unlink()
    assert summarise(run.parents[1]).arms[0].server == {}


def test_several_volumes_are_kept_apart(tmp_path: Path) -> None:
    log = replace(IO2BX, spec="io2bx:size=10GiB,iops=4000", write_ms=0.3, usd_per_month=50.0)
    arm, _ = one_run(tmp_path, replace(GP3, others=(("wal", log),)))
    data, wal = arm.volumes["data"], arm.volumes["wal"]
    assert list(arm.volumes) == ["data", "wal"]
    assert (data.iops or 0) == pytest.approx(2 * (wal.iops or 0), rel=0.01)
    assert wal.read_ms.total == 0
    assert wal.write_ms.percentile(50) == pytest.approx(0.3, rel=0.1)
    assert data.time_above_limit["iops"] == pytest.approx(0.97, abs=0.01)
    assert wal.time_above_limit["iops"] == 0
    assert wal.resolved["spec"] == log.spec
    assert arm.usd_per_month == pytest.approx(58.0)


def test_a_volume_without_a_price_leaves_none_for_the_arm(tmp_path: Path) -> None:
    arm, _ = one_run(tmp_path, replace(GP3, others=(("wal", replace(IO2BX, usd_per_month=None)),)))
    assert arm.usd_per_month is None
