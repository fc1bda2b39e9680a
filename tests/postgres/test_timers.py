"""Every timer of the server is slowed, none beyond what it takes, and the table says what servers say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.server.accepted import require_accepted
from pgdyno.server.binaries import find_binaries
from pgdyno.server.timers import TIMERS, dilated

from ..support.servers import cluster, older_server

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

__all__ = ["cluster", "older_server"]

_TIME = re.compile(r"time(?!zone|stamp|line)|delay|interval|duration")
_NO_TIMER = {
    "lc_time": "a locale",
    "pre_auth_delay": "for those who attach a debugger",
    "post_auth_delay": "for those who attach a debugger",
    "log_duration": "a switch",
    "recovery_target_time": "an instant of the calendar",
    "tcp_keepalives_interval": "the kernel's, off on a Unix socket",
    "track_cost_delay_timing": "a switch",
}


def test_the_default_is_slowed_and_so_is_what_was_asked_for() -> None:
    chosen = dilated({"checkpoint_timeout": "15min", "deadlock_timeout": "500", "work_mem": "4MB"}, 8, 18)
    assert chosen["checkpoint_timeout"] == "7200s"
    assert chosen["deadlock_timeout"] == "4000ms"
    assert chosen["work_mem"] == "4MB"
    assert chosen["bgwriter_delay"] == "1600ms"
    assert chosen["autovacuum_vacuum_cost_delay"] == "16ms"


def test_what_is_off_stays_off_and_what_only_bounds_a_silence_ends_at_its_largest() -> None:
    chosen = dilated({"statement_timeout": "0", "log_min_duration_statement": "-1"}, 20, 18)
    assert chosen["statement_timeout"] == "0"
    assert chosen["log_min_duration_statement"] == "-1"
    assert "lock_timeout" not in chosen
    assert chosen["authentication_timeout"] == "600s"


def test_a_fraction_of_a_millisecond_is_slowed_and_not_rounded_away() -> None:
    chosen = dilated({"autovacuum_vacuum_cost_delay": "0.1ms", "vacuum_cost_delay": "0.4"}, 4, 18)
    assert chosen["autovacuum_vacuum_cost_delay"] == "0.4ms", "0 would switch the throttle off"
    assert chosen["vacuum_cost_delay"] == "1.6ms"


def test_one_times_is_as_it_was() -> None:
    assert dilated({"checkpoint_timeout": "15min"}, 1, 18) == {"checkpoint_timeout": "15min"}


@pytest.mark.parametrize(
    ("settings", "dilation", "message", "remedy"),
    [
        ({}, 51, "needs bgwriter_delay = 10200 ms, and PostgreSQL takes 10000 at most", "dilation of 50 at most"),
        ({"checkpoint_timeout": "12h"}, 4, "needs checkpoint_timeout = 172800 s", "dilation of 2 at most"),
    ],
)
def test_a_dilation_that_the_server_cannot_follow_is_refused(
    settings: dict[str, str], dilation: int, message: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        dilated(settings, dilation, 18)
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_the_embedded_server_takes_them_all() -> None:
    binaries = find_binaries()
    require_accepted(binaries, dilated({"checkpoint_timeout": "30min", "commit_delay": "50"}, 48, binaries.major))


def test_the_table_is_what_the_server_says(cluster: Cluster) -> None:
    check_table(cluster)


def test_the_table_is_what_an_older_server_says(older_server: Cluster) -> None:
    check_table(older_server)


def check_table(server: Cluster) -> None:
    """Default, range and unit of each timer; and no setting that looks like a timer is forgotten."""
    import psycopg

    query = "SELECT name, boot_val, max_val, unit, vartype FROM pg_settings"
    with psycopg.connect(server.dsn) as connection:
        document = {row[0]: row[1:] for row in connection.execute(query).fetchall()}
    known = {name for name, timer in TIMERS.items() if timer.since <= server.binaries.major}
    for name in known:
        default, largest, unit, kind = document[name]
        timer = TIMERS[name]
        written = None if timer.bare else timer.unit
        assert (float(default), float(largest), unit) == (timer.default, timer.max, written), name
        assert (kind == "real") == timer.real, name
    looks = {name for name, (*_, unit, kind) in document.items() if _TIME.search(name) and (unit or kind == "integer")}
    assert looks - known - _NO_TIMER.keys() == set()


def test_a_version_without_a_timer_is_not_given_it() -> None:
    assert "wal_summary_keep_time" in dilated({}, 2, 17)
    assert "wal_summary_keep_time" not in dilated({}, 2, 16)
    assert "idle_session_timeout" in dilated({"idle_session_timeout": "5s"}, 2, 14)
    assert dilated({"idle_session_timeout": "5s"}, 2, 13)["idle_session_timeout"] == "5s", "for the server to refuse"


def test_a_timer_is_slowed_in_whatever_case_it_is_written() -> None:
    chosen = dilated({"checkpoint_timeout": "15min", "Checkpoint_Timeout": "5min"}, 4, 18)
    assert chosen["checkpoint_timeout"] == "1200s"
    assert "Checkpoint_Timeout" not in chosen
