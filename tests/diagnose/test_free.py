"""Remedies that cost nothing: which setting, how large, and what it can bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.advise.diagnose.remedies import WAL_MARGIN, free_of
from pgdyno.analysis.binding.consumers import WHATS, Consumer
from pgdyno.results import open_run
from pgdyno.results.tables import from_rows

from ..analysis.synthetic import GP3, Plan, make_experiment
from ..binding.test_consumers import put

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.results import StoredRun

GIB = 1 << 30


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    """A run of 20 s with 60 MiB of WAL a second and a forced checkpoint."""
    import pyarrow.parquet as pq

    made = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=20))
    run = open_run(next(made.glob("runs/*")))
    put(run, "probe/wal", {"wal_bytes": 20 * 60 << 20, "wal_fpi": 100, "wal_write": 100})
    put(run, "probe/checkpointer", {"num_requested": 20, "num_timed": 0, "buffers_written": 100})
    settings = {"max_wal_size": "1024", "checkpoint_timeout": "300", "wal_compression": "off", "work_mem": "4096"}
    rows = [{"name": name, "setting": value} for name, value in settings.items()]
    pq.write_table(from_rows("postgres/settings", rows), run.path / "postgres/settings.parquet")
    return run


def consumers(**shares: float) -> list[Consumer]:
    """Uses of a volume by their share."""
    return [Consumer(what, shares[what], 100.0, 1.0) for what in WHATS if what in shares]


def test_max_wal_size_follows_from_the_wal_of_a_checkpoint_timeout(run: StoredRun) -> None:
    frees = free_of(run, consumers(checkpoints=0.3, whole_pages=0.2))
    needed_gib = 60 / 1024 * 300 * WAL_MARGIN
    (setting,) = frees[0].settings
    assert (setting.name, setting.now) == ("max_wal_size", "1GB")
    assert needed_gib <= int(setting.proposed.removesuffix("GB")) < needed_gib + 1
    assert frees[0].ratio_max == pytest.approx(2.0), "half of the requests would be gone"
    assert [free.settings[0].name for free in frees[1:]] == ["wal_compression"]


def test_checkpoints_that_nothing_forced_are_left_alone(run: StoredRun) -> None:
    put(run, "probe/checkpointer", {"num_requested": 0, "num_timed": 20, "buffers_written": 100})
    assert free_of(run, consumers(checkpoints=0.5)) == ()


def test_a_small_consumer_is_no_remedy(run: StoredRun) -> None:
    assert free_of(run, consumers(checkpoints=0.05, reads=0.1, vacuum=0.1, temporary_files=0.1)) == ()


def test_work_mem_is_named_with_its_value(run: StoredRun) -> None:
    (free,) = free_of(run, consumers(temporary_files=0.5))
    assert "which is 4MB" in free.action
    assert free.kind == "other"
