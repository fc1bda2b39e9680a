"""One run against a server: the workload, the probes around it, and the checks. What is a server is :mod:`pgdyno.world.subject`'s."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pgdyno.probe.host import HostProbe, Role
from pgdyno.probe.samples import ProbeTables, volume_details
from pgdyno.probe.sql import SqlProbe
from pgdyno.workload.kind import Workload
from pgdyno.workload.outcome import Outcome, RemoteHost, RunRequest
from pgdyno.world.base import PlannedRun, RunOutcome
from pgdyno.world.events import EventTimeline
from pgdyno.world.resolved import ResolvedArm
from pgdyno.world.subject import Subject

from ..base.errors import PgdynoError
from ..machine.scratch import scratch_directory

NO_HOSTS: Mapping[str, RemoteHost] = MappingProxyType({})
"""All drivers are processes of this machine."""


def measure(
    run: PlannedRun,
    resolved: ResolvedArm,
    subject: Subject,
    shared: Any = None,
    *,
    hosts: Mapping[str, RemoteHost] = NO_HOSTS,
) -> RunOutcome:
    """Drive the workload of a run against ``subject``. ``shared`` is what all runs of the workload have.

    ``hosts`` are those on which drivers may be started, by name.

    Where the server or a volume died, the error names it: a client or a probe that failed then tells little.
    """
    try:
        return _measured(run, resolved, subject, shared, hosts)
    except Exception as error:
        cause = _death(subject)
        if cause is None:
            raise
        raise cause from error


def _death(subject: Subject) -> PgdynoError | None:
    """What the server or a volume died of; None while they live."""
    return subject.volume_died() or subject.server_died()


def _measured(
    run: PlannedRun, resolved: ResolvedArm, subject: Subject, shared: Any, hosts: Mapping[str, RemoteHost]
) -> RunOutcome:
    rows = subject.server.settings()
    with EventTimeline(resolved.arm.events, subject.act, run.clock, subject.usd_per_month) as timeline:
        outcome, samples = _drive(run, resolved, subject, shared, timeline, hosts)
        timeline.require_done()
    samples = samples | timeline.samples().on(run.clock)
    subject.end_acts()
    client = subject.client()
    run.watch.seconds |= {phase.name: round(run.clock.host_s(phase.seconds), 3) for phase in outcome.phases}
    run.progress(1.0, "check")
    with run.watch.stage("check"):
        workload = resolved.arm.workload
        outcome = workload.with_server_stats(subject.server, outcome)
        checks = workload.proofs(subject.server, outcome, subject.baseline, full=workload.full_check)
    if (died := subject.server_died()) is not None:
        raise died
    subject.stop()
    return RunOutcome(
        outcome=outcome,
        samples=samples,
        checks=(*timeline.explained(outcome.checks), *checks),
        settings=rows,
        world=subject.world,
        postgres=subject.postgres,
        client=client,
        visibility=subject.visibility,
        reasons=subject.reasons(),
    )


def _drive(
    run: PlannedRun,
    resolved: ResolvedArm,
    subject: Subject,
    shared: Any,
    timeline: EventTimeline,
    hosts: Mapping[str, RemoteHost],
) -> tuple[Outcome, ProbeTables]:
    """The workload with the probes around it, each as often in the subject's time as ever."""
    workload, writer = resolved.arm.workload.seeded(run.workload_seed), run.writer
    warmup_s, measure_s = workload.phases_s
    edges: list[dict[str, dict[str, Any]]] = []
    sql_probe = SqlProbe(subject.server.dsn, dilation=run.clock.dilation)
    with scratch_directory(writer.path) as scratch, sql_probe:
        host_probe = HostProbe(
            scratch,
            {},
            devices=subject.devices,
            volumes={role: (attached.name, attached.state_dir) for role, attached in subject.volumes.items()},
            interval_ms=resolved.sample_interval_ms,
        )

        def watch_host(*driver_pids: int) -> None:
            host_probe.roles = subject.roles(driver_pids) | _with_children(workload, driver_pids)
            host_probe.start()

        def show(share: float, text: str) -> None:
            # pgdyno's own driver connects again and again until its time is over: an hour, perhaps.
            if (wrong := timeline.error() or _death(subject)) is not None:
                raise wrong
            run.progress(share, text)

        def begin() -> None:
            edges.append(subject.stats())
            timeline.begin()

        with contextlib.ExitStack() as ending:
            ending.push(host_probe)  # started later, by `watch_host`; ended whatever happens
            outcome = workload.runner(shared)(
                subject.driven,
                RunRequest(
                    duration_s=measure_s,
                    out_dir=writer.file("logs/driver").parent,
                    warmup_s=warmup_s,
                    clock=run.clock,
                    on_start=watch_host,
                    on_measure_begin=begin,
                    on_measure_end=lambda: edges.append(subject.stats()),
                    progress=show,
                    env=subject.environment,
                    drivers=resolved.arm.client.weights,
                    hosts={name: hosts[name] for name in resolved.arm.client.hosts},
                    prefix=("taskset", "-c", workload.driver_cpus) if workload.driver_cpus else (),
                ),
            )
            samples = host_probe.stop()
        samples = samples | sql_probe.stop() | _volume_details(edges)
    return outcome, samples.on(run.clock)


def _with_children(workload: Workload, driver_pids: tuple[int, ...]) -> dict[str, Role]:
    """The processes that the driver starts are counted with it."""
    return {"driver": Role(parents=driver_pids)} if workload.forks else {}


def _volume_details(edges: list[dict[str, dict[str, Any]]]) -> ProbeTables:
    """The reports of every volume's daemon at the start and end of the measured phase."""
    return volume_details({role: [edge[role] for edge in edges] for role in edges[0]} if edges else {})
