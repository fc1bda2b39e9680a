"""Captures of statements that a test writes down: a csvlog with them, read as any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .logged import captured

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-11-25 07:04:42"


def capture_of(folder: Path, *messages: str, user: str, database: str, apart: bool = False) -> Path:
    """A capture of one session that sent these messages of a log, a millisecond apart from each other: ``statement: SELECT 1``.

    They are one transaction, or one each (``apart``).
    """
    log = folder / "handmade.csv"
    with log.open("w") as file:
        for number, message in enumerate(messages, 1):
            transaction = 11 + number if apart else 12
            quoted = message.replace('"', '""')
            file.write(
                f'{AT}.{number:03} UTC,"{user}","{database}",7,"10.0.0.1:5000",6563.7,{number},"SELECT",{AT} UTC,4/{transaction},0,LOG,00000,'
                f'"{quoted}",,,,,,,,,"by hand","client backend",,0\n'
            )
    return captured(folder, log)[0]
