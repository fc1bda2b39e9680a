"""The machine's dirty limits are set by one test at a time."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from pgdyno.machine import paths
from tools.testing.__main__ import bench
from tools.testing.lists import LIMITS

from ..support.machine import Limits, limits


def test_a_test_that_sets_the_limits_out_of_turn_is_told_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMITS, "1")
    turns = tmp_path / "turns"
    monkeypatch.setattr(paths, "MACHINE_DIR", tmp_path)

    def looked() -> Limits:
        limits = Limits.look(turns)
        assert limits is not None
        return limits

    def set_them(time: int) -> None:
        (tmp_path / "dirty_limits.json").touch()
        os.utime(tmp_path / "dirty_limits.json", (time, time))

    before = looked()
    assert not looked().set_out_of_turn(before)
    set_them(1)
    assert looked().set_out_of_turn(before)
    with limits(turns):
        during = looked()
        set_them(2)
        # Another test cannot be blamed for what the one does whose turn it is, or has been since.
        assert not looked().set_out_of_turn(during)
    assert not looked().set_out_of_turn(during)
    assert not looked().set_out_of_turn(before)
    after = looked()
    set_them(3)
    assert looked().set_out_of_turn(after)


def test_a_measurement_may_set_them_without_a_mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(LIMITS, raising=False)
    program, path = tmp_path / "python", tmp_path / "environment"
    program.write_text(f"#!/bin/sh\nenv >{path}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert bench("aa") == 1, "it ran no test"
    assert "PGDYNO_STATE_DIR=" in path.read_text()
    assert f"{LIMITS}=" not in path.read_text()


def test_outside_make_test_any_command_may_set_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMITS, raising=False)
    assert Limits.look() is None
