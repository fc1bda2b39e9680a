"""How requests of a volume reach its daemon: by /dev/fuse, or over io_uring where the kernel has that.

The kernel offers FUSE over io_uring (Linux 6.14 and later) to a file system that is mounted while its module's parameter
``enable_uring`` says so; a connection that has it keeps it. So the parameter is set for the length of an attach, under a lock,
and put back. What it was stands in a file outside any state directory; the lock on that file is the kernel's and ends with
its owner, and the file outlives a killed attach.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from pgdyno.errors import InputError
from pgdyno.host import paths
from pgdyno.host.process import boot_id

Transport = Literal["classic", "uring", "auto"]

PARAMETER = Path("/sys/module/fuse/parameters/enable_uring")
_VARIABLE = "PGDYNO_TRANSPORT"


def asked() -> Transport:
    """What ``PGDYNO_TRANSPORT`` says; ``auto`` where it says nothing. :class:`InputError` for anything else."""
    said = os.environ.get(_VARIABLE) or "auto"
    known: tuple[Transport, ...] = get_args(Transport)
    found = next((one for one in known if one == said), None)
    if found is None:
        raise InputError(f"{_VARIABLE} is `{said}`", remedy=f"use one of {', '.join(known)}, or unset it")
    return found


def missing() -> str | None:
    """Why the kernel cannot be asked for it; ``None`` where it can."""
    if not PARAMETER.exists():
        return "this kernel's FUSE has no io_uring (Linux 6.14 and later have)"
    if _is_on() or os.access(PARAMETER, os.W_OK):
        return None
    return f"{PARAMETER} cannot be written"


@contextmanager
def offered(transport: Transport, record: Path | None = None) -> Iterator[None]:
    """For the length of a ``with`` block the kernel offers io_uring to a file system that wants it, where it can."""
    if transport != "uring" or missing() is not None or _is_on_for_good(record):
        yield
        return
    handle = _open(record)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # another attach holds it for a second or two
        _put_back(handle)
        if not _is_on():
            os.pwrite(handle, json.dumps({"boot_id": boot_id(), "old": "N"}).encode(), 0)
            os.fsync(handle)
            PARAMETER.write_text("Y")
        try:
            yield
        finally:
            _put_back(handle)
    finally:
        os.close(handle)


def abandoned(record: Path | None = None) -> bool:
    """Whether a killed attach left the parameter set."""
    path = _path(record)
    if not path.exists() or not _old(path.read_bytes()):
        return False
    with _held(path) as handle:
        # Read again: the attach that had written it may have ended between the look and the lock.
        return handle is not None and bool(_old(os.pread(handle, 4096, 0)))


def recover(record: Path | None = None) -> list[str]:
    """Put back what a killed attach set; returns what was done. An attach that lives is left alone."""
    path = _path(record)
    if not path.exists():
        return []
    with _held(path) as handle:
        return [] if handle is None else _put_back(handle)


def _is_on() -> bool:
    return PARAMETER.read_text().strip() == "Y"


def _is_on_for_good(record: Path | None) -> bool:
    """The administrator has set it, and not an attach."""
    path = _path(record)
    return _is_on() and not (path.exists() and _old(path.read_bytes()))


def _path(record: Path | None) -> Path:
    return record or paths.MACHINE_DIR / "fuse_uring.json"


def _open(record: Path | None) -> int:
    path = _path(record)
    paths.make_state_dir(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


@contextmanager
def _held(path: Path) -> Iterator[int | None]:
    """The record under its lock; ``None`` while another process holds that."""
    handle = _open(path)
    try:
        yield handle if _is_locked(handle) else None
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    """Try to take the lock."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _put_back(handle: int) -> list[str]:
    """Put back the value of the record, then empty it. A value of another boot ended with that boot."""
    old = _old(os.pread(handle, 4096, 0))
    if not old:
        return []
    done = []
    if PARAMETER.read_text().strip() != old:
        PARAMETER.write_text(old)
        done = [f"set {PARAMETER} back to {old}"]
    os.ftruncate(handle, 0)
    os.fsync(handle)
    return done


def _old(text: bytes) -> str:
    """What the parameter was before this boot's attach; empty where there is nothing to put back."""
    try:
        record = json.loads(text)
    except ValueError:
        return ""  # empty, or torn before anything was changed
    return str(record["old"]) if record["boot_id"] == boot_id() else ""
