"""The reference's page on the speed of loading, from a record."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tools.loader.arm import BASELINES, ENGINE, GZIP, PSQL, SESSIONS
from tools.loader.record import Run, beside, bounds, rate
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from tools.fidelity.claim import Claim
    from tools.loader.record import Record

_HEAD = f"""# How fast loading is

`pgdyno load` beside COPY itself and beside other loaders, on one machine with its server. `make bench ONLY=load` measures all of it
again and writes this page (`PGDYNO_LOAD_MEGABYTES` and `PGDYNO_LOAD_ROUNDS` say how much); the record stays as JSON in
`results/loader/`.

- Every arm loads the same rows into an empty table, and each time ends after a CHECKPOINT. Within a round arms run in an order that is
  drawn; ratios are those of a round, their geometric mean over the rounds with its 95 % interval.
- **two COPY of the server**: two sessions, each with a `COPY FROM` half of the file, which the server reads itself: no client at all.
- **pgdyno**: the engine with {SESSIONS} sessions, ledger and all. **`pgdyno load`**: the whole command, Python's start included, without
  VACUUM and ANALYZE.
- **CPU**: of all processes of the server, and of the client with its children, until everything is committed.
- **gzip**: the bound is what CPU alone would allow, min(1/D, cores/(D + C)): D are CPU seconds to decompress a megabyte (what the client
  takes more than for the plain file), C those of client and server for a plain one, both of the same round. It knows nothing of the
  CHECKPOINT, whose time is left out here.
- **three indexes**: a primary key, an integer and a random text, half of the rows. The key ascends with the rows, which the server is quick
  at; **keys in no order**: it does not, and the integers are random. The bar does not say which.
"""


def render(record: Record, claims: list[Claim]) -> str:
    """The page."""
    parts = [
        _HEAD,
        _where(record),
        "## Claims\n",
        claims_table(claims) + "\n",
        "## Plain and packed\n",
        _arms(record, indexed=False),
    ]
    if packed := bounds(record, GZIP, ENGINE):
        unpack, copy = (median(values) * 1e3 for values in zip(*((b.unpack_s, b.copy_s) for b in packed), strict=True))
        per_s, reached = median(bound.per_s for bound in packed), median(bound.reached_per_s for bound in packed)
        parts.append(
            f"gzip: D {unpack:.1f} and C {copy:.1f} ms of CPU for a megabyte, so at most {per_s:.0f} MB/s; {reached:.0f} were"
            " reached (medians).\n"
        )
    return "\n".join([*parts, "## With three indexes\n", _arms(record, indexed=True)])


def _where(record: Record) -> str:
    rounds = max((run.round for run in record.runs), default=0)
    text = (
        f"{record.begin:%Y-%m-%d %H:%M} UTC, on {record.cores} cores, Linux {record.kernel}; {'; '.join(record.versions)};"
        f" engine {record.build_hash[:12]}. {rounds} rounds, {_megabytes(record.of(ENGINE)):.0f} MB.\n"
    )
    return text + "".join(f"Left out: {why}.\n" for why in record.left_out)


def _arms(record: Record, *, indexed: bool) -> str:
    """Without a figure for psql where there is none."""
    with_indexes = {*BASELINES, *BASELINES.values()}
    rows = []
    for arm in record.arms:
        if (arm in with_indexes) == indexed:
            runs = record.of(arm)
            baseline = BASELINES.get(arm, arm if indexed else PSQL)
            against = str(beside(record, arm, baseline)) if record.of(baseline) and arm != baseline else ""
            memory = max((run.rss_bytes_max or 0 for run in runs), default=0)
            rows.append(
                [
                    arm,
                    f"{rate(runs):.0f}",
                    f"{rate(runs, lambda run: run.loaded_s):.0f}",
                    against,
                    f"{_of(runs, 'server_cpu_s'):.1f}",
                    f"{_of(runs, 'client_cpu_s'):.1f}",
                    f"{memory / (1 << 20):.0f}" if memory else "",
                ]
            )
    rows.sort(key=lambda row: -float(row[1]))
    header = ["arm", "MB/s", "before the CHECKPOINT", f"× {PSQL}", "server, ms/MB", "client, ms/MB", "MiB"]
    return md.table_of_figures(header, rows, figures=6)


def _of(runs: list[Run], name: str) -> float:
    """CPU milliseconds for a megabyte, half of the runs at most."""
    return median(float(getattr(run, name)) * 1e3 / run.megabytes for run in runs)


def _megabytes(runs: list[Run]) -> float:
    return runs[0].megabytes if runs else 0.0
