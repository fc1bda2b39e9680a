"""What the benches of power cuts measure: recordings, each in some readings."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pgdyno.durability.crash.recording import RecordingOptions

if TYPE_CHECKING:
    from pgdyno.durability.crash.archive import Archive
    from pgdyno.durability.crash.recording import Kind
    from pgdyno.machine.volume import Cache

MUTANTS = Path(__file__).resolve().parents[2] / "tests" / "crash" / "mutants.toml"
SECONDS = 10.0
ARCHIVED_SECONDS = 2.0
"""All WAL since the backup is replayed after each cut, so there is less of it."""
TAKES = 3
OTHER_BIN = Path("/usr/lib/postgresql/15/bin")
"""Debian 12's package: another major version, in the last recording of each kind."""
OFF = {"full_page_writes": "off"}

READING = "pieces-4096"
"""Of a sound server: what the kernel sends is torn where it can be."""
UNSYNCED = "UNSYNCED"
"""What the library of planted bugs reads (crates/unsynced)."""

Bench = Literal["sound", "recovery", "mutant", "torn"]


@dataclass(frozen=True)
class Cell:
    """One recording in one reading. ``caught_by``: checks that must catch a planted bug; ``take`` tells recordings of the same server apart."""

    bench: Bench
    name: str
    asked: RecordingOptions
    reading: str
    caught_by: tuple[str, ...] = ()
    take: int = 1

    @property
    def recording(self) -> tuple[str, int]:
        """Cells with the same one are cut from one recording."""
        return str(self.asked), self.take


@dataclass(frozen=True)
class Mutant:
    """A planted bug."""

    name: str
    why: str
    reading: str
    caught_by: tuple[str, ...]
    given_up: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    archive: Archive = ""
    """What becomes of WAL; then a cut is answered by a restore."""
    unsynced: str = ""
    """Syncs that the server skips: a class of files and a kind of process (crates/unsynced)."""


def mutants() -> list[Mutant]:
    """All planted bugs."""
    known = tomllib.loads(MUTANTS.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**item | {"caught_by": tuple(item["caught_by"])}) for item in known]


def sound() -> list[Cell]:
    """A server with everything on: no cut may lose anything.

    Several recordings of each, as cuts of one are not independent; one of them of another major version of PostgreSQL. Of one kind
    another server is restored from its backup and its archive after each cut.
    """
    kinds: tuple[tuple[Kind, Cache, bool], ...] = (
        ("ext4", "none", False),
        ("ext4", "volatile", True),
        ("ext4-bigalloc", "volatile", False),
        ("ext4-bigalloc", "none", True),
        ("xfs", "none", True),
        ("xfs", "volatile", False),
    )
    archived = RecordingOptions(cache="volatile", wal_apart=True, seconds=ARCHIVED_SECONDS, archive="copied")
    return [
        Cell("sound", "ext4, cache volatile, WAL apart, restored from its archive", archived, READING),
        *(
            Cell(
                "sound",
                f"{kind}, cache {cache}{', WAL apart' if apart else ''}, {item}",
                RecordingOptions(file_system=kind, cache=cache, wal_apart=apart, seconds=SECONDS, pg_bin=pg_bin),
                READING,
                take=take,
            )
            for kind, cache, apart in kinds
            for take, item, pg_bin in (
                *((take, f"recording {take}", None) for take in range(1, TAKES + 1)),
                (1, f"PostgreSQL {OTHER_BIN.parent.name}", str(OTHER_BIN)),
            )
        ),
    ]


def recovering() -> list[Cell]:
    """The first recording of each sound server: cuts of it are recovered from, and the recovery is recorded and cut."""
    return [
        replace(cell, bench="recovery", name=f"{cell.name.rpartition(', ')[0]}, in recovery")
        for cell in sound()
        if cell.take == 1 and cell.asked.pg_bin is None and not cell.asked.archive
    ]


def planted() -> list[Cell]:
    """The planted bugs, on the recording that has most of what they need: a cache that is flushed, and WAL apart."""
    return [
        Cell(
            "mutant",
            mutant.name,
            RecordingOptions(
                cache="volatile",
                wal_apart=True,
                seconds=SECONDS,
                settings=mutant.settings,
                given_up=mutant.given_up,
                archive=mutant.archive,
                planted={UNSYNCED: mutant.unsynced} if mutant.unsynced else {},
            ),
            mutant.reading,
            mutant.caught_by,
        )
        for mutant in mutants()
    ]


def torn() -> list[Cell]:
    """full_page_writes off, in each way of writing, file system and reading."""
    return [
        Cell(
            "torn",
            f"{'direct I/O' if direct else 'buffered'}, {kind}, {reading}",
            RecordingOptions(
                file_system=kind,
                seconds=SECONDS,
                settings={"debug_io_direct": "data"} if direct else {},
                given_up=OFF,
            ),
            reading,
        )
        for direct in (False, True)
        for kind in ("ext4", "ext4-bigalloc", "xfs")
        for reading in ("pieces-512", "pieces-4096", "pieces-4096+strict", "pieces-4096+units")
    ]
