"""The judgement of a recorded run, be it a watched server's or an experiment's: limit, consumers, remedies. Touches no machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.analysis.binding.consumers import Consumer, consumers_of
from pgdyno.analysis.binding.device import DeviceActivity
from pgdyno.analysis.binding.evidence import Evidence, Second, evidence_of
from pgdyno.analysis.binding.remedy import Remedy, remedy_of
from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding, of_evidence
from pgdyno.analysis.binding.words import evidence_words

from ...analysis.binding.device import ProvisionedVolume
from ...analysis.binding.evidence import Circumstances, circumstances_of, is_watched
from ...analysis.figures import DATA
from ...analysis.run import figures_of
from ...base.errors import InputError
from ...base.specification import Rate
from ...base.text import number, times
from ...results import StoredRun, open_experiment, open_run
from ...results.names import EXPERIMENT_FILE
from ...results.record import RunRecord
from ..size import capped
from ..size.demand import demand_of
from ..size.offers import measured_of
from .activity import (
    Blocker,
    Silence,
    StatementLoad,
    blocker_words,
    blockers_of,
    bound,
    ending_words,
    notes_of,
    silence_of,
    slow_of,
    statements_of,
    top_of,
    unseen_words,
)
from .files import (
    CLOUDWATCH,
    NVME,
    TimeGrid,
    VolumeSource,
    beside,
    check_words,
    evidence_of_files,
    grid_of,
    most_used_words,
    require_source_roles,
    run_of_files,
    totals_of,
)
from .published import RuleFinding, findings_of
from .remedies import Free, Purchase, free_of, require_roles, settings_of, with_offers

BEYOND = 1.25
"""Times what was bought that no volume does for seconds, by bytes or by the provider's own count of operations."""
BEYOND_REQUESTS = 2.0
"""The same by the kernel's count of requests, of which a volume counts several in sequence as one."""
SECONDS_MIN = 5.0
"""For so long at least: a bucket of tokens, or two clocks, let more through for a moment."""


@dataclass(frozen=True)
class Contradiction:
    """One of ``--bought`` or ``--instance`` that is wrong."""

    flag: str
    """``--bought`` or ``--instance``."""
    role: str | None
    """The volume's; None of an instance."""
    spec: str
    seen: float
    unit: str
    """``IOPS`` or ``MiB/s``."""
    most: float
    """What was said to be bought has at most."""

    @property
    def title(self) -> str:
        """``--bought is wrong: ...``."""
        what = "the instance's volumes" if self.role is None else f"the {self.role} volume"
        return (
            f"{self.flag} is wrong: {what} did {number(self.seen)} {self.unit}, {times(self.seen / self.most)} times the"
            f" {number(self.most)} that {self.spec} has at most"
        )

    @property
    def action(self) -> str:
        """What it would have to be."""
        what = "an instance" if self.role is None else "a volume"
        return (
            f"do not buy anything yet: look up what this server has; it must be {what} with at least {number(self.seen)} {self.unit}"
            + (", or another device was measured than the one that was named" if self.role is not None else "")
        )


def contradictions_of(evidence: Evidence, sources: Sequence[VolumeSource], step_s: float) -> tuple[Contradiction, ...]:
    """Every volume, and the instance, that did far more than what was said to be bought can; ``step_s`` is the length of a second."""
    counted = {source.role for source in sources if source.flag in (CLOUDWATCH, NVME)}
    results = []
    for role, bought in evidence.given.bought.items():
        if role not in evidence.given.inferred:
            results += _of_volume(role, bought, evidence, step_s, by_provider=role in counted)
    results += _of_instance(evidence, step_s)
    return tuple(results)


def without(evidence: Evidence, wrong: Collection[Contradiction]) -> Evidence:
    """The evidence as if nothing had been said of what is wrong."""
    given = evidence.given
    roles = {contradiction.role for contradiction in wrong if contradiction.role is not None}
    bought = {role: volume for role, volume in given.bought.items() if role not in roles}
    instance = None if any(contradiction.role is None for contradiction in wrong) else given.instance
    return replace(evidence, given=replace(given, bought=bought, instance=instance))


def _of_volume(
    role: str, bought: ProvisionedVolume, evidence: Evidence, step_s: float, *, by_provider: bool
) -> list[Contradiction]:
    devices = [second.devices[role] for second in evidence.seconds if role in second.devices]
    sizes = [(device.mib_per_s, bought.used_throughput(device.mib_per_s)) for device in devices]
    counts = [(bought.counted_iops(device), bought.used_iops(device)) for device in devices]
    results = []
    for values, rate, unit, beyond in (
        (counts, bought.iops, "IOPS", BEYOND if by_provider else BEYOND_REQUESTS),
        (sizes, bought.mib_per_s, "MiB/s", BEYOND),
    ):
        seen = [value for value, used in values if used is not None and used >= beyond]
        if rate is not None and seen and len(seen) * step_s >= SECONDS_MIN:
            results.append(Contradiction("--bought", role, bought.spec, sum(seen) / len(seen), unit, rate.maximum))
    return results[:1]


def _of_instance(evidence: Evidence, step_s: float) -> list[Contradiction]:
    instance = evidence.given.instance
    if instance is None:
        return []
    seen = [mib for second in evidence.seconds if (mib := _mib_per_s(second)) >= BEYOND * instance.mib_per_s.maximum]
    if not seen or len(seen) * step_s < SECONDS_MIN:
        return []
    most = instance.mib_per_s.maximum
    return [Contradiction("--instance", None, instance.type, sum(seen) / len(seen), "MiB/s", most)]


def _mib_per_s(second: Second) -> float:
    return sum(device.mib_per_s for device in second.devices.values())


SPEC = "inferred"
"""In place of a specification."""


def with_inferred(evidence: Evidence) -> Evidence:
    """The evidence with a limit for each volume of which nothing was said and that stood at a plateau."""
    given = evidence.given
    roles = dict.fromkeys(role for second in evidence.seconds for role in second.devices)
    volumes = {
        role: bought
        for role in roles
        if role not in given.bought
        and (bought := _bought([second.devices[role] for second in evidence.seconds if role in second.devices]))
    }
    if not volumes:
        return evidence
    known = replace(given, bought={**given.bought, **volumes}, inferred=given.inferred | volumes.keys())
    return replace(evidence, given=known)


def inferred_words(evidence: Evidence) -> Iterator[str]:
    """What was inferred of which volume."""
    for role in sorted(evidence.given.inferred):
        bought = evidence.given.bought[role]
        for rate, unit in ((bought.iops, "IOPS"), (bought.mib_per_s, "MiB/s")):
            if rate is not None:
                yield (
                    f"the {role} volume stood at {rate.maximum:,.0f} {unit} again and again, with a longer queue than otherwise:"
                    " probably its limit; name the volume with --bought to be sure"
                )


def _bought(devices: Sequence[DeviceActivity]) -> ProvisionedVolume | None:
    try:
        result = capped.find(demand_of(measured_of(devices), 99, 0.0))
    except InputError:
        return None  # it did nothing
    if result is None or result.level is None:
        return None
    level = Rate(result.level, result.level)
    of_iops = result.unit == "IOPS"
    return ProvisionedVolume(SPEC, level if of_iops else None, None, None if of_iops else level, None)


OF_STORAGE = frozenset({"volume_iops", "volume_throughput", "burst_bucket", "volume_latency", "commit_latency",
                         "instance_bandwidth", "checkpoints"})  # fmt: skip
"""Limits that the consumers of a volume explain."""


_POOLED = (
    "look at cl_waiting of SHOW POOLS in the pooler's console: if no client waits there, the clients send no more work"
)
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
_UNKNOWN_PURCHASE = "the purchase: name it with --bought data=gp3:iops=6000, so that the limits of the volume are known"


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
