"""When what several hosts were measured to do is as claimed, and what the page says of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tools.hosts import page
from tools.hosts.record import Clocks, Cost, Equal, Kill, Kills, Record, SpreadKills, Starts

WHEN = {"begin": datetime(2026, 11, 26, tzinfo=UTC), "engine": "5c0ffee"}


def record(four: float = 1.0, pairs: int = 8) -> Record:
    """One that nobody measured, in which every claim holds; four drivers do so many times what one does."""
    each = [(300 * four * noise, 300.0) for noise in (0.999, 1.0, 1.0, 1.001)] * (pairs // 4)
    return Record(
        kernel="6.18",
        cores=2,
        equal={name: Equal(**WHEN, pairs=each) for name in (*page.BARS, page.BUSY)},
        starts=Starts(**WHEN, spread_ms=[0.1] * 199 + [0.9], woke_late_ms=[0.1] * 199 + [1.8]),
        clocks={"a busy machine": Clocks(**WHEN, estimates=1000, off=2)},
        kills=Kills(**WHEN, kills=[Kill(what="link", became="an error", took_s=6.5)] * 60),
        spread_kills={"on loopback": SpreadKills(**WHEN, kills={"worker": 20}, replicates=30)},
        cost=Cost(**WHEN, worker_share=0.008, prepared_s=1.6, wire_kib_per_s=5.8),
    )


def broken(record: Record) -> list[str]:
    return [claim.name for claim in page.judge(record) if not claim.holds]


def test_a_whole_record_holds_and_an_empty_one_does_not() -> None:
    assert broken(record()) == []
    assert "partial" not in page.render(record())
    empty = Record(kernel="6.18", cores=2)
    assert len(broken(empty)) == len(page.judge(empty))
    assert "**This record is partial, or a claim" in page.render(empty)


def test_four_drivers_that_do_less_are_found_at_a_rate_sooner_than_in_a_closed_loop() -> None:
    assert broken(record(four=0.98)) == ["300 transactions a second: four drivers over one"]
    assert len(broken(record(four=0.94))) == 2
    assert len(broken(record(pairs=4))) == 2, "too few"


def test_the_loop_that_takes_both_cores_has_no_bar_and_is_said_to_be_inside_that_of_the_other_or_not() -> None:
    result = record()
    assert "four drivers over one 1.0000 (0.9994 to 1.0006), 8 pairs, which is inside 0.95 to 1.05" in page.beside(
        result
    )
    result.equal[page.BUSY].pairs = record(four=0.9).equal[page.BUSY].pairs
    assert broken(result) == []
    assert "which is **not** inside 0.95 to 1.05" in page.render(result)
    del result.equal[page.BUSY]
    assert "both cores" not in page.render(result)


@pytest.mark.parametrize(
    ("part", "more", "what"),
    [
        ("starts", {"spread_ms": [0.1] * 199 + [1.1]}, "begin together"),
        ("starts", {"spread_ms": [0.1] * 199}, "begin together"),
        ("kills", {"kills": [Kill(what="link", became=page.NUMBER, took_s=0)] * 60}, "a kill leaves no number"),
        ("kills", {"kills": [Kill(what="link", became="an error", took_s=10.1)] * 60}, "a run ends after a kill"),
        ("kills", {"kills": [Kill(what="link", became="an error", took_s=1, left=["x"])] * 60}, "doctor --clean"),
        ("cost", {"worker_share": 0.011}, "a worker beside its driver"),
        ("cost", {"prepared_s": 2.1}, "200 clients"),
    ],
)
def test_what_breaks_a_claim_is_named(part: str, more: dict[str, object], what: str) -> None:
    result = record()
    [name] = broken(result.model_copy(update={part: getattr(result, part).model_copy(update=more)}))
    assert what in name


def test_a_way_whose_clocks_are_off_too_often_is_not_hidden_by_the_others() -> None:
    result = record()
    result.clocks["delays"] = Clocks(**WHEN, estimates=100, off=2)
    assert broken(result) == ["offsets of clocks"]
    result.clocks["delays"].count(error_ns=-5_000, uncertainty_ns=4_000)
    assert (result.clocks["delays"].off, result.clocks["delays"].error_us_max) == (3, 5.0)


def test_what_is_kept_is_read_again_and_the_page_is_written(tmp_path: Path) -> None:
    page.keep(record(), tmp_path / "record.json", tmp_path / "hosts.md")
    assert Record.load(tmp_path / "record.json") == record()
    text = (tmp_path / "hosts.md").read_text()
    assert "largest 0.900 ms; the latest thread woke 1.800 ms after its timer" in text
    assert "| closed loop, a commit takes 10 ms | 299.7 | 300.0 | 0.9990 |" in text
    assert "| link | 60 | 6.5 |" in text
