"""Whether a server of some version takes some settings, asked of the server's own program before anything is made."""

from __future__ import annotations

import difflib
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..base.errors import HostError, InputError
from .binaries import PgBinaries
from .settings import render

_UNKNOWN = re.compile(r'unrecognized configuration parameter "([^"]+)"')
_PARAMETER = re.compile(r'parameter "([^"]+)"')
_TIMEOUT_S = 30.0


def require_accepted(binaries: PgBinaries, settings: Mapping[str, str]) -> None:
    """This version knows each of ``settings`` and takes its value. :class:`InputError` (``postgres.settings.refused``) names those
    that it refuses, and why.

    ``postgres -C`` reads a configuration file, checks names, types and ranges, prints one setting and ends; it needs no
    cluster, and is the one thing the program does for root. Settings that depend on each other or on the machine
    (memory that is not there) show when the server starts.
    """
    text = render(settings)
    with tempfile.TemporaryDirectory(prefix="pgdyno-settings-") as folder:
        (Path(folder) / "postgresql.conf").write_text(text, encoding="utf-8")
        done = _run([binaries.program("postgres"), "-C", "port", "-D", folder], binaries)
    if done.returncode == 0:
        return
    refusals = [line.split("LOG:", 1)[1].strip() for line in done.stderr.splitlines() if "LOG:" in line]
    refusals = [re.sub(r' in file ".*', "", line) for line in refusals if "skipping missing" not in line]
    hints = [line.split("HINT:", 1)[1].strip() for line in done.stderr.splitlines() if "HINT:" in line]
    unknown = _UNKNOWN.search(done.stderr)
    raise InputError(
        f"PostgreSQL {binaries.version} refuses the settings: {'; '.join(refusals) or done.stderr.strip()}",
        remedy=_nearest(unknown[1], binaries) if unknown else " ".join(hints) or "give it a value that it takes",
        code="postgres.settings.refused",
        data={"settings": list(dict.fromkeys(_PARAMETER.findall("\n".join(refusals))))},
    )


def _nearest(name: str, binaries: PgBinaries) -> str:
    listed = _run([binaries.program("postgres"), "--describe-config"], binaries).stdout
    known = [line.split("\t", 1)[0] for line in listed.splitlines()]
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        return f"this version has {', '.join(close)}"
    return f"omit {name} for this version"


def _run(command: list[str | Path], binaries: PgBinaries) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, env=binaries.environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(
            f"{command[0]} does not run: {error}", remedy="install its shared libraries (see ldd)"
        ) from None
