"""A row of the rude table: what is run, and what must come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Need = Literal["nothing", "volumes", "server", "tls", "pooler"]


@dataclass(frozen=True)
class Row:
    """One finding.

    Scripts are of bash. ``pgdyno`` is the command, ``sql STATEMENT [DSN]`` prints rows with ``|`` between their fields, ``$D`` is
    the connection string of a database of the row's own, ``$P`` of the same through a pooler in transaction mode, ``$CA`` the
    certificate of the server's authority. They begin in an empty folder that PostgreSQL can read.
    """

    finding: str
    what: str
    run: str
    """Its last command is judged."""
    codes: tuple[int, ...] = (0,)
    says: tuple[str, ...] = ()
    """Regular expressions that standard output or standard error have."""
    never: tuple[str, ...] = ()
    """Those that neither has. A traceback, and a bug of ours, are in no row."""
    state: str = ""
    """A script that is run afterwards."""
    then: str = ""
    """What it prints."""
    needs: Need = "nothing"


@dataclass(frozen=True)
class Answered:
    """A finding that the guide answers: this sentence stands there."""

    finding: str
    page: str
    sentence: str
