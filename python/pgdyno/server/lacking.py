"""What a database needs and a PostgreSQL of this machine lacks: extensions, locales, ICU, libraries, a newer version."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..base.errors import HostError
from ..machine.launch import user_prefix
from .binaries import PgBinaries
from .dump import DumpFacts
from .user import server_user

_ICU_SYMBOL = b"ucol_open"
"""What a server that was built with ICU calls (pg_locale_icu.c)."""
_LC_ALL_MASK = 0x1FBF
"""``LC_ALL_MASK`` of glibc's locale.h."""
_TIMEOUT_S = 30.0


def lacking(binaries: PgBinaries, facts: DumpFacts) -> list[str]:
    """Everything that ``binaries`` lack for a database; empty when it can be restored."""
    return list(_lacking(binaries, facts))


def _lacking(binaries: PgBinaries, facts: DumpFacts) -> Iterator[str]:
    if facts.major is not None and facts.major > binaries.major:
        yield f"it is of PostgreSQL {facts.version}, newer than {binaries.version}"
    missing = sorted(facts.extensions - available_extensions(binaries))
    if missing:
        yield f"extension{'s' if len(missing) > 1 else ''} {', '.join(missing)} not installed"
    if facts.icu and not has_icu(binaries):
        yield "it uses collations of ICU, and this PostgreSQL is built without ICU"
    for name in sorted(facts.locales):
        if not has_locale(name):
            yield f"this machine has no locale {name}"
    for name in sorted(facts.preloaded):
        if not has_library(binaries, name):
            yield f"the library {name}, which its sessions preload, is not installed"


def available_extensions(binaries: PgBinaries) -> set[str]:
    """Extensions that CREATE EXTENSION finds."""
    folder = share_dir(binaries) / "extension"
    return {path.stem for path in folder.glob("*.control")}


@cache
def share_dir(binaries: PgBinaries) -> Path:
    """The directory of the installation's data, as initdb finds it."""
    from pathlib import Path

    done = subprocess.run(
        [*user_prefix(server_user()), str(binaries.program("initdb")), "--show", "--pgdata=/"],
        env=binaries.environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    text = done.stdout + done.stderr
    line = next((line for line in text.splitlines() if line.startswith("share_path=")), None)
    if line is None:
        raise HostError(
            f"initdb of PostgreSQL {binaries.version} does not say where its files are",
            remedy="use another PostgreSQL with --pg-bin",
        )
    return Path(line.partition("=")[2])


@cache
def has_icu(binaries: PgBinaries) -> bool:
    """Whether the server was built with ICU."""
    return _ICU_SYMBOL in binaries.program("postgres").read_bytes()


@cache
def has_locale(name: str) -> bool:
    """Whether the C library of this machine has a locale."""
    libc = ctypes.CDLL(None)
    libc.newlocale.restype = ctypes.c_void_p
    libc.newlocale.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p]
    libc.freelocale.argtypes = [ctypes.c_void_p]
    newlocale = libc.newlocale(_LC_ALL_MASK, name.encode(), None)
    if newlocale is None:
        return False
    libc.freelocale(newlocale)
    return True


def has_library(binaries: PgBinaries, name: str) -> bool:
    """Whether a server can load a library by this name."""
    from pathlib import Path

    plain = name.removeprefix("$libdir/").removesuffix(".so")
    if plain.startswith("/"):
        return Path(f"{plain}.so").is_file()
    prefix = binaries.bin_dir.parent
    return any((folder / f"{plain}.so").is_file() for folder in (prefix / "lib", prefix / "lib" / "postgresql"))
