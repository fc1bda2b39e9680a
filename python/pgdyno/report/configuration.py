"""The section on the configuration: workload, machine, volumes, course of the experiment, settings of the server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.factors import VOLUME
from pgdyno.report.section import Block, Section, listed

from ..analysis.figures import DATA
from ..base.text import UNKNOWN, address, percent, plain, size
from ..results.record import InstanceRecord, RunRecord
from .section import COLUMNS_MAX, clients_of, record_of

Pairs = list[tuple[str, str]]

_ELSEWHERE = {"warmup_s", "measure_s", "memory_bytes", "seed", "files"}
"""Settings of an experiment, and of its workload, that other lines of the page show (a run's own seed is derived;
of files the names are the script)."""
HOSTS = "the host's"
"""Whose clock it is where none was shifted."""
_NAMES = {
    "spec": "in full",
    "type": "type",
    "title": "name",
    "size_bytes": "size",
    "limits.iops": "IOPS limit",
    "limits.throughput_mib_per_s": "throughput limit, MiB/s",
    "accounting_unit_kib": "I/O unit, KiB",
    "usd_per_month": "US$ a month",
    "price_region": "price's region",
    "durability": "durability",
}
"""Fields of a resolved volume in the order and the words of the page; others follow under their own names."""


def configuration_section(comparison: Comparison) -> Section:
    """The command that repeats it, volumes, workload, machine, the server's settings, the records."""
    different, default = server_settings(comparison)
    values = {
        "volumes": resolved_volumes(comparison),
        "definitions": run_definitions(comparison),
        "differing": settings_by_arm(comparison) if listed(comparison) else [],
        "different": different,
        "default": default,
    }
    return Section("configuration", "Configuration", (Block("configuration.html", values),))


def context_line(comparison: Comparison) -> list[str]:
    """Workload, machine and server in a few words each; what is a factor is left to the arms."""
    record = record_of(comparison)
    workload, instance = record.workload, record.world.instance
    kind = workload.get("kind", "workload")
    what = (
        workload.get("script")
        or workload.get("test")
        or workload.get("generate")
        or workload.get("profile")
        or workload.get("capture")
        or ""
    )
    parts = [f"{kind} {what}".strip()]
    if "scale" in workload:
        parts.append(f"scale {workload['scale']:,}")
    if record.bulk_load is not None:
        parts.append(f"{len(record.bulk_load.tables)} tables")
    if "warehouses" in workload:
        parts.append(f"{workload['warehouses']:,} warehouses, derived from TPC-C")
    if "scale_factor" in workload:
        parts.append(f"scale factor {workload['scale_factor']:g}, derived from TPC-H")
    if "rows" in workload:
        tables = workload.get("tables", 1)
        parts.append(f"{tables} table{'s' if tables > 1 else ''} of {workload['rows']:,} rows")
    if record.streams is not None:
        parts.append(f"streams: {clients_of(comparison)}")
    elif "clients" in workload:
        loop = "closed loop" if workload.get("closed") else "open loop"
        parts.append(f"{clients_of(comparison)} clients, {loop}")
    parts += _drivers(comparison)
    versions = _across(comparison, lambda run: run.postgres.version)
    parts.append(f"PostgreSQL {' and '.join(versions)}")
    clocks = _across(comparison, server_clock)
    if any(clocks):
        parts.append(f"its clock {' and '.join(words or HOSTS for words in clocks)}")
    if instance.type:
        parts.append(" and ".join(_across(comparison, lambda run: run.world.instance.type or "")))
    if instance.memory_bytes is not None:
        memory = _across(comparison, lambda run: size(run.world.instance.memory_bytes or 0))
        parts.append(f"{' and '.join(memory)} of memory")
    systems = _across(comparison, lambda run: run.world.file_system or "")
    if any(systems):
        parts.append(" and ".join(systems))
    parts.append(record.world.storage)
    clients = [words for words in _across(comparison, client_place) if words]
    if clients:
        parts.append(f"client: {' and '.join(clients)}")
    slowed = [times for times in _across(comparison, lambda run: str(run.world.dilation)) if times != "1"]
    if slowed:
        parts.append(f"dilated {' and '.join(slowed)} times")
    return parts


def server_clock(run: RunRecord) -> str:
    """The day by the clock of a run's server, and how far that is from the host's; empty where its clock was the host's."""
    shift_s = run.postgres.clock_shift_s
    if shift_s is None:
        return ""
    hours = abs(shift_s) / 3600
    far = f"{hours / 24:,.0f} days" if hours >= 48 else f"{hours:.0f} h" if hours >= 1 else "less than an hour"
    day = datetime.fromtimestamp(run.anchor.unix_ns / 1e9 + shift_s, UTC)
    return f"at {day:%Y-%m-%d} UTC, {far} {'ahead of' if shift_s > 0 else 'behind'} the host's"


def client_place(run: RunRecord) -> str:
    """Where a run's driver stood, seen from the server; empty where nothing was chosen."""
    rtt_ms = run.client.rtt_ms
    away = {name: driver.host.rtt_ms for name, driver in run.drivers.items() if driver.host is not None}
    if away:
        texts = (f"{name} {'unknown' if far is None else f'{far:.2g} ms'}" for name, far in away.items())
        return f"other hosts, with round trips to the server of {', '.join(texts)}"
    if rtt_ms is None:
        return ""
    return f"behind {rtt_ms:g} ms round trip (emulated)" if rtt_ms else "local, 0 ms"


def page_title(comparison: Comparison) -> str:
    """The title of the page: the experiment's, else the arms, or its factors where there are many arms."""
    if comparison.experiment.title:
        return comparison.experiment.title
    if len(comparison.arms) <= COLUMNS_MAX:
        return " against ".join(arm.label for arm in comparison.arms)
    return f"{len(comparison.arms)} arms: {', '.join(factor.title for factor in comparison.factors)}"


def run_definitions(comparison: Comparison) -> list[tuple[str, Pairs]]:
    """Titled lists of (name, value): workload, machine, course of the experiment."""
    record = record_of(comparison)
    workload = [
        (name.replace("_", " "), plain(value)) for name, value in record.workload.items() if name not in _ELSEWHERE
    ]
    return [("Workload", workload), ("Machine", _machine(comparison)), ("Course", _course(comparison))]


def resolved_volumes(comparison: Comparison) -> list[tuple[str, tuple[int, int], Pairs]]:
    """Each different volume: name, (arm's place, its index) for the colour, what its specification was resolved to.

    Where there are many arms, a volume that several have is listed once.
    """
    many = len(comparison.arms) > COLUMNS_MAX
    listed: list[tuple[str, tuple[int, int], Pairs]] = []
    seen: list[tuple[str, dict[str, Any]]] = []
    for place, arm in enumerate(comparison.arms):
        for role, volume in arm.volumes.items():
            if (role, volume.resolved) in seen and many:
                continue
            seen.append((role, volume.resolved))
            result = role == DATA and not many and [factor.name for factor in comparison.factors] == [VOLUME]
            first = [("as given", arm.volume)] if result else []
            pairs = [*first, *_resolved(volume.resolved, arm.volume)]
            if pairs:
                name = "" if many else arm.label if role == DATA else f"{arm.label}: "
                of_role = "" if role == DATA and not many else f"{role} volume"
                kind = f" {volume.resolved.get('type', '')}" if many else ""
                listed.append((f"{name}{of_role}{kind}", (place, arm.index), pairs))
    return listed


def server_settings(comparison: Comparison) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """PostgreSQL's settings of the first run: those that differ from the built-in default, and the rest."""
    rows = sorted(_settings_of(comparison.arms[0]), key=lambda row: str(row["name"]))
    different = [
        row for row in rows if row["setting"] != row["boot_val"] and row["source"] != "default" and _matters(row)
    ]
    return different, [row for row in rows if row not in different]


def settings_by_arm(comparison: Comparison) -> list[tuple[str, tuple[str, ...]]]:
    """(setting, its value in each arm) of those that differ between arms; one that a server does not have is a dash."""
    every = [{str(row["name"]): row for row in _settings_of(arm) if _matters(row)} for arm in comparison.arms]
    names = sorted({name for rows in every for name in rows}) if len(every) > 1 else []
    settings_by_arm = []
    for name in names:
        values = tuple(_setting(rows.get(name)) for rows in every)
        # A setting that only one version has says what the version is, not what was chosen.
        chosen = any(rows[name]["source"] != "default" for rows in every if name in rows)
        if len(set(values)) > 1 and chosen:
            settings_by_arm.append((name, values))
    return settings_by_arm


def _setting(row: dict[str, Any] | None) -> str:
    return UNKNOWN if row is None else f"{row['setting']} {row['unit'] or ''}".strip()


def _matters(row: dict[str, Any]) -> bool:
    """Where files of a run lay says nothing about how the server was set."""
    return not str(row["name"]).endswith(("_file", "_directory", "_directories", "_path"))


def _settings_of(arm: ArmSummary) -> list[dict[str, Any]]:
    return list(arm.replicates[0].figures.run.table("postgres/settings").to_pylist())


def _across(comparison: Comparison, value_of: Any) -> list[str]:
    """The different values of all arms, in their order; three at most."""
    results = list(dict.fromkeys(value_of(arm.replicates[0].figures.record) for arm in comparison.arms))
    return results if len(results) <= 3 else [f"{len(results)} kinds"]


def _drivers(comparison: Comparison) -> list[str]:
    """Who drove; nothing of records that do not tell."""
    names = {"native": "pgdyno's driver", "hammerdb": "HammerDB", "loader": "pgdyno load", "replay": "pgdyno's replay"}

    def words(run: RunRecord) -> str:
        engine = "" if run.driver is None else names.get(run.driver.engine, run.driver.engine)
        if any(driver.host is not None for driver in run.drivers.values()):
            return f"{engine} on {', '.join(run.drivers)}"
        return f"{len(run.drivers)} processes of {engine}" if run.drivers else engine

    texts = [driver for driver in _across(comparison, words) if driver]
    return [f"driven by {' and '.join(texts)}"] if texts else []


def _machine(comparison: Comparison) -> Pairs:
    record = record_of(comparison)
    world = record.world
    instance, host = world.instance, world.host
    pairs = []
    if world.server is not None:
        pairs += [
            ("server", address(world.server.host, world.server.port)),
            ("database", plain(world.server.dbname)),
            ("role", plain(world.server.user)),
        ]
    if instance.type is not None:
        pairs.append(("instance type", f"{instance.type}, {instance.vcpus} vCPUs"))
        pairs += [(f"its EBS {name.replace('_', ' ')}", plain(value)) for name, value in instance.ebs.items()]
    if not world.existed:
        memory = UNKNOWN if instance.memory_bytes is None else size(instance.memory_bytes)
        pairs += [
            ("instance's memory", memory),
            ("instance's CPUs", _cpus(instance)),
        ]
    if world.file_system:
        systems = " and ".join(_across(comparison, lambda run: run.world.file_system or UNKNOWN))
        pairs.append(("file system", f"{systems}, {world.mount_options}" if world.mount_options else systems))
    clients = [words for words in _across(comparison, client_place) if words]
    if clients:
        pairs.append(("client", " and ".join(clients)))
    name = "driver's host" if world.existed else "host"
    servers = _across(comparison, _server)
    return [
        *pairs,
        (name, f"{host.cores} cores, {size(host.memory_bytes)}, Linux {host.kernel}{_idle(host.cpus_awake)}"),
        ("PostgreSQL", " and ".join(servers)),
        *_clock(comparison),
    ]


def _cpus(instance: InstanceRecord) -> str:
    share = "" if instance.cpu_share == 1 else f", {percent(instance.cpu_share)} of their time"
    return f"{instance.cpus or 'all, shared with the test harness'}{share}"


def _idle(cpus_awake: bool | None) -> str:
    """State of idle CPUs; empty where the record does not say."""
    return "" if cpus_awake is None else ", idle CPUs polled" if cpus_awake else ", idle CPUs slept"


def _server(run: RunRecord) -> str:
    return f"{run.postgres.version} ({run.postgres.source})"


def _clock(comparison: Comparison) -> Pairs:
    """Clocks of the servers; empty where they were the host's."""
    clocks = _across(comparison, server_clock)
    return [("its clock", " and ".join(words or HOSTS for words in clocks))] if any(clocks) else []


def _course(comparison: Comparison) -> Pairs:
    record, experiment = record_of(comparison), comparison.experiment
    warmup = next((phase.seconds for phase in record.phases if phase.name == "warmup"), 0.0)
    return [
        ("experiment", experiment.experiment_id),
        ("seed", str(experiment.seed)),
        ("replicates", _replicates(comparison)),
        *((factor.title, ", ".join(factor.cells)) for factor in comparison.factors if len(factor.levels) > 1),
        (
            ("measured", "each load as a whole")
            if record.bulk_load is not None
            else ("measured", "each run until its last query")
            if record.streams is not None
            else ("measured", "each replay as a whole")
            if record.replay is not None
            else ("warm-up, measured", f"{warmup:,.0f} s, {record.measure.seconds:,.0f} s")
        ),
        ("order of the runs", _order(comparison)),
        *(
            (name.replace("_", " "), plain(value))
            for name, value in experiment.settings.items()
            if not isinstance(value, dict | list) and name not in _ELSEWHERE
        ),
        *((f"version of {name}", value) for name, value in experiment.versions.items()),
    ]


def _replicates(comparison: Comparison) -> str:
    """As planned; with a budget, what came of it."""
    numbers = sorted({len(arm.replicates) for arm in comparison.arms})
    if len(numbers) < 2 or numbers[-1] <= comparison.experiment.replicates:
        return f"{comparison.experiment.replicates} of each arm"
    return f"{numbers[0]} to {numbers[-1]} of an arm, the more where they scatter"


def _resolved(spec: dict[str, Any], text: str) -> Pairs:
    flat: dict[str, Any] = {}
    for key, value in spec.items():
        if key == "spec" and value == text:
            continue
        if key == "size_bytes":
            flat[key] = size(int(value))
        elif isinstance(value, dict):
            # What is deeper are the model's tables, and an array's member, which the specification says in full.
            simple = {name: inner for name, inner in value.items() if not isinstance(inner, dict | list)}
            flat |= {f"{key}.{name}": inner for name, inner in simple.items()} if key != "params" else {}
        elif not isinstance(value, list):
            flat[key] = value
    order = [*(name for name in _NAMES if name in flat), *(name for name in flat if name not in _NAMES)]
    return [(_NAMES.get(name, name.replace("_", " ").replace(".", ", ")), plain(flat[name])) for name in order]


def _order(comparison: Comparison) -> str:
    """The arms in the order of their runs: by name, or by number where there are many."""
    many = len(comparison.arms) > COLUMNS_MAX
    labels = {arm.index: str(arm.index + 1) if many else arm.label for arm in comparison.arms}
    runs = sorted(
        (r.figures.record.experiment_id, r.figures.record.position, labels[arm.index])
        for arm in comparison.arms
        for r in arm.replicates
    )
    return ("arms " if many else "") + ", ".join(label for _, _, label in runs)
