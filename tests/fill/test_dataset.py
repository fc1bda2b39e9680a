"""A data set on volumes: loaded once, with what they did meanwhile on record."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pgdyno.analysis.loads import LoadFigures
from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.experiment import Experiment, read_experiment
from pgdyno.machine.cgroup import find_hierarchy
from pgdyno.machine.placement import AttachedPlacement, attach_placement
from pgdyno.machine.volume import attached
from pgdyno.machine.waiting import wait_until
from pgdyno.results import open_loads
from pgdyno.results.record import LoadRecord
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.workload.tables import PgbenchTables, SysbenchTables, Tables
from pgdyno.world import dataset
from pgdyno.world.dataset import DatasetKey, dataset_keys, loaded, unlimited
from pgdyno.world.resolved import ResolvedArm, emulated_arms

SIZE_BYTES = 1 << 30
PATIENCE_S = 60.0


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
    return emulated_arms(read_experiment(file), to_run=False)[0]


@pytest.mark.parametrize(
    ("workload", "tables", "native"),
    [
        ('scale = 7\nfillfactor = 80\nengine = "pgbench"\n', PgbenchTables(7, 80), False),
        ("scale = 7\n", PgbenchTables(7), True),
        ('kind = "sysbench"\ntables = 3\nrows = 50\nkeys = "uniform"\n', SysbenchTables(3, 50, keys="uniform"), True),
        (
            'kind = "sysbench"\ntables = 3\nrows = 50\noptions.auto_inc = false\noptions.create_secondary = false\n',
            SysbenchTables(3, 50, auto_inc=False, secondary_index=False),
            True,
        ),
        ("scale = 7\nload.foreign_keys = true\n", PgbenchTables(7, foreign_keys=True), True),
        ('scale = 7\nengine = "pgbench"\nload.connections = 3\n', PgbenchTables(7), True),
        ('scale = 7\nengine = "pgbench"\nload.split = true\n', PgbenchTables(7), True),
        ('kind = "idle"\nrate_per_s = 100\n', PgbenchTables(1), True),
    ],
    ids=["pgbench", "native", "sysbench", "plain", "references", "sessions", "split", "idle"],
)
def test_a_workload_has_its_tables_and_its_loader(tmp_path: Path, workload: str, tables: Tables, native: bool) -> None:
    resolved_arm = arm(tmp_path, workload)
    assert resolved_arm.arm.workload.data_set() == tables
    key = dataset_keys(read_experiment(tmp_path / "experiment.toml"), [resolved_arm])[0]
    assert (key.tables, key.native) == (tables, native)


def keys_of(tmp_path: Path, load: str) -> list[DatasetKey]:
    """The data sets of arms that differ in their volume alone."""
    file = tmp_path / "experiment.toml"
    file.write_text(
        f"schema_version = 1\n[workload]\nscale = 3\n{load}"
        '[factors]\n"world.volume" = ["gp3", "gp3:iops=6000", "gp3:size=200GiB"]\n'
    )
    experiment = read_experiment(file)
    return list(dataset_keys(experiment, emulated_arms(experiment, to_run=False)).values())


def test_data_that_have_no_room_are_said_with_the_room_they_need(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text('schema_version = 1\n[world]\nvolume = "gp3:size=200GiB"\n[workload]\nscale = 20000\n')
    experiment = read_experiment(file)
    with pytest.raises(InputError, match=r"gp3:size=200GiB holds 200\.0 GiB, and scale 20000 needs") as caught:
        dataset_keys(experiment, emulated_arms(experiment, to_run=False))
    least_gib = math.ceil(PgbenchTables(20_000).size_bytes / 2**30 + 0.5)
    assert least_gib > 200
    assert f"at least {least_gib} GiB" in caught.value.remedy


def test_what_a_run_adds_is_room_that_is_required(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    text = (
        'schema_version = 1\n[world]\nvolume = "gp3:size=4GiB"\n[workload]\nkind = "tpcc"\nwarehouses = 20\nclients = 20\n'
        'warmup = "0s"\nduration = "30min"\nrate_per_s = {}\n'
    )
    file.write_text(text.format(2))
    experiment = read_experiment(file)
    dataset_keys(experiment, emulated_arms(experiment, to_run=False))
    # 2,300 a second for half an hour, of which 10 of 23 are New-Orders of 1,300 bytes.
    file.write_text(text.format(2300))
    result = read_experiment(file)
    assert result.arms[0].workload.adds_bytes() == 1000 * 1800 * 1300
    with pytest.raises(InputError, match=r"needs 4\.\d GiB, 2\.2 of it for what a run adds"):
        dataset_keys(result, emulated_arms(result, to_run=False))


def test_only_a_limited_load_is_of_its_volume(tmp_path: Path) -> None:
    shared, limited = keys_of(tmp_path, ""), keys_of(tmp_path, "load.limited = true\n")
    assert len(set(shared)) == 1
    assert len(set(limited)) == 3
    assert [key.world.volumes for key in limited if key.world] == [
        (("data", "gp3"),),
        (("data", "gp3:iops=6000"),),
        (("data", "gp3:size=200GiB"),),
    ]
    assert str(limited[1]).endswith(", scale 3, on gp3:iops=6000")
    assert limited[0].estimate_s >= shared[0].estimate_s


def striped_keys(tmp_path: Path, file_system: str) -> list[DatasetKey]:
    """The data sets of one volume and of arrays."""
    file = tmp_path / "experiment.toml"
    volumes = ["gp3", "4xgp3", "raid10:8xgp3:size=50GiB", "4xgp3:chunk=64KiB"]
    file.write_text(
        f'schema_version = 1\n[world]\nfile_system = "{file_system}"\n[workload]\nscale = 1\n'
        f'[factors]\n"world.volume" = {volumes}\n'
    )
    experiment = read_experiment(file)
    return list(dataset_keys(experiment, emulated_arms(experiment, to_run=False)).values())


def test_arms_on_xfs_share_a_data_set_in_the_same_stripes_only(tmp_path: Path) -> None:
    dataset_key, four, copied, finer = striped_keys(tmp_path, "xfs")
    assert len({dataset_key, four, finer}) == 3
    assert copied == four, "the same columns, kept twice"
    placed = [dict(unlimited(key).volumes) for key in (dataset_key, four, finer)]
    assert placed == [
        {"data": "null:size=102400MiB"},
        {"data": "4xnull:size=51200MiB,chunk=512KiB"},
        {"data": "4xnull:size=102400MiB,chunk=64KiB"},
    ]
    assert "on xfs, data in 4 stripes of 512 KiB, scale 1" in str(four)
    assert len(set(striped_keys(tmp_path, "ext4"))) == 1


@pytest.mark.needs_fuse
@pytest.mark.needs_xfs
def test_a_clone_on_an_array_has_the_stripes_of_its_data_set(state_dir: Path, tmp_path: Path) -> None:
    four, binaries = replace(striped_keys(tmp_path, "xfs")[1], sizes=(("data", SIZE_BYTES),)), find_binaries()
    with loaded({four: binaries}, lambda _key: lambda _share, _text: None, tmp_path, lambda _text: None) as made:
        image, mount = made[four].images["data"], tmp_path / "mnt"
        with attached("4xgp3:size=1GiB", mount=mount, image=image):
            assert list(mount.iterdir())
            stdout = subprocess.run(["xfs_info", mount], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "sunit=128    swidth=512 blks" in stdout


@pytest.mark.sets_limits
@pytest.mark.needs_fuse
def test_a_limited_load_waits_for_its_volume(state_dir: Path, tmp_path: Path) -> None:
    """In its instance, by its settings, in slowed time: and the clones begin with what it left."""
    file = tmp_path / "experiment.toml"
    file.write_text(
        'schema_version = 1\n[world]\nvolume = "gp2:size=400GiB,credits=0"\ndilation = 2\n[instance]\nmemory = "256MiB"\n'
        "[workload]\nscale = 2\n[workload.load]\nlimited = true\nconnections = 2\n"
    )
    experiment = read_experiment(file)
    arms = emulated_arms(experiment, to_run=False)
    (key,) = dataset_keys(experiment, arms).values()
    notes: list[str] = []
    with loaded({key: arms[0].binaries}, lambda _key: lambda _share, _text: None, tmp_path, notes.append) as made:
        assert made[key].images["data"].exists()
    (load,) = open_loads(tmp_path)
    record = load.record
    assert (record.limited, record.dilation, record.volumes) == (True, 2, {"data": "gp2:size=400GiB,credits=0"})
    assert (record.loader, record.memory_bytes) == ("native", 256 << 20)
    figures = LoadFigures(load)
    (volume,) = figures.volumes
    assert figures.rows == sum(PgbenchTables(2).rows.values())
    assert volume.write_bytes is not None and volume.write_bytes > PgbenchTables(2).size_bytes
    assert volume.iops is not None and volume.iops <= 1200 * 1.05, "three for each GiB"
    assert volume.time_above_limit["iops"] > 0, "loading asks for more"
    assert volume.course_mib_per_s[-1][0] <= figures.seconds
    assert "on gp2:size=400GiB,credits=0: 200,022 rows loaded" in notes[0]


@pytest.mark.sets_limits
@pytest.mark.needs_fuse
def test_loads_that_are_repeated_take_turns_and_the_last_is_used(state_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(
        'schema_version = 1\n[instance]\nmemory = "256MiB"\n[workload]\nscale = 1\n[workload.load]\nlimited = true\n'
        'times = 2\nconnections = 2\n[factors]\n"world.volume" = ["gp3:size=4GiB", "io2bx:size=4GiB,iops=4000"]\n'
    )
    experiment = read_experiment(file)
    arms = emulated_arms(experiment, to_run=False)
    wanted = dict.fromkeys(dataset_keys(experiment, arms).values(), arms[0].binaries)
    once = tomllib.loads(file.read_text())
    del once["workload"]["load"]["times"]
    assert experiment.identity() == Experiment.of(once).identity(), "it cannot change what a run comes to"
    groups = set()
    beside = find_hierarchy().group("memory", "any").parent

    def progress(_share: float, _text: str) -> None:
        groups.update(beside.glob(f"dataset-*-{os.getpid()}"))

    with loaded(wanted, lambda _key: progress, tmp_path, lambda _note: None) as made:
        assert all(item.images["data"].exists() for item in made.values())
    assert groups, "a control group's name ends in its maker: `make test` in another place took one for a leak"
    on = [load.record.volumes["data"].partition(":")[0] for load in open_loads(tmp_path)]
    assert on == ["gp3", "io2bx", "gp3", "io2bx"]


@pytest.mark.needs_fuse
@pytest.mark.parametrize(
    ("program", "said"), [("postgres", "killed by signal 9"), ("pgdyno-engine", "data volume died")]
)
def test_a_server_or_a_volume_that_dies_while_data_are_loaded_is_named(
    state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    """A client that lost its session would tell little, and be called a bug."""
    counts: dict[str, int] = {}

    def measured(cluster: Cluster, *_arguments: object, **_options: object) -> None:
        victim = cluster.pid if program == "postgres" else counts["daemon"]
        with cluster.connect() as connection:
            os.kill(victim, signal.SIGKILL)
            assert wait_until(lambda: not cluster.alive or program != "postgres", PATIENCE_S)
            assert wait_until(lambda: not Path(f"/proc/{victim}/task/{victim}/exe").exists(), PATIENCE_S)
            connection.execute("CHECKPOINT")

    def placed(*arguments: Any, **options: Any) -> Any:
        made = attach_placement(*arguments, **options)

        @contextlib.contextmanager
        def noted() -> Iterator[AttachedPlacement]:
            with made as placement:
                counts["daemon"] = placement.volumes["data"].daemon.pid
                yield placement

        return noted()

    monkeypatch.setattr(dataset, "measured", measured)
    monkeypatch.setattr(dataset, "attach_placement", placed)
    binaries = find_binaries()
    key = DatasetKey(binaries.major, "ext4", PgbenchTables(1), (("data", SIZE_BYTES),))
    with (
        pytest.raises(PgdynoError, match=said),
        loaded({key: binaries}, lambda _key: lambda _share, _text: None, tmp_path, lambda _text: None),
    ):
        pytest.fail("there is no data set")
