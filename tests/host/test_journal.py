"""The journal holds what a killed command was about to change, and nothing of those that live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from pgdyno.machine.clean import clean
from pgdyno.machine.journal import HostJournal

from .needs import needs_root

RECORD_AND_DIE = """
import os, signal, sys
from pathlib import Path
from pgdyno.machine.journal import HostJournal
journal = HostJournal(Path(sys.argv[1]))
for path in sys.argv[2:]:
    journal.record("directory", path=path)
    Path(path).mkdir()
os.kill(os.getpid(), signal.SIGKILL)
"""


def die_leaving(state: Path, *folders: Path) -> None:
    """A command that makes directories and is killed."""
    command = [sys.executable, "-c", RECORD_AND_DIE, str(state), *map(str, folders)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_an_entry_lasts_until_it_is_done(state: Path) -> None:
    journal = HostJournal(state)
    first = journal.record("volume", name="a")
    second = journal.record("cgroup", path="/nowhere")
    assert [entry.entry_id for entry in journal.entries()] == [second, first], "the latest is undone first"
    assert journal.abandoned() == []
    journal.done(first)
    journal.done(first)
    assert [(entry.kind, entry.data) for entry in HostJournal(state).entries()] == [("cgroup", {"path": "/nowhere"})]
    journal.done(second)


def test_a_directory_goes_with_its_block(state: Path, tmp_path: Path) -> None:
    journal = HostJournal(state)
    with journal.directory(tmp_path / "run") as made:
        (made / "file").touch()
        assert len(journal.entries()) == 1
    assert not made.exists()
    assert journal.entries() == []


@needs_root
def test_what_a_killed_command_made_is_removed_once(state: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    die_leaving(state, *folders)
    (folders[0] / "file").touch()
    assert sorted(clean(state)) == [f"removed {folder}" for folder in folders]
    assert clean(state) == []
    assert not any(folder.exists() for folder in folders)


@needs_root
def test_what_a_living_command_has_made_again_is_not_touched(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    die_leaving(state, folder)
    with HostJournal(state).directory(folder):
        assert clean(state) == []
        assert folder.is_dir()
    clean(state)


@needs_root
def test_an_entry_that_was_being_written_is_forgotten(state: Path) -> None:
    journal = HostJournal(state)
    journal.done(journal.record("cgroup", path="/nowhere"))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    torn = state / "journal" / f".{dead.pid}-1-1"
    torn.write_text("{")
    die_leaving(state, Path(f"{state}-x"))
    clean(state)
    assert not torn.exists()


def test_names_are_free_again_for_those_who_took_them(state: Path) -> None:
    die_leaving(state)
    journal = HostJournal(state)
    mine = journal.record("volume", name="v")
    theirs = state / "journal" / f"{os.getpid()}-1-7"
    theirs.write_text((state / "journal" / mine).read_text().replace(f'"pid": {os.getpid()}', '"pid": 2147483000'))
    assert len(journal.entries()) == 2
    journal.forget_abandoned("volume", "v")
    assert [entry.entry_id for entry in journal.entries()] == [mine]
    journal.done(mine)


@needs_root
def test_a_directory_with_something_mounted_in_it_stays(state: Path, tmp_path: Path) -> None:
    """Removing it would remove the content of the mount."""
    journal = HostJournal(state)
    with journal.directory(tmp_path / "run") as made:
        subprocess.run(["mount", "-t", "tmpfs", "none", made], check=True)
        (made / "precious").touch()
    try:
        assert (made / "precious").exists()
        assert len(journal.entries()) == 1
    finally:
        subprocess.run(["umount", made], check=True)
    journal.done(journal.entries()[0].entry_id)
