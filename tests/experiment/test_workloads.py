"""Kinds of workload and their drivers in an experiment file: scripts are read beside it and kept with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.experiment import Experiment
from pgdyno.world.resolved import emulated_arms
from tests.experiment.documents import written

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
schema_version = 1

[world]
volume = "gp3"

[workload]
kind = "script"
engine = "native"
files = ["one.sql@3", "two.sql"]
warmup = "1s"
duration = "2s"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Scripts, which an experiment file will stand beside."""
    (tmp_path / "one.sql").write_text("SELECT 1;\n")
    (tmp_path / "two.sql").write_text("SELECT 2;\n")
    return tmp_path


def test_scripts_are_read_beside_the_file(folder: Path) -> None:
    (arm,) = written(folder, FILE).arms
    assert [(file.name, file.weight, file.text) for file in arm.workload.files] == [
        ("one.sql", 3, "SELECT 1;\n"),
        ("two.sql", 1, "SELECT 2;\n"),
    ]


def test_a_record_repeats_what_was_run_when_the_file_has_changed(folder: Path) -> None:
    result = written(folder, FILE)
    (folder / "one.sql").write_text("SELECT 'other';\n")
    recorded = json.loads(json.dumps(result.settings()))
    again = Experiment.of({"schema_version": 1, "name": result.name, **recorded})
    assert again.whole() == result.whole()
    assert written(folder, FILE).whole() != result.whole()


def test_scripts_are_a_factor(folder: Path) -> None:
    text = FILE.replace('files = ["one.sql@3", "two.sql"]\n', "")
    text += '[factors]\n"workload.files" = [["one.sql"], ["one.sql@3", "two.sql"]]\n'
    result = written(folder, text)
    assert [arm.label for arm in result.arms] == ["one.sql", "one.sql@3, two.sql"]
    assert [len(arm.workload.files) for arm in result.arms] == [1, 2]


def test_drivers_are_a_factor(folder: Path) -> None:
    text = FILE.replace('engine = "native"\n', "") + '[factors]\n"workload.engine" = ["pgbench", "native"]\n'
    result = written(folder, text)
    assert [arm.label for arm in result.arms] == ["engine pgbench", "engine native"]
    assert [arm.workload.driver for arm in result.arms] == ["pgbench", "native"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"two.sql"', '"tow.sql"', "trial.toml:9: workload.files[2]: the script"),
        ('"one.sql@3"', '"one.sql@x"', "trial.toml:9: workload.files[1]: the weight in"),
        ('["one.sql@3", "two.sql"]', "[]", "trial.toml:9: workload.files: "),
        (
            '["one.sql@3", "two.sql"]',
            '["one.sql", "one.sql@2"]',
            "trial.toml:9: workload.files: one.sql appears twice",
        ),
        (
            'engine = "native"',
            'engine = "sysbench"',
            "trial.toml:8: workload.engine: pgdyno runs sysbench's tests with its own driver",
        ),
        ('engine = "native"', "scale = 2\nrows = 5", 'trial.toml:9: workload.rows: it is for kind = "sysbench"'),
        ('"two.sql"]', '"two.sql"]\n[factors]\n"workload.files" = [["no.sql"]]', 'workload.files"[1][1]: the script'),
    ],
)
def test_a_mistake_is_named(old: str, new: str, said: str, folder: Path) -> None:
    with pytest.raises(InputError) as raises:
        written(folder, FILE.replace(old, new))
    assert said in raises.value.message


def test_a_script_that_the_driver_cannot_read_is_refused_with_both_lines(folder: Path, engine: Path) -> None:
    (folder / "two.sql").write_text("SELECT 2;\n\\set x 1 +\n")
    with pytest.raises(InputError, match=r"trial\.toml:9: workload\.files: .*two\.sql:2:"):
        emulated_arms(written(folder, FILE))


SIZED = """\
schema_version = 1
[world]
volume = "gp3"
[instance]
memory = "1GiB"
[workload]
data_to_memory = 4.0
"""


@pytest.mark.parametrize(
    ("more", "bytes_at_least"),
    [("", 4 << 30), ("fillfactor = 50\n", 4 << 30), ('kind = "sysbench"\ntables = 64\n', 4 << 30)],
    ids=["pgbench", "half filled", "sysbench"],
)
def test_data_keep_their_ratio_to_the_instances_memory(tmp_path: Path, more: str, bytes_at_least: int) -> None:
    (arm,) = emulated_arms(written(tmp_path, SIZED + more), to_run=False)
    assert arm.arm.workload.data_set().size_bytes == pytest.approx(bytes_at_least, rel=0.01)
    (smaller,) = emulated_arms(written(tmp_path, SIZED.replace("1GiB", "256MiB") + more), to_run=False)
    assert smaller.arm.workload.data_set().size_bytes == pytest.approx(bytes_at_least / 4, rel=0.01)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("scale = 5\n", "trial.toml:7: workload.data_to_memory: it sets the amount of data, and so does scale"),
        ('kind = "idle"\nrate_per_s = 5\n', "workload.data_to_memory: idle clients have no tables"),
        ('kind = "sysbench"\nload.foreign_keys = true\n', "workload.load: foreign_keys are for pgbench's tables"),
        ("load.sessions = 3\n", "workload.load.sessions: there is no such key"),
        ("load.connections = 0\n", "workload.load.connections"),
    ],
)
def test_a_size_and_a_load_that_cannot_be_are_refused(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(InputError) as raises:
        written(tmp_path, SIZED + more)
    assert said in raises.value.message


@pytest.mark.parametrize("key", ["data_to_memory = 2.0", "load.limited = true"])
def test_a_server_that_exists_has_its_own_memory_and_volumes(tmp_path: Path, key: str) -> None:
    text = f'schema_version = 1\n[world]\nkind = "real"\ndsn = "host=db.example"\n[workload]\n{key}\n'
    with pytest.raises(InputError, match=r"it needs (the memory of an emulated instance|emulated volumes)"):
        written(tmp_path, text)


def test_options_are_a_factor(tmp_path: Path) -> None:
    text = SIZED.replace("data_to_memory = 4.0", 'kind = "sysbench"')
    result = written(tmp_path, text + '[factors]\n"workload.options.range_size" = [10, 1000]\n')
    assert [arm.label for arm in result.arms] == ["range_size 10", "range_size 1000"]
    assert [arm.workload.options.range_size for arm in result.arms] == [10, 1000]


def test_a_script_that_sleeps_is_not_given_to_a_driver_that_does_not_slow_it(folder: Path) -> None:
    (folder / "one.sql").write_text("SELECT 1;\n  \\sleep 10 ms\n")
    dilated = FILE.replace('volume = "gp3"', 'volume = "gp3"\ndilation = 4')
    assert written(folder, dilated).arms[0].workload.sleeps
    with pytest.raises(InputError, match=r"workload\.files: pgbench does not slow the \\sleep") as raises:
        written(folder, dilated.replace('"native"', '"pgbench"'))
    assert "native" in raises.value.remedy
    assert written(folder, FILE.replace('"native"', '"pgbench"')).arms[0].workload.driver == "pgbench"
