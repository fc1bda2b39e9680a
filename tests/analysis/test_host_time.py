"""The host's part of a transaction in slowed time is never less than what it was in a loop whose parts are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.dilation import HostTime, Requests
from pgdyno.analysis.figures import Wait

SLACK = 1 + 1e-9
"""Of sums in floating point."""
dilations = st.integers(2, 50)
shares = st.floats(0, 1)


@dataclass(frozen=True)
class Loop:
    """A closed loop whose every part is known: no queue is longer with more load, so only the host's part shrinks."""

    clients: int
    computing_ms: float
    """The host's, between waits."""
    reads: int
    """That a transaction waits for one after the other."""
    read_ms: float
    commits: int
    """0 or 1."""
    commit_ms: float
    path_ms: float
    beside: float
    """What the host adds to a wait, as a share of the path."""
    idle: float
    """Share of the computing that is no CPU time: wake-ups, waiting for a core."""
    nobodys: float
    """Reads that nobody waits for, for each that somebody does."""
    away_ms: float
    """Of an emulated distance, in the subject's time."""

    @property
    def slowed_ms(self) -> float:
        return self.reads * self.read_ms + self.commits * self.commit_ms + self.away_ms

    @property
    def host_ms(self) -> float:
        return self.computing_ms + (self.reads + self.commits) * self.beside * self.path_ms

    def seen(self, dilation: int) -> HostTime:
        """What a run of it records."""
        response_ms = self.slowed_ms + self.host_ms / dilation
        tps = self.clients / response_ms * 1e3

        def sessions(each_ms: float) -> float:
            return tps * each_ms / 1e3

        wait_ms = self.beside * self.path_ms / dilation
        waits = {
            Wait("IO", "DataFileRead"): sessions(self.reads * (self.read_ms + wait_ms)),
            Wait("IO", "WalSync"): sessions(self.commits * (self.commit_ms + wait_ms)),
            Wait("CPU", "CPU"): sessions(self.computing_ms / dilation),
        }
        per_s = tps * self.reads * (1 + self.nobodys)
        return HostTime(
            dilation=dilation,
            tps=tps,
            response_ms=response_ms,
            cpu_ms=self.computing_ms * (1 - self.idle),
            waits=waits,
            reads=Requests(per_s, self.read_ms, self.path_ms),
            commits=Requests(tps * self.commits, self.commit_ms, self.path_ms),
            travelling=sessions(self.away_ms),
        )

    def excess(self, dilation: int) -> float:
        """By how much its throughput is higher than undilated."""
        return (self.slowed_ms + self.host_ms) / (self.slowed_ms + self.host_ms / dilation) - 1


loops = st.builds(
    Loop,
    clients=st.integers(1, 64),
    computing_ms=st.floats(0.01, 5),
    reads=st.integers(0, 20),
    read_ms=st.floats(0.1, 20),
    commits=st.integers(0, 1),
    commit_ms=st.floats(0.1, 20),
    path_ms=st.floats(0.01, 0.25),
    beside=shares,
    idle=shares,
    nobodys=shares,
    away_ms=st.sampled_from([0.0, 0.5, 10.0]),
)


@given(loops, dilations)
def test_the_throughput_is_never_higher_than_said(loop: Loop, dilation: int) -> None:
    excess = loop.seen(dilation).excess
    assert excess is not None
    assert loop.excess(dilation) <= excess * SLACK + 1e-12


@given(loops, dilations)
def test_response_times_are_never_shorter_than_said(loop: Loop, dilation: int) -> None:
    short = loop.seen(dilation).short
    undilated_ms = loop.slowed_ms + loop.host_ms
    assert short is not None
    assert 1 - loop.seen(dilation).response_ms / undilated_ms <= short * SLACK + 1e-12


@given(loops, dilations)
def test_the_figure_is_a_share_that_can_be(loop: Loop, dilation: int) -> None:
    for seen in (
        loop.seen(dilation),
        replace(loop.seen(dilation), waits={}),
        replace(loop.seen(dilation), cpu_ms=None),
    ):
        assert seen.excess is not None
        assert seen.short is not None
        assert 0 <= seen.excess <= (dilation - 1) * SLACK
        assert 0 <= seen.short < 1


@given(loops, dilations, st.floats(1, 10))
def test_more_cpu_time_is_never_a_smaller_figure(loop: Loop, dilation: int, times: float) -> None:
    seen = loop.seen(dilation)
    assert seen.cpu_ms is not None
    more = replace(seen, cpu_ms=seen.cpu_ms * times).excess
    assert seen.excess is not None
    assert more is not None
    assert more >= seen.excess


@given(loops.filter(lambda loop: loop.commits == 1), dilations, st.integers(1, 8))
def test_who_waits_for_a_commit_of_others_is_at_the_volume_too(loop: Loop, dilation: int, behind: int) -> None:
    """Of a group that commits at once one session syncs, and the others wait for its lock."""
    alone = loop.seen(dilation)
    syncing = alone.waits[Wait("IO", "WalSync")]
    waits = {
        **alone.waits,
        Wait("IO", "WalSync"): syncing / (behind + 1),
        Wait("LWLock", "WALWrite"): syncing * behind / (behind + 1),
    }
    assert replace(alone, waits=waits).not_waited_ms == pytest.approx(alone.not_waited_ms, abs=1e-9)


@given(loops, dilations, st.floats(0, 0.9))
def test_who_waits_for_a_lock_is_as_the_others_are(loop: Loop, dilation: int, locked: float) -> None:
    alone = loop.seen(dilation)
    waits = {wait: number * (1 - locked) for wait, number in alone.waits.items()}
    waits[Wait("Lock", "transactionid")] = loop.clients * locked
    # Reads that were made are fewer as well, so the cap by them is not what is looked at here.
    assert alone.reads is not None
    both = (
        replace(alone, reads=replace(alone.reads, per_s=1e9)),
        replace(alone, reads=replace(alone.reads, per_s=1e9), waits=waits),
    )
    assert both[1].not_waited_ms == pytest.approx(both[0].not_waited_ms, rel=1e-6, abs=1e-6)


def test_what_the_page_cache_had_was_not_at_the_volume() -> None:
    """A session that was always seen reading, of which the volume made a tenth."""
    requests = Requests(per_s=100.0, modelled_ms=1.0, path_ms=0.05)
    seen = HostTime(4, 1000.0, 1.0, 0.1, {Wait("IO", "DataFileRead"): 1.0}, requests, Requests(0.0, 0.0, 0.0))
    assert seen.not_waited_ms == pytest.approx(4 * 0.9)


@pytest.mark.parametrize("event", ["DataFileRead", "AioIoCompletion", "BufferIo", "BufferIO"])
def test_every_wait_for_a_read_is_known(event: str) -> None:
    requests = Requests(per_s=1000.0, modelled_ms=1.0, path_ms=0.0)
    kind = "IO" if event == "DataFileRead" else "IPC"
    seen = HostTime(4, 1000.0, 1.0, 0.1, {Wait(kind, event): 1.0}, requests, Requests(0.0, 0.0, 0.0))
    assert seen.not_waited_ms == pytest.approx(0.0)


@given(st.integers(1, 32), st.floats(0.05, 5), st.floats(0.05, 5), dilations)
def test_a_queue_at_the_volume_only_makes_it_safer(
    clients: int, demand_ms: float, host_ms: float, dilation: int
) -> None:
    """A volume that serves one request at a time: with less load it is faster, so less is lost than the figure says."""
    volume_ms, response_ms = _mean_values(clients, demand_ms, host_ms / dilation)
    _, undilated_ms = _mean_values(clients, demand_ms, host_ms)
    tps = clients / response_ms * 1e3
    seen = HostTime(
        dilation=dilation,
        tps=tps,
        response_ms=response_ms,
        cpu_ms=host_ms,
        waits={Wait("IO", "DataFileRead"): tps * volume_ms / 1e3},
        reads=Requests(tps, volume_ms, 0.0),
        commits=Requests(0.0, 0.0, 0.0),
    )
    assert seen.excess is not None
    assert undilated_ms / response_ms - 1 <= seen.excess * SLACK + 1e-12


def _mean_values(clients: int, demand_ms: float, elsewhere_ms: float) -> tuple[float, float]:
    """(time at the volume, response time): Reiser and Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks",
    J. ACM 27(2), 1980, for one queue and a delay.
    """
    waiting = volume_ms = 0.0
    for population in range(1, clients + 1):
        volume_ms = demand_ms * (1 + waiting)
        waiting = population / (volume_ms + elsewhere_ms) * volume_ms
    return volume_ms, volume_ms + elsewhere_ms
