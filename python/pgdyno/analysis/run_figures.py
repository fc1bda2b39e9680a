"""The figures of one run: what its tables say about its measure phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.analysis.counters import cpu_counters
from pgdyno.analysis.credit import Credit, credit_of
from pgdyno.analysis.distribution import ScriptStatement, ValueCounts, latency_ms, scripts_ms, service_ms, statements_ms
from pgdyno.analysis.headline import work_per_s
from pgdyno.analysis.instance_figures import InstanceFigures, instance_figures
from pgdyno.analysis.server_figures import ServerFigures, server_figures
from pgdyno.analysis.steady import Steady, per_second, steady_of
from pgdyno.analysis.volume_figures import DATA, VolumeFigures, volume_figures, volume_roles
from pgdyno.analysis.waits import Wait, waits_of

from ..results import StoredRun
from ..results.record import RunRecord

LABORATORY_ROLES = ("driver", "relay", "daemon", "probe")
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
    def laboratory_share(self) -> float | None:
        """Share of the machine that the measurement itself used; None when no role was recorded."""
        shares = [self.cpu_share[role] for role in LABORATORY_ROLES if role in self.cpu_share]
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
