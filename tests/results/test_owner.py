"""What is written under sudo belongs to the user who called sudo, whichever writer wrote it, and nothing else changes hands."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import owner
from pgdyno.loader import recommend
from pgdyno.report.render import write_whole
from pgdyno.results import RunWriter, write_experiment
from pgdyno.results.writer import LoadWriter

from .conftest import EXPERIMENT_ID, make_experiment_record, make_record, throughput_table

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLER = (54321, 54322)
pytestmark = pytest.mark.needs_root


@pytest.fixture
def under_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(CALLER[0]))
    monkeypatch.setenv("SUDO_GID", str(CALLER[1]))


def of(path: Path) -> tuple[int, int]:
    facts = path.lstat()
    return facts.st_uid, facts.st_gid


def below(path: Path) -> Iterator[Path]:
    yield path
    yield from path.rglob("*")


def written(root: Path) -> Path:
    """An experiment with a run, whose files are of several writers."""
    directory = write_experiment(root, make_experiment_record(("gp3",), 1))
    writer = RunWriter(root, EXPERIMENT_ID, "00-gp3-r1")
    writer.table("workload/throughput", throughput_table(3))
    writer.file("logs/server.log").write_text("hello\n")
    (writer.path / "made/by/another").mkdir(parents=True)
    writer.finish(make_record())
    return directory


def test_an_experiment_and_its_runs_are_the_callers(tmp_path: Path, under_sudo: None) -> None:
    written(tmp_path / "not" / "there" / "results")
    assert {of(path) for path in below(tmp_path / "not")} == {CALLER}
    assert of(tmp_path) == (0, 0), "what existed keeps its owner"


def test_without_sudo_or_with_roots_sudo_files_stay_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
    written(tmp_path / "one")
    monkeypatch.setenv("SUDO_UID", "0")
    monkeypatch.setenv("SUDO_GID", "0")
    written(tmp_path / "two")
    assert {of(path) for path in below(tmp_path)} == {(0, 0)}


def test_after_an_error_and_before_the_end_the_caller_can_remove_everything(tmp_path: Path, under_sudo: None) -> None:
    write_experiment(tmp_path, make_experiment_record(("gp3",), 1))
    writer = RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1")
    writer.file("logs/server.log").write_text("no space\n")
    partial = [path for path in below(writer.path) if path.is_dir()]
    assert len(partial) == 2
    assert {of(path) for path in partial} == {CALLER}
    kept = writer.fail()
    assert kept is not None
    assert {of(path) for path in below(kept.parent)} == {CALLER}


def test_a_load_is_the_callers(tmp_path: Path, under_sudo: None) -> None:
    writer = LoadWriter(tmp_path / EXPERIMENT_ID, "people")
    writer.file("logs/load.log").write_text("done\n")
    writer._finish("load.json", "{}")
    assert {of(path) for path in below(tmp_path / EXPERIMENT_ID)} == {CALLER}


def test_a_report_is_the_callers_and_one_that_existed_keeps_its_owner(tmp_path: Path, under_sudo: None) -> None:
    new, old = tmp_path / "new.html", tmp_path / "old.html"
    old.touch()
    os.chown(old, 61000, 61001)
    for page in (new, old):
        write_whole(page, b"page")
    assert (of(new), of(old)) == (CALLER, (61000, 61001))


def test_recommended_settings_are_the_callers(tmp_path: Path, under_sudo: None) -> None:
    recommend.write([], tmp_path / "a" / "b")
    assert {of(path) for path in below(tmp_path / "a")} == {CALLER}


def test_what_may_be_anyones_is_not_given_away(tmp_path: Path, under_sudo: None) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "folder"
    secret.write_text("of root")
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    os.link(secret, folder / "second name")
    (folder / "elsewhere").symlink_to(tmp_path / "other")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    (folder / "others").touch()
    os.chown(folder / "others", 61000, 61001)
    owner.give(folder)
    assert of(secret) == (0, 0)
    assert of(tmp_path / "other" / "file") == (0, 0)
    assert of(folder / "others") == (61000, 61001)
    assert of(folder) == CALLER


@pytest.mark.usefixtures("under_sudo")
@pytest.mark.parametrize("all_below", [False, True])
def test_what_python_compiled_as_root_can_be_removed_by_whose_installation_it_is(
    all_below: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mine", "roots"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"compiled_{name}_{all_below}.py").write_text("")
        monkeypatch.syspath_prepend(tmp_path / name)
    os.chown(tmp_path / "mine", *CALLER)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for name in ("mine", "roots"):
        module = importlib.import_module(f"compiled_{name}_{all_below}")
        if all_below:
            monkeypatch.delitem(sys.modules, module.__name__)
        assert of(tmp_path / name / "__pycache__")[0] == 0
    owner.give_modules(tmp_path if all_below else None)
    assert of(tmp_path / "mine" / "__pycache__") == CALLER
    assert of(tmp_path / "roots" / "__pycache__")[0] == 0
