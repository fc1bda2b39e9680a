"""A data set on volumes: loaded once, with what they did meanwhile on record."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pgdyno.dataset import DatasetKey, dataset_keys, loaded, tables_of
from pgdyno.experiment import read_experiment
from pgdyno.postgres.binaries import find_binaries
from pgdyno.resolved import ResolvedArm, resolve
from pgdyno.store.record import LoadRecord
from pgdyno.workload.tables import PgbenchTables, SysbenchTables, Tables

SIZE_BYTES = 1 << 30


@pytest.mark.needs_fuse
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


def arm(tmp_path: Path, workload: str) -> ResolvedArm:
    """The only arm of an experiment on a volume that exists in name alone."""
    file = tmp_path / "experiment.toml"
    file.write_text(f'schema_version = 1\n[world]\nvolume = "gp3"\n[workload]\n{workload}')
    return resolve(read_experiment(file), to_run=False)[0]


@pytest.mark.parametrize(
    ("workload", "tables", "native"),
    [
        ("scale = 7\nfillfactor = 80\n", PgbenchTables(7, 80), False),
        ('scale = 7\nengine = "native"\n', PgbenchTables(7), True),
        ('kind = "sysbench"\ntables = 3\nrows = 50\nkeys = "uniform"\n', SysbenchTables(3, 50, keys="uniform"), True),
        ('kind = "idle"\nrate_per_s = 100\n', PgbenchTables(1), True),
    ],
    ids=["pgbench", "native", "sysbench", "idle"],
)
def test_a_workload_has_its_tables_and_its_loader(tmp_path: Path, workload: str, tables: Tables, native: bool) -> None:
    one = arm(tmp_path, workload)
    assert tables_of(one) == tables
    key = dataset_keys(read_experiment(tmp_path / "experiment.toml"), [one])[0]
    assert (key.tables, key.native) == (tables, native)
