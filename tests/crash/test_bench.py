"""The bench of power cuts: what it measures, its claims and its page. ``make bench ONLY=crash`` measures it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.durability import excluded, in_words, shown
from pgdyno.durability.crash import known
from pgdyno.durability.crash.examine import CHECKS
from pgdyno.durability.crash.recovery import CUTS_1_IN
from tools.crash import __main__ as command
from tools.crash import page, torn_page
from tools.crash.cells import Cell, mutants, planted, recovering, sound, torn
from tools.crash.record import Found, Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def found(cell: Cell, cuts: int, failed: int, check: str = "ledger") -> Found:
    """Cuts that were not made."""
    return Found(
        name=cell.name, reading=cell.reading, wanted=cuts, cuts=cuts, failed=failed,
        until_failed=min(cuts, 3) if failed else None, first_failure="ledger: gone" if failed else "", checks={check: failed} if failed else {},
        alone={check: failed} if failed else {},
        audit={"pages": 10, "whole_in_small": 4, "whole_in_unit": 3, "across_units": 2, "across_requests": 1},
        cuts_per_minute=210.0, cpu_s_per_cut=0.3, ms_by_step={"content": 40.0, "start": 200.0},
    )  # fmt: skip


def record(*rows: Found) -> Record:
    """A record of a bench."""
    return Record(seed=1, build_hash="5c0ffee", postgres="18.6", kernel="6.18", cores=2, found=list(rows))


def test_bounds_are_those_of_zero_failures() -> None:
    assert excluded(10_000) == pytest.approx(3338, abs=1)
    assert shown(10_000) == pytest.approx(2172, abs=1)
    assert "1 in 3,339" in in_words(10_000, 0) or "1 in 3,338" in in_words(10_000, 0)
    assert in_words(10, 2).startswith("2 of 10")
    assert in_words(0, 0) == "no cut was made"


def test_every_planted_bug_says_what_catches_it() -> None:
    assert len({mutant.name for mutant in mutants()}) == len(mutants()) >= 40
    assert all(mutant.why and set(mutant.caught_by) <= set(CHECKS) for mutant in mutants())
    names = [cell.name for cell in (*sound(), *planted(), *torn())]
    assert len(set(names)) == len(names)
    assert len(torn()) == 24, "direct or buffered, three file systems, four readings"


def test_a_record_holds_only_with_all_cuts_no_failure_and_all_bugs_caught() -> None:
    again = page.CUTS // CUTS_1_IN
    enough = -(-(page.CUTS - again) // len(sound()))
    good = [
        *(found(cell, enough, 0) for cell in sound()),
        *(found(cell, -(-again // len(recovering())), 0) for cell in recovering()),
        *(found(cell, 9, 1, cell.caught_by[0]) for cell in planted()),
    ]
    assert [claim.holds for claim in page.judge_crash(record(*good))] == [True] * 5
    assert not page.judge_crash(record(*good[1:]))[1].holds, "too few cuts"
    lost = [found(sound()[0], enough, 1), *good[1:]]
    assert not page.judge_crash(record(*lost))[0].holds
    lost[0].known = 1
    assert page.judge_crash(record(*lost))[0].holds, "a defect of PostgreSQL explains it"
    assert f"{sound()[0].name}: ledger: gone" in (text := page.render_crash(record(*lost), []))
    assert known.TWO_PHASE.explained in text
    first = len(sound()) + len(recovering())
    assert not page.judge_crash(record(*good[: first - 1], *good[first:]))[2].holds, "too few in recovery"
    few = int(len(planted()) * (1 - page.MUTATION_SCORE)) + 1
    bugs = planted()[:few]
    missed = [*good[:first], *(found(cell, 1000, 0) for cell in bugs), *good[first + few :]]
    assert not page.judge_crash(record(*missed))[4].holds
    assert page.judge_crash(record(*missed[:first], good[first], *missed[first + 1 :]))[4].holds, "one fewer is 95 %"
    by_luck = [*good[:first], *(found(cell, 9, 1, "stop") for cell in bugs), *good[first + few :]]
    assert not page.judge_crash(record(*by_luck))[4].holds, "by a check that need not find it"


def test_the_page_says_which_planted_bugs_only_one_check_catches() -> None:
    result, other, *_ = [cell for cell in planted() if {"ledger", "start"} <= set(cell.caught_by)]
    both = found(result, 9, 3)
    both.checks, both.alone = {"ledger": 3, "structure": 2, "start": 1}, {"ledger": 1}
    text = page.render_crash(record(both, found(other, 30, 2)), [])
    assert f"| ledger | 5 | 3 | 1 of 2 | {other.name} |" in text
    assert "| start | 1 | 0 | 2 of 2 |  |" in text
    assert f"| {result.name} | {next(bug.why for bug in mutants() if bug.name == result.name)} | 3 | 9 | 3 |" in text


def test_cuts_of_a_cell_that_time_ended_are_added_to_those_of_the_next_call() -> None:
    cell = planted()[0]
    both = found(cell, 100, 0).joined(found(cell, 300, 2))
    assert (both.wanted, both.cuts, both.failed, both.until_failed) == (400, 400, 2, 103)
    assert (both.checks, both.alone, both.first_failure) == ({"ledger": 2}, {"ledger": 2}, "ledger: gone")
    assert both.cuts_per_minute == pytest.approx(210.0)
    assert both.ms_by_step == {"content": pytest.approx(40.0), "start": pytest.approx(200.0)}
    slow = found(cell, 100, 0)
    slow.cuts_per_minute, slow.cpu_s_per_cut = 70.0, 0.6
    assert slow.joined(found(cell, 300, 0)).cuts_per_minute == pytest.approx(140.0)
    assert slow.joined(found(cell, 300, 0)).cpu_s_per_cut == pytest.approx(0.375)


def test_a_page_says_how_many_cuts_were_examined_at_a_time() -> None:
    few, more = (found(cell, 100, 0) for cell in sound()[:2])
    more.workers = 4
    assert few.joined(more).workers == 4
    assert "Time of a cut by step, 2 or 4 cuts at a time" in page.render_crash(record(few, more), [])


def test_a_record_that_another_one_replaces_is_kept_under_the_name_of_its_engine(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    first = record(found(sound()[0], 100, 0))
    first.save(path)
    other = record().model_copy(update={"build_hash": "another"})
    assert other.resumed(path) == other
    assert Record.load(path) is None
    assert Record.load(tmp_path / "record-5c0ffee.json") == first


def test_a_record_goes_on_where_another_build_of_the_same_kernel_runs(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    first = record(found(sound()[0], 100, 0)).model_copy(update={"kernel": "6.18.44-one"})
    first.save(path)
    assert record().model_copy(update={"kernel": "6.18.44-two"}).resumed(path) == first
    other = record().model_copy(update={"kernel": "6.19.0-one"})
    assert other.resumed(path) == other


def test_a_partial_record_says_so_on_its_page() -> None:
    partial = record(found(sound()[0], 100, 0), found(planted()[0], 9, 1))
    partial.skipped[sound()[2].name] = "this machine has no postgres"
    text = page.render_crash(partial, page.judge_crash(partial))
    assert "**This record is partial**" in text
    assert f"Not measured, {len(planted()) - 1} of {len(planted())}: " in text
    assert f"{sound()[2].name} (this machine has no postgres)" in text
    assert "fewer than 1 in 34" in text
    assert "0 of 24 cells" in torn_page.render(partial, torn_page.judge(partial))


TORN = ("pieces-512", "pieces-4096", "pieces-4096+strict")


def matrix(cuts: int, *, torn_readings: Sequence[str] = TORN, until: int = 20) -> Record:
    """A matrix of full_page_writes off that was not measured."""
    return record(
        *(found(cell, until, 1) if cell.reading in torn_readings else found(cell, cuts, 0) for cell in torn())
    )


def test_a_matrix_holds_only_with_every_verdict_soon_and_two_readings_that_differ() -> None:
    whole = matrix(2000)
    assert [claim.holds for claim in torn_page.judge(whole)] == [True] * 3
    text = torn_page.render(whole, torn_page.judge(whole))
    assert "partial" not in text
    assert "| torn after 20 cuts |" in text
    assert "not torn in 2,000 cuts; cannot be promised: 30.0% of pages" in text
    kept = found(torn()[-1], 2000, 0)
    kept.audit = {"pages": 10, "whole_in_small": 4, "whole_in_unit": 6, "across_units": 0, "across_requests": 0}
    assert torn_page.verdict(kept) == "not torn in 2,000 cuts"
    broken = [matrix(1999), matrix(2000, until=1100), matrix(2000, torn_readings=TORN[:2])]
    assert [[claim.holds for claim in torn_page.judge(record)] for record in broken] == [
        [False, True, True],
        [True, False, True],
        [True, True, False],
    ]


@pytest.mark.bench
@pytest.mark.needs_fuse
def test_a_sound_server_survives_and_planted_bugs_are_caught() -> None:
    """``PGDYNO_CUTS`` and ``PGDYNO_MUTANT_CUTS`` set other numbers; the record says how many there were."""
    cuts = int(os.environ.get("PGDYNO_CUTS", page.CUTS))
    measured = command.measured("crash", cuts, int(os.environ.get("PGDYNO_MUTANT_CUTS", command.MUTANT_CUTS)))
    assert [str(claim) for claim in command.write("crash", measured) if not claim.holds] == []
