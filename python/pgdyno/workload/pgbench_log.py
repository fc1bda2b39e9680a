"""Reads pgbench's log of transactions (``-l``): one line each, one file for each of its threads.

::

    client transaction latency_us script epoch_s epoch_us [lag_us with -R] [retries with --max-tries]

``skipped``, ``failed``, ``serialization`` or ``deadlock`` stand where the latency would be. The instant is when the
transaction ended. pgbench takes it from CLOCK_MONOTONIC plus a shift that it computes once when it starts, so a wall
clock that is stepped later does no harm, and an anchor read when pgbench was started converts it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.workload import histogram

from ..base.errors import PgdynoError
from ..results.record import Account, Anchor
from ..results.tables import SubjectClock

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class TransactionLog:
    """Every transaction of a run of pgbench. The arrays have the same length; order means nothing."""

    end_ns: np.ndarray[Any, Any]
    """When it ended (or was skipped), on CLOCK_MONOTONIC until :meth:`on` says otherwise."""
    script: np.ndarray[Any, Any]
    """Its number in the order of the specification."""
    latency_us: np.ndarray[Any, Any]
    """From the scheduled start in an open loop, else from the start; over all tries. 0 unless it succeeded."""
    lag_us: np.ndarray[Any, Any]
    """Open loop: from the scheduled start to the start. 0 in a closed loop."""
    succeeded: np.ndarray[Any, Any]
    skipped: np.ndarray[Any, Any]
    """Booleans; neither means failed."""
    retries: int
    """Tries after the first one, all transactions together."""

    def __len__(self) -> int:
        """How many transactions there are."""
        return len(self.end_ns)

    def on(self, clock: SubjectClock) -> TransactionLog:
        """The same in the subject's time."""
        return replace(
            self,
            end_ns=clock.instant_ns(self.end_ns),
            latency_us=clock.durations_us(self.latency_us),
            lag_us=clock.durations_us(self.lag_us),
        )

    def extent_ns(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """From the begin of the first transaction to after the end of the last; what is given where there is none."""
        if not len(self):
            return begin_ns, end_ns
        return int((self.end_ns - self.latency_us * 1000).min()), int(self.end_ns.max()) + 1

    def account(self, begin_ns: int | None = None, end_ns: int | None = None, script: int | None = None) -> Account:
        """Count those that ended in [begin, end), of one script or of all; without limits, every one."""
        import numpy as np

        inside = np.ones(len(self), dtype=bool)
        if begin_ns is not None:
            inside &= self.end_ns >= begin_ns
        if end_ns is not None:
            inside &= self.end_ns < end_ns
        if script is not None:
            inside &= self.script == script
        succeeded, skipped = int((inside & self.succeeded).sum()), int((inside & self.skipped).sum())
        scheduled = int(inside.sum())
        return Account(
            scheduled=scheduled, skipped=skipped, succeeded=succeeded, failed=scheduled - succeeded - skipped
        )


def read(paths: Sequence[Path], anchor: Anchor, *, open_loop: bool, retries: bool) -> TransactionLog:
    """Read the log files of one run; ``open_loop`` and ``retries`` say which columns pgbench wrote.

    Raises :class:`PgdynoError` when a line does not have those columns.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = [_read_file(path, open_loop, retries) for path in paths if path.stat().st_size > 0]
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return TransactionLog(none, none, none, none, none.astype(bool), none.astype(bool), 0)
    table = pa.concat_tables(parts)
    outcome = table["outcome"]
    succeeded = pc.utf8_is_digit(outcome)
    latency = pc.cast(pc.if_else(succeeded, outcome, "0"), pa.int64())
    end_unix_ns = table["epoch_s"].to_numpy() * _SECOND_NS + table["epoch_us"].to_numpy() * 1000
    lag = table["lag_us"].to_numpy() if open_loop else np.zeros(len(table), dtype=np.int64)
    return TransactionLog(
        end_ns=end_unix_ns - anchor.unix_ns + anchor.monotonic_ns,
        script=table["script"].to_numpy(),
        latency_us=latency.to_numpy(),
        lag_us=lag,
        succeeded=succeeded.to_numpy(),
        skipped=pc.equal(outcome, "skipped").to_numpy(),
        retries=int(pc.sum(table["retries"]).as_py()) if retries else 0,
    )


def _read_file(path: Path, open_loop: bool, retries: bool) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    names = ["client", "transaction", "outcome", "script", "epoch_s", "epoch_us"]
    names += ["lag_us"] * open_loop + ["retries"] * retries
    types = dict.fromkeys(names, pa.int64()) | {"outcome": pa.string()}
    try:
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=names, use_threads=True),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=types, include_columns=[name for name in names if name not in ("client", "transaction")]
            ),
        )
    except pa.ArrowInvalid as error:
        raise PgdynoError(
            f"pgbench's log {path.name} is not understood: {error}", remedy="use pgbench of PostgreSQL 15 to 18"
        ) from error


def edges_ns(first_ns: int, begin_ns: int, end_ns: int) -> np.ndarray[Any, Any]:
    """Borders of the seconds of a run: whole ones back from ``begin_ns`` to ``first_ns``, then on to ``end_ns``.

    The measure phase is therefore made of whole bins; only its last one may be shorter than a second.
    ``first_ns`` is known to some hundredths of a second, so a bin that lacks that little counts as whole.
    """
    import numpy as np

    before = max(0, (begin_ns - first_ns + _SECOND_NS // 20) // _SECOND_NS)
    edges = np.arange(begin_ns - before * _SECOND_NS, end_ns, _SECOND_NS, dtype=np.int64)
    return np.append(edges, end_ns)


def latency_table(
    log: TransactionLog, edges: np.ndarray[Any, Any], scripts: Sequence[str], *, service: bool = False
) -> pa.Table:
    """``workload/latency`` (or ``workload/service``: without the lag) of those that succeeded between the edges."""
    import numpy as np
    import pyarrow as pa

    second = np.searchsorted(edges, log.end_ns, side="right") - 1
    chosen = log.succeeded & (second >= 0) & (second < len(edges) - 1)
    latency = (log.latency_us - log.lag_us if service else log.latency_us)[chosen]
    at, script, bucket, count = histogram.per_second(second[chosen], log.script[chosen], latency)
    return pa.table(
        {
            "t_begin_ns": edges[at],
            "t_end_ns": edges[at + 1],
            "script": pa.array(np.array(scripts, dtype=object)[script], type=pa.string()),
            "latency_us": bucket,
            "count": count,
        }
    )


def throughput_table(log: TransactionLog, edges: np.ndarray[Any, Any], scripts: Sequence[str]) -> pa.Table:
    """``workload/throughput``: for every second and script, zeros included."""
    import numpy as np
    import pyarrow as pa

    seconds = len(edges) - 1
    second = np.searchsorted(edges, log.end_ns, side="right") - 1
    inside = (second >= 0) & (second < seconds)
    failed = ~log.succeeded & ~log.skipped

    def counted(mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        chosen = mask & inside
        return np.bincount(second[chosen] * len(scripts) + log.script[chosen], minlength=seconds * len(scripts))

    return pa.table(
        {
            "t_begin_ns": np.repeat(edges[:-1], len(scripts)),
            "t_end_ns": np.repeat(edges[1:], len(scripts)),
            "script": pa.array(list(scripts) * seconds, type=pa.string()),
            "transactions": counted(log.succeeded),
            "failed": counted(failed),
            "skipped": counted(log.skipped),
        }
    )
