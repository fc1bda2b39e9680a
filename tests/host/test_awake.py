"""CPUs are kept awake for as long as a block lasts, and no longer."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pgdyno.base.errors import HostError
from pgdyno.machine import awake


def _allowed_us() -> int:
    with awake.LATENCY.open("rb", buffering=0) as result:
        allowed_us: int = struct.unpack("i", result.read(4))[0]
    return allowed_us


@pytest.mark.skipif(not awake.possible(), reason=f"{awake.LATENCY} can't be written here")
def test_no_wake_up_is_allowed_to_take_time_within_the_block() -> None:
    before = _allowed_us()
    with awake.kept_awake(wanted=True):
        assert _allowed_us() == 0
    assert _allowed_us() == before
    with awake.kept_awake(wanted=False):
        assert _allowed_us() == before


def test_where_it_is_not_possible_it_is_refused_and_nothing_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(awake, "LATENCY", tmp_path / "none")
    with pytest.raises(HostError, match="cannot be kept awake"), awake.kept_awake(wanted=True):
        raise AssertionError("not reached")
    assert not (tmp_path / "none").exists()
    with awake.kept_awake(wanted=False):
        assert not awake.possible()


@pytest.mark.parametrize("can", [True, False])
def test_a_run_that_does_not_say_has_it_where_it_is_possible(monkeypatch: pytest.MonkeyPatch, can: bool) -> None:
    monkeypatch.setattr(awake, "possible", lambda: can)
    assert awake.decided(None) is can
    assert awake.decided(True)
    assert not awake.decided(False)
