"""The reference's page on snapshots under load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fidelity.claim import Claim
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.snapshot.record import Record

SETS = 1_000
RESTORES = 200
WINDOWS = 300
WAITED_MS_MAX = 20.0
MEASURED = """
Measured on {cores} cores, Linux {kernel}, with PostgreSQL {postgres} and engine `{build_hash}`. [Snapshots](../concept/snapshots.md) says what is in one.
Data and WAL are on two volumes of one instance, three clients commit numbered transactions and update hot rows, and each set is restored to new volumes, recovered and compared with what
had been acknowledged before its instant.
"""


def judge(record: Record) -> list[Claim]:
    """The claims on snapshots under load."""
    sets, failed = sum(sets.sets for sets in record.sets), [what for sets in record.sets for what in sets.failed]
    held = max((ms for sets in record.sets for ms in sets.waited_ms), default=0.0)
    apart, waits, restores = record.apart, record.waits, record.restores
    longer = max(waits.beside_ms) - max(waits.without_ms) if waits else 0.0
    faults = [*restores.fio_faults, *restores.fsck_faults] if restores else []
    restored = restores.restored if restores else 0
    return [
        Claim(
            "sets restore with every commit acknowledged before their instant",
            f"{SETS:,} sets, 0 failures",
            f"{len(failed)} of {sets:,} failed",
            sets >= SETS and not failed,
            tuple(failed[:5]),
        ),
        Claim(
            "taken one after the other 50 ms apart, failures are found",
            "at least 1",
            f"{len(apart.failed)} of {apart.sets}" if apart else "not measured",
            bool(apart and apart.failed),
        ),
        Claim(
            "no request waits longer for a set",
            f"at most {WAITED_MS_MAX:.0f} ms",
            f"locks held for at most {held:.2f} ms; fio's longest {longer:+.2f} ms" if waits else "not measured",
            bool(waits) and held <= WAITED_MS_MAX and longer <= WAITED_MS_MAX,
        ),
        Claim(
            "fio --verify and fsck find nothing",
            f"in {RESTORES} restores",
            f"{len(faults)} faults in {restored}",
            restored >= RESTORES and not faults,
            tuple(faults[:5]),
        ),
    ]


def render(record: Record, judged: Sequence[Claim]) -> str:
    """The page."""
    partial = (
        ""
        if all(claim.holds for claim in judged)
        else "**This record is partial**, or a claim does not hold: the table says which."
    )
    measured = MEASURED.strip().format(
        cores=record.cores, kernel=record.kernel, postgres=record.postgres, build_hash=record.build_hash[:12]
    )
    parts = (
        "# Snapshots under load, measured\n\n<!-- Written by `make bench ONLY=snapshot` from tools/snapshot. -->",
        partial,
        measured,
        claims_table(judged),
        _by_file_system(record),
        _waits(record),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _by_file_system(record: Record) -> str:
    rows = []
    for kind in sorted({sets.file_system for sets in record.sets}):
        of = [sets for sets in record.sets if sets.file_system == kind]
        sets = sum(sets.sets for sets in of)
        held = sorted(ms for sets in of for ms in sets.waited_ms) or [0.0]
        rows.append(
            [
                kind,
                f"{sets:,}",
                f"{sum(len(sets.failed) for sets in of):,}",
                f"{sum(sets.commits for sets in of):,}",
                f"{held[len(held) // 2]:.3f}",
                f"{held[-1]:.3f}",
                f"{sum(sets.seconds for sets in of) / max(1, sets):.1f}",
            ]
        )
    header = [
        "file system",
        "sets",
        "failed",
        "commits",
        "locks held, ms, median",
        "longest",
        "s for a set with its recovery",
    ]
    return md.table(header, rows) if rows else ""


def _waits(record: Record) -> str:
    if record.waits is None:
        return ""
    rows = []
    for name, values in (("beside a set", record.waits.beside_ms), ("without one", record.waits.without_ms)):
        ordered = sorted(values)
        places = (len(ordered) // 2, len(ordered) * 95 // 100, len(ordered) - 1)
        rows.append([name, *(f"{ordered[place]:.2f}" for place in places)])
    return (
        f"fio writes 8 KiB 2,000 times a second to one of two volumes, and {record.waits.windows} sets are taken of both. The longest latency in each window of 150 ms, with a"
        " set in it and half way to the next:\n\n" + md.table(["windows", "median, ms", "95 %", "longest"], rows)
    )
