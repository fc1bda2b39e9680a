"""Volumes from attach to detach, and what is left when the daemon or the command is killed."""

from __future__ import annotations

import errno
import importlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import EXIT_HOST, EXIT_USAGE, HostError, InputError
from pgdyno.cli.main import run
from pgdyno.machine import cgroup, mounts, paths, volume
from pgdyno.machine.clean import clean, left_in
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.process import working_below, writing_to

from .needs import expect, needs_fuse, needs_root

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS = (*range(3), *(pytest.param(number, marks=pytest.mark.bench) for number in range(3, 10)))
"""Seeds of the moments; `make test` has the first."""
ERRORS_S = 20.0
"""A request that waits for a dead daemon waits for ever; a busy machine may need some seconds to fail it."""
WORK_FOREVER = """
import os, subprocess, sys
from pathlib import Path
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.machine import volume
from pgdyno.machine.instance import InstanceGroup

mount, name = Path(sys.argv[1]), sys.argv[2]
print("begin", flush=True)
with volume.attached("gp3", mount=mount) as attached:
    with InstanceGroup(name, 256 << 20, dirty_limits=False) as instance:
        cluster = Cluster(find_binaries(), mount / "data")
        cluster.initdb()
        with cluster.running(instance=instance):
            print("running", flush=True)
            env = os.environ | {"PGHOST": str(cluster.socket_dir), "PGUSER": "postgres", "PGDATABASE": "postgres"}
            while True:
                subprocess.run(
                    [cluster.binaries.program("pgbench"), "-i", "-s", "5", "-q"], env=env, stderr=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, check=True,
                )
"""


@pytest.fixture
def attached(state: Path) -> Iterator[volume.AttachedVolume]:
    """A gp3 volume, mounted; whatever a test does to it, nothing is left at the end."""
    document = volume.attach("gp3", mount=state.parent / "mnt", name="v", seed=7)
    yield document
    if document.alive:
        document.detach()
    clean(state)


def nothing_is_left(state: Path) -> None:
    """No mount, device, process, content or entry of a state directory."""
    top = state.parent
    assert mounts.mounts_below(top) == []
    assert [loop for loop in mounts.loops() if paths.is_below(loop.backing_file, top)] == []
    assert working_below(top) == []
    assert [log for log in (state / "claims").glob("*/daemon.log") if writing_to(log)] == []
    assert list((top / "images").glob("layers/*")) == []
    assert left_in(state) == []
    assert not (top / "mnt").exists()


@needs_fuse
def test_a_volume_is_attached_used_and_detached(state: Path, attached: volume.AttachedVolume) -> None:
    proofs = attached.facts["proofs"]
    assert (proofs["dio"], proofs["wbt_lat_usec"], proofs["fuse_magic"]) == ("1", "0", "0x65735546")
    assert attached.mount == state.parent / "mnt"
    assert mounts.mounts_of(attached.block_device)[0].target == attached.mount
    (attached.mount / "file").write_bytes(os.urandom(1 << 20))
    os.sync()
    counters = attached.stats()["counters"]
    assert counters["write_bytes"] >= 1 << 20
    assert [list_volume.name for list_volume in volume.list_volumes(state)] == ["v"]
    assert volume.find("v", state).alive
    assert clean(state) == [], "a volume in use is left alone"
    attached.detach()
    nothing_is_left(state)


@needs_fuse
def test_the_content_of_an_image_is_there_again(state: Path) -> None:
    image = state.parent / "images" / "saved"
    mount = state.parent / "mnt"
    with volume.attached("null", mount=mount) as first:
        (mount / "kept").write_text("kept")
        first.detach(save_image=image)
    with volume.attached("gp3", mount=mount, image=image):
        assert (mount / "kept").read_text() == "kept"
    nothing_is_left(state)


@needs_fuse
def test_a_place_where_the_image_cannot_be_leaves_the_volume_as_it_is(state: Path) -> None:
    mount = state.parent / "mnt"
    with volume.attached("null", mount=mount) as attached:
        (mount / "kept").write_text("kept")
        with pytest.raises(InputError, match="another file system"):
            attached.detach(save_image=Path("/proc/image"))
        assert attached.alive
        assert (mount / "kept").read_text() == "kept"
    nothing_is_left(state)


def test_a_volume_on_a_disk_keeps_its_content_in_its_store_and_in_its_image(state: Path, tmp_path: Path) -> None:
    """More than its workers have at a time, in pages that are not in the cache when they are read."""
    mount, store, image = state.parent / "mnt", tmp_path / "store", tmp_path / "image"
    store.mkdir()
    content = random.Random(5).randbytes(24 << 20)
    with volume.attached("io2bx", mount=mount, store=str(store)) as first:
        (mount / "file").write_bytes(content)
        os.sync()
        layer = Path(first.facts["layer"])
        assert layer.parent == store
        assert (layer / "data").stat().st_blocks * 512 >= len(content)
        first.detach(save_image=image)
    assert list(store.iterdir()) == []
    with volume.attached("gp3", mount=mount, store=str(store), image=image) as second:
        assert (mount / "file").read_bytes() == content
        (mount / "file").unlink()
        counters = second.stats()["counters"]
        assert counters["read_bytes"] >= len(content)
        assert counters["refused_ops"] == 0
    assert list(store.iterdir()) == []


@needs_fuse
def test_the_commands(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mount = str(state.parent / "mnt")
    assert run(["volume", "attach", "gp3:iops=6000", "--mount", mount]) == 0
    assert "gp3-1: gp3:size=100GiB,iops=6000" in capsys.readouterr().out
    assert run(["volume", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["volumes"]
    assert [(item["name"], item["mount"], item["alive"]) for item in listed] == [("gp3-1", mount, True)]
    assert run(["volume", "stats", "gp3-1", "--json"]) == 0
    assert "write_latency_ns" in json.loads(capsys.readouterr().out)["histograms"]
    assert run(["volume", "stats", "gp3-1"]) == 0
    assert "queue_time_ns" in capsys.readouterr().out
    assert run(["volume", "detach", "gp3-1"]) == 0
    assert run(["volume", "stats", "gp3-1"]) == EXIT_USAGE
    assert "no volume is called `gp3-1`" in capsys.readouterr().err
    nothing_is_left(state)


@needs_fuse
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["floppy"], "floppy"),
        (["gp3:iops=20000,size=10GiB"], "500 IOPS"),
        (["gp3", "--name", "No/Name"], "cannot be the name of a volume"),
        (["gp3", "--name", "-ra"], "begin with a letter or a digit"),
        (["gp3", "--image", "/nowhere"], "no image"),
        (["gp3", "--store", "/nowhere"], "not a directory"),
        (["null:size=1MiB", "--file-system", "xfs"], "xfs needs a volume of at least 300 MiB, and this one has 1 MiB"),
        (["4xgp3:chunk=0"], "4xgp3:chunk=4KiB"),
        (["gp3", "--no-mount"], "exclude each other"),
    ],
)
def test_refusals(state: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    assert run(["volume", "attach", *options, "--mount", str(state.parent / "mnt")]) == EXIT_USAGE
    err = capsys.readouterr().err
    assert words in err
    assert "remedy:" in err
    assert not (state.parent / "mnt").exists(), "nothing was changed"


@needs_fuse
@pytest.mark.parametrize(
    ("mount", "words"),
    [
        ("/proc/foo", "cannot be created in /proc"),
        ("/sys/kernel/foo", "cannot be created in /sys/kernel"),
        ("{top}/read-only/deep/new", "cannot be created in {top}/read-only: Read-only file system"),
        ("{top}/file/new", "{top}/file/new is not a directory"),
        ("{top}/loop", "cannot be followed"),
        ("", "the path is empty"),
    ],
)
def test_a_mount_point_that_cannot_be_made_is_refused(
    state: Path, capsys: pytest.CaptureFixture[str], mount: str, words: str
) -> None:
    top = state.parent
    (top / "read-only").mkdir()
    (top / "file").touch()
    (top / "loop").symlink_to("loop")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", top / "read-only"], check=True)
    try:
        assert run(["volume", "attach", "gp3", "--name", "v", "--mount", mount.format(top=top)]) == EXIT_USAGE
    finally:
        subprocess.run(["umount", top / "read-only"], check=True)
    err = capsys.readouterr().err
    assert words.format(top=top) in err
    assert "remedy:" in err
    assert not (state / "claims" / "v").exists()
    assert left_in(state) == []


@needs_fuse
def test_directories_that_an_attach_made_go_with_the_volume(state: Path) -> None:
    """Those that something else is in by then stay."""
    top = state.parent
    with volume.attached("gp3", mount=top / "a" / "b" / "c"):
        (top / "a" / "other").touch()
    assert not (top / "a" / "b").exists()
    assert (top / "a" / "other").exists()
    (top / "there").mkdir()
    with volume.attached("gp3", mount=top / "there"):
        pass
    assert (top / "there").is_dir(), "it was there before"


@needs_fuse
def test_an_image_in_a_larger_volume_is_noted(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image, mount = state.parent / "images" / "saved", state.parent / "mnt"
    with volume.attached("null:size=200MiB", mount=mount) as small:
        small.detach(save_image=image)
    wanted = ["volume", "attach", "null:size=1GiB", "--mount", str(mount), "--name", "v", "--image", str(image)]
    assert run(wanted) == 0
    readouterr = capsys.readouterr()
    device = volume.find("v", state).block_device
    assert f"has 200 MiB of the volume's 1.0 GiB; `resize2fs {device}` enlarges it" in readouterr.err
    assert f"v: null:size=1GiB is {device}" in readouterr.out
    volume.find("v", state).detach()


@needs_fuse
def test_a_daemon_works_nowhere_that_its_user_may_want_to_unmount(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(state.parent)
    monkeypatch.setenv("PGDYNO_IMAGE_DIR", "images")
    with volume.attached("null:size=1GiB", mount=Path("mnt")) as attached:
        assert os.readlink(f"/proc/{attached.daemon.pid}/cwd") == "/"
        assert attached.mount == state.parent / "mnt"
        assert Path(attached.facts["layer"]).parent == state.parent / "images" / "layers"


@needs_fuse
def test_a_volume_that_cannot_be_carried_is_refused_without_a_trace(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["volume", "attach", "128xgp3:size=64TiB", "--no-mount", "--name", "v"]) == EXIT_USAGE
    err = capsys.readouterr().err
    assert "ext4 is supported on volumes of up to 128 TiB, and this one has 8192 TiB" in err
    assert "backtrace" not in err
    assert left_in(state) == []


@needs_fuse
def test_what_a_daemon_said_before_it_crashed_is_kept(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is shown and the trace is not; the log that the remedy names is there."""
    crashing = state.parent / "crashing"
    trace = "\\n".join(f"{number}: 0x6e1fa25 - alloc.rs:537" for number in range(200))
    crashing.write_text(
        '#!/bin/sh\ncase "$*" in\n*serve*) printf "thread main panicked at serve.rs:1:\\nno such thing\\n'
        f'stack backtrace:\\n{trace}" >&2; exit 134;;\n*) exec {engine.find()} "$@";;\nesac\n'
    )
    crashing.chmod(0o755)
    monkeypatch.setenv("PGDYNO_ENGINE", str(crashing))
    assert run(["volume", "attach", "gp3", "--no-mount", "--name", "v"]) == 1
    err = capsys.readouterr().err
    assert "no such thing" in err
    assert "alloc.rs:537" not in err
    log = err.rpartition("read ")[2].strip()
    assert "alloc.rs:537" in Path(log).read_text()


@needs_fuse
def test_a_name_or_a_mount_point_is_taken_once(state: Path, attached: volume.AttachedVolume) -> None:
    with pytest.raises(InputError, match="already exists"):
        volume.attach("gp3", mount=state.parent / "other", name="v")
    with pytest.raises(InputError, match="mounted"):
        volume.attach("gp3", mount=attached.mount, name="w")
    assert attached.alive


@needs_fuse
def test_a_volume_in_use_says_so_and_stays(attached: volume.AttachedVolume) -> None:
    assert attached.mount is not None
    with (attached.mount / "open").open("w"), pytest.raises(InputError):
        attached.detach()
    assert attached.alive


@needs_fuse
@pytest.mark.parametrize("number", KILLS)
def test_a_killed_daemon_gives_errors_and_is_cleaned(state: Path, attached: volume.AttachedVolume, number: int) -> None:
    """Requests fail, and wait for nothing; what is left goes, also with a process that still sits in the file system."""
    mount = attached.mount
    assert mount is not None
    command = ["dd", "if=/dev/zero", f"of={mount}/file", "bs=64k", "count=100000", "oflag=direct"]
    writer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"LC_ALL": "C"})
    file = mount / "file"
    # What is empty is read without asking the device.
    expect(lambda: file.exists() and file.stat().st_size > 0, "something is written")
    with pytest.raises(subprocess.TimeoutExpired):
        writer.wait(random.Random(number).uniform(0.0, 0.5))
    os.kill(attached.daemon.pid, signal.SIGKILL)
    assert "Input/output error" in writer.communicate(timeout=ERRORS_S)[1]
    with pytest.raises(HostError, match="dead"):
        attached.stats()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        file.read_bytes()
    attached._entry = None
    for entry in HostJournal(state).entries():
        HostJournal(state).done(entry.entry_id)
    assert any("volume v" in line for line in left_in(state))
    assert clean(state)
    nothing_is_left(state)
    assert clean(state) == []


@needs_fuse
@pytest.mark.parametrize("number", KILLS)
def test_a_killed_command_is_cleaned(state: Path, number: int) -> None:
    """At any moment from the attach to a loaded server."""
    name = f"killed-{os.getpid()}-{number}"
    command = [sys.executable, "-c", WORK_FOREVER, str(state.parent / "mnt"), name]
    log = state.parent / "command.log"
    with log.open("w") as file, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"begin\n"
        with pytest.raises(subprocess.TimeoutExpired):
            killed.wait(random.Random(number).uniform(0.0, 2.5))
        killed.kill()
        killed.wait()
    assert log.read_text() == ""
    clean(state)
    nothing_is_left(state)
    tree = cgroup.find_hierarchy()
    assert not any(tree.offers(item) and tree.group(item, name).exists() for item in cgroup.CONTROLLERS)
    assert clean(state) == []


@needs_fuse
def test_a_stopped_daemon_does_not_hang_the_clean_up(state: Path, attached: volume.AttachedVolume) -> None:
    """Its requests wait for ever, and who waits cannot be killed: the connection has to be cut."""
    mount = attached.mount
    assert mount is not None
    os.kill(attached.daemon.pid, signal.SIGSTOP)
    writer = subprocess.Popen(
        ["dd", "if=/dev/zero", f"of={mount}/file", "bs=64k", "oflag=direct"], stderr=subprocess.DEVNULL
    )
    expect(lambda: "D" in _state(writer.pid), "the writer waits for the disk")
    _abandon(state, attached)
    assert clean(state)
    assert writer.wait(60) != 0
    nothing_is_left(state)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def _abandon(state: Path, attached: volume.AttachedVolume) -> None:
    """Make the volume's entry that of a dead process, as if its command had been killed."""
    for file in (state / "journal").iterdir():
        document: dict[str, Any] = json.loads(file.read_text())
        document["owner"]["start_ticks"] = 1
        file.write_text(json.dumps(document))
    attached._entry = None


@needs_root
def test_volumes_of_root_are_not_reported_as_none_to_others(state: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (state / "volumes").mkdir(parents=True, mode=0o700)
    state.chmod(0o755)
    assert _as_nobody(["volume", "list"]) == EXIT_HOST
    assert "belong to another user" in capfd.readouterr().err


@needs_fuse
@pytest.mark.parametrize(
    "command", [["volume", "stats", "v"], ["metrics", "nvme", "v"], ["metrics", "cloudwatch", "v"]]
)
def test_counters_need_root_and_say_so(
    state: Path, attached: volume.AttachedVolume, capfd: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """Also where the state directory can be read, and only the socket cannot."""
    (state / "volumes").chmod(0o755)
    attached.state_dir.joinpath("volumes", "v").chmod(0o755)
    assert _as_nobody(command) == EXIT_HOST
    err = capfd.readouterr().err
    assert "needs root" in err
    assert "sudo" in err


def _as_nobody(command: list[str]) -> int:
    # Another user may not be able to read the interpreter's own modules, so that all are imported before.
    for name in (
        "pgdyno.advise.metrics.samples",
        "pgdyno.advise.metrics.samples",
        "pgdyno.results",
        "pgdyno.cli.metrics",
    ):
        importlib.import_module(name)
    child = os.fork()
    if child == 0:
        os.setegid(65534)
        os.seteuid(65534)
        os._exit(run(command))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
