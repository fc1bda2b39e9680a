"""Loading from Python: what is reported, recorded and estimated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.base.errors import InputError
from pgdyno.probe.host import Role
from pgdyno.results.record import LoadRecord, PostgresRecord
from pgdyno.workload import tables
from pgdyno.workload.fill import drop, fill, load
from pgdyno.workload.tables import PgbenchTables, SysbenchTables, Tables
from pgdyno.world.fill import Loader, LoadPhase, measured

from .filled import Database

SIZE = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200"


def phase(database: Database, directory: Path) -> LoadPhase:
    """A load whose server is watched, on a disk that is nobody's to know."""
    return LoadPhase(
        directory=directory,
        title="scale 1",
        postgres=PostgresRecord(version=database.cluster.version, source="a test"),
        roles={"server": Role(parents=(database.cluster.pid,))},
        devices={},
    )


def test_loading_reports_progress_and_what_is_there(database: Callable[[], Database], tmp_path: Path) -> None:
    made, shown = database(), list[tuple[float, str]]()
    outcome = fill(
        made, PgbenchTables(scale=3), lambda share, text: shown.append((share, text)), log=tmp_path / "load.log"
    )
    assert outcome.rows == PgbenchTables(scale=3).rows
    assert {"copy", "vacuum", "primary key", "checkpoint"} <= set(outcome.seconds)
    shares = [share for share, _ in shown]
    assert shares == sorted(shares)
    assert shown[-1] == (1.0, "loaded")
    assert outcome.moments[-1].rows == sum(outcome.rows.values())
    assert outcome.moments[-1].bytes == outcome.row_bytes
    assert json.loads((tmp_path / "load.log").read_text().splitlines()[0])["ready"]["tables"] == 4
    assert drop(made, PgbenchTables(scale=3)) > 0
    assert made.tables() == []


def test_what_the_server_refuses_is_the_users_error(database: Callable[[], Database]) -> None:
    made = database()
    fill(made, SysbenchTables(1, 10))
    with pytest.raises(InputError, match='"sbtest1" already exists') as refused:
        fill(made, SysbenchTables(2, 10), replace=False)
    assert "drop" in refused.value.remedy
    assert made.tables() == ["sbtest1"]


def test_a_progress_that_fails_ends_the_load_and_leaves_nothing(database: Callable[[], Database]) -> None:
    """As Ctrl-C does, which reaches this process and not the engine when it comes from another one."""
    made = database()

    def interrupt(_share: float, _text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(made, PgbenchTables(scale=200), interrupt)
    assert made.tables() == []


@pytest.mark.parametrize("native", [True, False], ids=["native", "pgbench"])
def test_a_load_is_a_phase_with_its_record(database: Callable[[], Database], tmp_path: Path, native: bool) -> None:
    made = database()
    by = Loader(native=native)
    loaded = measured(made, PgbenchTables(scale=1), phase(made, tmp_path), loader=by)
    assert loaded.path == tmp_path / "loads" / "00-scale-1"
    assert "100,011 rows" in loaded.said
    model_validate_json = LoadRecord.model_validate_json((loaded.path / "load.json").read_bytes())
    assert (model_validate_json.loader, model_validate_json.experiment_id) == (
        "native" if native else "pgbench",
        tmp_path.name,
    )
    assert model_validate_json.rows == PgbenchTables(scale=1).rows
    assert bool(model_validate_json.steps) == bool(model_validate_json.moments) == native
    assert all(
        model_validate_json.begin_ns <= step.begin_ns <= step.end_ns <= model_validate_json.end_ns
        for step in model_validate_json.steps
    )
    import pyarrow.parquet as pq

    cpu = pq.read_table(loaded.path / "probe/cpu.parquet").to_pylist()
    used = {role: [row["cpu_ns"] for row in cpu if row["role"] == role] for role in ("server", "driver")}
    assert used["server"][-1] > used["server"][0], "the server worked"
    assert used["driver"], "the loader was seen"
    assert (loaded.path / "logs/load.log").read_text()
    again = measured(made, PgbenchTables(scale=1), phase(made, tmp_path), loader=by)
    assert again.path.name == "01-scale-1"


def test_a_load_that_fails_leaves_no_record(database: Callable[[], Database], tmp_path: Path) -> None:
    made = database()
    with pytest.raises(InputError, match="tablespace"):
        measured(made, PgbenchTables(scale=1, tablespace="nowhere"), phase(made, tmp_path), loader=Loader(native=True))
    assert list((tmp_path / "loads").iterdir()) == []


@pytest.mark.parametrize(
    "asked",
    [
        PgbenchTables(5),
        PgbenchTables(5, fillfactor=50),
        SysbenchTables(2, 50_000),
        SysbenchTables(1, 50_000, keys="uniform"),
    ],
    ids=str,
)
def test_sizes_are_foretold(database: Callable[[], Database], asked: Tables) -> None:
    """Within a tenth: what a volume must hold is asked with more room than that; and no less than there is."""
    made = database()
    fill(made, asked)
    size = int(made.rows(SIZE)[0][0])
    assert 0.9 * size <= asked.size_bytes <= 1.15 * size


def test_both_loaders_make_the_same(database: Callable[[], Database]) -> None:
    ours, theirs = database(), database()
    tables = PgbenchTables(scale=1, fillfactor=90, foreign_keys=True)
    fill(ours, tables)
    load(theirs, tables)
    assert ours.schema() == theirs.schema()
    assert ours.digest("pgbench_accounts") == theirs.digest("pgbench_accounts")


def test_data_keep_their_ratio_to_memory() -> None:
    """The size that a ratio asks for is the size that its rows are foretold to have."""
    wanted = tables.size_for_memory(512 << 20, 2.5)
    assert wanted == 1280 << 20
    rows = tables.sysbench_rows_for(wanted, tables=50)
    assert SysbenchTables(50, rows).size_bytes == pytest.approx(wanted, rel=0.01)
    assert PgbenchTables(tables.scale_for(wanted)).size_bytes == pytest.approx(wanted, rel=0.01)
    assert (tables.scale_for(1), tables.sysbench_rows_for(1, 9)) == (1, 1)
    with pytest.raises(InputError, match="0 times the memory"):
        tables.size_for_memory(1 << 30, 0.0)
