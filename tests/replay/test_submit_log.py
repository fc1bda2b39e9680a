"""What the emulator decided under the real clock, the model decides again in virtual time, to the nanosecond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import InputError
from pgdyno.machine import volume
from tools.fidelity import fio
from tools.fidelity.cell import Job

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_fuse, pytest.mark.needs_fio, pytest.mark.slow]

REQUESTS = 20_000
"""A quiet machine asks for five times as many; `make bench` replays ten million."""
RECORD_BYTES, GRANT = 48, 4
"""As in crates/volume/src/log.rs."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of reads and writes, below and above the limits, with a change of credit in between."""
    folder = tmp_path_factory.mktemp("log")
    path = folder / "submit.log"
    with volume.attached("io2bx:iops=20000", mount=None, submit_log=path, seed=42, state_dir=folder / "s") as result:
        fio.run(result.block_device, Job("random", "70/30", 4, 64, 4, ramp_s=0))
        engine.run_json(["volume", "credit", result.name, "--percent", "0", "--state-dir", str(result.state_dir)])
        fio.run(result.block_device, Job("random", "read", 16, 4, 3, ramp_s=0))
        fio.run(result.block_device, Job("sequential", "write", 64, 16, 2, ramp_s=0))
    return path


def test_every_completion_is_identical(log: Path) -> None:
    result = engine.run_json(["replay", str(log)])
    assert result["submits"] >= REQUESTS
    assert result["complete"]
    assert result["first_difference"] is None
    assert result["identical"] == result["grants"] == result["submits"]


def test_a_record_that_was_changed_is_found(log: Path, tmp_path: Path) -> None:
    content = bytearray(log.read_bytes())
    header = 16 + int.from_bytes(content[8:16], "little")
    middle = header + (len(content) - header) // RECORD_BYTES // 2 * RECORD_BYTES
    # One nanosecond later: one earlier could be before the grant itself, and then there is nothing to compare with.
    while content[middle] != GRANT or content[middle + 8] % 2 == 1:
        middle += RECORD_BYTES
    content[middle + 8] += 1
    changed = tmp_path / "changed.log"
    changed.write_bytes(content)
    difference = engine.run_json(["replay", str(changed)])["first_difference"]
    assert abs(difference["recorded_done_at_ns"] - difference["replayed_done_at_ns"]) == 1


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("no log at all")
    with pytest.raises(InputError, match="another format"):
        engine.run_json(["replay", str(other)])
