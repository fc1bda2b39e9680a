"""Watches PostgreSQL of Debian's package and the embedded one under each load, and writes the guide's section: ``python -m tools.watched``.

It takes about five minutes, and needs a disk (not memory) below ``--folder``, PgBouncer and OpenSSL.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.server.binaries import find_binaries
from tools.watched.scenario import ALL, Scenario
from tools.watched.server import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.watched.server import Plain

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide" / "diagnose.md"
BEGIN, END = "<!-- watched:begin -->", "<!-- watched:end -->"
WATCH = "10s"
DEBIAN = Path("/usr/lib/postgresql/15/bin")


@dataclass(frozen=True)
class Watched:
    """One watch, as it came."""

    server: str
    title: str
    screen: str
    document: dict[str, Any]


def watched(server: Plain, scenario: Scenario, name: str, folder: Path) -> Watched:
    """Watch once, and have it judged as a screen and as JSON."""
    with scenario.load(server), scenario.reach(server) as dsn:
        diagnose = [sys.executable, "-m", "pgdyno", "diagnose"]
        kept = _said([*diagnose, dsn, "--for", WATCH, "--keep", str(folder), "--json"])
    document = json.loads(kept)
    return Watched(name, scenario.title, _said([*diagnose, document["directory"]]), document)


def measure(folder: Path) -> Iterator[Watched]:
    """Every scenario on both servers."""
    embedded = find_binaries().program("initdb").parent
    for name, programs in (("PostgreSQL 15 of Debian's package", DEBIAN), ("the embedded PostgreSQL 18", embedded)):
        with plain(programs, folder) as server:
            for scenario in [item for item in ALL if server.tls or not item.tls]:
                print(f"{name}: {scenario.title}", file=sys.stderr)
                yield watched(server, scenario, name, folder / "watches")


def render(watcheds: list[Watched]) -> str:
    """The section between its marks."""
    parts = [BEGIN]
    for watched in watcheds:
        parts += [
            "",
            f"**{watched.server[0].upper()}{watched.server[1:]}**, {watched.title}:",
            "",
            "```text",
            watched.screen.rstrip(),
            "```",
        ]
    return "\n".join([*parts, END])


def write(watcheds: list[Watched]) -> None:
    """Put the section into the guide."""
    text = GUIDE.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    GUIDE.write_text(before + render(watcheds) + after)


def _said(command: list[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=_environment()).stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "100"}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.watched", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("/var/tmp"), help="where data directories are made [/var/tmp]"
    )
    folder: Path = parser.parse_args().folder
    with tempfile.TemporaryDirectory(prefix="pgdyno-watched-", dir=folder) as work:
        Path(work).chmod(0o755)  # PostgreSQL's user must get through
        write(list(measure(Path(work))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
