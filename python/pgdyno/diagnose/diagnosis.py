"""The judgement of a recorded run, be it a watched server's or an experiment's: limit, consumers, remedies. Touches no machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pgdyno.analysis.binding.circumstances import circumstances_of, is_watched
from pgdyno.analysis.binding.consumers import Consumer, consumers_of
from pgdyno.analysis.binding.evidence import evidence_of
from pgdyno.analysis.binding.remedy import Remedy, remedy_of
from pgdyno.analysis.binding.verdict import RunBinding, of_evidence
from pgdyno.analysis.binding.words import evidence_words
from pgdyno.analysis.run_figures import figures_of
from pgdyno.analysis.volume_figures import DATA
from pgdyno.diagnose.free import Free, free_of
from pgdyno.diagnose.provider import Provider, beside, provider_words, totals_of
from pgdyno.errors import InputError
from pgdyno.store import open_experiment, open_run
from pgdyno.store.names import EXPERIMENT_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pgdyno.analysis.run_figures import RunFigures
    from pgdyno.diagnose.bought import Purchase
    from pgdyno.store import Run
    from pgdyno.store.record import RunRecord

OF_STORAGE = frozenset({"volume_iops", "volume_throughput", "burst_bucket", "volume_latency", "commit_latency",
                         "instance_bandwidth", "checkpoints"})  # fmt: skip
"""Limits that the consumers of a volume explain."""


@dataclass(frozen=True)
class Cost:
    """What the watch itself took."""

    server_cpu_share: float | None
    """CPU time of its sessions over the time, of one core; None where they were not seen."""
    samples: int
    """Looks at the sessions."""
    lost: int
    interval_ms: float | None
    """Mean time from look to look."""


@dataclass(frozen=True)
class Diagnosis:
    """What is said of a server."""

    run: Run
    binding: RunBinding
    evidence: tuple[str, ...]
    missing: tuple[str, ...]
    """What was not seen, with what would show it."""
    consumers: tuple[Consumer, ...]
    """They use the volume that binds, else the data's; the largest first."""
    consumers_role: str
    free: tuple[Free, ...]
    remedy: Remedy | None
    """What the limit asks for: a purchase with its price, or in words."""
    cost: Cost | None
    """None unless the run is a watch."""


def diagnose(
    path: Path, purchase: Purchase | None = None, providers: Mapping[str, Provider] | None = None
) -> Diagnosis:
    """Judge the run in a directory, or the only one of an experiment's. :class:`InputError` where there is none.

    ``purchase`` takes the place of what its record says to be bought; ``providers`` has the metrics of its volumes by role.
    """
    run, providers = _opened(path), providers or {}
    if (purchase is not None or providers) and not is_watched(run.record):
        raise InputError(f"{path} is not a watch: its record says all that is known", remedy="name it alone")
    run = run if purchase is None else replace(run, record=_with_purchase(run.record, purchase))
    figures = figures_of(run)
    evidence = evidence_of(figures)
    if providers:
        evidence = beside(evidence, run.record, providers)
    binding, around = of_evidence(evidence), circumstances_of(figures)
    verdict, seconds = binding.verdict, len(evidence.seconds)
    role = verdict.role or DATA
    seen = consumers_of(run, role, verdict.limit)
    moved = None if seen or role not in providers else totals_of(run.record, providers[role], seconds)
    consumers = seen if moved is None else consumers_of(run, role, verdict.limit, moved)
    told = [text for one in providers.values() for text in provider_words(run.record, one, seconds)]
    free = free_of(run, consumers) if verdict.limit in OF_STORAGE else ()
    remedy = remedy_of(binding, verdict, around)
    if verdict.limit == "checkpoints" and free:
        remedy = None  # the same in general
    return Diagnosis(
        run=run,
        binding=binding,
        evidence=(*evidence_words(binding, verdict, around), *told),
        missing=tuple(_missing(figures, binding)),
        consumers=consumers,
        consumers_role=role,
        free=free,
        remedy=remedy if remedy is None or remedy.tps_ratio_max != 1.0 else replace(remedy, tps_ratio_max=None),
        cost=_cost(run) if is_watched(run.record) else None,
    )


def _with_purchase(record: RunRecord, purchase: Purchase) -> RunRecord:
    """The record as it would be, had the purchase been said when the server was watched."""
    volumes = {**record.world.volumes, **purchase.volumes}
    instance = record.world.instance if purchase.instance.type is None else purchase.instance
    return record.model_copy(
        update={"world": record.world.model_copy(update={"volumes": volumes, "instance": instance})}
    )


def _opened(path: Path) -> Run:
    if not (path / EXPERIMENT_FILE).is_file():
        return open_run(path)
    runs = open_experiment(path).runs
    if len(runs) != 1:
        first = f"{runs[0].path}" if runs else ""
        raise InputError(
            f"{path} has {len(runs)} runs, and one is judged at a time",
            remedy=f"name one of them, for example {first}" if first else "run the experiment first",
        )
    return runs[0]


def _missing(figures: RunFigures, binding: RunBinding) -> list[str]:
    """What was not seen, with what would show it."""
    record, said = figures.record, list(binding.evidence.missing)
    watched = is_watched(record)
    if watched and all(second.sessions is None for second in binding.evidence.seconds):
        said = [one for one in said if not one.startswith("what sessions waited for")]
        said.insert(0, "what sessions wait for: `GRANT pg_monitor TO` the role, and track_activities must be on")
    if watched and not binding.evidence.given.bought:
        said = [one for one in said if not one.startswith("what the volume was bought")]
    if watched and not binding.evidence.given.bought and binding.verdict.limit in (None, *OF_STORAGE):
        said.append("what was bought: name it with --bought data=gp3:iops=6000, and the limits of the volume are known")
    if figures.server.io_timing is False and binding.verdict.limit in (None, "volume_latency", "commit_latency"):
        said.append("how long reads took: track_io_timing is off")
    return said


def _cost(run: Run) -> Cost | None:
    rows = run.table("probe/cost").to_pylist()
    looks = next((row for row in rows if row["probe"] == "wait_events"), None)
    if looks is None:
        return None
    seconds = max(1e-9, (looks["t_end_ns"] - looks["t_begin_ns"]) / 1e9)
    cpu_ns = [row["server_cpu_ns"] for row in rows if row["probe"] != "host"]
    known = [used for used in cpu_ns if used is not None]
    return Cost(
        server_cpu_share=sum(known) / 1e9 / seconds if known and len(known) == len(cpu_ns) else None,
        samples=looks["samples"],
        lost=looks["lost_samples"],
        interval_ms=seconds * 1e3 / looks["samples"] if looks["samples"] else None,
    )
