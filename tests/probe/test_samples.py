"""Gaps are joined, and the engine's lines become tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import EngineError
from pgdyno.probe.host import read_samples
from pgdyno.probe.samples import Gap, GapLedger, ProbeTables, volume_details
from pgdyno.results import RunWriter
from pgdyno.results.tables import columns, conform, empty

if TYPE_CHECKING:
    from pathlib import Path


def sample(second: int, **parts: Any) -> str:
    """A line as the engine writes it, ``second`` seconds after it began."""
    t_ns = second * 1_000_000_000
    made = {
        "due_ns": t_ns,
        "t_begin_ns": t_ns + 1,
        "t_end_ns": t_ns + 9,
        "missed": 0,
        "disks": [],
        "volumes": [],
        "cpu": {"t_ns": t_ns + 4, "cpu_ns": {"server": second, "host_idle": 2 * second}},
        "memory": {"t_ns": t_ns + 5, "bytes": {"host": {"dirty": 7}}},
    }
    return json.dumps(made | parts) + "\n"


def disk(volume: str, reads: int) -> dict[str, Any]:
    names = "reads writes read_bytes write_bytes read_time_ms write_time_ms in_flight io_time_ms weighted_time_ms"
    return dict.fromkeys(names.split(), 0) | {"t_ns": 3, "volume": volume, "reads": reads}


def test_lines_become_tables_that_a_run_can_hold(tmp_path: Path) -> None:
    lines = tmp_path / "probe.jsonl"
    volume = {"t_ns": 2, "volume": "wal", "counters": {"read_ops": 5, "later_counter": 6}}
    first = sample(1, disks=[disk("data", 1), disk("wal", 2)], volumes=[volume])
    lines.write_text(first + sample(2, disks=[disk("data", 4)]))
    samples = read_samples(lines)
    disks = samples.tables["probe/disk"].to_pylist()
    assert [(row["volume"], row["reads"]) for row in disks] == [("data", 1), ("wal", 2), ("data", 4)]
    assert samples.tables["probe/cpu"].num_rows == 4
    assert samples.tables["probe/memory"].to_pylist()[0] == {
        "t_ns": 1_000_000_005,
        "role": "host",
        "name": "dirty",
        "bytes": 7,
    }
    (row,) = samples.tables["probe/volume"].to_pylist()
    assert (row["t_ns"], row["volume"], row["read_ops"], row["later_counter"]) == (2, "wal", 5, 6)
    for name, table in samples.tables.items():
        assert conform(name, table).num_rows == table.num_rows
    samples.write(RunWriter(tmp_path, "e", "r"))
    assert (tmp_path / "e/runs/r.partial/probe/gap.parquet").exists()


def test_a_process_that_ended_is_one_gap_for_as_long_as_it_lasts(tmp_path: Path) -> None:
    lost = [{"what": "driver.pid.42", "why": "No such process"}]
    lines = tmp_path / "probe.jsonl"
    lines.write_text(sample(1) + sample(2, gaps=lost) + sample(3, gaps=lost) + sample(4) + sample(5, gaps=lost))
    assert read_samples(lines).gaps == (
        Gap(2_000_000_001, 3_000_000_009, "driver.pid.42", "No such process"),
        Gap(5_000_000_001, 5_000_000_009, "driver.pid.42", "No such process"),
    )


def test_deadlines_that_were_missed_are_a_gap_since_the_last_sample(tmp_path: Path) -> None:
    lines = tmp_path / "probe.jsonl"
    lines.write_text(sample(1) + sample(5, missed=3))
    assert read_samples(lines).gaps == (Gap(1_000_000_009, 5_000_000_001, "host.samples", "3 deadlines were missed"),)


def test_a_probe_that_died_is_a_gap_until_now(tmp_path: Path) -> None:
    lines = tmp_path / "probe.jsonl"
    lines.write_text(sample(1))
    (gap,) = read_samples(lines, "the probe ended with code -9").gaps
    assert (gap.begin_ns, gap.what) == (1_000_000_009, "host.samples")
    assert gap.end_ns > gap.begin_ns
    assert read_samples(tmp_path / "none", "it never began").gaps[0].why == "it never began"


def test_a_line_that_is_no_sample_is_an_error(tmp_path: Path) -> None:
    lines = tmp_path / "probe.jsonl"
    lines.write_text(sample(1)[:40])
    with pytest.raises(EngineError, match="not a sample"):
        read_samples(lines)


@given(st.lists(st.sets(st.sampled_from("ab")), max_size=12))
def test_a_ledger_covers_exactly_the_samples_that_lacked_something(missing: list[set[str]]) -> None:
    ledger = GapLedger()
    for second, what in enumerate(missing):
        ledger.sample(10 * second, 10 * second + 1, ((name, "gone") for name in what))
    covered = {(gap.what, t // 10) for gap in ledger.gaps() for t in range(gap.begin_ns, gap.end_ns, 10)}
    assert covered == {(name, second) for second, what in enumerate(missing) for name in what}


def test_samples_of_two_probes_are_one() -> None:
    tables = ProbeTables({"probe/disk": empty("probe/disk")}, (Gap(1, 2, "disk", "x"),))
    two = ProbeTables({"probe/wal": empty("probe/wal")}, (Gap(3, 4, "sql.wal", "y"),))
    both = tables | two
    assert set(both.tables) == {"probe/disk", "probe/wal"}
    assert len(both.gaps) == 2


def test_what_daemons_said_at_two_instants() -> None:
    histograms = {"read_latency_ns": [[100, 2], [200, 1]], "write_latency_ns": []}
    histograms |= {"read_lateness_ns": [[7, 3]], "write_lateness_ns": []}
    counters = dict.fromkeys(columns("probe/member").names[3:], 0)
    results = [
        {"t_ns": t_ns, "histograms": histograms, "members": [counters, {**counters, "read_ops": t_ns}]}
        for t_ns in (1, 2)
    ]
    samples = volume_details({"data": results, "wal": [{**results[0], "members": []}]})
    members = samples.tables["probe/member"].to_pylist()
    assert [(row["t_ns"], row["volume"], row["member"], row["read_ops"]) for row in members] == [
        (1, "data", 0, 0), (1, "data", 1, 1), (2, "data", 0, 0), (2, "data", 1, 2)
    ]  # fmt: skip
    rows = samples.tables["probe/volume_latency"].to_pylist()
    assert rows[:3] == [
        {"t_ns": 1, "volume": "data", "op": "read", "latency_ns": 100, "count": 2},
        {"t_ns": 1, "volume": "data", "op": "read", "latency_ns": 200, "count": 1},
        {"t_ns": 1, "volume": "data", "op": "read lateness", "latency_ns": 7, "count": 3},
    ]
    assert [row["volume"] for row in rows] == 6 * ["data"] + 3 * ["wal"]
