"""Programs that take turns: one works at a time, each is told how long it waited, and none is left behind."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.base.errors import PgdynoError
from tools.equivalence import turns

_WORKS = """
import sys, time
print("ready", flush=True)
begin = time.monotonic()
while time.monotonic() < begin + float(sys.argv[1]):
    pass
with open(sys.argv[2], "w") as file:
    print(time.monotonic() - begin, time.process_time(), file=file)
"""
"""Busy for so many seconds; says how many passed, and how many of them it worked: the CPU's count stands while it is stopped."""


def program(seconds: float, out: Path) -> Callable[[], subprocess.Popen[bytes]]:
    def begin() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _WORKS, str(seconds), str(out)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        # On a busy machine it takes its time until it looks at the clock, and the first turn is short.
        assert process.stdout is not None
        with process.stdout as text:
            text.readline()
        return process

    return begin


def test_one_works_at_a_time_and_each_knows_how_long_it_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "FIRST_S", 0.5)
    monkeypatch.setattr(turns, "TURN_S", 0.2)
    names = ["a", "b", "c"]
    taken = turns.take({name: program(2.5, tmp_path / name) for name in names}, random.Random(1))
    assert [item.process.returncode for item in taken.values()] == [0, 0, 0]
    for name in names:
        passed_s, worked_s = map(float, (tmp_path / name).read_text(encoding="utf-8").split())
        # The tenths are what it takes to start Python, and to stop a program that waits for a CPU.
        assert worked_s < passed_s - taken[name].stopped_s + 0.5, "it worked while it was stopped"
        assert taken[name].stopped_s > passed_s / 4, "the others had their turns"
        assert taken[name].after_first_s >= taken[name].stopped_s


def test_one_that_fails_takes_the_others_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "FIRST_S", 0.3)
    begun: list[subprocess.Popen[bytes]] = []

    def long() -> subprocess.Popen[bytes]:
        begun.append(program(60, tmp_path / "long")())
        return begun[-1]

    fails = program(0, tmp_path / "fails")
    with pytest.raises(PgdynoError, match="`fails` ended with 0"):
        turns.take({"fails": fails, "long": long, "longer": long}, random.Random(3))
    assert all(process.poll() is not None for process in begun)
