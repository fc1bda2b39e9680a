"""How long a load takes: the formula, and that a load in HammerDB's manner waits for its commits in slowed time."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import catalog
from pgdyno.experiment import read_experiment
from pgdyno.workload.tables import PgbenchTables, TpccTables, TpchTables
from pgdyno.world.dataset import dataset_keys
from pgdyno.world.fill import ANSWERS_S, LOAD_S_FIXED, BatchedLoad, load_estimate_s, usual_write_s
from pgdyno.world.resolved import emulated_arms

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.world.dataset import DatasetKey

LIMITED = """\
schema_version = 1
[world]
dilation = 4
[instance]
type = "r5b.24xlarge"
memory = "3GiB"
[workload]
kind = "tpcc"
warehouses = 10
clients = 10
all_warehouses = true
[workload.load]
limited = true
manner = "hammerdb"
connections = 2
[factors]
"world.volume" = ["null:size=20GiB", "gp3:iops=16000,throughput=1000", "io2bx"]
"""


def test_the_cpu_or_the_commits_of_a_session_decide() -> None:
    load = BatchedLoad(commits=1000, cpu_s=12.0)
    # Alone: 12 s of a core and 1,000 times 2.5 writes of 2 ms.
    assert load.seconds(1, 4, 0.002) == pytest.approx(LOAD_S_FIXED + 12 + 5)
    # Ten sessions: 1.2 s and 0.5 s of waiting each, and four cores take 3 s.
    assert load.seconds(10, 4, 0.002) == pytest.approx(LOAD_S_FIXED + 3)
    assert load.seconds(10, 4, 0.02) == pytest.approx(LOAD_S_FIXED + 1.2 + 5)


def test_tables_whose_answers_are_known_are_asked_for_them() -> None:
    assert load_estimate_s(TpchTables(1.0)) - load_estimate_s(TpchTables(0.999)) > ANSWERS_S
    assert load_estimate_s(TpchTables(1.001)) - load_estimate_s(TpchTables(1.0)) < -ANSWERS_S + 1
    built = TpchTables(1.0, schema="public")
    assert load_estimate_s(TpchTables(1.0)) - load_estimate_s(built) == ANSWERS_S, "HammerDB's rows are not dbgen's"


def test_only_a_load_in_batches_waits_for_commits() -> None:
    tables, cores = TpccTables(20), len(os.sched_getaffinity(0))
    assert load_estimate_s(tables, "copy", 1, 0.01) == load_estimate_s(tables)
    assert load_estimate_s(tables, "hammerdb", 1, 0.01) > load_estimate_s(tables, "hammerdb", 1, 0.0)
    # A warehouse is one session's, however many there are.
    tpcc_tables = TpccTables(1)
    assert load_estimate_s(tpcc_tables, "hammerdb", 30, 0.01) == load_estimate_s(tpcc_tables, "hammerdb", 1, 0.01)
    alike = BatchedLoad.of(tables)
    assert alike is not None
    assert load_estimate_s(tables, "hammerdb", 4, 0.01) == alike.seconds(4, cores, 0.01)
    assert BatchedLoad.of(TpchTables(2.0)) == BatchedLoad(2 * 3_560, 2 * 125.0)
    assert BatchedLoad.of(PgbenchTables(3)) is None


def _key(tmp_path: Path, text: str, place: int) -> DatasetKey:
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    experiment = read_experiment(file)
    return dataset_keys(experiment, emulated_arms(experiment, to_run=False))[place]


@pytest.mark.usefixtures("engine")
def test_a_limited_load_waits_for_the_writes_of_its_volume_in_slowed_time(tmp_path: Path) -> None:
    free, gp3, io2bx = (_key(tmp_path, LIMITED, place).estimate_s for place in range(3))
    assert free < io2bx < gp3
    write_s = usual_write_s(catalog.resolve("gp3"))
    # docs/concept/volume/service_time.md: a write of 16 KiB takes gp3 0.86 ms; these are longer.
    assert 0.0009 < write_s < 0.002
    assert usual_write_s(catalog.resolve("null:size=1GiB")) == 0.0
    slower = _key(tmp_path, LIMITED.replace("dilation = 4", "dilation = 8"), 1)
    commits = 10 * 762 / 2
    assert slower.estimate_s - gp3 == pytest.approx(commits * 2.5 * write_s * 4)
    # pgdyno's own manner commits a few times.
    assert replace(slower, manner="copy").estimate_s < gp3
