"""Defects of PostgreSQL itself that power cuts have found. A cut that shows one has failed, and the defect is named beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Defect:
    """One defect: what the server's log says of it, and what is missing then."""

    name: str
    warned: re.Pattern[str]
    """A warning that a server writes only where it has met the defect."""
    missing: re.Pattern[str]
    """Each thing that the ledger misses for it."""
    explained: str


TWO_PHASE = Defect(
    "prepared transactions of an interrupted checkpoint",
    re.compile(r"WARNING: +could not recover two-phase state file for transaction \d+"),
    re.compile(r"client \d+: \d+ acknowledged commits are missing.*"),
    "a known defect of PostgreSQL 17 and 18: a prepared transaction is lost where the power fails during the checkpoint that first writes its"
    " state file. Recovery computes another name for that file, does not find it to remove it, and then takes the transaction for restored",
)
"""Files are named by 64 bits since PostgreSQL 17 (commit 5a1dfde8). For a transaction newer than the checkpoint's next one the epoch underflows; pgsql-hackers,
"An improvement of ProcessTwoPhaseBuffer logic", December 2024, has the warning. Seen in 18.6."""
DEFECTS = (TWO_PHASE,)
SAID = "the server said: "


def warned(lines: Sequence[str]) -> str | None:
    """The warning of a server's log that says most: that of a known defect, or the last one; without time and process."""
    texts = [line[line.index("WARNING:") :] for line in lines if "WARNING:" in line]
    known = (line for line in texts if any(defect.warned.match(line) for defect in DEFECTS))
    return next(known, texts[-1] if texts else None)


def defect(failures: Mapping[str, str]) -> Defect | None:
    """The defect that explains all that a cut has left, if one does."""
    missing, _, result = failures.get("ledger", "").partition(f"; {SAID}")
    for defect in DEFECTS:
        if (
            len(failures) == 1
            and defect.warned.match(result)
            and all(map(defect.missing.fullmatch, missing.split("; ")))
        ):
            return defect
    return None
