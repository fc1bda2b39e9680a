"""A limit that nobody said: inferred from a plateau, and never sure."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.advise.diagnose.diagnosis import inferred_words, with_inferred
from pgdyno.analysis.binding.device import DeviceActivity, ProvisionedVolume
from pgdyno.analysis.binding.evidence import Checkpoints, Evidence, Second, ThrottledShares
from pgdyno.analysis.binding.rules import judge
from pgdyno.analysis.binding.sessions import SessionStates
from pgdyno.analysis.binding.verdict import of_evidence

from ..binding.made import IDLE, device, given

WATCHED = replace(given(), clients=0, driven=False, bought={})
WAITING = SessionStates(read=12, commit=4)


def evidence(devices: list[DeviceActivity], sessions: SessionStates | None = WAITING) -> Evidence:
    seconds = tuple(Second(sessions, {"data": device}, IDLE) for device in devices)
    return Evidence(WATCHED, seconds, Checkpoints((False,) * len(seconds)), ())


PLATEAU = [device(2995 + place % 5, ms=9.4) for place in range(40)] + [device(900, ms=0.7) for _ in range(20)]


def test_a_plateau_with_a_long_queue_is_a_limit_and_never_sure() -> None:
    inferred = with_inferred(evidence(PLATEAU))
    assert inferred.given.inferred == {"data"}
    verdict = of_evidence(inferred).verdict
    assert (verdict.limit, verdict.role, verdict.confidence) == ("volume_iops", "data", "low")
    assert next(inferred_words(inferred)).startswith("the data volume stood at 2,999 IOPS again and again")


def test_what_was_said_is_not_inferred() -> None:
    result = replace(
        evidence(PLATEAU), given=replace(WATCHED, bought={"data": ProvisionedVolume("gp3", None, None, None, None)})
    )
    assert with_inferred(result) is result


def test_a_load_without_a_plateau_has_no_limit() -> None:
    rising = evidence([device(100 + 50 * place, ms=1.0) for place in range(60)])
    assert with_inferred(rising) is rising
    idle = evidence([device(0, ms=0.0) for _ in range(60)])
    assert with_inferred(idle) is idle


def test_nothing_becomes_sure_by_a_limit_that_is_inferred() -> None:
    inferred = with_inferred(evidence(PLATEAU)).given
    commits = Second(SessionStates(commit=9, cpu=1), {"data": device(900, ms=0.7)}, IDLE)
    result = judge(commits, inferred)
    assert result is not None
    assert (result.limit, result.sure) == ("commit_latency", False), "whether it is far below its limit is not known"
    output = Second(None, {"data": device(2999, ms=9.4)}, None, exceeded={"data": ThrottledShares(iops=1.0)})
    alone = judge(output, inferred)
    assert alone is not None
    assert not alone.sure
