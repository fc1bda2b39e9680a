"""Each refusal says what is missing and what to do about it."""

from __future__ import annotations

import os
import socket
import subprocess
from collections import namedtuple
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import EXIT_HOST, EXIT_USAGE, PgdynoError
from pgdyno.machine import preflight
from tests.support.machine import own_mounts

from .needs import needs_fuse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_Usage = namedtuple("_Usage", "total used free")


def refused(check: Callable[[], None], *words: str, exit_code: int = EXIT_HOST) -> None:
    with pytest.raises(PgdynoError) as caught:
        check()
    assert all(word in caught.value.message for word in words), caught.value.message
    assert caught.value.remedy
    assert caught.value.exit_code == exit_code


def test_no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refused(lambda: preflight.require_root("attaching a volume"), "attaching a volume needs root", "1000")


def test_no_fuse(tmp_path: Path) -> None:
    refused(lambda: preflight.require_fuse(tmp_path / "fuse"), "is missing")
    refused(lambda: preflight.require_fuse(tmp_path), "cannot be opened")


@needs_fuse
@pytest.mark.parametrize(("as_mount", "code"), [("true", EXIT_HOST), ("mount --bind root root", 0)])
def test_a_root_directory_that_is_no_mount(as_mount: str, code: int, tmp_path: Path) -> None:
    """In a plain chroot mounts cannot be made private; its root directory as a mount is what the remedy names."""
    script = f"""cd "$1" && mkdir root && {as_mount} && cd root
        for name in /usr /bin /lib* /dev; do
            if [ -h "$name" ]; then cp -P "$name" .; else mkdir ".$name" && mount --rbind "$name" ".$name"; fi
        done
        cp "$2" engine && exec chroot . /engine volume check-host"""
    words = [*own_mounts("--propagation", "private"), "sh", "-ec", script, "sh", tmp_path, engine.find()]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == code, done.stderr
    if code:
        assert "the root directory of this chroot is not a mount" in done.stderr
        assert "`mount --bind DIR DIR`" in done.stderr and "container" not in done.stderr


def test_mount_point_in_use(tmp_path: Path) -> None:
    preflight.require_mount_point(tmp_path)
    preflight.require_mount_point(tmp_path / "new")
    (tmp_path / "precious").touch()
    refused(lambda: preflight.require_mount_point(tmp_path), "not empty", "precious", exit_code=EXIT_USAGE)
    refused(lambda: preflight.require_mount_point(tmp_path / "precious"), "not a directory", exit_code=EXIT_USAGE)


def test_mounted_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.machine.mounts.is_mount_point", lambda path: path == tmp_path)
    refused(lambda: preflight.require_mount_point(tmp_path), "mounted", exit_code=EXIT_USAGE)


def test_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: _Usage(10, 9, 1 << 20))
    refused(lambda: preflight.require_space(tmp_path / "not" / "yet", 1 << 30, "a volume"), "needs 1,024 MiB")


def test_no_memory() -> None:
    preflight.require_memory(1, "nothing")
    refused(lambda: preflight.require_memory(1 << 60, "an instance"), "an instance needs")


def test_missing_program() -> None:
    preflight.require_programs("sh")
    refused(lambda: preflight.require_programs("sh", "no-such-program"), "no-such-program")


def test_a_free_port_is_given_once_and_a_server_can_listen_there() -> None:
    ports = [preflight.free_port() for _ in range(300)]
    assert len(set(ports)) == 300
    preflight.require_free_port(ports[0])
    with socket.socket() as server, socket.socket() as client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", ports[0]))
        server.listen()
        client.connect(("127.0.0.1", ports[0]))


def test_port_taken() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        refused(lambda: preflight.require_free_port(port), str(port), "taken")
    preflight.require_free_port(port)
    refused(lambda: preflight.require_free_port(80), "80", exit_code=EXIT_USAGE)
