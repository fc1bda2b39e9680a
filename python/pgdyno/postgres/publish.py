"""A world-readable copy of an installation of PostgreSQL, made once per content.

The directory is named by a hash of the content. It is filled under another name and renamed, so it is whole or absent;
of two processes at the same time one wins and the other uses the winner's.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from pgdyno.errors import HostError
from pgdyno.host import paths

_COMPLETE = ".complete"
"""Written into a copy before it gets its final name: holds the hash, so a copy without it was not made by pgdyno."""


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
    content_hash = _hash(base, trees)
    parent = root or default_root()
    target = parent / f"postgres-{content_hash}"
    if not _is_complete(target, content_hash):
        _make_parent(parent)
        _copy(base, trees, target, content_hash)
    return target


_NAME = re.compile(r"postgres-[0-9a-f]{16}|\.postgres-[0-9a-f]{16}\.\d+(?:\.broken)?")
"""A copy, and what :func:`_copy` fills or puts aside."""


def _files(base: Path, trees: list[Path]) -> Iterator[tuple[str, Path]]:
    """Every file with its name relative to ``base``, sorted by that name."""
    found = ((str(file.relative_to(base)), file) for tree in trees for file in tree.rglob("*") if file.is_file())
    return iter(sorted(found))


def _hash(base: Path, trees: list[Path]) -> str:
    digest = hashlib.sha256()
    for name, file in _files(base, trees):
        executable = bool(file.stat().st_mode & stat.S_IXUSR)
        digest.update(f"{name}\0{executable:d}".encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16]


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
        for name, file in _files(base, trees):
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
