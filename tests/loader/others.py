"""Stores of others that speak S3's language, each on this machine, and a way to them on which connections break."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pgdyno.machine import preflight
from pgdyno.machine.waiting import wait_until

USER, SECRET = "somebody", "somebodys-secret"
START_S = 30.0


@dataclass(frozen=True)
class Program:
    """How a store is started."""

    arguments: tuple[str, ...]
    """With ``{place}``, an address and port, and ``{folder}``."""
    environment: dict[str, str]


PROGRAMS = {
    "minio": Program(
        ("minio", "server", "{folder}", "--address", "{place}"),
        {"MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": SECRET},
    ),
    "versitygw": Program(
        ("versitygw", "--port", "{place}", "posix", "{folder}"),
        {"ROOT_ACCESS_KEY": USER, "ROOT_SECRET_KEY": SECRET},
    ),
}
"""Those that are looked for in PATH; ``versitygw`` keeps objects as files of their names."""


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """Where moto answers; without a package of its own it takes CRC32 for CRC32C."""
    from moto.server import ThreadedMotoServer

    started = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        started.stop()


@contextlib.contextmanager
def other(name: str, folder: Path) -> Iterator[str]:
    """Where the store of that name answers; the test is skipped when there is none."""
    if name == "moto":
        with moto() as place:
            yield place
        return
    program = PROGRAMS[name]
    if shutil.which(program.arguments[0]) is None:
        pytest.skip(f"needs {program.arguments[0]} in PATH")
    address = ("127.0.0.1", preflight.free_port())
    place = f"{address[0]}:{address[1]}"
    arguments = [word.format(place=place, folder=folder) for word in program.arguments]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(arguments, stdout=quiet, stderr=quiet, env=os.environ | program.environment) as process:
        try:
            assert wait_until(lambda: _answers(address), START_S), f"{name} does not answer"
            yield f"http://{place}"
        finally:
            process.terminate()


def _answers(address: tuple[str, int]) -> bool:
    with socket.socket() as result:
        return result.connect_ex(address) == 0


def client(endpoint: str) -> Any:
    """Of whoever owns the store."""
    import boto3

    keys = {"aws_access_key_id": USER, "aws_secret_access_key": SECRET}
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)


@dataclass
class Way:
    """A way to a server."""

    upstream: tuple[str, int]
    cuts: list[int] = field(default_factory=list)
    """After so many bytes of its answers the next connections break off."""
    url: str = ""

    def carry(self, near: socket.socket) -> None:
        """One connection, until either side ends it."""
        most = self.cuts.pop(0) if self.cuts else None
        with near, socket.create_connection(self.upstream) as far:
            there = threading.Thread(target=_pour, args=(near, far, None), daemon=True)
            there.start()
            _pour(far, near, most)
            for item in (near, far):
                with contextlib.suppress(OSError):
                    item.shutdown(socket.SHUT_RDWR)
            there.join()


@contextlib.contextmanager
def way(endpoint: str) -> Iterator[Way]:
    """A way to a store, as long as the block."""
    parts = urlsplit(endpoint)
    assert parts.hostname is not None
    assert parts.port is not None
    way = Way((parts.hostname, parts.port))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        way.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        threading.Thread(target=_listen, args=(listening, way), daemon=True).start()
        yield way
        listening.shutdown(socket.SHUT_RDWR)


def _listen(listening: socket.socket, way: Way) -> None:
    with contextlib.suppress(OSError):
        while True:
            near, _ = listening.accept()
            threading.Thread(target=way.carry, args=(near,), daemon=True).start()


def _pour(begin: socket.socket, end: socket.socket, most: int | None) -> None:
    """Bytes from one to the other, ``most`` at most."""
    with contextlib.suppress(OSError):
        while (most is None or most > 0) and (some := begin.recv(1 << 16)):
            some = some if most is None else some[:most]
            end.sendall(some)
            most = None if most is None else most - len(some)
