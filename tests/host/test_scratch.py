"""Scratch directories go with their block, or with a clean-up when their process was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.machine.clean import clean, left_in
from pgdyno.machine.scratch import abandoned_scratch, scratch_directory

pytestmark = pytest.mark.needs_root

_KILLED = """
import os, signal
from pathlib import Path
from pgdyno.machine.scratch import scratch_directory
with scratch_directory(Path.cwd()) as scratch:
    print(scratch, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_goes_with_its_block(state: Path, tmp_path: Path) -> None:
    """Private while it is there, and not taken for a dead process's."""
    with scratch_directory(tmp_path) as scratch:
        (scratch / "probe.jsonl").write_text("{}")
        assert scratch.stat().st_mode & 0o777 == 0o700
        assert scratch not in abandoned_scratch(state)
    assert not scratch.exists()


def test_a_killed_process_leaves_it_to_the_clean_up(state: Path, tmp_path: Path) -> None:
    """The clean-up names it, removes it, and has nothing more to do."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("needs /dev/shm")
    child = subprocess.run(
        [sys.executable, "-c", _KILLED], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False
    )
    left = Path(child.stdout.strip())
    assert left.is_dir()
    assert left in abandoned_scratch(state)
    assert any(str(left) in line for line in left_in(state))
    # What another state directory's runs left is theirs to clean: they may be at it.
    elsewhere = tmp_path / "elsewhere"
    assert not any(str(left) in line for line in [*left_in(elsewhere), *clean(elsewhere)])
    assert any(str(left) in line for line in clean(state))
    assert not left.exists()
