"""Rules for servers that somebody else uses: nobody knows how many clients they have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.binding.evidence import Exceeded
from pgdyno.analysis.binding.limits import OF_RUNS, OF_WATCHED, Found
from pgdyno.analysis.binding.rules import judge
from pgdyno.analysis.binding.sessions import Sessions, state_of

from .made import FAST, FULL, IDLE, device, given, second

WATCHED = replace(given(), clients=0, driven=False)
AT_LIMIT = device(2990, ms=9.4)


def test_nothing_binds_where_hardly_a_session_is_at_work() -> None:
    assert judge(second(Sessions(cpu=0.2, commit=0.1)), WATCHED) == Found("client", sure=True)
    assert judge(second(Sessions(), cpu=None), WATCHED) == Found("client", sure=True)
    others_busy = replace(FULL, other=0.9, laboratory=0.0, server=0.0, server_busy=0.0)
    assert judge(second(Sessions(), cpu=others_busy), WATCHED) == Found("client", sure=True)


def test_clients_that_come_back_may_be_what_lacks_cpu() -> None:
    hardly = Sessions(cpu=0.3, client=1.7)
    assert judge(second(hardly), WATCHED) == Found("client", sure=True)
    unseen = judge(second(hardly, cpu=None), WATCHED)
    assert unseen == Found("client", sure=False), "they may be on the server's host, whose CPU nobody saw"
    others_busy = replace(FULL, other=0.9, laboratory=0.0, server=0.05, server_busy=0.05, idle=0.02)
    assert judge(second(hardly, cpu=others_busy), WATCHED) == Found("laboratory", sure=False)


def test_a_base_backup_that_waits_for_the_volume_is_work() -> None:
    """It is no client's session: by those alone nobody asks for anything."""
    backup = replace(second(Sessions(), cpu=None), devices={}, others_at_disk=0.9)
    assert judge(backup, WATCHED) == Found("volume_latency", sure=False, role="data")
    fast = replace(WATCHED, bought={"data": FAST})
    assert judge(replace(second(Sessions()), others_at_disk=0.9), fast) == Found("volume_latency", False, "data")
    assert judge(replace(second(Sessions(), AT_LIMIT), others_at_disk=0.9), WATCHED) == Found(
        "volume_iops", True, "data"
    )
    assert judge(replace(backup, others_at_disk=0.1), WATCHED) == Found("client", sure=True)
    assert judge(replace(backup, others_at_disk=0.3), WATCHED) == Found("client", sure=False)
    beside = replace(backup, sessions=Sessions(cpu=0.2, client=3))
    assert judge(beside, WATCHED) == Found("volume_latency", sure=False, role="data")


def test_two_limits_that_the_provider_tells_alike_are_not_told_apart() -> None:
    waiting = second(Sessions(read=8), device(2000, ms=9.4, kib=64))
    both = replace(waiting, exceeded={"data": Exceeded(iops=1.0, throughput=1.0)})
    assert judge(both, WATCHED) == Found("volume_iops", sure=False, role="data")
    one = replace(waiting, exceeded={"data": Exceeded(iops=0.6, throughput=0.95)})
    assert judge(one, WATCHED) == Found("volume_throughput", sure=True, role="data", share=0.95)


def test_most_sessions_that_wait_for_their_client_are_nothing_that_binds() -> None:
    shown = Sessions(cpu=1, commit=1, client=8)
    assert judge(second(shown), WATCHED) == Found("client", sure=True)
    unseen = judge(second(shown, cpu=None), WATCHED)
    assert unseen == Found("client", sure=False), "whether CPU was left nobody knows"


def test_a_volume_at_its_limit_binds_even_where_few_sessions_wait() -> None:
    few = judge(second(Sessions(read=0.2), AT_LIMIT), WATCHED)
    assert few == Found("volume_iops", sure=False, role="data")
    many = judge(second(Sessions(read=12, commit=4), AT_LIMIT), WATCHED)
    assert many == Found("volume_iops", sure=True, role="data")


def test_an_inferred_limit_is_never_sure() -> None:
    inferred = replace(WATCHED, inferred=frozenset({"data"}))
    assert judge(second(Sessions(read=12, commit=4), AT_LIMIT), inferred) == Found("volume_iops", False, "data")


def test_connections_bind_where_all_are_taken_and_hardly_one_works() -> None:
    full = replace(second(Sessions(cpu=0.3)), connections=1.0)
    assert judge(full, WATCHED) == Found("connections", sure=True)
    working = replace(second(Sessions(read=12, commit=4), AT_LIMIT), connections=1.0)
    assert judge(working, WATCHED) == Found("volume_iops", sure=True, role="data"), "the volume is why they are taken"
    assert judge(replace(full, connections=0.97), WATCHED) == Found("client", sure=True)
    others_busy = replace(FULL, other=0.9, laboratory=0.0, server=0.05, server_busy=0.05, idle=0.02)
    just_connected = replace(second(Sessions(cpu=0.1, client=20), cpu=others_busy), connections=1.0)
    assert judge(just_connected, WATCHED) == Found("connections", sure=True), "CPU would not admit more of them"


def test_a_standby_that_confirms_late_is_named() -> None:
    assert state_of("IPC", "SyncRep") == "standby"
    assert judge(second(Sessions(standby=6, cpu=1)), WATCHED) == Found("synchronous_standby", sure=True)
    assert judge(second(Sessions(standby=4, commit=3, cpu=3)), WATCHED) == Found("synchronous_standby", sure=False)


def test_a_busy_host_binds_only_sessions_that_lack_cpu() -> None:
    others = replace(FULL, other=0.9, laboratory=0.0, server=0.05, server_busy=0.05, idle=0.02)
    assert judge(second(Sessions(cpu=6, commit=2), cpu=others), WATCHED) == Found("laboratory", sure=True)
    assert judge(second(Sessions(lock=7, other=1), cpu=others), WATCHED) == Found("locks", sure=True)
    assert judge(second(Sessions(cpu=1, client=5), cpu=others), WATCHED) == Found("laboratory", sure=False)
    assert judge(second(None, cpu=others), WATCHED) == Found("laboratory", sure=False)
    commits = judge(second(Sessions(commit=7, cpu=1), cpu=others), WATCHED)
    assert commits == Found("commit_latency", sure=False, role="data")


def test_sessions_that_are_not_shown_are_no_sign_of_rest() -> None:
    assert judge(second(None), WATCHED) is None


def test_the_rules_of_runs_know_nothing_of_it() -> None:
    assert judge(replace(second(), connections=1.0), given()) == Found("client", sure=True)
    assert not OF_WATCHED & set(OF_RUNS)
    assert judge(second(Sessions(cpu=0.2), cpu=IDLE), given()) != Found("client", sure=True)


@pytest.mark.parametrize("event", ["SyncRep", "syncrep"])
def test_names_of_waits_are_read_in_either_case(event: str) -> None:
    assert state_of("IPC", event) == "standby"
