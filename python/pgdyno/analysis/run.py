"""The figures of one run, its headline first: the figure by which arms are compared.

A workload names its headline; ratios, intervals, fronts, budgets and verdicts take it. It comes from a run's record alone, so that the
next run can be chosen without reading any table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pgdyno.analysis.credit import Credit, credit_of
from pgdyno.analysis.distribution import ScriptStatement, ValueCounts, latency_ms, scripts_ms, service_ms, statements_ms
from pgdyno.analysis.steady import Steady, per_second, steady_of

from ..results import StoredRun
from ..results.record import RunRecord
from .figures import (
    DATA,
    InstanceFigures,
    ServerFigures,
    VolumeFigures,
    Wait,
    cpu_counters,
    instance_figures,
    server_figures,
    volume_figures,
    volume_roles,
    waits_of,
)

Better = Literal["more", "less"]
NEW_ORDER = "new_order"
"""The type of transaction that workloads derived from TPC-C are judged by."""


@dataclass(frozen=True)
class Headline:
    """A figure of a run, which way is better, and its words."""

    name: str
    """As documents have it: ``tps``."""
    title: str
    """``transactions per second``."""
    short: str
    """For the head of a column."""
    unit: str
    better: Better
    of: Callable[[RunRecord], float]
    """The figure of a run; 0 where it did nothing that can be compared."""
    counts: str
    """What a ratio is a multiple of: ``transactions``."""
    does: str
    """Verb of one arm: it does 900 transactions per second, or takes 30 seconds."""
    do: str
    did: str
    fewer: str
    """Opposite of more."""
    fewest: str

    def gain(self, ratio: float) -> float:
        """A ratio of two figures as how many times better the first is."""
        return ratio if self.better == "more" else 1 / ratio

    def apart(self, ratio: float) -> str:
        """``more`` or the opposite, of a ratio."""
        return "more" if ratio > 1 else self.fewer


def work_per_s(record: RunRecord) -> float:
    """Transactions that succeeded (of a load: rows) for each second of the measure phase."""
    seconds = record.measure.seconds
    return record.account.succeeded / seconds if seconds > 0 else 0.0


def _nopm(record: RunRecord) -> float:
    seconds = record.measure.seconds
    return record.succeeded_by_type.get(NEW_ORDER, 0) * 60 / seconds if seconds > 0 else 0.0


def _seconds(record: RunRecord) -> float:
    return record.measure.seconds if record.account.succeeded else 0.0


def _geomean(record: RunRecord) -> float:
    return 0.0 if record.streams is None else record.streams.geometric_mean_s


def _response_ms(record: RunRecord) -> float:
    return 0.0 if record.replay is None else record.replay.response.mean_ms


TPS: Final = Headline(
    "tps", "transactions per second", "TPS", "1/s", "more", work_per_s, "transactions", "does", "do", "did", "fewer", "fewest"
)  # fmt: skip
NOPM: Final = Headline(
    "nopm", "New-Orders per minute", "NOPM", "1/min", "more", _nopm, "New-Orders", "does", "do", "did", "fewer", "fewest"
)  # fmt: skip
SECONDS: Final = Headline(
    "seconds", "seconds", "seconds", "s", "less", _seconds, "time", "takes", "take", "took", "less", "least"
)  # fmt: skip
GEOMEAN: Final = Headline(
    "geomean_s", "geometric mean of query seconds", "geo mean s", "s", "less", _geomean, "geometric mean of query seconds", "takes", "take", "took", "less", "least"
)  # fmt: skip
RESPONSE: Final = Headline(
    "response_ms", "mean response time of statements, ms", "response ms", "ms", "less", _response_ms, "mean response time", "takes", "take", "took", "less", "least"
)  # fmt: skip
HEADLINES: Final = {final.name: final for final in (TPS, NOPM, SECONDS, GEOMEAN, RESPONSE)}


def headline_of(record: RunRecord) -> Headline:
    """The headline that a run's record names; a record from before it was named has that of its kind."""
    return HEADLINES[record.metric or ("tps" if record.bulk_load is None else "seconds")]


@dataclass(frozen=True)
class Unit:
    """The words for it."""

    one: str
    many: str

    @property
    def per_second(self) -> str:
        """``transactions per second``."""
        return f"{self.many} per second"


TRANSACTIONS: Final = Unit("transaction", "transactions")
ROWS: Final = Unit("row", "rows")
QUERIES: Final = Unit("query", "queries")
STATEMENTS: Final = Unit("statement", "statements")


def unit_of(record: RunRecord) -> Unit:
    """What the account of a run counts."""
    if record.streams is not None:
        return QUERIES
    if record.replay is not None:
        return STATEMENTS
    return TRANSACTIONS if record.bulk_load is None else ROWS


HARNESS_ROLES = ("driver", "relay", "daemon", "probe")
"""What runs because of the measurement and would not run beside a real volume."""


@dataclass(frozen=True)
class RunFigures:
    """One replicate in numbers. A figure is None when the run did not record what it needs."""

    run: StoredRun
    qps: float | None
    """Statements that were answered, per second, as sysbench counts them; None where they were not."""
    latency_ms: ValueCounts
    """Response time of those transactions."""
    service_ms: ValueCounts
    """Their time from the actual start; empty in a closed loop, and where the driver does not tell it."""
    scripts_ms: Mapping[str, ValueCounts]
    """Response time by script, if there are several."""
    statements_ms: Mapping[ScriptStatement, ValueCounts]
    """Time of each statement; empty where the driver does not tell it."""
    volumes: Mapping[str, VolumeFigures]
    """Role -> what that volume did; the data's is always there and comes first."""
    instance: InstanceFigures | None
    """What the instance above the volumes did; None where it has no limits."""
    server: ServerFigures
    """What PostgreSQL counted itself."""
    waits: Mapping[Wait, float]
    """What the clients' sessions were seen waiting for -> how many of them on average; empty when they were not sampled."""
    cpu_share: Mapping[str, float]
    """Role -> share of the machine's CPU time; ``other`` is what no role accounts for."""
    credit: Credit
    """Where in it the credits of a volume or the reserve of the instance were gone."""
    steady: Steady
    """Whether its seconds came to a steady state."""

    @property
    def record(self) -> RunRecord:
        """The run's record."""
        return self.run.record

    @property
    def work_per_s(self) -> float:
        """Transactions that succeeded (of a load: rows) for each second of the measure phase."""
        return work_per_s(self.record)

    @property
    def data(self) -> VolumeFigures:
        """The volume of the data directory."""
        return self.volumes[DATA]

    @property
    def harness_share(self) -> float | None:
        """Share of the machine that the measurement itself used; None when no role was recorded."""
        shares = [self.cpu_share[role] for role in HARNESS_ROLES if role in self.cpu_share]
        return sum(shares) if shares else None


def figures_of(run: StoredRun) -> RunFigures:
    """Read a run's tables and reduce them to its figures."""
    seconds = per_second(run)
    credit = credit_of(run, seconds)
    return RunFigures(
        run=run,
        qps=_qps(run.record),
        latency_ms=latency_ms(run),
        service_ms=service_ms(run),
        scripts_ms=scripts_ms(run),
        statements_ms=statements_ms(run),
        volumes={role: volume_figures(run, role) for role in volume_roles(run)},
        instance=instance_figures(run),
        server=server_figures(run),
        waits=waits_of(run),
        cpu_share=_cpu_share(run),
        credit=credit,
        steady=steady_of(run, seconds, credit.regimes),
    )


def _qps(record: RunRecord) -> float | None:
    seconds = record.measure.seconds
    return None if record.queries is None or seconds <= 0 else record.queries / seconds


def _cpu_share(run: StoredRun) -> dict[str, float]:
    measure = run.record.measure
    # In a second of a dilated world a core has `dilation` seconds of CPU time.
    cores = max(1, run.record.world.host.cores) * run.record.world.dilation
    shares = {}
    for role, counters in cpu_counters(run).items():
        rate = counters.mean_rate("cpu_ns", measure.begin_ns, measure.end_ns)
        if rate is not None:
            shares[role] = rate / 1e9 / cores
    if "host_busy" in shares:
        known = sum(share for role, share in shares.items() if not role.startswith("host_"))
        shares["other"] = max(0.0, shares["host_busy"] - known)
    return shares
