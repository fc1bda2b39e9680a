"""A data set on volumes: loaded once, with what they did meanwhile on record."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pgdyno.dataset import DatasetKey, loaded
from pgdyno.postgres.binaries import find_binaries
from pgdyno.store.record import LoadRecord
from pgdyno.workload.tables import PgbenchTables, SysbenchTables, Tables

pytestmark = pytest.mark.needs_fuse

SIZE_BYTES = 1 << 30


@pytest.mark.parametrize("tables", [PgbenchTables(2), SysbenchTables(2, 20_000)], ids=["pgbench", "sysbench"])
def test_a_data_set_comes_with_what_its_volumes_did(state_dir: Path, tmp_path: Path, tables: Tables) -> None:
    binaries = find_binaries()
    key = DatasetKey(binaries.major, "ext4", tables, (("data", SIZE_BYTES), ("wal", SIZE_BYTES)))
    notes: list[str] = []
    with loaded({key: binaries}, lambda _key: lambda _share, _text: None, tmp_path, notes.append) as made:
        assert sorted(made[key].images) == ["data", "wal"]
        assert all(image.exists() for image in made[key].images.values())
    (directory,) = (tmp_path / "loads").iterdir()
    record = LoadRecord.model_validate_json((directory / "load.json").read_bytes())
    assert record.rows == tables.rows
    assert record.tables == tables.document()
    disk = pq.read_table(directory / "probe/disk.parquet").to_pylist()
    for volume, least in (("data", tables.size_bytes // 2), ("wal", 1 << 20)):
        written = [row["write_bytes"] for row in disk if row["volume"] == volume]
        assert written[-1] - written[0] >= least, volume
    assert {row["volume"] for row in pq.read_table(directory / "probe/volume.parquet").to_pylist()} == {"data", "wal"}
    (note,) = notes
    assert str(tables) in note
    assert "data wrote" in note
