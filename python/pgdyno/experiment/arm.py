"""The experiment file as a typed model, and its arms: that document with one level of every factor put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from pgdyno.experiment import factors as factors_module
from pgdyno.experiment.origin import Origin, Path, refusal
from pgdyno.experiment.quantity import Seconds
from pgdyno.experiment.tables import ClientTable, InstanceTable, PostgresTable, Table, WorkloadTable, WorldTable

TABLES = ("world", "instance", "postgres", "client", "workload")
NAME_LENGTH_MAX = 60


class ExperimentFile(Table):
    """An experiment file."""

    schema_version: Literal[1]
    """Version of this format."""
    name: str = Field("", pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$|^$", max_length=NAME_LENGTH_MAX)
    """A short name; part of the name of the results. Default: the file's."""
    title: str = ""
    """What the experiment is about, in one line; the report's title."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Decides the order of the runs and every random draw."""
    replicates: Annotated[int, Field(ge=1, le=1000)] = 3
    """Runs of each arm; with `budget` the fewest."""
    design: factors_module.Design = "full"
    """`full`: every combination of the factors' levels is an arm. `one-at-a-time`: the first levels together, then each other level alone."""
    budget_s: Annotated[Seconds, Field(gt=0)] | None = Field(None, alias="budget")
    """How long the experiment may take, as `40min`: what the replicates leave of it goes to more runs of the arms that scatter most."""
    world: WorldTable = Field(default_factory=WorldTable)
    instance: InstanceTable = Field(default_factory=lambda: InstanceTable.model_validate({}))
    postgres: PostgresTable = Field(default_factory=PostgresTable)
    client: ClientTable = Field(default_factory=ClientTable)
    workload: WorkloadTable = Field(default_factory=lambda: WorkloadTable.model_validate({}))
    factors: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Dotted key -> its levels. Every combination is an arm (see `design`); the first one is what the others are compared to."""


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
    def workload(self) -> WorkloadTable:
        """What it is asked to do."""
        return self.file.workload

    def sized(self, memory_bytes: int) -> Arm:
        """The same with as much data as ``workload.data_to_memory`` asks for on an instance of so much memory."""
        workload = self.workload.sized(memory_bytes)
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
    try:
        return ExperimentFile.model_validate(dict(document))
    except ValidationError as error:
        path, message = refusal(error, ExperimentFile, document)
        if path == ("schema_version",) and message == "is missing":
            message = "schema_version = 1 is missing"
            path = ()
        written = next((place for target, place in moved.items() if path[: len(target)] == target), path)
        if written != path and len(path) > 1:
            message = f"{'.'.join(map(str, path))}: {message}" if path not in moved else message
        raise origin.error(written, message) from error


def arms_of(document: Mapping[str, Any], file: ExperimentFile, origin: Origin) -> tuple[Arm, ...]:
    """The combinations of the factors' levels that the design has, each read as a document of its own."""
    paths = {name: _target(name, origin) for name in file.factors}
    for name, levels in file.factors.items():
        texts = [repr(level) for level in levels]
        twice = next((place for place, text in enumerate(texts) if text in texts[:place]), None)
        if twice is not None and len(file.factors) > 1:
            raise origin.error(
                ("factors", name, twice),
                f"{levels[twice]!r} is there twice",
                "the same level twice shows the noise, in an experiment of that factor alone",
            )
    _require_apart(file, paths, origin)
    # The wider key first: a table that is put in whole would take away what another factor has set in it.
    widest_first = sorted(paths, key=lambda name: len(paths[name]))
    base = {key: value for key, value in document.items() if key != "factors"}
    texts_of = {name: factors_module.level_texts(name, levels) for name, levels in file.factors.items()}
    arms = []
    for index, chosen in enumerate(factors_module.combinations(file.factors, file.design)):
        picked = dict(zip(file.factors, chosen, strict=True))
        values = {paths[name]: file.factors[name][picked[name]] for name in widest_first}
        # The narrower key first: the first that fits says where a value was written.
        places: dict[tuple[str, ...], Path] = {
            paths[name]: ("factors", name, picked[name]) for name in reversed(widest_first)
        }
        arm_file = read(factors_module.substituted(base, values), origin, places)
        levels_of = {name: texts_of[name][number] for name, number in picked.items()}
        parts = [
            factors_module.label_part(name, text, file.factors[name][picked[name]]) for name, text in levels_of.items()
        ]
        arm = Arm(index, factors_module.SEPARATOR.join(parts) or _only(arm_file), levels_of, arm_file, places)
        _require_complete(arm, origin)
        arms.append(arm)
    return tuple(arms)


def _require_apart(file: ExperimentFile, paths: Mapping[str, tuple[str, ...]], origin: Origin) -> None:
    """Refuse a level that says, in a table, what another factor sets there: its label would name what was not run."""
    for wide, narrow in permutations(paths, 2):
        table, inside = paths[wide], paths[narrow]
        if len(inside) <= len(table) or inside[: len(table)] != table:
            continue
        for number, level in enumerate(file.factors[wide]):
            if isinstance(level, Mapping) and inside[len(table)] in level:
                raise origin.error(
                    ("factors", wide, number),
                    f"{narrow} is a factor too, so every arm has one of its levels instead of what stands here",
                    f"leave {inside[len(table)]} away here, or remove the other factor",
                )


def _target(name: str, origin: Origin) -> tuple[str, ...]:
    place = ("factors", name)
    try:
        path = factors_module.target(ExperimentFile, name)
    except factors_module.UnknownKey as error:
        raise origin.error(place, f"an experiment has no key `{name}`{error}") from None
    if path[0] not in TABLES or len(path) < 2:
        raise origin.error(place, f"a factor is a key of {', '.join(TABLES)}, such as `world.volume`")
    if path in (("world", "kind"), ("world", "dsn")):
        raise origin.error(place, "an experiment is in one world", "write a file for each server")
    return path


def _only(file: ExperimentFile) -> str:
    """The label of the only arm of an experiment without factors: what it stands on."""
    return file.world.placement.get("data") or "real server"


def _require_complete(arm: Arm, origin: Origin) -> None:
    """What an arm needs that the file may leave to the factors, and what does not go together in it."""
    world = arm.world
    if (refusal := arm.workload.refusal()) is not None:
        key, message = refusal
        raise origin.error(arm.written(("workload", key)), message)
    if rates := arm.workload.rates_instead(world.dilation):
        second = "a second" if world.dilation == 1 else f"in a second of the host, which is 1/{world.dilation} here"
        raise origin.error(
            arm.written(("workload", "rate_per_s")),
            f"sysbench begins a whole number of transactions {second}, so it cannot drive {arm.workload.rate_per_s:g}/s",
            f'ask for {" or ".join(map(str, rates))}, or take engine = "native", which drives any rate',
        )
    if arm.workload.transactions is not None and arm.workload.warmup_s > 0:
        place = arm.written(("workload", "transactions"))
        raise origin.error(place, "so many transactions are all measured, none is warm-up", 'write warmup = "0s"')
    if world.kind == "emulated" and "data" not in world.placement:
        raise origin.error(("world",), 'there is no volume for the data; write volume = "gp3"')
    for key, name in arm.workload.tablespaces.items() if world.kind == "emulated" else ():
        if f"tablespace.{name}" not in world.placement:
            place = arm.written(("workload", key))
            raise origin.error(place, f'there is no volume for it; write "tablespace.{name}" in world.volumes')
    if world.kind == "real":
        if world.dsn is None:
            raise origin.error(("world",), 'kind = "real" needs a dsn', "write dsn in the file, or give --dsn")
        for path, said in (
            (("workload", "data_to_memory"), arm.workload.data_to_memory is not None),
            (("workload", "load", "limited"), arm.workload.load.limited),
        ):
            if said:
                raise origin.error(
                    arm.written(path),
                    'it needs an instance and volumes of an emulated world; with kind = "real" they are what they are',
                    "remove the key",
                )
        if arm.workload.kind == "load":
            raise origin.error(
                arm.written(("workload", "kind")),
                "each of its runs begins with empty tables, which a server that exists already does not have",
                "`pgdyno load` loads files there, once, and says what limits it",
            )
        if arm.client.rtt_ms > 0:
            raise origin.error(
                arm.written(("client", "rtt_ms")),
                'a distance is emulated to a server that pgdyno starts; with kind = "real" it is what it is',
                "remove the key",
            )
        for table, asked in (("instance", arm.instance), ("postgres", arm.postgres)):
            for key in sorted(asked.model_fields_set - {"bin"}):
                raise origin.error(
                    arm.written((table, key.removesuffix("_bytes"))),
                    'a real server is measured as it is; nothing of it is set with kind = "real"',
                    "remove the key",
                )
