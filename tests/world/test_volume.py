"""Volumes from attach to detach, and what is left when the daemon or the command is killed."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.cli.main import run
from pgdyno.errors import EXIT_HOST, EXIT_USAGE, HostError, InputError
from pgdyno.world import cgroup, mounts, paths, volume
from pgdyno.world.clean import clean, leftovers
from pgdyno.world.journal import Journal
from pgdyno.world.process import working_below, writing_to

from .needs import expect, needs_fuse, needs_root

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS = 10
WORK_FOREVER = """
import os, subprocess, sys
from pathlib import Path
from pgdyno.postgres.binaries import find_binaries
from pgdyno.postgres.cluster import Cluster
from pgdyno.world import volume
from pgdyno.world.instance import Instance

mount, name = Path(sys.argv[1]), sys.argv[2]
print("begin", flush=True)
with volume.attached("gp3", mount=mount) as attached:
    with Instance(name, 256 << 20, dirty_limits=False) as instance:
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
    found = volume.attach("gp3", mount=state.parent / "mnt", name="v", seed=7)
    yield found
    if found.alive:
        found.detach()
    clean(state)


def nothing_is_left(state: Path) -> None:
    """No mount, device, process, content or entry of a state directory."""
    top = state.parent
    assert mounts.mounts_below(top) == []
    assert [loop for loop in mounts.loops() if paths.is_below(loop.backing_file, top)] == []
    assert working_below(top) == []
    assert [log for log in (state / "claims").glob("*/daemon.log") if writing_to(log)] == []
    assert list((top / "images").glob("layers/*")) == []
    assert leftovers(state) == []
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
    assert [found.name for found in volume.list_volumes(state)] == ["v"]
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
    assert [(one["name"], one["mount"], one["alive"]) for one in listed] == [("gp3-1", mount, True)]
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
        (["gp3", "--name", "No/Name"], "no name"),
        (["gp3", "--image", "/nowhere"], "no image"),
        (["gp3", "--store", "/nowhere"], "no directory"),
    ],
)
def test_refusals(state: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    assert run(["volume", "attach", *options, "--mount", str(state.parent / "mnt")]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert words in said
    assert "remedy:" in said
    assert not (state.parent / "mnt").exists(), "nothing was changed"


@needs_fuse
def test_a_name_or_a_mount_point_is_taken_once(state: Path, attached: volume.AttachedVolume) -> None:
    with pytest.raises(InputError, match="exists already"):
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
@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_daemon_gives_errors_and_is_cleaned(state: Path, attached: volume.AttachedVolume, number: int) -> None:
    """Requests fail within 2 s; what is left goes, also with a process that still sits in the file system."""
    mount = attached.mount
    assert mount is not None
    command = ["dd", "if=/dev/zero", f"of={mount}/file", "bs=64k", "count=100000", "oflag=direct"]
    writer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"LC_ALL": "C"})
    file = mount / "file"
    # What is empty is read without asking the device.
    expect(lambda: file.exists() and file.stat().st_size > 0, "something is written")
    with pytest.raises(subprocess.TimeoutExpired):
        writer.wait(random.Random(number).uniform(0.0, 0.5))
    killed_at = time.monotonic()
    os.kill(attached.daemon.pid, signal.SIGKILL)
    assert "Input/output error" in writer.communicate(timeout=60)[1]
    assert time.monotonic() - killed_at < 2
    with pytest.raises(HostError, match="dead"):
        attached.stats()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        file.read_bytes()
    attached._entry = None
    for entry in Journal(state).entries():
        Journal(state).done(entry.entry_id)
    assert any("volume v" in line for line in leftovers(state))
    assert clean(state)
    nothing_is_left(state)
    assert clean(state) == []


@needs_fuse
@pytest.mark.parametrize("number", range(KILLS))
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
    assert not any(tree.offers(one) and tree.group(one, name).exists() for one in cgroup.CONTROLLERS)
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
    assert writer.wait(10) != 0
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
    child = os.fork()
    if child == 0:
        os.setegid(65534)
        os.seteuid(65534)
        os._exit(run(["volume", "list"]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == EXIT_HOST
    assert "belong to another user" in capfd.readouterr().err
