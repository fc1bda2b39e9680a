"""From seconds to a verdict: shares, confidence, checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from pgdyno.analysis.binding.evidence import Checkpoints, Circumstances, Evidence
from pgdyno.analysis.binding.rules import LIMITS, TITLES, BindingLimit, Limit, slowed
from pgdyno.analysis.binding.verdict import SECONDS_MIN, SHARE_HIGH, because_of_checkpoints, of_evidence, total
from pgdyno.analysis.binding.words import evidence_words
from pgdyno.report.binding import verdict_words

from .made import FULL, device, given, second, sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

IOPS, CPU = BindingLimit("volume_iops", True, "data"), BindingLimit("server_cpu", True)
COMMIT = BindingLimit("commit_latency", True, "data")


def test_a_limit_of_nearly_all_seconds_is_said_with_confidence() -> None:
    result = total([[IOPS] * 27 + [None] * 3])
    assert (result.limit, result.role, result.confidence) == ("volume_iops", "data", "high")
    assert result.share == pytest.approx(0.9)


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param([[IOPS] * 15 + [CPU] * 12], id="two limits"),
        pytest.param([[IOPS] * 20 + [CPU] * 10], id="a rival"),
        pytest.param([[IOPS] * 4], id="too few seconds"),
        pytest.param([[BindingLimit("volume_iops", False, "data")] * 20 + [IOPS] * 5], id="one source"),
        pytest.param([[IOPS] * 30, [IOPS] * 30, [CPU] * 10], id="replicates that disagree"),
        pytest.param([[IOPS] * 15 + [None] * 15], id="half of it not explained"),
    ],
)
def test_what_makes_a_verdict_less_sure(seconds: list[list[BindingLimit | None]]) -> None:
    result = total(seconds)
    assert (result.limit, result.confidence) == ("volume_iops", "low")


@pytest.mark.parametrize("seconds", [[[None] * 30], [[IOPS] * 5 + [CPU] * 5 + [None] * 20], [[]]])
def test_without_a_limit_that_stands_out_nothing_is_said(seconds: list[list[BindingLimit | None]]) -> None:
    result = total(seconds)
    assert (result.limit, result.confidence, result.share) == (None, "unknown", 0.0)


some_found = st.builds(BindingLimit, st.sampled_from(LIMITS), st.booleans(), st.sampled_from([None, "data", "wal"]))
some_runs = st.lists(st.lists(st.none() | some_found, max_size=40), min_size=1, max_size=4)


@drawn(some_runs)
def test_shares_add_up_and_confidence_has_its_reasons(runs: list[list[BindingLimit | None]]) -> None:
    result = total(runs)
    every = [limit for run in runs for limit in run]
    assert sum(result.shares.values()) == pytest.approx(sum(item is not None for item in every) / max(1, len(every)))
    assert list(result.shares.values()) == sorted(result.shares.values(), reverse=True)
    if result.confidence == "high":
        assert len(every) >= SECONDS_MIN
        assert result.share >= SHARE_HIGH
        assert any(item is not None and item.sure and item.limit == result.limit for item in every)
    if result.limit is None:
        assert result.confidence == "unknown"


@drawn(some_runs)
def test_more_seconds_of_its_limit_never_weaken_a_verdict(runs: list[list[BindingLimit | None]]) -> None:
    before = total(runs)
    if before.limit is None:
        return
    more = BindingLimit(before.limit, sure=True, role=before.role)
    after = total([[*run, *[more] * 5] for run in runs])
    assert after.limit == before.limit
    assert after.share >= before.share
    assert (before.confidence, after.confidence) != ("high", "low")


def checkpoints(inside: Sequence[bool], **changes: Any) -> Checkpoints:
    """Of so many seconds, some of them in a checkpoint."""
    return Checkpoints(tuple(inside), seconds=float(len(inside)), **changes)


def test_a_limit_that_is_reached_in_checkpoints_alone_is_theirs() -> None:
    inside = [False] * 15 + [True] * 15
    limits = because_of_checkpoints([CPU] * 15 + [IOPS] * 12 + [CPU] * 3, checkpoints(inside, started=1))
    assert [limit.limit if limit else None for limit in limits] == ["server_cpu"] * 15 + ["checkpoints"] * 12 + [
        "server_cpu"
    ] * 3


def test_a_limit_that_is_reached_without_them_is_the_volume_s() -> None:
    inside = [False] * 15 + [True] * 15
    assert because_of_checkpoints([IOPS] * 30, checkpoints(inside, started=1)) == [IOPS] * 30
    assert because_of_checkpoints([IOPS] * 30, checkpoints([False] * 30)) == [IOPS] * 30


def test_one_checkpoint_after_the_other_that_writes_most_is_what_binds() -> None:
    often = checkpoints([True] * 30, started=4, requested=4, moved_share=0.8)
    assert {limit.limit for limit in because_of_checkpoints([IOPS] * 30, often) if limit} == {"checkpoints"}
    slower = because_of_checkpoints([COMMIT] * 30, often)
    assert {(limit.limit, limit.sure) for limit in slower if limit} == {("checkpoints", False)}
    for other in (
        checkpoints([True] * 30, started=1, moved_share=0.8),
        checkpoints([True] * 30, started=4, moved_share=0.3),
        checkpoints([True] * 30, started=4, written_share=0.9),
        checkpoints([True] * 200, started=2, moved_share=0.8),
    ):
        kept: list[BindingLimit | None] = [IOPS] * len(other.inside)
        assert because_of_checkpoints(kept, other) == kept


def test_checkpoints_of_less_than_a_second_leave_no_time_that_is_free_of_them() -> None:
    """Every second one, with a volume at its limit in between too: whole pages go to WAL there."""
    inside = [True, False] * 6
    often = checkpoints(inside, started=6, requested=6, moved_share=0.7)
    assert {limit.limit for limit in because_of_checkpoints([IOPS] * 12, often) if limit} == {"checkpoints"}
    mostly_reads = checkpoints(inside, started=6, requested=6, written_share=0.9, moved_share=0.2)
    assert because_of_checkpoints([IOPS] * 12, mostly_reads) == [IOPS] * 12


def test_neighbours_with_one_answer_are_one_span() -> None:
    busy = second(sessions(cpu=9, commit=1), cpu=FULL)
    slow = second(sessions(read=25, cpu=2), device(2990, ms=9))
    seconds = (busy, busy, slow, slow, slow, busy)
    run = of_evidence(Evidence(given(), seconds, Checkpoints((False,) * 6), ()))
    expected: tuple[tuple[int, int, Limit], ...] = ((0, 2, "server_cpu"), (2, 5, "volume_iops"), (5, 6, "server_cpu"))
    assert run.spans == expected
    assert run.verdict.shares == {"server_cpu": 0.5, "volume_iops": 0.5}


CLIENT = BindingLimit("client", True)


def test_as_many_seconds_short_of_something_as_without_are_short_of_it() -> None:
    result = total([[CLIENT] * 4 + [CPU] * 4])
    assert (result.limit, result.confidence) == ("server_cpu", "low")
    assert dict(result.beside) == {"client": 0.5}


@pytest.mark.parametrize(
    ("seconds", "beside", "remediable"),
    [
        ([CLIENT] * 12 + [CPU] * 6, {"server_cpu": 1 / 3}, "server_cpu"),
        ([CLIENT] * 12 + [CPU] * 2, {}, "client"),
        ([IOPS] * 10 + [CPU] * 6 + [COMMIT] * 4, {"server_cpu": 0.3, "commit_latency": 0.2}, "volume_iops"),
    ],
)
def test_every_limit_of_a_fifth_of_the_seconds_is_named_and_one_that_can_be_lifted_is(
    seconds: list[BindingLimit | None], beside: dict[Limit, float], remediable: Limit
) -> None:
    result = total([seconds])
    assert dict(result.beside) == pytest.approx(beside)
    assert result.remediable.limit == remediable
    words = verdict_words(result)
    assert all(TITLES[limit] in words for limit in beside)


def test_a_device_that_was_not_timed_is_not_said_to_take_no_time() -> None:
    untimed = second(sessions(read=21.5, commit=5.5), device(2990, ms=0.0))
    assert slowed(untimed.devices["data"], given().bought["data"]) is None
    run = of_evidence(Evidence(given(), (untimed,) * 10, Checkpoints((False,) * 10, seconds=10.0), ()))
    assert run.verdict.limit == "volume_iops"
    words = evidence_words(run, run.verdict, Circumstances())
    assert words
    assert not any("I/O latency averaged" in word for word in words)
