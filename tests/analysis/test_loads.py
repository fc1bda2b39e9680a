"""What a load came to, from a record that nobody loaded: figures are chosen, so a test knows what must be found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.loads import POINTS_MAX, LoadFigures
from pgdyno.report import render, table
from pgdyno.report.document import document
from pgdyno.report.filling import filling_lines, filling_rows
from pgdyno.report.page import html
from pgdyno.results import open_loads, record, tables
from pgdyno.results.writer import LoadWriter

from .synthetic import BOOT_NS, SECOND_NS, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 40
WRITE_BYTES_PER_S = 100 << 20
DISK = "reads writes read_bytes write_bytes read_time_ms write_time_ms in_flight io_time_ms weighted_time_ms"
VOLUME = (
    "read_ops write_ops read_bytes write_bytes flush_ops io_units read_time_ns write_time_ns queue_length queue_time_ns"
    " exceeded_iops_ns exceeded_throughput_ns read_modelled_ns write_modelled_ns late_read_ops late_write_ops overrun_ops"
    " daemon_cpu_ns"
)


def write_load(
    directory: Path,
    *,
    limited: bool = True,
    seconds: int = SECONDS,
    table: str = "probe/volume",
    volume: str = "gp3",
    write_ms: float = 2.5,
) -> None:
    """A load of a million rows whose data volume writes evenly, for half of its time above the throughput limit."""
    title = f"scale 10, on {volume}"
    writer = LoadWriter(directory, title)
    rows = []
    for second in range(seconds + 1):
        counted = dict.fromkeys((DISK if table == "probe/disk" else VOLUME).split(), 0)
        counted["write_bytes"] = second * WRITE_BYTES_PER_S
        counted["writes" if table == "probe/disk" else "write_ops"] = second * 400
        # Nothing is read.
        time_ms = round(second * 400 * write_ms)
        counted |= {"write_time_ms": time_ms} if table == "probe/disk" else {"write_time_ns": time_ms * 1_000_000}
        if table == "probe/volume":
            counted["exceeded_throughput_ns"] = second * SECOND_NS // 2
        rows.append({"t_ns": BOOT_NS + second * SECOND_NS, **counted})
    writer.table(table, tables.from_rows(table, rows))
    writer.finish(
        record.LoadRecord(
            load_id=writer.final_path.name,
            experiment_id=directory.name,
            title=title,
            tables={"pgbench": {"scale": 10}},
            loader="native",
            sessions=2,
            anchor=record.Anchor(monotonic_ns=BOOT_NS, unix_ns=0),
            begin_ns=BOOT_NS,
            end_ns=BOOT_NS + seconds * SECOND_NS,
            rows={"pgbench_accounts": 1_000_000},
            row_bytes=100 << 20,
            seconds={"copy": 10.0, "vacuum": 5.0, "checkpoint": 1.5},
            postgres=record.PostgresRecord(version="18.6", source="a test"),
            limited=limited,
            volumes={"data": volume} if limited else {},
            memory_bytes=512 << 20 if limited else None,
            checks=(record.Check(name="tpch_answers", ok=True, detail="the answers are right"),) if limited else (),
        )
    )


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """An experiment with a limited load and one without limits."""
    directory = make_experiment(tmp_path, Plan(replicates=1, measure_s=20))
    write_load(directory)
    write_load(directory, limited=False)
    return directory


def test_pace_and_volumes_are_read_from_the_record(experiment: Path) -> None:
    limited, free = (LoadFigures(load) for load in open_loads(experiment))
    assert (limited.seconds, limited.rows, limited.rows_per_s) == (40.0, 1_000_000, 25_000.0)
    assert limited.row_mib_per_s == pytest.approx(10.0)
    (volume,) = limited.volumes
    assert (volume.role, volume.iops) == ("data", pytest.approx(400.0))
    assert volume.write_mib_per_s == pytest.approx(100.0)
    assert volume.write_bytes == pytest.approx(SECONDS * WRITE_BYTES_PER_S)
    assert (volume.write_ms_mean, volume.read_ms_mean) == (pytest.approx(2.5), None)
    assert volume.time_above_limit == {"iops": 0.0, "throughput": pytest.approx(0.5)}
    assert free.volumes[0].time_above_limit == {}, "a volume without limits is above none"


@pytest.mark.parametrize(("seconds", "points"), [(1, 1), (40, 40), (1000, POINTS_MAX)])
def test_a_course_has_a_point_a_second_and_not_too_many(tmp_path: Path, seconds: int, points: int) -> None:
    write_load(tmp_path, seconds=seconds)
    (volume,) = LoadFigures(open_loads(tmp_path)[0]).volumes
    assert len(volume.course_mib_per_s) == points
    assert all(rate == pytest.approx(100.0) for _, rate in volume.course_mib_per_s)
    assert volume.course_mib_per_s[0][0] == pytest.approx(seconds / points / 2)


def test_a_device_that_was_there_is_read_from_the_kernels_counters(tmp_path: Path) -> None:
    write_load(tmp_path, limited=False, table="probe/disk")
    (volume,) = LoadFigures(open_loads(tmp_path)[0]).volumes
    assert (volume.iops, volume.write_mib_per_s) == (pytest.approx(400.0), pytest.approx(100.0))
    assert volume.time_above_limit == {}


def test_a_load_without_samples_has_its_steps_alone(tmp_path: Path) -> None:
    write_load(tmp_path)
    (directory,) = (tmp_path / "loads").iterdir()
    (directory / "probe/volume.parquet").unlink()
    assert LoadFigures(open_loads(tmp_path)[0]).volumes == ()
    (directory / "load.json").write_text("{")
    assert open_loads(tmp_path) == []


def test_the_page_the_table_and_the_document_tell_of_loads(experiment: Path) -> None:
    comparison = summarise(experiment)
    rows = {row.title: row.cells for row in filling_rows(comparison)}
    assert rows["rows per second"] == ("25,000", "25,000")
    assert rows["limits"] == ("gp3, 512 MiB of memory", "none: not a volume's pace")
    assert rows["data volume: above a limit"] == ("throughput 50 %", "–")
    assert rows["checked"] == ("the answers are right", "–")
    assert rows["copy, seconds"] == ("10.0", "10.0")
    page = html(comparison)
    assert "How the tables were filled" in page
    drawn = page.count('aria-label="What volumes wrote while tables were filled"')
    assert drawn == len(render.WIDTHS_PX), "a drawing for each width"
    made = json.loads(document(comparison).model_dump_json())["loads"]
    assert [(load["limited"], load["steps_s"]["copy"]) for load in made] == [(True, 10.0), (False, 10.0)]
    assert made[0]["volumes"]["data"]["course_mib_per_s"][0] == [0.5, pytest.approx(100.0)]


def test_an_experiment_without_loads_says_nothing_of_them(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, Plan(replicates=1, measure_s=20)))
    assert comparison.loads == ()
    assert document(comparison).loads == []


def test_the_terminal_has_a_line_for_each_load_with_limits(experiment: Path) -> None:
    write_load(experiment, seconds=20)
    write_load(experiment)  # repeated, as a resumed experiment does
    comparison = summarise(experiment)
    (line,) = filling_lines(comparison)
    assert line.startswith("gp3: 1,000,000 rows in 40.0 s; data volume: "), line
    assert "writes 2.50 ms in the mean, 100 MiB/s written" in line
    assert line.endswith("; the last of 3, whose writes took 2.50 ms (2.50 to 2.50)")
    assert "the tables were filled on volumes with their limits" in table(comparison)
