"""PostgreSQL on two volumes, of which sets of snapshots are taken under load: each restores with what was acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.snapshot import __main__ as command
from tools.snapshot import page
from tools.snapshot.measure import sets_under_load
from tools.snapshot.record import Record, Restores, Sets, Waits

from ..host.needs import needs_fuse

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.machine.file_system import FileSystem


@needs_fuse
@pytest.mark.parametrize("file_system", ["ext4", pytest.param("xfs", marks=pytest.mark.needs_xfs)])
def test_a_set_restores_with_every_commit_that_was_acknowledged(state: Path, file_system: FileSystem) -> None:
    sets = sets_under_load(state.parent, file_system, 3)
    assert sets.failed == []
    assert sets.sets == 3
    assert max(sets.waited_ms) < 10 * page.WAITED_MS_MAX, (
        "this machine may have other things to do; `make bench ONLY=snapshot` is exact"
    )


def record(**parts: object) -> Record:
    """A bench that was not made, in which every claim holds."""
    facts: dict[str, object] = {"build_hash": "5c0ffee", "postgres": "18.6", "kernel": "6.18", "cores": 2}
    good: dict[str, object] = {
        "sets": [
            Sets(file_system=kind, sets=500, commits=9000, waited_ms=[0.1, 0.3], seconds=900.0)
            for kind in ("ext4", "xfs")
        ],
        "apart": Sets(file_system="ext4", sets=25, failed=["client 1 has 7 commits, and 9 were acknowledged"]),
        "waits": Waits(windows=2, beside_ms=[1.0, 4.0], without_ms=[1.0, 3.0]),
        "restores": Restores(restored=200),
    }
    return Record.model_validate(facts | good | parts)


def test_a_record_holds_only_with_all_sets_no_failure_and_a_control_that_fails() -> None:
    good = record()
    assert [claim.holds for claim in page.judge(good)] == [True] * 4
    text = page.render(good, page.judge(good))
    assert "partial" not in text
    assert "| ext4 | 500 | 0 | 9,000 | 0.300 | 0.300 | 1.8 |" in " ".join(text.split())
    broken = (
        record(sets=[Sets(file_system="ext4", sets=999)]),
        record(apart=Sets(file_system="ext4", sets=25)),
        record(waits=Waits(windows=2, beside_ms=[1.0, 24.0], without_ms=[1.0, 3.0])),
        record(restores=Restores(restored=200, fsck_faults=["ext4 3: e2fsck ended with 4"])),
    )
    for place, other in enumerate(broken):
        assert [claim.holds for claim in page.judge(other)] == [number != place for number in range(4)]
        assert "**This record is partial**" in page.render(other, page.judge(other))
    nothing = record(sets=[], apart=None, waits=None, restores=None)
    assert not any(claim.holds for claim in page.judge(nothing))


@pytest.mark.bench
@needs_fuse
@pytest.mark.needs_fio
@pytest.mark.needs_xfs
def test_a_thousand_sets_restore_with_every_commit_that_was_acknowledged() -> None:
    assert [str(claim) for claim in command.write(command.measured()) if not claim.holds] == []
