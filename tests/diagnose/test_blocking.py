"""Lock storms on a real server: who holds the lock, for how long, and what ends it; and what a role that sees no others may say."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import pytest

from pgdyno.advise.diagnose.activity import blockers_of
from pgdyno.advise.diagnose.diagnosis import diagnose
from pgdyno.advise.diagnose.document import document
from pgdyno.advise.diagnose.remedies import Purchase
from pgdyno.advise.diagnose.watch import target_of, watch
from pgdyno.advise.diagnose.words import lines
from pgdyno.machine.waiting import wait_until
from pgdyno.results import open_run

from ..support.servers import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.advise.diagnose.diagnosis import Diagnosis
    from pgdyno.server.cluster import Cluster

WAITERS = 6
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '2.1 s'"


@pytest.fixture(scope="module", params=[None, "older"])
def server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The embedded server, and Debian's where it is installed."""
    from pathlib import Path

    older = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if request.param and not older:
        pytest.skip("no other PostgreSQL below /usr/lib/postgresql")
    settings = {"max_prepared_transactions": "2", "shared_preload_libraries": "pg_stat_statements"}
    with throwaway_cluster(older[0] if request.param else None, settings) as cluster:
        with cluster.connect() as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
            connection.execute("CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor; CREATE ROLE weak LOGIN")
            connection.execute(
                "CREATE TABLE stock (n int PRIMARY KEY, left_over int); INSERT INTO stock VALUES (1, 10)"
            )
        yield cluster


@contextlib.contextmanager
def storm(server: Cluster, hold: str, wait: str, end: str = "ROLLBACK") -> Iterator[int]:
    """Sessions that have waited for two seconds for a lock of one that does nothing; gives its process."""

    def work() -> None:
        with server.connect(application_name="shop") as connection:
            connection.execute(wait.encode())

    threads = [threading.Thread(target=work) for _ in range(WAITERS)]
    with server.connect(application_name="forgotten") as holder, server.connect() as looker:
        holder.execute(hold.encode())
        for thread in threads:
            thread.start()
        try:
            assert wait_until(lambda: looker.execute(WAITING).fetchone() == (WAITERS,), 60.0)
            yield holder.info.backend_pid
        finally:
            holder.execute(end.encode())
            for thread in threads:
                thread.join()


def watched(server: Cluster, role: str, root: Path) -> Diagnosis:
    return diagnose(watch(target_of(server.dsn_of(role)), Purchase(), 3.0, root))


def test_a_row_that_a_forgotten_transaction_holds(server: Cluster, tmp_path: Path) -> None:
    hold = "BEGIN; UPDATE stock SET left_over = 1 WHERE n = 1"
    with storm(server, hold, "UPDATE stock SET left_over = 2 WHERE n = 1") as pid:
        diagnosis = watched(server, "monitor", tmp_path)
        weak = watched(server, "weak", tmp_path)
    assert diagnosis.binding.verdict.limit == "locks"
    (blocker,) = diagnosis.blockers
    assert (blocker.pid, blocker.application, blocker.user) == (pid, "forgotten", "postgres")
    assert blocker.is_idle
    assert blocker.lock == "a row of public.stock"
    assert blocker.waiting == WAITERS
    assert (blocker.transaction_s or 0.0) > 2.0
    assert diagnosis.remedy is not None
    assert f"pg_terminate_backend({pid})" in diagnosis.remedy.action
    text = " ".join(lines(diagnosis))
    assert "harness" not in text
    assert document(diagnosis, None).blockers[0].statement == f"SELECT pg_terminate_backend({pid})"
    (slow,) = [finding for finding in diagnosis.findings if finding.rule == "log_min_duration_statement"]
    assert slow.agrees, "statements that have not ended are long"
    assert f"{WAITERS} had not ended" in slow.figure
    _assert_concludes_nothing(weak)


def _assert_concludes_nothing(weak: Diagnosis) -> None:
    assert weak.binding.verdict.limit not in ("client", "locks")
    assert [finding for finding in weak.findings if finding.rule == "log_min_duration_statement"] == []
    assert weak.blockers == weak.notes == ()
    assert "GRANT pg_monitor" in weak.missing[0]
    assert any(text.startswith("statements of other roles") for text in weak.missing)


@pytest.mark.parametrize(
    ("hold", "wait", "lock"),
    [
        ("BEGIN; LOCK TABLE stock", "SELECT * FROM stock", "public.stock (AccessExclusiveLock)"),
        (
            "BEGIN; SELECT pg_advisory_xact_lock(42)",
            "SELECT pg_advisory_xact_lock(42)",
            "an advisory lock (ExclusiveLock)",
        ),
    ],
)
def test_what_is_held_is_named(server: Cluster, tmp_path: Path, hold: str, wait: str, lock: str) -> None:
    with storm(server, hold, wait) as pid:
        (blocker,) = watched(server, "monitor", tmp_path).blockers
    assert (blocker.pid, blocker.lock) == (pid, lock)


def test_a_prepared_transaction_has_no_session_to_end(server: Cluster, tmp_path: Path) -> None:
    hold = "BEGIN; UPDATE stock SET left_over = 1 WHERE n = 1; PREPARE TRANSACTION 'left'"
    with storm(server, hold, "UPDATE stock SET left_over = 2 WHERE n = 1", "ROLLBACK PREPARED 'left'"):
        diagnosis = watched(server, "monitor", tmp_path)
    (blocker,) = diagnosis.blockers
    assert blocker.pid == 0
    assert diagnosis.remedy is not None
    assert "ROLLBACK PREPARED" in diagnosis.remedy.action


def test_open_transactions_are_worth_a_line(server: Cluster, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(server.connect()).execute("BEGIN; SELECT 1")
        diagnosis = watched(server, "monitor", tmp_path)
    assert diagnosis.binding.verdict.limit == "client"
    (note,) = diagnosis.notes
    assert note.startswith("8 of ")
    assert blockers_of(open_run(diagnosis.run.path)) == ()
