"""What HammerDB says while it runs: the lines of its virtual users, of its monitor and of its transaction counter (4.12 to 6.0)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pgdyno.workload.clock import SECOND_NS

VERSION: Final = re.compile(r"HammerDB CLI v?([\d.]+)")
_BEGINS = re.compile(r"Beginning rampup time of (\d+) minutes")
_MEASURES: Final = "Taking start Transaction Count"
_MEASURED: Final = "Taking end Transaction Count"
_USERS = re.compile(r"(\d+) Active Virtual Users configured")
_NOPM_FIRST = re.compile(r"TEST RESULT : System achieved (\d+) NOPM from (\d+) PostgreSQL TPM")
_TPM_FIRST = re.compile(r"TEST RESULT : System achieved (\d+) PostgreSQL TPM at (\d+) NOPM")
"""By ``first_result`` of its ``config/generic.xml``."""
_COUNTER = re.compile(r"^\s*(\d+) PostgreSQL tpm\s*$")
_ENDED = re.compile(r"Vuser (\d+):FINISHED (SUCCESS|FAILED)")
_BROKEN = re.compile(r"Error in Virtual User (\d+): ?(.*)")
_FAILED = re.compile(r"(New Order|Payment|Delivery|Stock Level|Order Status) Procedure Error")
_SWITCHED = re.compile(r"(Auto-switching pg_storedprocs|incomplete routine set|routine detection failed)")
_TYPES: Final = {
    "New Order": "new_order",
    "Payment": "payment",
    "Delivery": "delivery",
    "Stock Level": "stock_level",
    "Order Status": "order_status",
}


@dataclass
class HammerdbOutput:
    """All that a run has said so far; instants are CLOCK_MONOTONIC of the host, when a line arrived."""

    hide: Callable[[str], str] = str
    """What takes secrets out of lines that are repeated."""
    planned_s: float = 0.0
    """How long it is to take from the ramp-up on."""
    version: str | None = None
    bench_ns: int = 0
    """When its users had been let go; 0 until then."""
    begin_ns: int = 0
    end_ns: int = 0
    """When it read the counts at the begin and end of the measured minutes."""
    closed_ns: int = 0
    """When its output ended."""
    users: int | None = None
    nopm: int | None = None
    tpm: int | None = None
    """Commits and rollbacks of all databases, for each of the minutes."""
    counters: list[tuple[int, int]] = field(default_factory=list)
    """When, and the commits and rollbacks per minute since the one before."""
    finished: Counter[str] = field(default_factory=Counter)
    """Users, the monitor among them, by SUCCESS and FAILED."""
    wrong: list[str] = field(default_factory=list)
    """What ended users early, or made it run something else than it was asked for."""
    failed: Counter[str] = field(default_factory=Counter)
    """Transactions that the server refused, by type."""
    failed_measured: Counter[str] = field(default_factory=Counter)
    """Those of the measured minutes."""

    @property
    def whole(self) -> bool:
        """Whether it came to a result."""
        return self.nopm is not None and self.begin_ns > 0 and self.end_ns > 0

    @property
    def words(self) -> str:
        """What it does, by its transaction counter; empty before its users were let go."""
        if not self.bench_ns:
            return ""
        tpm = f"{self.counters[-1][1]:,} TPM of the server" if self.counters else "starting"
        return f"{'measure' if self.begin_ns else 'warm up'}: {tpm}"

    def share(self, t_ns: int) -> float:
        """How much of the planned time has passed."""
        return min(1.0, (t_ns - self.bench_ns) / SECOND_NS / self.planned_s) if self.planned_s else 0.0

    def take(self, line: str, t_ns: int) -> None:
        """One line, without its end."""
        if match := _COUNTER.match(line):
            self.counters.append((t_ns, int(match[1])))
        elif match := _FAILED.search(line):
            self.failed[_TYPES[match[1]]] += 1
            if self.begin_ns and not self.end_ns:
                self.failed_measured[_TYPES[match[1]]] += 1
        elif match := _ENDED.search(line):
            self.finished[match[2]] += 1
        elif _BROKEN.search(line) or _SWITCHED.search(line) or line.startswith("Error"):
            self.wrong.append(self.hide(" ".join(line.split())))
        elif match := _NOPM_FIRST.search(line):
            self.nopm, self.tpm = int(match[1]), int(match[2])
        elif match := _TPM_FIRST.search(line):
            self.tpm, self.nopm = int(match[1]), int(match[2])
        else:
            self._take_phase(line, t_ns)

    def _take_phase(self, line: str, t_ns: int) -> None:
        if _BEGINS.search(line):
            self.bench_ns = t_ns
        elif _MEASURES in line:
            self.begin_ns = t_ns
        elif _MEASURED in line:
            self.end_ns = t_ns
        elif match := _USERS.search(line):
            self.users = int(match[1])
        elif self.version is None and (match := VERSION.search(line)):
            self.version = match[1]
