"""Output of HammerDB (4.12 to 6.0): lines of its virtual users, its monitor and its transaction counter, for TPROC-C and TPROC-H."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

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
    """Function that takes secrets out of repeated lines."""
    planned_s: float = 0.0
    """Planned seconds from the ramp-up on."""
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
    """Lines about users that ended early, or about a run other than the one ordered."""
    failed: Counter[str] = field(default_factory=Counter)
    """Transactions that the server refused, by type."""
    failed_measured: Counter[str] = field(default_factory=Counter)
    """Those of the measured minutes."""

    @property
    def whole(self) -> bool:
        """True if it came to a result."""
        return self.nopm is not None and self.begin_ns > 0 and self.end_ns > 0

    @property
    def words(self) -> str:
        """Phase and rate of its transaction counter; empty before its users began."""
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


_USER = re.compile(r"Vuser (\d+):(.*)")
_ASKS = re.compile(r"Executing Query (\d+) \((\d+) of 22\)")
_ANSWERED = re.compile(r"query (\d+) completed in ([\d.]+) seconds")
_QUERY_FAILED = re.compile(r"Query Failed :.* : (.*)|(Query 15 view error)")
_SET = re.compile(r"Completed (\d+) query set\(s\) in (\d+) seconds")
_MEAN = re.compile(r'Geometric mean of query times returning rows \((\d+)\) is "?([\d.]+)"?')
_REFRESHES = re.compile(r"(New|Old) Sales refresh(?: complete in ([\d.]+) seconds)?$")
_USER_ENDED = re.compile(r"FINISHED (SUCCESS|FAILED)")
_OTHER_SCALE: Final = "The setting of the scale factor"
TICK_S: Final = 0.001
"""Its clock's; what took less than half of it is printed as 0."""
MS_NS: Final = 1_000_000


@dataclass
class RunningQuery:
    """A query, from when HammerDB said that it asks it."""

    user: int
    query_set: int
    place: int
    query: int
    begin_ns: int
    end_ns: int = 0
    """0 until its end was said."""
    seconds: float = 0.0
    """As it was printed."""
    error: str = ""


@dataclass
class RefreshTiming:
    """A refresh function."""

    function: Literal["insert", "delete"]
    refresh_set: int
    begin_ns: int
    end_ns: int = 0


@dataclass(frozen=True)
class Mean:
    """Geometric mean that HammerDB prints at the end of a set of queries."""

    user: int
    query_set: int
    returning: int
    """Queries that returned rows; query 15 once for each row."""
    seconds: float


@dataclass
class QueriesOutput:
    """All that a run has said so far; instants are CLOCK_MONOTONIC of the host, when a line arrived."""

    hide: Callable[[str], str] = str
    """Function that takes secrets out of repeated lines."""
    planned: int = 0
    """Queries that its users are to send."""
    users: int = 1
    version: str | None = None
    begin_ns: int = 0
    """When the first user began to ask or to refresh; 0 until then."""
    end_ns: int = 0
    """When the last user had ended."""
    closed_ns: int = 0
    """When its output ended, or it was ended."""
    queries: list[RunningQuery] = field(default_factory=list)
    refreshed: list[RefreshTiming] = field(default_factory=list)
    means: list[Mean] = field(default_factory=list)
    finished: Counter[str] = field(default_factory=Counter)
    """Users by SUCCESS and FAILED."""
    wrong: list[str] = field(default_factory=list)
    """Lines about users that ended early, or about a run other than the one ordered."""
    _sets: Counter[int] = field(default_factory=Counter)
    """User -> sets of queries that it completed."""
    _asking: dict[int, RunningQuery] = field(default_factory=dict)
    _functions: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def words(self) -> str:
        """Queries that are done, and the last one; empty before it began."""
        if not self.begin_ns:
            return ""
        done = [query for query in self.queries if query.end_ns]
        last = f", Q{done[-1].query} took {done[-1].seconds:.2f} s" if done else ""
        return f"{len(done):,} of {self.planned:,} queries{last}"

    def share(self, t_ns: int) -> float:
        """Progress, in queries."""
        return min(1.0, sum(query.end_ns > 0 for query in self.queries) / max(1, self.planned))

    def take(self, line: str, t_ns: int) -> None:
        """One line, without its end."""
        if _BROKEN.search(line) or line.startswith("Error"):
            self.wrong.append(self.hide(" ".join(line.split())))
        elif match := _USER.search(line):
            self._take_of_user(int(match[1]), match[2], t_ns)
        elif self.version is None and (match := VERSION.search(line)):
            self.version = match[1]

    def _take_of_user(self, user: int, text: str, t_ns: int) -> None:
        if match := _ASKS.search(text):
            if (before := self._asking.get(user)) is not None:
                before.end_ns, before.error = t_ns, before.error or "no line reported its end"
            query = RunningQuery(user, self._sets[user] + 1, int(match[2]), int(match[1]), t_ns)
            self.begin_ns = self.begin_ns or t_ns
            self.queries.append(query)
            self._asking[user] = query
        elif match := _ANSWERED.search(text):
            self._answered(user, int(match[1]), float(match[2]), t_ns)
        elif match := _QUERY_FAILED.search(text):
            self._failed(user, self.hide((match[1] or match[2]).strip()))
        elif match := _SET.search(text):
            self._sets[user] = int(match[1])
        elif match := _MEAN.search(text):
            self.means.append(Mean(user, self._sets[user], int(match[1]), float(match[2])))
        elif match := _REFRESHES.search(text):
            self._refreshes("insert" if match[1] == "New" else "delete", match[2], t_ns)
        elif match := _USER_ENDED.search(text):
            self.finished[match[1]] += 1
            if self.finished.total() == self.users:
                self.end_ns = t_ns
        elif _OTHER_SCALE in text:
            self.wrong.append(" ".join(text.split()))

    def _answered(self, user: int, query: int, seconds: float, t_ns: int) -> None:
        running_query = self._asking.pop(user, None)
        if running_query is None or running_query.query != query:
            self.wrong.append(f"user {user} completed query {query}, which it had not begun")
            return
        running_query.seconds, running_query.end_ns = seconds, t_ns
        # Its time is the one that it printed; its end is when that was heard.
        running_query.begin_ns = t_ns - max(round(seconds * 1e9), MS_NS // 2)

    def _failed(self, user: int, error: str) -> None:
        query = self._asking.get(user)
        if query is None:
            # The view of query 15 is dropped after its time was printed.
            self.wrong.append(f"user {user}: {error}")
        else:
            query.error = query.error or error

    def _refreshes(self, function: Literal["insert", "delete"], seconds: str | None, t_ns: int) -> None:
        if seconds is None:
            self.begin_ns = self.begin_ns or t_ns
            self._functions[function] += 1
            self.refreshed.append(RefreshTiming(function, self._functions[function], t_ns))
            return
        begun = next((timing for timing in reversed(self.refreshed) if timing.function == function), None)
        if begun is not None:
            begun.begin_ns, begun.end_ns = t_ns - max(round(float(seconds) * 1e9), MS_NS // 2), t_ns
