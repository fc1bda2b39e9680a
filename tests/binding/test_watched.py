"""Rules for servers that somebody else uses: nobody knows how many clients they have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.binding.evidence import ThrottledShares
from pgdyno.analysis.binding.rules import OF_RUNS, OF_WATCHED, BindingLimit, judge
from pgdyno.analysis.binding.sessions import SessionStates, state_of

from .made import FAST, FULL, IDLE, device, given, second

WATCHED = replace(given(), clients=0, driven=False)
AT_LIMIT = device(2990, ms=9.4)


def test_nothing_binds_where_hardly_a_session_is_at_work() -> None:
    assert judge(second(SessionStates(cpu=0.2, commit=0.1)), WATCHED) == BindingLimit("client", sure=True)
    assert judge(second(SessionStates(), cpu=None), WATCHED) == BindingLimit("client", sure=True)
    others_busy = replace(FULL, other=0.9, harness=0.0, server=0.0, server_busy=0.0)
    assert judge(second(SessionStates(), cpu=others_busy), WATCHED) == BindingLimit("client", sure=True)


def test_clients_that_come_back_may_be_what_lacks_cpu() -> None:
    hardly = SessionStates(cpu=0.3, client=1.7)
    assert judge(second(hardly), WATCHED) == BindingLimit("client", sure=True)
    unseen = judge(second(hardly, cpu=None), WATCHED)
    assert unseen == BindingLimit("client", sure=False), "they may be on the server's host, whose CPU nobody saw"
    others_busy = replace(FULL, other=0.9, harness=0.0, server=0.05, server_busy=0.05, idle=0.02)
    assert judge(second(hardly, cpu=others_busy), WATCHED) == BindingLimit("harness", sure=False)


def test_a_base_backup_that_waits_for_the_volume_is_work() -> None:
    """It is no client's session: by those alone nobody asks for anything."""
    backup = replace(second(SessionStates(), cpu=None), devices={}, others_at_disk=0.9)
    assert judge(backup, WATCHED) == BindingLimit("volume_latency", sure=False, role="data")
    fast = replace(WATCHED, bought={"data": FAST})
    assert judge(replace(second(SessionStates()), others_at_disk=0.9), fast) == BindingLimit(
        "volume_latency", False, "data"
    )
    assert judge(replace(second(SessionStates(), AT_LIMIT), others_at_disk=0.9), WATCHED) == BindingLimit(
        "volume_iops", True, "data"
    )
    assert judge(replace(backup, others_at_disk=0.1), WATCHED) == BindingLimit("client", sure=True)
    assert judge(replace(backup, others_at_disk=0.3), WATCHED) == BindingLimit("client", sure=False)
    beside = replace(backup, sessions=SessionStates(cpu=0.2, client=3))
    assert judge(beside, WATCHED) == BindingLimit("volume_latency", sure=False, role="data")


def test_two_limits_that_the_provider_tells_alike_are_not_told_apart() -> None:
    waiting = second(SessionStates(read=8), device(2000, ms=9.4, kib=64))
    both = replace(waiting, exceeded={"data": ThrottledShares(iops=1.0, throughput=1.0)})
    assert judge(both, WATCHED) == BindingLimit("volume_iops", sure=False, role="data")
    result = replace(waiting, exceeded={"data": ThrottledShares(iops=0.6, throughput=0.95)})
    assert judge(result, WATCHED) == BindingLimit("volume_throughput", sure=True, role="data", share=0.95)


def test_most_sessions_that_wait_for_their_client_are_nothing_that_binds() -> None:
    shown = SessionStates(cpu=1, commit=1, client=8)
    assert judge(second(shown), WATCHED) == BindingLimit("client", sure=True)
    unseen = judge(second(shown, cpu=None), WATCHED)
    assert unseen == BindingLimit("client", sure=False), "whether CPU was left nobody knows"


def test_a_volume_at_its_limit_binds_even_where_few_sessions_wait() -> None:
    few = judge(second(SessionStates(read=0.2), AT_LIMIT), WATCHED)
    assert few == BindingLimit("volume_iops", sure=False, role="data")
    many = judge(second(SessionStates(read=12, commit=4), AT_LIMIT), WATCHED)
    assert many == BindingLimit("volume_iops", sure=True, role="data")


def test_an_inferred_limit_is_never_sure() -> None:
    inferred = replace(WATCHED, inferred=frozenset({"data"}))
    assert judge(second(SessionStates(read=12, commit=4), AT_LIMIT), inferred) == BindingLimit(
        "volume_iops", False, "data"
    )


def test_connections_bind_where_all_are_taken_and_hardly_one_works() -> None:
    full = replace(second(SessionStates(cpu=0.3)), connections=1.0)
    assert judge(full, WATCHED) == BindingLimit("connections", sure=True)
    working = replace(second(SessionStates(read=12, commit=4), AT_LIMIT), connections=1.0)
    assert judge(working, WATCHED) == BindingLimit("volume_iops", sure=True, role="data"), (
        "the volume is why they are taken"
    )
    assert judge(replace(full, connections=0.97), WATCHED) == BindingLimit("client", sure=True)
    others_busy = replace(FULL, other=0.9, harness=0.0, server=0.05, server_busy=0.05, idle=0.02)
    just_connected = replace(second(SessionStates(cpu=0.1, client=20), cpu=others_busy), connections=1.0)
    assert judge(just_connected, WATCHED) == BindingLimit("connections", sure=True), "CPU would not admit more of them"


def test_a_standby_that_confirms_late_is_named() -> None:
    assert state_of("IPC", "SyncRep") == "standby"
    assert judge(second(SessionStates(standby=6, cpu=1)), WATCHED) == BindingLimit("synchronous_standby", sure=True)
    assert judge(second(SessionStates(standby=4, commit=3, cpu=3)), WATCHED) == BindingLimit(
        "synchronous_standby", sure=False
    )


def test_a_busy_host_binds_only_sessions_that_lack_cpu() -> None:
    others = replace(FULL, other=0.9, harness=0.0, server=0.05, server_busy=0.05, idle=0.02)
    assert judge(second(SessionStates(cpu=6, commit=2), cpu=others), WATCHED) == BindingLimit("harness", sure=True)
    assert judge(second(SessionStates(lock=7, other=1), cpu=others), WATCHED) == BindingLimit("locks", sure=True)
    assert judge(second(SessionStates(cpu=1, client=5), cpu=others), WATCHED) == BindingLimit("harness", sure=False)
    assert judge(second(None, cpu=others), WATCHED) == BindingLimit("harness", sure=False)
    commits = judge(second(SessionStates(commit=7, cpu=1), cpu=others), WATCHED)
    assert commits == BindingLimit("commit_latency", sure=False, role="data")


def test_sessions_that_are_not_shown_are_no_sign_of_rest() -> None:
    assert judge(second(None), WATCHED) is None


def test_the_rules_of_runs_know_nothing_of_it() -> None:
    assert judge(replace(second(), connections=1.0), given()) == BindingLimit("client", sure=True)
    assert not OF_WATCHED & set(OF_RUNS)
    assert judge(second(SessionStates(cpu=0.2), cpu=IDLE), given()) != BindingLimit("client", sure=True)


@pytest.mark.parametrize("event", ["SyncRep", "syncrep"])
def test_names_of_waits_are_read_in_either_case(event: str) -> None:
    assert state_of("IPC", event) == "standby"
