"""Servers that die, freeze, restart or crash while they are watched: that is the verdict, and nothing else is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.advise.diagnose.activity import silence_of
from pgdyno.advise.diagnose.diagnosis import Diagnosis, diagnose
from pgdyno.advise.diagnose.document import DiagnoseDocument
from pgdyno.advise.diagnose.page import of_diagnosis
from pgdyno.advise.diagnose.remedies import Purchase
from pgdyno.advise.diagnose.watch import target_of, watch
from pgdyno.base.errors import HostError
from pgdyno.machine.waiting import wait_until
from pgdyno.probe import sql
from pgdyno.results import open_run

from ..support.commands import pgdyno
from ..support.servers import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgdyno.server.cluster import Cluster

PROBES = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'pgdyno probe' AND backend_start < clock_timestamp() - interval '1 s'
"""
"""Those of a watch that has begun: while it begins they are younger."""


@pytest.fixture
def server() -> Iterator[Cluster]:
    with throwaway_cluster(settings={"max_connections": "10", "restart_after_crash": "on"}) as started:
        yield started


def watched(
    cluster: Cluster, root: Path, *events: tuple[float, Callable[[], object]], seconds: float = 4.0
) -> Diagnosis:
    """Watch, and let each event happen when so many seconds of the watch are left."""
    left = list(events)

    def tell(left_s: float) -> None:
        while left and left_s <= left[0][0]:
            left.pop(0)[1]()

    return diagnose(watch(target_of(cluster.dsn), Purchase(), seconds, root, tell))


def processes(cluster: Cluster) -> list[int]:
    """The server's process and its children."""
    children = Path(f"/proc/{cluster.pid}/task/{cluster.pid}/children").read_text().split()
    return [cluster.pid, *map(int, children)]


def send(cluster: Cluster, number: signal.Signals) -> None:
    for pid in processes(cluster):
        os.kill(pid, number)


def answers(cluster: Cluster) -> bool:
    with contextlib.suppress(psycopg.OperationalError), cluster.connect():
        return True
    return False


def assert_unanswered(diagnosis: Diagnosis, least_s: float) -> None:
    verdict, silence = diagnosis.binding.verdict, diagnosis.silence
    assert silence is not None
    assert (verdict.limit, verdict.confidence) == ("no_answer", "high")
    assert least_s <= silence.seconds <= silence.of_s
    assert diagnosis.consumers == diagnosis.free == diagnosis.findings == ()
    assert diagnosis.remedy is not None
    assert diagnosis.remedy.spec is None


def test_a_server_that_is_stopped_is_the_verdict_everywhere(server: Cluster, tmp_path: Path) -> None:
    kept, page = tmp_path / "kept", tmp_path / "page.html"

    def stop() -> None:
        with server.connect() as connection:
            assert wait_until(lambda: (connection.execute(PROBES).fetchone() or (0,))[0] >= 2, 30.0)
        server.stop("fast")

    stopping = threading.Thread(target=stop)
    stopping.start()
    ended = pgdyno("diagnose", server.dsn, "--for", "5s", "--keep", kept, "--html", page, "--json", code=4)
    stopping.join()
    assert ended.error is not None
    assert ended.error.code == "diagnose.server.no_answer"
    assert 1.5 < ended.error.data["unanswered_s"] <= ended.error.data["of_s"]
    document = DiagnoseDocument.model_validate(json.loads(ended.out))
    assert document.verdict.limit == "no_answer"
    assert document.watched.unanswered_s == ended.error.data["unanswered_s"]
    (title,) = {document.verdict.title, ended.error.message}
    assert title[:1].upper() + title[1:] in page.read_text()
    again = pgdyno("diagnose", document.directory or "", code=4)
    assert title in " ".join(again.out.split())
    server.start({"restart_after_crash": "on"})
    assert pgdyno("diagnose", server.dsn, "--for", "5s", "--keep", kept, code=0)
    calendar = json.loads(pgdyno("diagnose", kept, "--json", code=0).out)
    assert any(title in why for hour in calendar["hours"] for why in hour["missed"])
    assert title in " ".join(pgdyno("diagnose", kept, code=0).out.split())


def test_a_server_that_freezes_and_does_not_come_back_is_the_verdict(
    server: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "PATIENCE_S", 1.0)
    try:
        diagnosis = watched(server, tmp_path, (3.0, lambda: send(server, signal.SIGSTOP)))
    finally:
        send(server, signal.SIGCONT)
    assert_unanswered(diagnosis, 1.5)
    assert diagnosis.silence is not None
    assert not diagnosis.silence.is_over
    assert diagnosis.silence.event is None


def test_a_server_that_freezes_for_a_while_did_not_answer_for_that_while(server: Cluster, tmp_path: Path) -> None:
    diagnosis = watched(
        server,
        tmp_path,
        (5.0, lambda: send(server, signal.SIGSTOP)),
        (2.5, lambda: send(server, signal.SIGCONT)),
        seconds=6.0,
    )
    assert_unanswered(diagnosis, 2.0)
    assert diagnosis.silence is not None
    assert diagnosis.silence.is_over
    assert diagnosis.silence.seconds < 4.5


def test_a_restart_in_mid_watch_is_the_verdict_however_short(server: Cluster, tmp_path: Path) -> None:
    def restart() -> None:
        server.stop("fast")
        server.start({})

    diagnosis = watched(server, tmp_path, (3.0, restart))
    assert_unanswered(diagnosis, 0.0)
    assert diagnosis.silence is not None
    assert diagnosis.silence.event == "restart"
    assert of_diagnosis(diagnosis)


def test_a_crash_is_no_reset_of_statistics(server: Cluster, tmp_path: Path) -> None:
    def crash() -> None:
        with server.connect() as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert row is not None
            os.kill(row[0], signal.SIGKILL)
        assert wait_until(lambda: answers(server), 60.0)

    diagnosis = watched(server, tmp_path, (3.0, crash))
    assert_unanswered(diagnosis, 0.0)
    assert diagnosis.silence is not None
    assert diagnosis.silence.event == "crash"


def test_a_session_of_the_watch_that_is_ended_is_no_silence(server: Cluster, tmp_path: Path) -> None:
    def end() -> None:
        with server.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgdyno probe'"
            )

    diagnosis = watched(server, tmp_path, (3.0, end))
    assert diagnosis.binding.verdict.limit != "no_answer"
    assert silence_of(open_run(diagnosis.run.path)).spans == ()


def test_connections_that_are_used_up_are_called_that(server: Cluster, tmp_path: Path) -> None:
    """Its own sessions are ended, and others take every connection, that of a superuser too."""
    others: list[psycopg.Connection[tuple[object, ...]]] = []

    def take() -> None:
        pids = [
            row[0]
            for row in others[0].execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'pgdyno probe'")
        ]
        others[0].execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", (pids,))
        fill()

    def fill() -> None:
        with pytest.raises(psycopg.OperationalError):
            while True:
                others.append(server.connect())

    try:
        others.append(server.connect())
        diagnosis = watched(server, tmp_path, (3.0, take))
        assert diagnosis.binding.verdict.limit == "connections"
        assert diagnosis.silence is not None
        assert diagnosis.silence.is_full
        with pytest.raises(HostError) as refused:
            watch(target_of(server.dsn), Purchase(), 1.0, tmp_path)
        others.pop().close()
        with pytest.raises(HostError) as sampled:
            watch(target_of(server.dsn), Purchase(), 1.0, tmp_path)
    finally:
        for connection in others:
            connection.close()
    assert refused.value.code == sampled.value.code == "server.connections.taken"
