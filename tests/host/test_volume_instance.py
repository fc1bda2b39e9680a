"""What an instance's volumes share: limits above a volume, in the statistics and in the submit log."""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import EXIT_USAGE, InputError
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean, left_in
from pgdyno.machine.remove import exists, remove_volume
from pgdyno.machine.waiting import wait_until

from .needs import expect, needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READS = 600
"""More than two seconds of the baseline of a ``t3.nano``, which is 250 a second: also after a stop of a second."""
PATIENCE_S = 60.0


def read_directly(device: str, count: int) -> None:
    """Read blocks of 4 KiB that do not touch each other, past the page cache, one at a time."""
    opened = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 4096) as block:
            for number in range(count):
                os.preadv(opened, [block], number * 65536)
    finally:
        os.close(opened)


@needs_fuse
def test_the_instance_is_what_a_fast_volume_waits_for(state: Path, tmp_path: Path) -> None:
    log = tmp_path / "submit.log"
    with volume.attached("gp3:iops=16000", mount=None, name="v", instance_type="t3.nano", submit_log=log) as attached:
        assert attached.facts["instance_type"] == "t3.nano"
        assert attached.facts["instance_limits"]["iops"]["baseline_per_s"] == 250
        engine.run_json(["volume", "credit", "v", "--instance", "--percent", "0", "--state-dir", str(state)])
        before = attached.stats()
        assert before["instance"]["iops_balance_ppm"] < 1000

        def exceeded() -> bool:
            """A machine that is busy may read more slowly than the instance's baseline."""
            read_directly(attached.block_device, READS)
            return bool(attached.stats()["instance"]["exceeded_iops_ns"] > 0)

        assert wait_until(exceeded, PATIENCE_S)
        after = attached.stats()
    assert after["instance"]["ops"] - before["instance"]["ops"] >= READS
    assert after["counters"]["exceeded_iops_ns"] == before["counters"]["exceeded_iops_ns"], "its own limit is far away"
    replayed = engine.run_json(["replay", str(log)])
    assert replayed["first_difference"] is None
    assert replayed["identical"] == replayed["submits"] >= READS


@needs_fuse
def test_without_a_type_nothing_is_shared(state: Path) -> None:
    with volume.attached("gp3", mount=None, name="v") as attached:
        assert attached.facts["instance_limits"] is None
        assert attached.stats()["instance"] is None


@pytest.mark.parametrize(
    ("name", "words", "remedy"),
    [
        ("r6g.larg", "no instance type", "r6g.large"),
        ("t2.micro", "no bandwidth of its own", "name a type that has"),
        ("vcpus=4,memory=16GiB", "no bandwidth of its own", "name a type that has"),
    ],
)
def test_types_without_limits_are_refused(
    state: Path, capsys: pytest.CaptureFixture[str], name: str, words: str, remedy: str
) -> None:
    assert run(["volume", "attach", "gp3", "--no-mount", "--type", name, "--json"]) == EXIT_USAGE
    readouterr = capsys.readouterr()
    assert words in readouterr.err
    assert remedy in readouterr.err
    assert readouterr.out == ""
    assert volume.list_volumes(state) == []


@pytest.fixture
def cleaned(state: Path) -> Iterator[Path]:
    """A state directory in which nothing is left, whatever a test does."""
    yield state
    for list_volume in volume.list_volumes(state):
        list_volume.detach()
    clean(state)


@needs_fuse
def test_volumes_join_an_instance_and_leave_it(cleaned: Path, tmp_path: Path) -> None:
    log = tmp_path / "submit.log"
    top = cleaned.parent
    first = volume.attach(
        "gp3:iops=4000", mount=top / "a", name="a", instance="db", instance_type="t3.nano", submit_log=log, seed=5
    )
    second = volume.attach("4xgp3:chunk=64KiB", mount=top / "b", name="b", instance="db")
    assert second.daemon == first.daemon
    assert second.facts["instance_type"] == "t3.nano"
    assert second.spec["limits"]["iops"] == 12_000
    assert second.spec["array"]["columns"] == 4
    assert sorted(list_volume.name for list_volume in volume.list_volumes(cleaned)) == ["a", "b"]
    (top / "a" / "file").write_bytes(os.urandom(1 << 20))
    (top / "b" / "file").write_bytes(os.urandom(1 << 20))
    os.sync()
    shared = first.stats()["instance"]
    assert shared["bytes"] >= 2 << 20, "both volumes' bytes pass it"
    read_directly(second.block_device, READS)
    assert second.stats()["instance"]["ops"] >= shared["ops"] + READS
    assert first.stats()["counters"]["read_ops"] < READS, "each has counters of its own"
    assert first.stats()["members"] == [], "a single volume has none"
    members = second.stats()["members"]
    assert len(members) == 4
    assert sum(member["read_ops"] for member in members) >= READS
    assert all(member["write_time_ns"] > 0 for member in members if member["write_ops"])
    content = (top / "b" / "file").read_bytes()
    first.detach()
    assert second.alive, "the daemon serves the rest"
    assert [list_volume.name for list_volume in volume.list_volumes(cleaned)] == ["b"]
    assert (top / "b" / "file").read_bytes() == content
    second.detach()
    assert not second.alive
    assert not (cleaned / "instances" / "db").exists()
    assert left_in(cleaned) == []
    replayed = engine.run_json(["replay", str(log)])
    assert replayed["complete"]
    assert replayed["first_difference"] is None
    assert replayed["identical"] == replayed["grants"] > READS


@needs_fuse
def test_an_instance_may_be_a_class_of_rds(cleaned: Path) -> None:
    volume.attach("null", mount=None, name="a", instance="db", instance_type="db.r6g.large").keep()
    (attached_volume,) = volume.list_volumes(cleaned)
    assert attached_volume.facts["instance_type"] == "db.r6g.large"


@needs_fuse
def test_what_an_instance_is_it_stays(cleaned: Path, tmp_path: Path) -> None:
    volume.attach("null", mount=None, name="a", instance="db", instance_type="r6g.large").keep()
    with pytest.raises(InputError, match=r"the instance is of type r6g\.large"):
        volume.attach("null", mount=None, name="b", instance="db", instance_type="r6g.xlarge")
    with pytest.raises(InputError, match="begins with the first volume"):
        volume.attach("null", mount=None, name="b", instance="db", submit_log=tmp_path / "log")
    with pytest.raises(InputError, match="all volumes of the instance have seed 0"):
        volume.attach("null", mount=None, name="b", instance="db", seed=5)
    with pytest.raises(InputError, match="cannot be the name of an instance"):
        volume.attach("null", mount=None, name="b", instance="No/Name")
    assert [list_volume.name for list_volume in volume.list_volumes(cleaned)] == ["a"]
    volume.attach("null", mount=None, name="b", instance="db", instance_type="r6g.large").keep()


@needs_fuse
def test_a_clean_up_takes_one_volume_and_leaves_its_neighbours(cleaned: Path) -> None:
    """A command's volume is abandoned; the daemon that serves it serves another command's too."""
    kept = volume.attach("null", mount=cleaned.parent / "a", name="a", instance="db")
    lost = volume.attach("null", mount=cleaned.parent / "b", name="b", instance="db")
    done = remove_volume(cleaned, lost.name)
    assert not any("process" in line for line in done)
    assert kept.alive
    (cleaned.parent / "a" / "file").write_text("kept")
    os.sync()
    assert [list_volume.name for list_volume in volume.list_volumes(cleaned)] == ["a"]
    kept.detach()
    assert not kept.alive


@needs_fuse
def test_a_killed_daemon_is_followed_by_another(cleaned: Path) -> None:
    first = volume.attach("null", mount=None, name="a", instance="db")
    os.kill(first.daemon.pid, signal.SIGKILL)
    expect(lambda: not first.alive, "the daemon is dead")
    second = volume.attach("null", mount=None, name="b", instance="db")
    assert second.alive
    assert second.daemon != first.daemon
    first.detach()
    assert second.alive
    second.detach()


@needs_fuse
def test_an_instance_attaches_so_many_volumes_and_no_more(cleaned: Path) -> None:
    """``t3.nano`` attaches 27; an array counts its members."""
    volume.attach("20xnull:size=1GiB", mount=None, name="a", instance="db", instance_type="t3.nano").keep()
    with pytest.raises(InputError, match=r"t3\.nano attaches at most 27 volumes, and this makes 28"):
        volume.attach("8xnull:size=1GiB", mount=None, name="b", instance="db")
    volume.attach("7xnull:size=1GiB", mount=None, name="b", instance="db").keep()


@needs_fuse
def test_what_a_volume_does_not_do_off_nitro_is_refused_when_it_is_attached_joins_or_is_modified(cleaned: Path) -> None:
    refused = r"io2bx with 40000 IOPS does at most 32000 on r4\.16xlarge, which is not a Nitro instance"
    with pytest.raises(InputError, match=refused):
        volume.attach("io2bx:iops=40000", mount=None, name="a", instance_type="r4.16xlarge")
    first = volume.attach("2xio2bx:iops=32000", mount=None, name="a", instance="db", instance_type="r4.16xlarge")
    first.keep()
    with pytest.raises(InputError, match=refused):
        volume.attach("io2bx:iops=40000", mount=None, name="b", instance="db")
    with pytest.raises(InputError, match=refused):
        first.modify("2xio2bx:iops=40000")


@needs_fuse
def test_the_path_of_a_twin_that_joins_is_that_of_whoever_attaches_it(
    cleaned: Path, twin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume.attach("null", mount=None, name="a", instance="db").keep()
    monkeypatch.chdir(twin.parent)
    joined = volume.attach(twin.name, mount=None, name="b", instance="db")
    joined.keep()
    assert joined.spec["spec"] == f"twin:{twin}"


@needs_fuse
def test_a_volume_is_not_kept_for_a_command_that_was_killed_while_it_joined(cleaned: Path) -> None:
    volume.attach("null", mount=None, name="a", instance="db").keep()
    with socket.socket(socket.AF_UNIX) as killed:
        killed.connect(str(cleaned / "instances" / "db" / "control.sock"))
        document = {"name": "b", "spec": "null", "state_dir": str(cleaned), "instance": "db"}
        killed.sendall(json.dumps(document).encode() + b"\n")
    # It is attached after what was asked before it.
    volume.attach("null", mount=None, name="c", instance="db").keep()
    expect(lambda: not exists(cleaned, "b"), "nothing is left of it")
    assert [list_volume.name for list_volume in volume.list_volumes(cleaned)] == ["a", "c"]
