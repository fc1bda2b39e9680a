"""What a capture lacks of its log is in every account of it, and decides whether what is sent is production's load."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis import reading
from pgdyno.analysis.replay import reasons
from pgdyno.machine.waiting import wait_until
from pgdyno.results.work_record import ReadingRecord, SampleRecord

from ..support.commands import pgdyno
from .handmade import capture_of
from .logged import AS_SUPERUSER, connected
from .relayed import recording
from .test_hostile import calls_in, engine_of
from .test_replay import RECORD

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

PATIENCE_S = 30.0
SECRET = "statement: ALTER ROLE nobody PASSWORD 'hunter2'"
WHOLE = ReadingRecord(kept=1000, sessions=100)


def replayed(capture: Path, cluster: Cluster, *options: str) -> Any:
    """What a replay onto the server of a test printed, and how it ended."""
    where = ("--dsn", cluster.dsn, "--yes-write", *AS_SUPERUSER)
    return pgdyno("capture", "replay", capture, *where, *options)


def test_what_is_left_out_is_lost_load_until_that_is_accepted(embedded_server: Cluster, tmp_path: Path) -> None:
    texts = ["statement: SELECT 1"] * 9
    capture = capture_of(tmp_path, *texts, SECRET, user="postgres", database="postgres")
    ended = replayed(capture, embedded_server, "--json")
    document = json.loads(ended.out)
    assert (ended.code, ended.error.code) == (4, "replay.invalid")
    assert (document["valid"], document["executed"], document["reading"]["kept"]) == (False, 9, 9)
    assert document["reading"]["statements"] == {"passwords": 1}
    assert document["reasons"] == list(
        reasons(RECORD.model_copy(update={"reading": ReadingRecord(**document["reading"])}))
    )
    accepted = replayed(capture, embedded_server, "--accept-losses", "--json")
    result = json.loads(accepted.out)
    assert (accepted.code, result["valid"], result["reading"]["accepted"]) == (0, True, True)
    assert result["reading"]["statements"] == {"passwords": 1}, "it is in the account all the same"
    words = replayed(capture, embedded_server, "--accept-losses").out
    assert next(iter(reading.remarks(ReadingRecord(**result["reading"])))) in words


def test_the_reading_of_a_log_and_its_summary_say_it_too(tmp_path: Path) -> None:
    capture = capture_of(tmp_path, "statement: SELECT 1", SECRET, user="a", database="b")
    shown = pgdyno("capture", "show", capture, "--json", code=0)
    result = json.loads(shown.out)["reading"]
    assert (result["kept"], result["statements"], result["sessions"]) == (1, {"passwords": 1}, 1)
    (loss,) = reading.losses(ReadingRecord(**result))
    assert loss in pgdyno("capture", "show", capture, code=0).err


@pytest.mark.parametrize(
    ("change", "reasons_there", "remarks_there"),
    [
        ({}, 0, 0),
        ({"statements": {"passwords": 10}}, 0, 1),
        ({"statements": {"passwords": 11}}, 1, 0),
        ({"statements": {"passwords": 6, "repeated": 5}}, 1, 0),
        ({"statements": {"torn": 11}, "accepted": True}, 0, 1),
        ({"incomplete": {"memory": 1}}, 0, 1),
        ({"incomplete": {"memory": 2}}, 1, 0),
        ({"unfinished": True}, 0, 1),
        ({"lines": {"foreign": 5000}}, 0, 1),
    ],
)
def test_more_than_one_in_a_hundred_is_a_reason_and_everything_is_told(
    change: dict[str, Any], reasons_there: int, remarks_there: int
) -> None:
    model_copy = WHOLE.model_copy(update=change)
    assert len(list(reading.reasons(model_copy))) == reasons_there
    assert len(list(reading.remarks(model_copy))) == remarks_there
    assert [finding.level for finding in reading.findings(model_copy)] == ["invalid"] * reasons_there + [
        "warn"
    ] * remarks_there


def test_a_sample_without_some_of_the_transactions_is_another_mixture() -> None:
    record = SampleRecord(transactions=1000, left_out=11, reading=WHOLE)
    assert [finding.level for finding in reading.sample_findings(record)] == ["invalid"]
    accepted = record.model_copy(update={"reading": WHOLE.model_copy(update={"accepted": True})})
    assert [finding.level for finding in reading.sample_findings(accepted)] == ["warn"]
    assert [finding.level for finding in reading.sample_findings(record.model_copy(update={"left_out": 10}))] == [
        "warn"
    ]
    assert not list(reading.sample_findings(record.model_copy(update={"left_out": 0})))


DRIVE = ("--clients", "2", "--warmup", "0s", "--duration", "1s", "--yes-write", *AS_SUPERUSER)


def test_a_capture_that_fails_elsewhere_is_no_valid_drive(embedded_server: Cluster, tmp_path: Path) -> None:
    texts = ["statement: SELECT 1", "statement: SELECT * FROM gone"]
    capture = capture_of(tmp_path, *texts, user="postgres", database="postgres", apart=True)
    results = ["drive", capture, "--dsn", embedded_server.dsn, *DRIVE]
    ended = pgdyno(*results, "--json")
    document = json.loads(ended.out)
    assert document["failed"] > 0.01 * document["succeeded"] and document["succeeded"] > 0
    assert (document["valid"], ended.code) == (False, 4)
    assert [finding["check"] for finding in document["findings"] if finding["level"] == "invalid"] == ["failed"]
    assert not json.loads(pgdyno(*results, "--keep-invalid", "--json", code=0).out)["valid"]


def test_a_drive_says_what_its_capture_lacks(embedded_server: Cluster, tmp_path: Path) -> None:
    capture = capture_of(tmp_path, "statement: SELECT 1", SECRET, user="postgres", database="postgres")
    texts = ["drive", capture, "--dsn", embedded_server.dsn, *DRIVE, "--json"]
    ended = pgdyno(*texts)
    document = json.loads(ended.out)
    assert [finding["check"] for finding in document["findings"] if finding["level"] == "invalid"] == ["capture"]
    assert (document["failed"], document["valid"], ended.code) == (0, False, 4)
    accepted = json.loads(pgdyno(*texts, "--accept-losses", code=0).out)
    assert (accepted["valid"], accepted["workload"]["accept_losses"]) == (True, True)
    assert [finding["level"] for finding in accepted["findings"] if finding["check"] == "capture"] == ["warn"]


def test_a_drive_says_which_transactions_are_never_drawn(embedded_server: Cluster, tmp_path: Path) -> None:
    texts = ["statement: SELECT 1", "statement: COPY t FROM STDIN"]
    capture = capture_of(tmp_path, *texts, user="postgres", database="postgres", apart=True)
    ended = pgdyno("drive", capture, "--dsn", embedded_server.dsn, *DRIVE, "--json")
    document = json.loads(ended.out)
    assert [finding["check"] for finding in document["findings"] if finding["level"] == "invalid"] == ["mixture"]
    assert ended.code == 4


def test_an_experiment_of_a_capture_with_losses_keeps_them_and_their_verdict(
    embedded_server: Cluster, tmp_path: Path
) -> None:
    capture = capture_of(tmp_path, "statement: SELECT 1", SECRET, user="postgres", database="postgres")
    file = tmp_path / "experiment.toml"
    text = 'schema_version = 1\nreplicates = 1\n[world]\nkind = "real"\ndsn = "{}"\n[workload]\nkind = "replay"\ncapture = "{}"\n'
    file.write_text(text.format(embedded_server.dsn, capture) + 'allow_outside = ["role:postgres"]\n')
    results: list[Any] = ["run", file, "--results", tmp_path / "results", "--yes-write", "--json"]
    ended = pgdyno(*results)
    (arm,) = json.loads(ended.out)["arms"]
    assert (ended.code, arm["replay"]["accounts"][0]["not_captured"]) == (4, {"passwords": 1})
    accepted = pgdyno(*results, "--set", "workload.accept_losses=true")
    (arm,) = json.loads(accepted.out)["arms"]
    assert arm["replay"]["accounts"][0]["not_captured"] == {"passwords": 1}
    assert not any(reason.startswith("captured load") for reason in arm["why_invalid"]), arm["why_invalid"]


def test_a_recording_that_was_killed_says_so_in_each_account_and_is_not_sent_to_its_own_database(
    embedded_server: Cluster, tmp_path: Path
) -> None:
    capture = tmp_path / "killed.capture"
    with recording(embedded_server, capture) as relay:
        with connected(relay) as session:
            for _ in range(20):
                session.execute("SELECT 1")
            assert wait_until(lambda: calls_in(capture) == 20, PATIENCE_S)
            os.kill(engine_of(relay), signal.SIGKILL)
        relay.process.communicate(timeout=PATIENCE_S)
    refused = replayed(capture, embedded_server)
    assert (refused.code, refused.error.code) == (2, "replay.server.captured")
    drive: list[Any] = ["drive", capture, "--dsn", embedded_server.dsn, *DRIVE, "--json"]
    assert pgdyno(*drive, code=2).error.code == "replay.server.captured"
    copy = ("--database", f"{relay.database}={relay.database}")
    ended = replayed(capture, embedded_server, "--json", *copy)
    document = json.loads(ended.out)
    assert document["reading"]["unfinished"] and document["valid"] and document["executed"] == 20, ended.err
    driven = json.loads(pgdyno(*drive, *copy, code=0).out)
    assert [finding["level"] for finding in driven["findings"] if finding["check"] == "capture"] == ["warn"]


def test_the_captured_database_is_refused_before_the_first_statement(embedded_server: Cluster, tmp_path: Path) -> None:
    with connected(embedded_server) as session:
        session.execute("DROP TABLE IF EXISTS made; CREATE TABLE made (id serial PRIMARY KEY, n int)")
        for number in range(50):
            session.execute("INSERT INTO made (n) VALUES (%s) RETURNING id", [number])
    messages = []
    for number in range(1, 51):
        messages += [
            "statement: BEGIN",
            "statement: INSERT INTO made (n) VALUES (7) RETURNING id",
            f"statement: UPDATE made SET n = 8 WHERE id = {number}",
            "statement: COMMIT",
        ]
    capture = capture_of(tmp_path, *messages, user="postgres", database="postgres")
    ended = replayed(capture, embedded_server)
    assert (ended.code, ended.error.code) == (2, "replay.database.newer"), ended.err
    assert ended.error.data["sequences"][0]["column"] == "made.id"
    with connected(embedded_server) as session:
        assert session.execute("SELECT count(*), max(n) FROM made").fetchone() == (50, 49)
        session.execute("DROP TABLE made")
