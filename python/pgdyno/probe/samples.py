"""Tables of the probes for a run's directory, and the gaps in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..results.tables import SubjectClock
from ..results.writer import DirectoryWriter

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Gap:
    """Something that could not be sampled. A gap that lasts is one gap."""

    begin_ns: int
    """The first instant that lacks it."""
    end_ns: int
    """The last instant known to lack it."""
    what: str
    """``disk.data``, ``volume.wal``, ``driver.pid.42``, ``sql.io``, ``host.samples``, ..."""
    why: str


@dataclass(frozen=True)
class ProbeTables:
    """Tables by their name in :data:`pgdyno.results.tables.TABLES`, and the gaps."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()

    def __or__(self, other: ProbeTables) -> ProbeTables:
        """Both together; the rows of a table that both have follow each other."""
        import pyarrow as pa

        both = {
            name: pa.concat_tables([table, other.tables[name]]) if name in other.tables else table
            for name, table in self.tables.items()
        }
        return ProbeTables(other.tables | both, self.gaps + other.gaps)

    def on(self, clock: SubjectClock) -> ProbeTables:
        """The same in the subject's time."""
        gaps = (
            Gap(clock.instant_ns(gap.begin_ns), clock.instant_ns(gap.end_ns), gap.what, gap.why) for gap in self.gaps
        )
        return ProbeTables({name: clock.table(table) for name, table in self.tables.items()}, tuple(gaps))

    def gap_table(self) -> pa.Table:
        """The gaps, as ``probe/gap``."""
        from ..results.tables import from_rows

        rows = (
            {"t_begin_ns": gap.begin_ns, "t_end_ns": gap.end_ns, "what": gap.what, "why": gap.why} for gap in self.gaps
        )
        return from_rows("probe/gap", rows)

    def write(self, writer: DirectoryWriter) -> None:
        """Put every table, and ``probe/gap``, into the directory of a run or a load."""
        for name, table in self.tables.items():
            writer.table(name, table)
        writer.table("probe/gap", self.gap_table())


@dataclass
class GapLedger:
    """Collects gaps sample by sample and joins those of the same thing that follow each other."""

    _open: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    _closed: list[Gap] = field(default_factory=list)

    def sample(self, begin_ns: int, end_ns: int, missing: Iterable[tuple[str, str]]) -> None:
        """Note what one sample lacked, as (what, why); whatever it does not name is back."""
        now = set(missing)
        for key in [key for key in self._open if key not in now]:
            self._close(key)
        for key in now:
            first_ns = self._open[key][0] if key in self._open else begin_ns
            self._open[key] = (first_ns, end_ns)

    def add(self, gap: Gap) -> None:
        """Note a gap whose extent is known."""
        self._closed.append(gap)

    def gaps(self) -> tuple[Gap, ...]:
        """Every gap, the earliest first."""
        for key in list(self._open):
            self._close(key)
        return tuple(sorted(self._closed, key=lambda gap: (gap.begin_ns, gap.what)))

    def _close(self, key: tuple[str, str]) -> None:
        first_ns, last_ns = self._open.pop(key)
        self._closed.append(Gap(first_ns, last_ns, *key))


def volume_details(stats: Mapping[str, Iterable[dict[str, Any]]]) -> ProbeTables:
    """``probe/volume_latency`` and ``probe/member`` from what each volume's daemon said, by the volume's role (``data``, ``wal``, ...).

    As a rule each was asked when measuring began and when it ended.
    """
    from ..results.tables import from_rows

    names = {
        "read": "read_latency_ns",
        "write": "write_latency_ns",
        "read lateness": "read_lateness_ns",
        "write lateness": "write_lateness_ns",
    }
    rows = [
        {"t_ns": answer["t_ns"], "volume": volume, "op": op, "latency_ns": latency_ns, "count": count}
        for volume, answers in stats.items()
        for answer in answers
        for op, histogram in names.items()
        for latency_ns, count in answer["histograms"][histogram]
    ]
    members = [
        {"t_ns": answer["t_ns"], "volume": volume, "member": member, **counters}
        for volume, answers in stats.items()
        for answer in answers
        for member, counters in enumerate(answer["members"])
    ]
    tables = {"probe/volume_latency": rows} | ({"probe/member": members} if members else {})
    return ProbeTables({name: from_rows(name, table) for name, table in tables.items()})
