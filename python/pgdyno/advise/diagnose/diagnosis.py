"""The judgement of a recorded run, be it a watched server's or an experiment's: limit, consumers, remedies. Touches no machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.analysis.binding.consumers import Consumer, consumers_of
from pgdyno.analysis.binding.evidence import Evidence, evidence_of
from pgdyno.analysis.binding.remedy import Remedy, remedy_of
from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding, of_evidence
from pgdyno.analysis.binding.words import evidence_words

from ...analysis.binding.evidence import Circumstances, circumstances_of, is_watched
from ...analysis.figures import DATA
from ...analysis.run import figures_of
from ...base.errors import InputError
from ...results import StoredRun, open_experiment, open_run
from ...results.names import EXPERIMENT_FILE
from ...results.record import RunRecord
from .alone import evidence_of_files, grid_of, run_of_files
from .alongside import TimeGrid, beside, check_words, most_used_words, totals_of
from .blocking import Blocker, blocker_words, blockers_of, ending_words
from .bought import Purchase, require_roles, with_offers
from .contradicted import Contradiction, contradictions_of, without
from .free import Free, free_of, settings_of
from .inferred import inferred_words, with_inferred
from .noticed import notes_of
from .published import RuleFinding, findings_of
from .silence import Silence, bound, silence_of
from .source import VolumeSource, require_source_roles
from .statements import StatementLoad, slow_of, statements_of, top_of, unseen_words

OF_STORAGE = frozenset({"volume_iops", "volume_throughput", "burst_bucket", "volume_latency", "commit_latency",
                         "instance_bandwidth", "checkpoints"})  # fmt: skip
"""Limits that the consumers of a volume explain."""


_POOLED = "look at cl_waiting of SHOW POOLS in the pooler's console: if no client waits there, they ask for no more"
_POOL_FULL = (
    "more sessions in the pooler's pool (default_pool_size), or shorter transactions; cl_waiting of SHOW POOLS in its console counts the"
    " clients that wait"
)
_SICK_VOLUME = (
    "look at the volume before anything is bought: its state and its events at the provider (impaired, filled from a snapshot, being"
    " modified), and at what else uses it"
)
_UNSEEN_CLIENTS = (
    "clients that wait in the connection pooler for a session: cl_waiting of SHOW POOLS in its console counts them"
)
_UNKNOWN_PURCHASE = "what was bought: name it with --bought data=gp3:iops=6000, and the limits of the volume are known"


@dataclass(frozen=True)
class WatchCost:
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

    run: StoredRun
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
    cost: WatchCost | None
    """None unless the run is a watch."""
    sources: tuple[VolumeSource, ...] = ()
    """Files that were read beside the server, or instead of one."""
    findings: tuple[RuleFinding, ...] = ()
    """What published rules say of the same figures."""
    statements: tuple[StatementLoad, ...] = ()
    """Those that read, log or spill most, by pg_stat_statements."""
    silence: Silence | None = None
    """When the server did not answer; None unless one was watched."""
    wrong: tuple[Contradiction, ...] = ()
    """What was said to be bought and cannot be."""
    blockers: tuple[Blocker, ...] = ()
    """Sessions that held locks for long while others waited."""
    notes: tuple[str, ...] = ()
    """What is worth knowing beside the verdict."""


def diagnose(path: Path, purchase: Purchase | None = None, sources: Sequence[VolumeSource] = ()) -> Diagnosis:
    """Judge the run in a directory, or the only one of an experiment's. :class:`InputError` where there is none.

    ``purchase`` takes the place of what its record says to be bought; ``sources`` are files about its volumes.
    """
    run = _opened(path)
    if (purchase is not None or sources) and not is_watched(run.record):
        raise InputError(f"{path} is not a watch: its record says all that is known", remedy="name it alone")
    run = run if purchase is None else replace(run, record=_with_purchase(run.record, purchase))
    figures = figures_of(run)
    evidence = evidence_of(figures)
    seen = frozenset(role for second in evidence.seconds for role in second.devices)
    require_roles(run.record.world.volumes if purchase is not None else {}, seen)
    require_source_roles(sources, seen)
    grid = TimeGrid.of(run.record, len(evidence.seconds))
    if sources:
        evidence = beside(evidence, grid, sources)
    io_timing = figures.server.io_timing
    missing = _missing(run, evidence, io_timing)
    silence = silence_of(run) if is_watched(run.record) else None
    return _judged(run, evidence, circumstances_of(figures), sources, grid, missing, silence)


def begin_s(path: Path) -> float:
    """When the run in a directory began to be measured, in seconds since 1970."""
    return TimeGrid.of(_opened(path).record, 1).begin_s


def diagnose_files(sources: Sequence[VolumeSource], purchase: Purchase) -> Diagnosis:
    """Judge the volumes that files are about, without their server. :class:`InputError` for files of different times."""
    grid = grid_of(sources)
    run, evidence = run_of_files(sources, grid, purchase), evidence_of_files(sources, grid, purchase)
    around = Circumstances(volumes=purchase.volumes, instance=purchase.instance)
    missing = ["the server: name it beside the files, and who waits for the volume and who uses it are known"]
    if not evidence.given.bought:
        missing.append(_UNKNOWN_PURCHASE)
    return _judged(run, evidence, around, sources, grid, lambda _: missing)


def _judged(
    run: StoredRun,
    evidence: Evidence,
    around: Circumstances,
    sources: Sequence[VolumeSource],
    grid: TimeGrid,
    missing: Callable[[RunBinding], list[str]],
    silence: Silence | None = None,
) -> Diagnosis:
    wrong: tuple[Contradiction, ...] = ()
    if not evidence.given.driven:
        wrong = contradictions_of(evidence, sources, grid.step_s)
        evidence = with_inferred(without(evidence, wrong))
        known = {role: volume for role, volume in around.volumes.items() if role not in {each.role for each in wrong}}
        around = replace(around, volumes=known)
        around = with_offers(around, evidence, {source.role: source.measured for source in reversed(sources)})
    binding = of_evidence(evidence)
    if silence is not None and silence.binds:
        return _unanswered(run, bound(binding, silence), silence)
    if wrong and binding.verdict.limit in OF_STORAGE:
        binding = replace(binding, verdict=BindingVerdict(None, None, "unknown", binding.verdict.shares))
    verdict = binding.verdict
    role = verdict.role or DATA
    consumers = consumers_of(run, role, verdict.limit)
    for source in sources:
        moved = totals_of(source, grid) if source.role == role and not consumers else None
        consumers = consumers if moved is None else consumers_of(run, role, verdict.limit, moved)
    free = free_of(run, consumers) if verdict.limit in OF_STORAGE else ()
    remedy = remedy_of(binding, verdict.remediable, around)
    if verdict.limit == "checkpoints" and free:
        remedy = None  # the same in general
    if all(consumer.what == "not_explained" for consumer in consumers):
        consumers = ()  # the server counted nothing, or none was watched
    texts = [text for source in sources for text in check_words(source, grid)]
    if verdict.role in evidence.given.inferred:
        texts += inferred_words(evidence)
    if verdict.limit is None and sources:
        texts += most_used_words(evidence)
    statements = statements_of(run)
    blockers = blockers_of(run)
    spoken = [*evidence_words(binding, verdict, around), *texts]
    if verdict.limit == "locks":
        spoken += [blocker_words(blocker) for blocker in blockers]
    notes = [contradiction.title for contradiction in wrong] if verdict.limit is not None else []
    notes += [] if verdict.limit == "locks" else [blocker_words(blocker) for blocker in blockers]
    return Diagnosis(
        run=run,
        binding=binding,
        evidence=tuple(spoken),
        missing=tuple(missing(binding)),
        consumers=consumers,
        consumers_role=role,
        free=free,
        remedy=_chosen(remedy, evidence, verdict, wrong, blockers),
        cost=_cost(run) if is_watched(run.record) else None,
        sources=tuple(sources),
        findings=findings_of(
            binding, around.volumes, sources, grid, slow_of(run, statements), around.instance, settings_of(run)
        )
        if not evidence.given.driven
        else (),
        statements=top_of(statements),
        silence=silence,
        wrong=wrong,
        blockers=blockers,
        notes=(*notes, *(notes_of(run, silence) if is_watched(run.record) else ())),
    )


def _unanswered(run: StoredRun, binding: RunBinding, silence: Silence) -> Diagnosis:
    """The diagnosis of a server that did not answer: that alone."""
    return Diagnosis(
        run=run,
        binding=binding,
        evidence=tuple(silence.words()),
        missing=("all else: what is not answered is not seen",),
        consumers=(),
        consumers_role=DATA,
        free=(),
        remedy=Remedy(silence.action),
        cost=_cost(run),
        silence=silence,
    )


def _chosen(
    remedy: Remedy | None,
    evidence: Evidence,
    verdict: BindingVerdict,
    wrong: Sequence[Contradiction],
    blockers: Sequence[Blocker],
) -> Remedy | None:
    """The remedy that the limit has, or another where more is known than the limit."""
    if wrong and verdict.limit is None:
        return Remedy(wrong[0].action)
    if verdict.limit == "locks" and (ending := ending_words(blockers)) is not None:
        return Remedy(ending)
    if evidence.given.pooled and verdict.limit == "client":
        return Remedy(_POOLED)
    if evidence.given.pooled and verdict.limit == "connections" and verdict.confidence == "low":
        return Remedy(_POOL_FULL)
    if verdict.limit == "volume_latency" and all(second.sessions is None for second in evidence.seconds):
        return Remedy(_SICK_VOLUME)
    return remedy if remedy is None or remedy.tps_ratio_max != 1.0 else replace(remedy, tps_ratio_max=None)


def _with_purchase(record: RunRecord, purchase: Purchase) -> RunRecord:
    """The record as it would be, had the purchase been said when the server was watched."""
    volumes = {**record.world.volumes, **purchase.volumes}
    instance = record.world.instance if purchase.instance.type is None else purchase.instance
    return record.model_copy(
        update={"world": record.world.model_copy(update={"volumes": volumes, "instance": instance})}
    )


def _opened(path: Path) -> StoredRun:
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


def _missing(run: StoredRun, evidence: Evidence, io_timing: bool | None) -> Callable[[RunBinding], list[str]]:
    """What was not seen, with what would show it, once it is known what binds."""

    def of(binding: RunBinding) -> list[str]:
        texts, limit = list(evidence.missing), binding.verdict.limit
        watched = is_watched(run.record)
        if watched and all(second.sessions is None for second in evidence.seconds):
            texts = [text for text in texts if not text.startswith("what sessions waited for")]
            texts.insert(0, "what sessions wait for: `GRANT pg_monitor TO` the role, and track_activities must be on")
        if watched and not evidence.given.bought:
            texts = [text for text in texts if not text.startswith("what the volume was bought")]
            if limit in (None, *OF_STORAGE):
                texts.append(_UNKNOWN_PURCHASE)
        if evidence.given.pooled:
            texts.insert(0, _UNSEEN_CLIENTS)
        if io_timing is False and limit in (None, "volume_latency", "commit_latency"):
            texts.append("how long reads took: track_io_timing is off")
        if watched:
            texts += unseen_words(run, absent=limit in (None, "server_cpu", "locks", *OF_STORAGE))
        return texts

    return of


def _cost(run: StoredRun) -> WatchCost | None:
    rows = run.table("probe/cost").to_pylist()
    looks = next((row for row in rows if row["probe"] == "wait_events"), None)
    if looks is None:
        return None
    seconds = max(1e-9, (looks["t_end_ns"] - looks["t_begin_ns"]) / 1e9)
    cpu_ns = [row["server_cpu_ns"] for row in rows if row["probe"] != "host"]
    known = [used for used in cpu_ns if used is not None]
    return WatchCost(
        server_cpu_share=sum(known) / 1e9 / seconds if known and len(known) == len(cpu_ns) else None,
        samples=looks["samples"],
        lost=looks["lost_samples"],
        interval_ms=seconds * 1e3 / looks["samples"] if looks["samples"] else None,
    )
