"""Who holds the locks that sessions wait for: asked for while there are such waits, and not more often than it is of use.

Finding it takes the server a look at its table of locks, which a look at the sessions does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.probe.samples import ProbeTables

BLOCKERS_TABLE = "probe/blockers"
EVERY_NS = 2_000_000_000
"""From question to question: a shorter wait is not a storm."""


@dataclass
class Blockers:
    """The answers of a watch."""

    _rows: list[dict[str, Any]] = field(default_factory=list)
    _next_ns: int = 0
    _given_up: bool = False

    def is_due(self, at_ns: int) -> bool:
        """Whether to ask, where a session waits for a lock."""
        return not self._given_up and at_ns >= self._next_ns

    def keep(self, begin_ns: int, end_ns: int, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """One more answer."""
        self._next_ns = begin_ns + EVERY_NS
        at = {"t_begin_ns": begin_ns, "t_end_ns": end_ns}
        self._rows += [{**at, **dict(zip(names, row, strict=True))} for row in rows]

    def give_up(self) -> None:
        """The server does not answer this in time, or not to this role."""
        self._given_up = True

    def brought(self) -> ProbeTables:
        """The table; none where no session was blocked."""
        from ..results.tables import from_rows

        return ProbeTables({BLOCKERS_TABLE: from_rows(BLOCKERS_TABLE, self._rows)} if self._rows else {})
