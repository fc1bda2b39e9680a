"""A world-readable copy of an installation of PostgreSQL, made once per content.

The directory is named by a hash of the content. It is filled under another name and renamed, so it is whole or absent;
of two processes at the same time one wins and the other uses the winner's.

Reading all of the content takes most of what finding PostgreSQL takes, so a copy keeps how its source looked: while no file of it has
another size, time of change or inode, the content is that of the copy.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import HostError
from ..machine import paths

_COMPLETE = ".complete"
"""Written into a copy before it gets its final name: holds the hash, so a copy without it was not made by pgdyno."""
_SOURCES = ".sources"
"""In a copy: the looks of what it was found to be a copy of, a line each."""
_SOURCES_MAX = 16
"""Environments with the same PostgreSQL, of which the last ones are known."""


def default_root() -> Path:
    """Where copies are kept: ``$PGDYNO_POSTGRES_DIR``, else ``/var/lib/pgdyno``."""
    return Path(os.environ.get("PGDYNO_POSTGRES_DIR") or "/var/lib/pgdyno")


def copies(root: Path) -> list[Path]:
    """Every copy in ``root``, with those that were not finished."""
    return sorted(path for path in root.iterdir() if _NAME.fullmatch(path.name)) if root.is_dir() else []


def publish(base: Path, trees: list[Path], root: Path | None = None) -> Path:
    """Copy ``trees``, which lie in ``base``, and return the directory that stands for ``base`` in the copy.

    Copies are kept in ``root``, else in ``$PGDYNO_POSTGRES_DIR``, else in ``/var/lib/pgdyno``. :class:`HostError` when
    others can write there, or when the copy does not fit.
    """
    parent = root or default_root()
    files = _files(base, trees)
    looks = _looks(base, files)
    known = next((copy for copy in copies(parent) if looks in _sources(copy)), None)
    if known is not None:
        return known
    content_hash = _hash(files)
    target = parent / f"postgres-{content_hash}"
    if not _is_complete(target, content_hash):
        _make_parent(parent)
        _copy(base, trees, target, content_hash)
    _keep(target, looks)
    return target


_NAME = re.compile(r"postgres-[0-9a-f]{16}|\.postgres-[0-9a-f]{16}\.\d+(?:\.broken)?")
"""A copy, and what :func:`_copy` fills or puts aside."""


@dataclass(frozen=True)
class _File:
    name: str
    """Relative to the base."""
    path: str
    facts: os.stat_result

    @property
    def executable(self) -> bool:
        return bool(self.facts.st_mode & stat.S_IXUSR)


def _files(base: Path, trees: list[Path]) -> list[_File]:
    """Every file, sorted by its name."""
    start = len(f"{base}/")
    results: list[_File] = []
    for tree in trees:
        for folder, _, names in os.walk(tree):
            for name in names:
                path = f"{folder}/{name}"
                with contextlib.suppress(OSError):  # a link that leads nowhere
                    facts = os.stat(path)  # noqa: PTH116 (of two thousand files: pathlib takes ten times as long)
                    if stat.S_ISREG(facts.st_mode):
                        results.append(_File(path[start:], path, facts))
    return sorted(results, key=lambda file: file.name)


def _hash(files: list[_File]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.executable:d}".encode())
        with Path(file.path).open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16]


def _looks(base: Path, files: list[_File]) -> str:
    """What the kernel says of the files. Only root can set the time at which an inode was changed."""
    digest = hashlib.sha256(str(base).encode())
    for file in files:
        facts = file.facts
        results = (facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        digest.update(f"{file.name}\0{results}".encode())
    return digest.hexdigest()


def _sources(copy: Path) -> list[str]:
    """The looks of what a whole copy is a copy of; none of another."""
    if not _is_complete(copy, copy.name.removeprefix("postgres-")):
        return []
    try:
        return (copy / _SOURCES).read_text(encoding="ascii").split()
    except OSError:
        return []


def _keep(copy: Path, looks: str) -> None:
    """Write down the looks of a source. What cannot be written costs the next call its time."""
    unfinished = copy / f"{_SOURCES}.{os.getpid()}"
    with contextlib.suppress(OSError):
        unfinished.write_text("\n".join([*_sources(copy)[1 - _SOURCES_MAX :], looks]) + "\n", encoding="ascii")
        unfinished.replace(copy / _SOURCES)


def _is_complete(target: Path, content_hash: str) -> bool:
    """Whether ``target`` is a complete copy that only its owner, root or we, can have changed."""
    try:
        facts = target.lstat()
        marked = (target / _COMPLETE).read_text(encoding="ascii")
    except OSError:
        return False
    safe = stat.S_ISDIR(facts.st_mode) and facts.st_uid in (0, os.geteuid()) and not facts.st_mode & 0o022
    return safe and marked == content_hash


def _make_parent(parent: Path) -> None:
    try:
        paths.make_walkable(parent)
    except OSError as error:
        raise HostError(
            f"{parent}, from where PostgreSQL would run, cannot be created: {error.strerror}",
            remedy="set PGDYNO_POSTGRES_DIR to an existing directory, or to one that can be created",
        ) from None
    facts = parent.stat()
    if facts.st_uid not in (0, os.geteuid()) or facts.st_mode & 0o022:
        raise HostError(
            f"users other than root can write into {parent}, from where PostgreSQL would run",
            remedy=f"run `chown root: {parent} && chmod 755 {parent}`, or set PGDYNO_POSTGRES_DIR",
        )


def _copy(base: Path, trees: list[Path], target: Path, content_hash: str) -> None:
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        for file in _files(base, trees):
            copy = unfinished / file.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.path, copy)
            copy.chmod(0o755 if file.executable else 0o644)
        for folder in (unfinished, *(entry for entry in unfinished.rglob("*") if entry.is_dir())):
            folder.chmod(0o755)  # whatever the umask
        (unfinished / _COMPLETE).write_text(content_hash, encoding="ascii")
        os.sync()
        _rename(unfinished, target, content_hash)
    except OSError as error:
        raise HostError(
            f"PostgreSQL's programs could not be copied from {base} to {target}: {error.strerror}",
            remedy="free some space there, or set PGDYNO_POSTGRES_DIR to a directory on another file system",
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
