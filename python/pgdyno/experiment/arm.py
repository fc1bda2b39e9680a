"""The experiment file as a typed model, and its arms: that document with one level of every factor put in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, permutations
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    ValidationError,
)

from pgdyno.base.errors import InputError
from pgdyno.experiment import factors as factors_module
from pgdyno.experiment.events import ALL, ON_SERVER, SERVER, CrashTable, EventTable
from pgdyno.experiment.origin import Origin, Path, misfit, refusal, toml_text
from pgdyno.experiment.tables import WORLD_KINDS, ClientTable, InstanceTable, PostgresTable, WorldTable, world_refusals
from pgdyno.kinds.registry import AnyWorkload, of_kind
from pgdyno.kinds.registry import read as read_workload
from pgdyno.workload.clients import clients_of
from pgdyno.workload.keys import Seconds
from pgdyno.workload.kind import KeyTable, Workload
from pgdyno.workload.outcome import WHOLE, shares_of

RTT_S_MAX = 5.0
"""Of this machine's time. A login takes about five round trips, and PostgreSQL gives it a minute (authentication_timeout)."""
KIND = ("workload", "kind")
TABLES = ("world", "instance", "postgres", "client", "workload")
NAME_LENGTH_MAX = 60
ARMS_MAX = 10_000
"""Each is read and planned on its own, about 2,000 a second. An arm has a run of a minute at least: these would take a week."""
Settings = Mapping[tuple[str, ...], Any]
"""What a level of a factor sets: path -> value."""


class ExperimentFile(KeyTable):
    """An experiment file."""

    schema_version: Literal[1]
    """Version of this format."""
    name: str = Field("", pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$|^$", max_length=NAME_LENGTH_MAX)
    """A short name; part of the name of the results. Default: the file's."""
    title: str = ""
    """Title of the report, in one line."""
    goal: str | None = None
    """What an arm must do to be recommended, for example `"tps>=2000, p99<=20ms"`. Default: be nearly as fast as the fastest."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Seed of the order of the runs and of all random draws."""
    replicates: Annotated[int, Field(ge=1, le=1000)] = 3
    """Runs of each arm; with `budget` the minimum."""
    design: factors_module.Design = "full"
    """`full`: every combination of the factors' levels is an arm. `one-at-a-time`: the first levels together, then each other level alone."""
    budget_s: Annotated[Seconds, Field(gt=0)] | None = Field(None, alias="budget")
    """Time for the experiment, for example `40min`: what the replicates leave of it is spent on more runs of the arms that scatter most."""
    world: WorldTable = Field(default_factory=WorldTable)
    instance: InstanceTable = Field(default_factory=lambda: InstanceTable.model_validate({}))
    postgres: PostgresTable = Field(default_factory=PostgresTable)
    client: ClientTable = Field(default_factory=ClientTable)
    workload: AnyWorkload = Field(default_factory=lambda: read_workload({}))
    factors: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Dotted key -> its levels. Every combination is an arm (see `design`); the others are compared with the first one. A name without a dot sets several keys at once: its levels are tables of them."""
    event: tuple[EventTable, ...] = ()
    """What happens during each run; written as `[[event]]`."""
    crash: CrashTable = Field(default_factory=lambda: CrashTable.model_validate({}))


@dataclass(frozen=True)
class Arm:
    """One combination of levels, with everything that it asks for."""

    index: int
    label: str
    """Its levels joined; for a single factor the level itself."""
    levels: dict[str, str]
    """Factor -> level, in words."""
    file: ExperimentFile = field(repr=False)
    """The document with the levels put in."""
    places: dict[tuple[str, ...], Path] = field(repr=False, default_factory=dict)
    """Path of a value that a factor set -> path of the level in ``factors``."""

    @property
    def world(self) -> WorldTable:
        """What PostgreSQL stands on."""
        return self.file.world

    @property
    def instance(self) -> InstanceTable:
        """The machine it is given."""
        return self.file.instance

    @property
    def postgres(self) -> PostgresTable:
        """The server."""
        return self.file.postgres

    @property
    def client(self) -> ClientTable:
        """Where the driver stands."""
        return self.file.client

    @property
    def workload(self) -> Workload:
        """What it is asked to do."""
        return self.file.workload

    @property
    def crash(self) -> CrashTable:
        """How often the power is cut after each of its runs."""
        return self.file.crash

    @property
    def events(self) -> tuple[EventTable, ...]:
        """What happens during each of its runs, in time's order."""
        return tuple(sorted(self.file.event, key=lambda event: event.at_s))

    def sized(self, memory_bytes: int) -> Arm:
        """The same with as much data as ``workload.data_to_memory`` asks for on an instance of so much memory."""
        return self.with_workload(self.workload.sized(memory_bytes))

    def with_workload(self, workload: Workload) -> Arm:
        """The same with another workload."""
        if workload is self.workload:
            return self
        return replace(self, file=self.file.model_copy(update={"workload": workload}))

    def written(self, path: Sequence[str | int]) -> tuple[str | int, ...]:
        """Where a value of this arm was written: in its table, or among a factor's levels."""
        wanted = tuple(path)
        for target, place in self.places.items():
            if wanted[: len(target)] == target:
                return place
        return wanted


def read(
    document: Mapping[str, Any], origin: Origin, places: Mapping[tuple[str, ...], Path] | None = None
) -> ExperimentFile:
    """The file that a document is, or an :class:`InputError` with the place of what is wrong.

    ``places`` says which of its values were written elsewhere: among a factor's levels.
    """
    moved = places or {}
    levels_of = document.get("factors")
    if isinstance(levels_of, dict):
        document = _of_kind(document, levels_of.get(".".join(KIND)))
    try:
        file = ExperimentFile.model_validate(dict(document))
    except ValidationError as error:
        path, message = refusal(error, ExperimentFile, document)
        if path == ("schema_version",) and message == "is missing":
            message = "schema_version = 1 is missing"
            path = ()
        raise _at(path, message, moved, origin) from error
    if (results := misfit(ExperimentFile, document)) is not None:
        raise _at(*results, moved, origin)
    return file


def _of_kind(document: Mapping[str, Any], levels: Any, kind: Any = None) -> Mapping[str, Any]:
    """The document with one level of the factor ``workload.kind``, the first by default, and without keys of the others alone."""
    table = document.get("workload", {})
    if not isinstance(levels, list | tuple) or not levels or not isinstance(table, dict):
        return document
    return {**document, "workload": of_kind(table, levels[0] if kind is None else kind, levels)}


def _at(path: Path, message: str, moved: Mapping[tuple[str, ...], Path], origin: Origin) -> Exception:
    """An error about the value of ``path``, where it was written."""
    written = next((place for target, place in moved.items() if path[: len(target)] == target), path)
    if written != path and len(path) > 1:
        message = f"{'.'.join(map(str, path))}: {message}" if path not in moved else message
    return origin.error(written, message)


def arms_of(document: Mapping[str, Any], file: ExperimentFile, origin: Origin) -> tuple[Arm, ...]:
    """The combinations of the factors' levels that the design has, each read as a document of its own."""
    if (arms_count := factors_module.arms_count(file.factors, file.design)) > ARMS_MAX:
        raise origin.error(
            ("factors",),
            f"{arms_count:,} arms, of {ARMS_MAX:,} that an experiment may have",
            'use fewer levels, or design = "one-at-a-time"',
            code="experiment.arms.too_many",
            data={"arms": arms_count, "arms_max": ARMS_MAX},
        )
    settings = {name: _settings(name, levels, origin) for name, levels in file.factors.items()}
    for name, levels in file.factors.items():
        if (twice := _second([repr(level) for level in levels])) is not None and len(file.factors) > 1:
            raise origin.error(
                ("factors", name, twice),
                f"{toml_text(levels[twice])} appears twice",
                "the same level twice, to show the noise, needs an experiment with that factor alone",
                code="experiment.level.twice",
            )
        if factors_module.is_several(name, levels):
            names = [factors_module.name_of_level(level) for level in levels]
            if (alike := _second(names)) is not None:
                raise origin.error(
                    ("factors", name, alike),
                    f"two levels are called {names[alike]}, and a report could not tell them apart",
                    "give each level a name of its own",
                    code="experiment.level.same_name",
                    data={"name": names[alike]},
                )
    _require_apart(settings, origin)
    several = {name: factors_module.is_several(name, levels) for name, levels in file.factors.items()}
    base = {key: value for key, value in document.items() if key != "factors"}
    texts_of = {name: factors_module.level_texts(name, levels) for name, levels in file.factors.items()}
    arms = []
    for index, chosen in enumerate(factors_module.combinations(file.factors, file.design)):
        picked = dict(zip(file.factors, chosen, strict=True))
        # The wider key first: a whole table would overwrite what another factor has set in it.
        put_in = sorted(
            ((path, value, name) for name, place in picked.items() for path, value in settings[name][place].items()),
            key=lambda item: len(item[0]),
        )
        values = {path: value for path, value, _ in put_in}
        # The narrower key first: the first that fits says where a value was written.
        places: dict[tuple[str, ...], Path] = {
            path: ("factors", name, picked[name], *(path if several[name] else ()))
            for path, _, name in reversed(put_in)
        }
        of_arm = _of_kind(base, file.factors.get(".".join(KIND)), values.get(KIND))
        arm_file = read(factors_module.substituted(of_arm, values), origin, places)
        levels_of = {name: texts_of[name][number] for name, number in picked.items()}
        parts = [
            factors_module.label_part(name, text, file.factors[name][picked[name]]) for name, text in levels_of.items()
        ]
        arm = Arm(index, factors_module.SEPARATOR.join(parts) or _only(arm_file), levels_of, arm_file, places)
        _require_complete(arm, origin)
        arms.append(arm)
    return tuple(arms)


def _second(values: Sequence[Any]) -> int | None:
    """The place of the first value that was there before, None aside; None where each occurs once."""
    seen = set()
    for place, value in enumerate(values):
        if value is not None and value in seen:
            return place
        seen.add(value)
    return None


def _require_apart(settings: Mapping[str, Sequence[Settings]], origin: Origin) -> None:
    """Refuse a level that says, in a table, what another factor sets there: its label would name what was not run."""
    for wide, narrow in permutations(settings, 2):
        of_narrow = dict.fromkeys(path for level in settings[narrow] for path in level)
        for number, level in enumerate(settings[wide]):
            for inside in of_narrow:
                if (table := _said_in(level, inside)) is None:
                    continue
                key = ".".join(inside)
                by = "" if key == narrow else f", {narrow}"
                raise origin.error(
                    ("factors", wide, number),
                    f"{key} is also a factor{by}, so every arm has one of its levels instead of this value",
                    f"omit {'.'.join(inside[len(table) :]) or key} here, or remove the other factor",
                )


def _said_in(level: Settings, inside: tuple[str, ...]) -> tuple[str, ...] | None:
    """The path of a level's value that is, or has in it, the value at another path; None where none has."""
    for table, value in level.items():
        if table == inside or (
            inside[: len(table)] == table and isinstance(value, Mapping) and inside[len(table)] in value
        ):
            return table
    return None


def _settings(name: str, levels: Sequence[Any], origin: Origin) -> Sequence[Settings]:
    """What each level of a factor sets."""
    place, several = ("factors", name), factors_module.is_several(name, levels)
    try:
        settings = factors_module.paths_of(ExperimentFile, name, levels)
    except factors_module.UnknownKey as error:
        key = f"`{error.part}`, which a level has" if several else f"`{name}`"
        raise origin.error(place, f"an experiment has no key {key}{error}") from None
    for path in dict.fromkeys(path for level in settings for path in level):
        if path[0] not in TABLES or len(path) < 2:
            what = "sets keys" if several else "is a key"
            raise origin.error(place, f"a factor {what} of {', '.join(TABLES)}, such as `world.volume`")
        if path in (("world", "kind"), ("world", "dsn")):
            raise origin.error(place, "an experiment has one world", "write a file for each server")
        if several and path == KIND:
            raise origin.error(place, "workload.kind cannot be set beside other keys", "make it a factor of its own")
    odd = next((number for number, level in enumerate(settings) if level.keys() != settings[0].keys()), None)
    if odd is not None or not settings[0]:
        keys = ", ".join(".".join(path) for path in settings[0])
        message = f"every level of `{name}` sets the same keys, and the first has {keys or 'none'}"
        raise origin.error((*place, odd or 0), message, "write them all in each level")
    return settings


def _only(file: ExperimentFile) -> str:
    """The label of the only arm of an experiment without factors: what it stands on."""
    return file.world.placement.get("data") or WORLD_KINDS[file.world.kind].label


def _require_complete(arm: Arm, origin: Origin) -> None:
    """What an arm needs that the file may leave to the factors, and what does not go together in it."""
    world = arm.world
    own = chain(arm.workload.refusals(), arm.workload.refusals_in_time(world.dilation))
    if (refused := next(own, None)) is not None:
        place = arm.written(("workload", *refused.key.split(".")))
        raise origin.error(place, refused.message, refused.remedy)
    if arm.client.rtt_ms / 1000 * world.dilation > RTT_S_MAX:
        raise origin.error(
            arm.written(("client", "rtt_ms")),
            f"a round trip of {arm.client.rtt_ms:g} ms takes {arm.client.rtt_ms / 1000 * world.dilation:g} s at dilation"
            f" {world.dilation}, and may take {RTT_S_MAX:g}: the log-in would time out",
            "use a shorter round trip, or less dilation",
        )
    for path, message, remedy in chain(world_refusals(arm), _event_refusals(arm), _driver_refusals(arm)):
        raise origin.error(arm.written(path), message, remedy)


def _driver_refusals(arm: Arm) -> Iterator[tuple[Path, str, str]]:
    """Drivers that cannot share the load of this arm."""
    weights, clients, key = arm.client.weights, clients_of(arm.workload), ("client", "drivers")
    if arm.client.drivers == WHOLE:
        return
    if clients is not None and clients.command != ("drive",):
        yield key, f'kind = "{clients.kind}" has one driver', "remove the key"
        return
    if clients is None or clients.driver != "native":
        message = f"only pgdyno's own driver can begin at a given instant, not {arm.workload.driver}"
        yield key, message, "remove the key" if clients is None else 'use engine = "native"'
        return
    try:
        shares_of(weights, clients.clients, clients.threads, arm.client.hosts)
    except InputError as error:
        yield key, error.message, error.remedy
    if not arm.client.hosts:
        return
    if arm.client.rtt_ms > 0:
        message = "the drivers are on other hosts, whose distance is measured: another cannot be emulated"
        yield ("client", "rtt_ms"), message, "remove the key, or use drivers of this machine"
    if arm.workload.driver_cpus:
        yield (
            ("workload", "driver_cpus"),
            "the drivers are on other hosts, and this names CPUs of this one",
            "remove the key",
        )


def _event_refusals(arm: Arm) -> Iterator[tuple[Path, str, str]]:
    """Events that cannot happen in a run of this arm: place, what is wrong, remedy."""
    measure_s = arm.workload.phases_s[1]
    for number, event in enumerate(arm.file.event):
        if event.target == ALL and len(arm.world.placement) > 1 and arm.instance.type is None:
            message = (
                "volumes without an instance type have daemons of their own, and snapshots of them no instant in common"
            )
            yield ("event", number, "on"), message, "write instance.type, or name a role"
        elif event.target not in (SERVER, ALL) and event.target not in arm.world.placement:
            remedy = f"there are {', '.join(arm.world.placement)}"
            yield ("event", number, "on"), f"there is no volume for `{event.target}`", remedy
        if measure_s and event.at_s >= measure_s:
            longer = "use an earlier time, or a longer workload.duration"
            yield ("event", number, "at"), f"measuring ends after {measure_s:g} s", longer
        if event.do in ON_SERVER and arm.workload.driver != "native":
            message = f"it ends the connections of the clients, and only pgdyno's own driver connects again, not {arm.workload.driver}"
            yield ("event", number, "do"), message, 'use engine = "native"'
