"""Each limit from a second that shows it, and what no second can show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from pgdyno.analysis.binding.device import AT_LIMIT, DeviceActivity, ProvisionedVolume
from pgdyno.analysis.binding.evidence import Cpu, KnownConditions, Second, ThrottledShares
from pgdyno.analysis.binding.rules import CAPS, LIMITS, BindingLimit, judge
from pgdyno.analysis.binding.sessions import SessionStates, state_of
from pgdyno.base.specification import Rate

from .made import BURSTING, FAST, FULL, GP2, GP3, IDLE, QUIET, SMALL, ST1, device, given, second, sessions

AT_DISK = sessions(read=21.5, commit=5.5, cpu=1.2, lock=0.8)
SCANNING = sessions(8, read=6.8, cpu=1.0)

CASES = {
    "IOPS": (second(AT_DISK, device(2990, ms=9.4)), given(), BindingLimit("volume_iops", True, "data")),
    "throughput": (
        second(SCANNING, device(1000, ms=8.0, kib=128, write_share=0.0)), given(), BindingLimit("volume_throughput", True, "data"),
    ),
    "throughput that requests in sequence reach with less than half of the IOPS": (
        second(SCANNING, device(3000, ms=8.0, kib=128, write_share=0.0)),
        given(ProvisionedVolume("gp3:iops=3000,throughput=375", Rate(3000, 3000), None, Rate(375, 375), None)),
        BindingLimit("volume_throughput", True, "data"),
    ),
    "IOPS that requests in sequence reach together with the throughput": (
        second(SCANNING, device(3000, ms=8.0, kib=128, write_share=0.0)),
        given(ProvisionedVolume("io2bx:iops=1500", Rate(1500, 1500), None, Rate(384, 384), None)),
        BindingLimit("volume_iops", False, "data"),
    ),
    "IOPS and throughput that pages reach together": (
        second(AT_DISK, device(2000, ms=9.4)),
        given(ProvisionedVolume("made", Rate(2000, 2000), None, Rate(16, 16), None)),
        BindingLimit("volume_iops", False, "data"),
    ),
    "IOPS that the provider counts by 16 KiB": (
        second(AT_DISK, device(1650, ms=9.4, kib=32, write_share=1.0)),
        given(ProvisionedVolume("io1-2013", Rate(4000, 4000), None, None, GP3.usual, 16 << 10)),
        BindingLimit("volume_iops", True, "data"),
    ),
    "credits gone": (second(AT_DISK, device(303, ms=90.0)), given(GP2), BindingLimit("burst_bucket", True, "data")),
    "credits gone, where requests in sequence were merged": (
        second(SCANNING, device(450, ms=18.0, kib=118, write_share=0.0)), given(GP2), BindingLimit("burst_bucket", False, "data"),
    ),
    "reads far slower than such a volume's": (
        second(sessions(4, read=3.5, cpu=0.2), device(900, ms=4.0, write_share=0.0)),
        given(FAST),
        BindingLimit("volume_latency", False, "data"),
    ),
    "throughput credits gone": (
        second(SCANNING, device(160, ms=60.0, kib=128, write_share=0.0)), given(ST1), BindingLimit("burst_bucket", True, "data"),
    ),
    "the most that credits allow": (
        second(AT_DISK, device(2980, ms=9.4)), given(GP2), BindingLimit("volume_iops", True, "data"),
    ),
    "the WAL's volume": (
        second(sessions(commit=20, cpu=2), device(10), wal=device(2990, ms=6.0, write_share=1.0)),
        given(wal=GP3),
        BindingLimit("volume_iops", True, "wal"),
    ),
    "the instance": (second(AT_DISK, device(3990, ms=4.0)), given(FAST, SMALL), BindingLimit("instance_bandwidth", True)),
    "the instance, with two volumes": (
        second(AT_DISK, device(2000, ms=4.0), wal=device(1990, ms=4.0, write_share=1.0)),
        given(FAST, SMALL, wal=FAST),
        BindingLimit("instance_bandwidth", True),
    ),
    "the instance, without a reserve": (
        second(AT_DISK, device(3610, ms=5.0)), given(FAST, BURSTING), BindingLimit("instance_bandwidth", True),
    ),
    "latency": (
        second(sessions(4, read=3.5, cpu=0.2), device(3500, ms=0.8, write_share=0.0)),
        given(FAST),
        BindingLimit("volume_latency", True, "data"),
    ),
    "reads that the page cache answers": (
        second(sessions(4, read=3.5, cpu=0.2), device(20, ms=0.6, write_share=0.0)),
        given(FAST),
        BindingLimit("volume_latency", False, "data"),
    ),
    "commits": (second(sessions(8, commit=6.0, cpu=0.8)), given(FAST), BindingLimit("commit_latency", True, "data")),
    "commits, with WAL apart": (
        second(sessions(8, commit=6.0, cpu=0.8), wal=device(900)), given(FAST, wal=FAST), BindingLimit("commit_latency", True, "wal"),
    ),
    "server CPU": (second(sessions(cpu=9, commit=1), cpu=FULL), given(), BindingLimit("server_cpu", True)),
    "the server's own CPUs": (
        second(sessions(cpu=9, commit=1), cpu=replace(IDLE, server=0.49, server_busy=0.98, idle=0.2)),
        given(),
        BindingLimit("server_cpu", True),
    ),
    "locks": (second(sessions(lock=27, commit=1)), given(), BindingLimit("locks", True)),
    "locks held at a limit": (second(sessions(lock=27, commit=1), device(2990, ms=9)), given(), BindingLimit("volume_iops", True, "data")),
    "client": (second(sessions(commit=2, cpu=1)), given(), BindingLimit("client", True)),
    "driver": (
        second(sessions(cpu=6), cpu=replace(FULL, driver_busy=0.97, harness=0.5, server=0.4, server_busy=0.4)),
        given(),
        BindingLimit("harness", True),
    ),
    "strangers": (
        second(sessions(cpu=20), cpu=replace(FULL, harness=0.2, other=0.47, server=0.3, server_busy=0.3)),
        given(),
        BindingLimit("harness", True),
    ),
    "a volume that only background writes fill": (
        second(sessions(cpu=14, commit=1), device(2990, ms=9), cpu=FULL), given(), BindingLimit("server_cpu", True),
    ),
    "a rate that happens to be near": (second(AT_DISK, device(2900, ms=0.7)), given(), BindingLimit("volume_iops", False, "data")),
    "no wait events": (second(None, device(2990, ms=9.4)), given(), BindingLimit("volume_iops", False, "data")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_second_that_shows_a_limit(name: str) -> None:
    shown, bought, result = CASES[name]
    assert judge(shown, bought) == result


def test_nothing_is_said_of_a_second_that_shows_nothing() -> None:
    assert judge(Second(), given()) is None
    assert judge(second(None), given()) is None
    assert judge(second(sessions(8, other=5.0)), given()) is None


def test_a_volume_of_which_nobody_said_what_it_is_has_no_limit() -> None:
    result = judge(second(AT_DISK, device(2990, ms=9.4)), KnownConditions(clients=32, bought={}))
    assert result == BindingLimit("volume_latency", False, "data")


@pytest.mark.parametrize(
    ("kind", "event", "state"),
    [
        ("CPU", "CPU", "cpu"),
        ("IO", "DataFileRead", "read"),
        ("IO", "AioIoCompletion", "read"),
        ("IPC", "BufferIO", "read"),
        ("IO", "DataFileExtend", "write"),
        ("IO", "WALSync", "commit"),
        ("IO", "WalWrite", "commit"),
        ("LWLock", "WALWrite", "commit"),
        ("LWLock", "BufferContent", "lock"),
        ("Lock", "transactionid", "lock"),
        ("BufferPin", "BufferPin", "lock"),
        ("Buffer", "BufferCleanup", "lock"),
        ("Buffer", "BufferExclusive", "lock"),
        ("A type of 25", "DataFileRead", "other"),
        ("Client", "ClientRead", "client"),
        ("IPC", "CheckpointDone", "write"),
        ("IPC", "ProcArrayGroupUpdate", "other"),
        ("Timeout", "PgSleep", "other"),
    ],
)
def test_waits_by_the_names_of_every_version(kind: str, event: str, state: str) -> None:
    assert state_of(kind, event) == state


share = st.floats(0, 1)
count = st.floats(0, 40)
cpus = st.builds(Cpu, share, share, share, share, st.none() | share, st.none() | share)
devices = st.builds(device, st.floats(0, 20_000), st.floats(0.05, 200), st.floats(4, 256), share)
some_sessions = st.builds(SessionStates, count, count, count, count, count, count, count)
seconds = st.builds(
    Second,
    st.none() | some_sessions,
    st.dictionaries(st.sampled_from(["data", "wal"]), devices),
    st.none() | cpus,
    exceeded=st.dictionaries(
        st.sampled_from(["data", "wal"]), st.builds(ThrottledShares, share, share, share, share), max_size=1
    ),
)
bought = st.sampled_from([GP3, FAST, GP2, ST1])
givens = st.builds(
    KnownConditions,
    st.just(32),
    st.dictionaries(st.sampled_from(["data", "wal"]), bought),
    st.sampled_from([None, SMALL, BURSTING]),
)


@drawn(seconds, givens)
def test_nothing_is_sure_without_its_evidence(shown: Second, what: KnownConditions) -> None:
    result = judge(shown, what)
    if result is None:
        return
    assert result.limit in LIMITS
    if result.limit == "harness":
        assert shown.cpu is not None
    elif result.sure:
        assert shown.sessions is not None or shown.exceeded
    if result.limit in CAPS:
        assert shown.devices or shown.exceeded
        assert what.bought or what.instance or shown.exceeded
    if result.sure and result.limit in ("volume_latency", "commit_latency", "client", "server_cpu"):
        assert shown.cpu is not None
    if result.sure and result.limit in ("volume_latency", "commit_latency", "locks"):
        assert shown.devices
    if result.role is not None and result.limit in CAPS:
        assert result.role in what.bought or (result.role in shown.exceeded and not result.sure)


@drawn(some_sessions, devices, st.none() | cpus, st.floats(100, 20_000), st.floats(0.1, 1.0))
def test_with_fewer_iops_bought_a_volume_at_its_limit_is_at_its_limit(
    waits: SessionStates, data: DeviceActivity, cpu: Cpu | None, limit: float, less: float
) -> None:
    def of(iops: float) -> BindingLimit | None:
        only = ProvisionedVolume("io2bx", Rate(iops, iops), None, None, GP3.usual)
        return judge(second(waits, data, cpu), KnownConditions(32, {"data": only}))

    before, after = of(limit), of(limit * less)
    if before is not None and before.limit == "volume_iops":
        assert after == before
    if data.iops < 0.999 * AT_LIMIT * limit * less:
        assert after is None or after.limit != "volume_iops"


@drawn(st.floats(0, 31), st.floats(0, 1))
def test_more_sessions_at_the_disk_never_make_a_limit_less_likely(waiting: float, part: float) -> None:
    shown = device(2990, ms=9.4)
    few = judge(second(sessions(read=waiting * part, cpu=max(0.5, 31 - waiting)), shown), given())
    more = judge(second(sessions(read=waiting, cpu=max(0.5, 31 - waiting)), shown), given())
    if few is not None and few.limit == "volume_iops":
        assert more == few


def test_what_waits_for_the_client_is_not_held_against_the_volume() -> None:
    assert judge(second(QUIET, device(2990, ms=9.4)), given()) == BindingLimit("client", sure=False)


def cpu(busy: float) -> Cpu:
    """A machine whose server uses this share of its CPUs, with as much idle as that leaves."""
    return Cpu(idle=1 - busy - 0.1, harness=0.05, other=0.05, driver_busy=0.1, server=busy, server_busy=busy)


@pytest.mark.parametrize(
    ("computing", "busy", "cores", "limit"),
    [
        (16.0, 0.15, 2.0, None),  # sixteen sessions would fill two cores
        (16.0, 0.15, None, None),
        (9.8, 0.42, 2.0, None),
        (16.0, 0.70, 2.0, "server_cpu"),
        (16.0, 0.60, None, "server_cpu"),
        (1.0, 0.125, 8.0, "server_cpu"),  # one session, one whole core
        (1.0, 0.03, 8.0, None),
    ],
)
def test_sessions_that_seem_to_compute_without_using_the_cpu_are_not_short_of_it(
    computing: float, busy: float, cores: float | None, limit: str | None
) -> None:
    shown = second(sessions(computing, cpu=computing), cpu=cpu(busy))
    result = judge(shown, replace(given(FAST), cores=cores))
    assert (result.limit if result is not None else None) == limit


def test_what_sessions_wait_for_is_named_where_the_cpu_is_not_used() -> None:
    shown = second(sessions(32, cpu=14.0, commit=12.0), cpu=cpu(0.15))
    result = judge(shown, replace(given(FAST), cores=2.0))
    assert result is not None
    assert result.limit == "commit_latency"
