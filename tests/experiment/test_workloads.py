"""Kinds of workload and their drivers in an experiment file: scripts are read beside it and kept with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.errors import HostError, InputError
from pgdyno.experiment import Experiment
from pgdyno.resolved import resolve
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
    found = written(folder, FILE)
    (folder / "one.sql").write_text("SELECT 'other';\n")
    recorded = json.loads(json.dumps(found.settings()))
    again = Experiment.of({"schema_version": 1, "name": found.name, **recorded})
    assert again.whole() == found.whole()
    assert written(folder, FILE).whole() != found.whole()


def test_scripts_are_a_factor(folder: Path) -> None:
    text = FILE.replace('files = ["one.sql@3", "two.sql"]\n', "")
    text += '[factors]\n"workload.files" = [["one.sql"], ["one.sql@3", "two.sql"]]\n'
    found = written(folder, text)
    assert [arm.label for arm in found.arms] == ["one.sql", "one.sql@3, two.sql"]
    assert [len(arm.workload.files) for arm in found.arms] == [1, 2]


def test_drivers_are_a_factor(folder: Path) -> None:
    text = FILE.replace('engine = "native"\n', "") + '[factors]\n"workload.engine" = ["pgbench", "native"]\n'
    found = written(folder, text)
    assert [arm.label for arm in found.arms] == ["engine pgbench", "engine native"]
    assert [arm.workload.driver for arm in found.arms] == ["pgbench", "native"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"two.sql"', '"tow.sql"', "trial.toml:9: workload.files[2]: the script"),
        ('"one.sql@3"', '"one.sql@x"', "trial.toml:9: workload.files[1]: the weight in"),
        ('["one.sql@3", "two.sql"]', "[]", "trial.toml:9: workload.files: "),
        (
            '["one.sql@3", "two.sql"]',
            '["one.sql", "one.sql@2"]',
            "trial.toml:9: workload.files: one.sql is there twice",
        ),
        (
            'engine = "native"',
            'engine = "sysbench"',
            'trial.toml:8: workload.engine: sysbench cannot run kind = "script"',
        ),
        ('engine = "native"', "scale = 2\nrows = 5", 'trial.toml:9: workload.rows: it is for kind = "sysbench"'),
        ('"two.sql"]', '"two.sql"]\n[factors]\n"workload.files" = [["no.sql"]]', 'workload.files"[1][1]: the script'),
    ],
)
def test_a_mistake_is_named(old: str, new: str, said: str, folder: Path) -> None:
    with pytest.raises(InputError) as found:
        written(folder, FILE.replace(old, new))
    assert said in found.value.message


def test_a_script_that_the_driver_cannot_read_is_refused_with_both_lines(folder: Path, engine: Path) -> None:
    (folder / "two.sql").write_text("SELECT 2;\n\\set x 1 +\n")
    with pytest.raises(InputError, match=r"trial\.toml:9: workload\.files: .*two\.sql:2:"):
        resolve(written(folder, FILE))


def test_an_original_that_is_not_installed_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = FILE.replace('"script"', '"sysbench"').replace('"native"', '"sysbench"').replace("files = ", "# ")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises((HostError, InputError), match="needs the original program"):
        resolve(written(folder, text))
