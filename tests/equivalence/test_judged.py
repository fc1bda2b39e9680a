"""When the driver counts as equal, and what the page says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.equivalence.synthetic import ASKED, blocks, record, result
from tools.equivalence import page
from tools.equivalence.claims import judge
from tools.equivalence.record import HALF_WIDTH_MAX, PAIRS_MAX, PAIRS_MIN, Record, enough, half_width

if TYPE_CHECKING:
    from pathlib import Path


def test_blocks_are_added_until_the_intervals_are_narrow() -> None:
    assert not enough(blocks(PAIRS_MIN - 1, spread=0.0001)), "fewer say too little of the spread"
    assert enough(blocks(PAIRS_MIN, spread=0.001))
    assert not enough(blocks(PAIRS_MIN, spread=0.05))
    assert enough(blocks(PAIRS_MAX, spread=0.5)), "some machines are never quiet"


def test_blocks_are_added_while_an_interval_lies_across_an_edge_of_the_band() -> None:
    across = blocks(PAIRS_MIN, native=1.03, spread=0.005)
    assert max(half_width(result(1.03).native()), half_width(result(1.03).itself())) < HALF_WIDTH_MAX
    assert not enough(across)
    assert enough(blocks(PAIRS_MIN, native=1.06, spread=0.005)), "it is known to be outside"
    assert enough(blocks(PAIRS_MAX, native=1.03, spread=0.005))


def test_a_workload_that_is_measured_further_keeps_its_place() -> None:
    first, second = result(), result().model_copy(update={"workload": "legacy"})
    answer = record(first, second)
    answer.put(first.model_copy(update={"blocks": (*first.blocks, *blocks(2))}))
    assert [(result.workload, len(result.blocks)) for result in answer.results] == [("tpcb-like", 10), ("legacy", 8)]


def test_equal_drivers_hold_every_claim() -> None:
    claims = judge(record(result()))
    assert [claim.holds for claim in claims] == [True, True, True]
    assert half_width(result().native()) < HALF_WIDTH_MAX


@pytest.mark.parametrize("native", [0.95, 1.06])
def test_a_driver_that_is_slower_or_faster_does_not_hold(native: float) -> None:
    itself, against, same = judge(record(result(native)))
    assert (itself.holds, against.holds, same.holds) == (True, False, True)


def test_a_bench_that_cannot_tell_does_not_hold() -> None:
    itself, against, _ = judge(record(result(spread=0.05)))
    assert not itself.holds
    assert not against.holds
    assert any("wider" in fault for fault in itself.faults)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"statements": {"BEGIN": 1, "END": 1, "SELECT ?": 9}}, "`SELECT ?`: 10 and 9 times"),
        ({"statements": {"BEGIN": 1, "END": 1, "SELECT ?": 10, "SELECT now()": 1}}, "`SELECT now()`: 0 and 1 times"),
        ({"wal_bytes": 550.0}, "540.0 and 550.0 bytes of WAL"),
        ({"commits": 2.0}, "2.0000 commits a transaction (native)"),
    ],
)
def test_another_question_to_the_server_is_told(changes: dict[str, object], said: str) -> None:
    claim = judge(record(result(sent=ASKED.model_copy(update=changes))))[2]
    assert not claim.holds
    assert said in claim.found


def test_a_part_of_a_per_cent_of_wal_is_chance() -> None:
    assert judge(record(result(sent=ASKED.model_copy(update={"wal_bytes": 543.0}))))[2].holds


def test_the_page_shows_every_claim_and_what_is_missing() -> None:
    answer = record(result(), result(native=0.9))
    judged = judge(answer)
    text = page.render(answer, judged)
    for claim in judged:
        assert f"| {claim.name} | {claim.bar} |" in text
    assert text.count("**no**") == sum(not claim.holds for claim in judged) == 1
    assert "Not measured: `legacy`: there is no script." in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3 * 2 + 2 + 4 + 6


def test_a_record_goes_on_only_where_it_began(tmp_path: Path) -> None:
    answer, path = record(result()), tmp_path / "results" / "record.json"
    assert Record.load(path) is None
    answer.save(path)
    again = Record.load(path)
    assert again == answer, "nothing is lost on the way through a file"
    assert answer.goes_on(again)
    assert not answer.goes_on(again.model_copy(update={"build_hash": "another"}))
