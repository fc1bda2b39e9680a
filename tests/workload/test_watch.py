"""When measuring begins and ends, with a shell in pgbench's place."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.workload import pgbench
from pgdyno.workload.clock import SECOND_NS, now_ns
from pgdyno.workload.pgbench import PgbenchMonitor, RunTimeline

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRESS = "progress: 1.0 s, 100.0 tps, lat 2.500 ms stddev 0.1, 0 failed"


class Pretence:
    """A shell script that is watched as if it were a pgbench of ``seconds``."""

    def __init__(self, script: str, seconds: float, *, warmup_s: float, duration_s: float) -> None:
        started_ns = now_ns()
        self.called: list[str] = []
        self.shown: list[tuple[float, str]] = []
        self.process = subprocess.Popen(["sh", "-c", script], stderr=subprocess.PIPE)
        self.watch = PgbenchMonitor(
            process=self.process,
            time=RunTimeline(started_ns, started_ns + int(seconds * SECOND_NS)),
            warmup_s=warmup_s,
            duration_s=duration_s,
            edges=(lambda: self.called.append("begin"), lambda: self.called.append("end")),
            progress=lambda share, text: self.shown.append((share, text)),
        )


@pytest.fixture
def pretences() -> Iterator[list[Pretence]]:
    """What was started is ended."""
    started: list[Pretence] = []
    yield started
    for pretence in started:
        pretence.process.kill()
        pretence.process.wait()
        assert pretence.process.stderr is not None
        pretence.process.stderr.close()


def test_measuring_begins_after_the_warm_up_and_lasts(pretences: list[Pretence]) -> None:
    pretence = Pretence(f"echo '{PROGRESS}' >&2; exec sleep 2.0", 2.0, warmup_s=1.3, duration_s=0.4)
    pretences.append(pretence)
    pretence.watch.until_the_end()
    time = pretence.watch.time
    assert pretence.called == ["begin", "end"]
    assert 1.3 <= (time.begin_ns - time.bench_ns) / SECOND_NS < 2.5, "a busy machine may be late, and never early"
    assert time.end_ns - time.begin_ns == int(0.4 * SECOND_NS)
    assert pretence.shown[0][1] == "warm up: 100 tps, 2.500 ms"
    assert 0 < pretence.shown[0][0] < 1


def test_clients_that_connect_slowly_shorten_the_warm_up_and_not_the_measurement(pretences: list[Pretence]) -> None:
    pretence = Pretence(f"sleep 0.3; echo '{PROGRESS}' >&2; exec sleep 1.7", 2.0, warmup_s=60.0, duration_s=0.4)
    pretences.append(pretence)
    pretence.watch.until_the_end()
    time = pretence.watch.time
    assert time.end_ns - time.begin_ns == int(0.4 * SECOND_NS)
    assert time.end_ns < time.stops_ns
    assert pretence.called == ["begin", "end"]


def test_an_early_end_is_the_end_of_the_phase(pretences: list[Pretence]) -> None:
    pretence = Pretence(f"echo '{PROGRESS}' >&2; exec sleep 0.2", 60.0, warmup_s=0.0, duration_s=30.0)
    pretences.append(pretence)
    pretence.watch.until_the_end()
    assert pretence.watch.time.end_ns == pretence.watch.exited_ns
    assert pretence.called == ["begin", "end"]


def test_one_that_was_told_how_many_is_measured_to_its_last(pretences: list[Pretence]) -> None:
    pretence = Pretence("exec sleep 0.4", 0.1, warmup_s=0.0, duration_s=0.1)
    pretences.append(pretence)
    ended: list[int | None] = []
    pretence.watch.edges = (lambda: None, lambda: ended.append(pretence.process.poll()))
    pretence.watch.begin_at_once()
    pretence.watch.until_the_end()
    time = pretence.watch.time
    assert ended == [0], "the end of the phase is that of the process, though its time was up before"
    assert time.end_ns == pretence.watch.exited_ns > time.stops_ns


def test_one_that_was_told_how_many_is_ended_when_it_takes_far_too_long(
    pretences: list[Pretence], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgbench, "_GRACE_S", 0.2)
    pretence = Pretence("exec sleep 600", 0.1, warmup_s=0.0, duration_s=0.1)
    pretences.append(pretence)
    pretence.watch.begin_at_once()
    with pytest.raises(PgdynoError, match="did not end"):
        pretence.watch.until_the_end()


def test_one_that_never_worked_has_no_phase(pretences: list[Pretence]) -> None:
    pretence = Pretence("echo 'pgbench: error: no such table' >&2; exit 1", 60.0, warmup_s=0.0, duration_s=1.0)
    pretences.append(pretence)
    pretence.watch.until_the_end()
    assert pretence.watch.time.begin_ns == 0
    assert pretence.watch.messages == ["pgbench: error: no such table"]
    assert pretence.called == []


def test_one_that_does_not_end_is_ended(pretences: list[Pretence], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgbench, "_GRACE_S", 0.2)
    pretence = Pretence("exec sleep 600", 0.1, warmup_s=0.0, duration_s=1.0)
    pretences.append(pretence)
    with pytest.raises(PgdynoError, match="did not end"):
        pretence.watch.until_the_end()
    assert pretence.process.wait(10) == -9
