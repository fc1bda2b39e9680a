"""What every program that measures does alike: its exit code, its page, its record."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pydantic import Field

from pgdyno.base.errors import HostError
from tools.fidelity.claim import Claim
from tools.measured import Kept, claims_table, code, ended, none_yet, published, tried

HOLDS = Claim("rate", "within 1 %", "0.2 %", True)
BROKEN = Claim("p99", "within 5 %", "7 %", False, ("gp3: +7 %",))


class Record(Kept):
    """One with a list."""

    results: list[int] = Field(default_factory=list)


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> dict[int, object]:
    """What a program would have done on a signal; the tests' own process keeps its handlers."""
    handlers: dict[int, object] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    return handlers


def test_a_program_ends_with_what_it_found(handlers: dict[int, object], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(lambda: code([HOLDS])) == 0
    assert ended(lambda: code([HOLDS, BROKEN])) == 1
    assert set(handlers) == {signal.SIGTERM}

    def breaks() -> int:
        raise HostError("there is no root here", remedy="run it with sudo")

    assert ended(breaks) == HostError.default_exit_code
    assert capsys.readouterr().err == "there is no root here\nrun it with sudo\n"
    assert "make bench ONLY=aa" in none_yet("aa").remedy


def test_a_page_is_written_and_its_claims_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "reference" / "page.md"
    assert published(page, f"{claims_table([HOLDS, BROKEN])}\n", [HOLDS, BROKEN]) == [HOLDS, BROKEN]
    assert "| rate | within 1 % | 0.2 % | yes |\n| p99 | within 5 % | 7 % | **no** |" in page.read_text()
    assert "gp3: +7 %" in capsys.readouterr().out


def test_a_trial_begins_anew_beside_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, trial = tmp_path / "record.json", tmp_path / "trial.json"
    record.write_text("kept")
    trial.write_text("of the trial before")

    def judge(path: Path) -> list[Claim]:
        assert path == trial
        assert not path.exists()
        return [HOLDS, BROKEN]

    assert tried(record, judge) == 1
    assert record.read_text() == "kept"
    assert "gp3: +7 %" in capsys.readouterr().out


def test_a_record_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    Record(results=[1]).save(path)
    Record(results=[1, 2]).save(path)
    assert Record.require(path, "aa") == Record(results=[1, 2])
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]
