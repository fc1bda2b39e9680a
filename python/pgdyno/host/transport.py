"""How requests of a volume reach its daemon: by /dev/fuse, or over io_uring where the kernel has that.

The kernel offers FUSE over io_uring (Linux 6.14 and later) to a file system that is mounted while its module's parameter
``enable_uring`` says so; a connection that has it keeps it. So the parameter is set for the length of an attach, under a lock,
and put back; what it was stands in a :class:`~pgdyno.host.machine_record.MachineRecord`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

from pgdyno.errors import HostError, InputError
from pgdyno.host import paths
from pgdyno.host.machine_record import MachineRecord

Transport = Literal["classic", "uring", "auto"]

PARAMETER = Path("/sys/module/fuse/parameters/enable_uring")
ATTACH_S = 60.0
"""Another attach holds the parameter for a second or two; one that takes longer than this hangs."""
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
def offered(transport: Transport, kept: MachineRecord | None = None) -> Iterator[None]:
    """For the length of a ``with`` block the kernel offers io_uring to a file system that wants it, where it can."""
    kept = kept or record()
    # What is on without a record the administrator has set, and it stays.
    if transport != "uring" or missing() is not None or (_is_on() and not kept.written()):
        yield
        return
    handle = kept.take(ATTACH_S)
    if handle is None:
        raise HostError(
            f"another attach has held {kept.path} for {ATTACH_S:.0f} s",
            remedy="wait until it ends, or run `pgdyno doctor --clean` when its command was killed",
        )
    try:
        kept.put_back(handle)
        if not _is_on():
            kept.write(handle, old="N")
            PARAMETER.write_text("Y")
        try:
            yield
        finally:
            kept.put_back(handle)
    finally:
        os.close(handle)


def record(path: Path | None = None) -> MachineRecord:
    """Where the parameter's own value stands while an attach has changed it."""
    return MachineRecord(
        path or paths.MACHINE_DIR / "fuse_uring.json",
        _restore,
        "the parameter of the kernel's FUSE that a killed attach set",
    )


def _restore(written: dict[str, Any]) -> list[str]:
    if PARAMETER.read_text().strip() == written["old"]:
        return []
    PARAMETER.write_text(written["old"])
    return [f"set {PARAMETER} back to {written['old']}"]


def _is_on() -> bool:
    return PARAMETER.read_text().strip() == "Y"
