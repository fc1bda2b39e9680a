"""``pgdyno crashtest`` from recording to verdict: sound servers pass, and planted bugs are caught."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_CUT_FAILED, EXIT_HOST, EXIT_USAGE, InputError
from pgdyno.cli.main import run
from pgdyno.durability.crash import campaign, known, recovery
from pgdyno.durability.crash.book import Book, Name
from pgdyno.durability.crash.examine import PATIENCE, bad_line, mount, structure
from pgdyno.durability.crash.ledger import Ledger, SentTransaction
from pgdyno.durability.crash.recording import STATES, RecordingOptions, load, record
from pgdyno.machine.launch import user_prefix
from pgdyno.machine.mounts import loops
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from tools.crash.cells import mutants

from ..host.needs import expect, needs_fuse
from ..support.servers import throwaway_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.durability.crash.campaign import CampaignResult
    from pgdyno.durability.crash.recording import Recording

pytestmark = needs_fuse
CUTS = 300
"""Of a sound server, one in ten of them during the recovery from another (issue 24)."""
RECOVERY_CUTS = 10
MUTANT_CUTS = 40
TRIED = (
    "flush ignored",
    "flush ignored, WAL",
    "WAL cut 50 ms before the data",
    "all cut 50 ms early",
    "copied in 500 ms",
)
"""Planted bugs that need no recording of their own and are caught within a few cuts."""


def unexplained(result: CampaignResult) -> list[dict[str, str]]:
    """What cuts left that no known defect of PostgreSQL explains."""
    return [outcome.failures for outcome in result.unexplained]


def test_no_cut_of_a_sound_server_loses_anything_and_planted_bugs_do(state: Path, recorded: Recording) -> None:
    assert not state.exists()
    control = recovery.cut(recorded, "pieces-4096", 1, CUTS)
    assert unexplained(control) == []
    assert (control.tried, control.in_recovery) == (CUTS, CUTS // recovery.CUTS_1_IN)
    assert set(control.strata) >= {"anywhere", "checkpoint", "commit", "ddl", "recovery", "segment"}
    assert control.audit["pages"] > 100
    by_name = {mutant.name: mutant for mutant in mutants()}
    for name in TRIED:
        result = campaign.make_cuts(recorded, by_name[name].reading, 1, MUTANT_CUTS, failures_max=1)
        assert result.failed, f"`{name}` was not caught in {result.tried} cuts"
        assert set(result.failed[0].failures) & set(by_name[name].caught_by)


def test_a_known_defect_explains_what_it_loses_and_nothing_else() -> None:
    log = [
        "2026-11-26 14:36:50.792 UTC [7611] WARNING:  removing future two-phase state file for transaction 950",
        "2026-11-26 14:36:50.797 UTC [7611] WARNING:  could not recover two-phase state file for transaction 950",
        '2026-11-26 14:36:50.799 UTC [7611] WARNING:  invalid page in block 2 of relation "base/5/1249_fsm"; zeroing out page',
    ]
    pattern = known.warned(log)
    assert pattern == "WARNING:  could not recover two-phase state file for transaction 950"
    assert known.warned(log[:1]) == "WARNING:  removing future two-phase state file for transaction 950"
    assert known.warned(["LOG:  redo starts at 0/DCB2A0"]) is None
    text, other = (f"client {n}: 1 acknowledged commits are missing: {n} of 49 are there" for n in (1, 2))
    assert known.defect({"ledger": f"{text}; {other}; {known.SAID}{pattern}"}) is known.TWO_PHASE
    for failures in (
        {},
        {"ledger": text},
        {"ledger": f"{text}; {known.SAID}{log[2]}"},
        {"ledger": f"{text}; the sum of client 2 is 12 instead of 13; {known.SAID}{pattern}"},
        {"ledger": f"{text}; {known.SAID}{pattern}", "checksums": "1 block"},
    ):
        assert known.defect(failures) is None


def test_a_torn_map_of_free_space_is_mended_and_any_other_damaged_page_is_a_failure() -> None:
    mended = [
        "LOG:  page verification failed, calculated checksum 33035 but expected 8020",
        'LOG:  invalid page in block 2 of relation "base/5/1249_fsm"; zeroing out page',
        'WARNING:  invalid page in block 2 of relation "base/5/1249_fsm"; zeroing out page',
        "WARNING:  invalid page in block 2 of relation base/5/2619_fsm; zeroing out page",
        "HINT:  This probably means that some data is corrupted and you will have to use the last backup for recovery.",
    ]
    assert bad_line(mended) is None
    for line in (
        'ERROR:  invalid page in block 2 of relation "base/5/1249_fsm"',
        'WARNING:  invalid page in block 2 of relation "base/5/1249"; zeroing out page',
        "WARNING:  invalid page in block 2 of relation base/5/1249; zeroing out page",
        'WARNING:  invalid page in block 0 of relation "base/5/1249_vm"; zeroing out page',
        "PANIC:  WAL contains references to invalid pages",
    ):
        assert bad_line([*mended, line]) == line


def digest(file: Path) -> str:
    """Of what a sparse file holds, and where."""
    sha256 = hashlib.sha256()
    with file.open("rb") as opened:
        place, size = 0, file.stat().st_size
        while place < size:
            try:
                place = os.lseek(opened.fileno(), place, os.SEEK_DATA)
            except OSError:
                break  # nothing but a hole
            end = os.lseek(opened.fileno(), place, os.SEEK_HOLE)
            sha256.update(f"{place} {end}".encode() + os.pread(opened.fileno(), end - place, place))
            place = end
    return sha256.hexdigest()


def digests(recording: Recording, folder: Path, cuts: int) -> list[list[str]]:
    """Of the volumes after each of the first cuts."""
    digests: list[list[str]] = []
    with closing(Book(recording)) as book:
        for number in range(cuts * campaign.TRIES):
            if len(digests) == cuts:
                break
            folder.mkdir()
            files = [folder / role for role in recording.asked.roles]
            if book.cut("pieces-512+strict", 5, number, files, again=True) is not None:
                digests.append([digest(file) for file in files])
            shutil.rmtree(folder)
    return digests


def test_a_lock_that_a_prepared_transaction_holds_is_a_failure_and_not_waited_for() -> None:
    """A damaged server may be unable to end it, and nobody else is there who could."""
    impatient = PATIENCE.replace("lock_timeout=30s", "lock_timeout=100ms")
    assert impatient != PATIENCE
    with throwaway_cluster(settings={"max_prepared_transactions": "1"}) as server:
        with server.connect() as connection:
            connection.execute("CREATE EXTENSION amcheck; CREATE TABLE held (a int PRIMARY KEY)")
            assert structure(connection, whole_catalog=False) is None
            connection.execute("BEGIN; INSERT INTO held VALUES (1); PREPARE TRANSACTION 'left'")
        with server.connect(options=impatient) as connection:
            assert "lock timeout" in (structure(connection, whole_catalog=False) or "")


def test_a_cut_is_made_again_byte_for_byte_by_its_name(recorded: Recording, tmp_path: Path) -> None:
    made = digests(recorded, tmp_path / "cut", 9)
    assert len(made) == 9
    assert len({tuple(texts) for texts in made}) > 1
    assert digests(load(recorded.folder), tmp_path / "cut", 9) == made


@pytest.mark.bench
def test_a_hundred_of_a_hundred_cuts_are_made_again_byte_for_byte(recorded: Recording, tmp_path: Path) -> None:
    made = digests(recorded, tmp_path / "cut", 100)
    assert len(made) == 100
    assert digests(load(recorded.folder), tmp_path / "cut", 100) == made


def test_a_cut_during_the_recovery_of_another_loses_nothing(state: Path, recorded: Recording, tmp_path: Path) -> None:
    with closing(Book(recorded)) as book:
        name = Name(str(recorded.folder), "pieces-4096", 1, STATES)  # a first content, around a checkpoint
        first = book.cut(name.reading, name.seed, name.number, [tmp_path / role for role in recorded.asked.roles])
        assert first is not None
        recovered = recovery.record_recovery(book, name, state.parent / "recovered")
    assert load(recovered.folder) == recovered
    acknowledged = list(recovered.ledger.acknowledgements())
    assert 0 < len(acknowledged) <= len(list(recorded.ledger.acknowledgements()))
    assert max(acknowledged) < first.cut_ns < recovered.begin_ns
    again = recovery.cut(recovered, "pieces-4096", 1, RECOVERY_CUTS)
    assert unexplained(again) == []
    assert (again.tried, again.in_recovery) == (RECOVERY_CUTS, 0), "the recovery of a recovery is not recorded"
    assert recovered.strata()["recovery"] == recovered.strata()["anywhere"] == [(recovered.begin_ns, recovered.end_ns)]


def test_what_is_known_of_a_server_that_was_cut_ends_there() -> None:
    sent = [SentTransaction(1, 10, None, 20), SentTransaction(2, 30, 40, 60), SentTransaction(3, 70, None, 80)]
    ledger = Ledger({1: sent})
    assert [ledger.bounds(1, at) for at in (15, 20, 21, 35, 41, 55, 90)] == [
        (0, 1), (0, 1), (1, 1), (1, 2), (2, 2), (2, 2), (3, 3)
    ]  # fmt: skip
    cut = ledger.until(50)
    assert cut.clients[1] == [SentTransaction(1, 10, None, 20), SentTransaction(2, 30, 40, None)]
    assert cut.bounds(1, 1000) == (2, 2), "what was prepared is known"
    assert list(cut.acknowledgements()) == [20]


def test_the_command_finds_a_lie_names_it_and_says_whose_write_was_lost(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--seconds", "2", "--results", str(state.parent / "results"), "--json"]
    assert run(["crashtest", "--cuts", "6", "--fsync", "off", *common]) == EXIT_CUT_FAILED
    document = json.loads(capsys.readouterr().out)
    assert document["given_up"] == {"fsync": "off"}
    # A server that syncs nothing writes little in two seconds: on a slow machine there are fewer contents than were asked for.
    assert document["cuts"] == 6 or document["cuts"] + document["repeated"] == 6 * campaign.TRIES
    name = document["failed"][0]["id"]
    assert run(["crashtest", "--replay", name, "--json"]) == EXIT_CUT_FAILED
    again = json.loads(capsys.readouterr().out)
    assert again["hash"] == document["failed"][0]["hash"]
    assert again["failures"] == document["failed"][0]["failures"]
    assert run(["crashtest", "--replay", name, "--shrink", "--json"]) == EXIT_CUT_FAILED
    shrunk = json.loads(capsys.readouterr().out)
    assert (shrunk["harmed"], shrunk["shrunk"]) == (0, []), (
        "what the server never wrote is lost, whatever the device does"
    )
    kept = state.parent / "kept"
    assert run(["crashtest", "--replay", name, "--keep", str(kept)]) == 0
    assert f"data: {kept}/data.img is mounted on {kept}/data\n`umount {kept}/data` ends it" in capsys.readouterr().out
    assert (kept / "data" / "pgdata" / "PG_VERSION").is_file()
    subprocess.run(["umount", kept / "data"], check=True)
    expect(lambda: str(kept / "data.img") not in {loop.backing_file for loop in loops()}, "the kernel lets it go")
    assert run(["crashtest", "--replay", name, "--keep", str(kept)]) == EXIT_USAGE
    assert "already exists" in capsys.readouterr().err
    assert run(["crashtest", "--recording", document["recording"], "--cuts", "2", "--reading", "never"]) == EXIT_USAGE
    assert "whole, prefix-4096 or pieces-4096" in capsys.readouterr().err


def test_a_log_that_is_not_there_cut_off_or_of_another_version_is_refused(recorded: Recording, tmp_path: Path) -> None:
    whole = recorded.log.read_bytes()
    copy = replace(recorded, folder=tmp_path)
    for damaged in (whole[:-1], b"pgdwlog\x63" + whole[8:]):
        copy.log.write_bytes(damaged)
        with pytest.raises(InputError, match="not a whole write log of this version"):
            Book(copy)
    copy.save()
    copy.log.unlink()
    with pytest.raises(InputError, match="no write log"):
        load(tmp_path)
    with pytest.raises(InputError, match="not a recording"):
        load(tmp_path.parent)
    with pytest.raises(InputError, match="does not name a cut"):
        Name.parse("results/x:pieces-4096:1")


@pytest.mark.parametrize("variable", ["PGDYNO_IMAGE_DIR", "PGDYNO_STATE_DIR"])
def test_a_folder_that_the_servers_user_cannot_enter_is_refused_before_anything_is_recorded(
    state: Path,
    recorded: Recording,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
) -> None:
    closed = state.parent / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setenv(variable, str(closed / "below" / "images"))
    results = state.parent / "results"
    assert run(["crashtest", "--cuts", "2", "--seconds", "1", "--results", str(results)]) == EXIT_HOST
    err = capsys.readouterr().err
    assert f"cannot enter {closed}" in err
    assert f"chmod a+x {closed}" in err
    assert not results.exists()
    assert not (closed / "below").exists()
    for again in ("--recording", "--replay"):
        named = str(recorded.folder) if again == "--recording" else f"{recorded.folder}:pieces-4096:1:1"
        assert run(["crashtest", again, named, "--cuts", "2"]) == EXIT_HOST
        assert f"cannot enter {closed}" in capsys.readouterr().err


@pytest.mark.needs_xfs
def test_two_contents_of_one_xfs_are_mounted_at_once(state: Path) -> None:
    files = [state.parent / f"{name}.img" for name in "ab"]
    with files[0].open("wb") as file:
        file.truncate(320 << 20)
    subprocess.run(["mkfs.xfs", "-q", files[0]], check=True, capture_output=True)
    subprocess.run(["cp", "--sparse=always", *files], check=True)
    with ExitStack() as stack:
        for file in files:
            target = file.with_suffix("")
            assert mount(file, target) is None
            stack.callback(subprocess.run, ["umount", target], check=True)
    expect(
        lambda: not {loop.backing_file for loop in loops()} & {str(file) for file in files}, "the kernel lets them go"
    )


@pytest.mark.bench
def test_a_backup_is_restored_up_to_the_cut_unless_its_wal_was_only_said_to_be_archived(state: Path) -> None:
    whole = RecordingOptions(seconds=3, cache="volatile", wal_apart=True, archive="copied")
    sound = campaign.make_cuts(record(whole, state.parent / "copied"), "pieces-4096", 1, 20)
    assert unexplained(sound) == []
    assert sound.tried == 20
    recording = record(replace(whole, archive="true"), state.parent / "true")
    gone = campaign.make_cuts(recording, "pieces-4096", 1, 20, failures_max=1)
    assert gone.failed
    assert set(gone.failed[0].failures) & {"start", "ledger"}


@pytest.mark.bench
def test_pg_rewind_refuses_a_server_without_full_page_writes(state: Path) -> None:
    """What it costs besides: the second server of a pair cannot be put back by rewinding."""
    binaries = find_binaries()
    with closing(Cluster(binaries, state.parent / "pgdata")) as cluster:
        cluster.initdb()
        cluster.start(given_up={"full_page_writes": "off"})
        command = [
            *user_prefix(cluster.user),
            binaries.program("pg_rewind"),
            *("--target-pgdata", cluster.data_dir, "--source-server", cluster.dsn),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=binaries.environment)
    assert done.returncode != 0
    assert "full_page_writes" in done.stderr
    assert "must be enabled" in done.stderr


def test_an_experiment_file_says_what_is_cut_and_options_beside_it_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trial.toml"
    file.write_text('schema_version = 1\n[world]\nvolume = "gp3"\n')
    assert run(["crashtest", str(file), "--cuts", "5"]) == EXIT_USAGE
    assert "--cuts: the experiment file says what is cut" in capsys.readouterr().err
    assert run(["crashtest", str(file)]) == EXIT_USAGE
    assert "asks for no power cuts" in capsys.readouterr().err


def test_options_that_exclude_each_other_are_refused() -> None:
    assert run(["crashtest", "--recovery-of", "results/x:pieces-4096:1:1", "--recording", "results"]) == EXIT_USAGE
    assert run(["crashtest", "--shrink"]) == EXIT_USAGE
    assert run(["crashtest", "--setting", "work_mem"]) == EXIT_USAGE
