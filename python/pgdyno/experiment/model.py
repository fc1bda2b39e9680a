"""An experiment: what is asked for, its arms, and every run in its order.

An experiment file is a document of the tables in :mod:`pgdyno.experiment.tables`. An arm is that document with one
level of every factor put in. ``pgdyno compare`` makes such a document from its flags.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError

from pgdyno.experiment import factors as factors_module
from pgdyno.experiment.origin import Origin, refusal
from pgdyno.experiment.tables import InstanceTable, PostgresTable, Table, WorkloadTable, WorldTable, public_dsn

TABLES = ("world", "instance", "postgres", "workload")


class ExperimentFile(Table):
    """An experiment file."""

    schema_version: Literal[1]
    """Version of this format."""
    name: str = Field("", pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$|^$", max_length=60)
    """A short name; part of the name of the results. Default: the file's."""
    title: str = ""
    """What the experiment is about, in one line; the report's title."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Decides the order of the runs and every random draw."""
    replicates: Annotated[int, Field(ge=1, le=1000)] = 3
    """Runs of each arm."""
    world: WorldTable = Field(default_factory=WorldTable)
    instance: InstanceTable = Field(default_factory=lambda: InstanceTable.model_validate({}))
    postgres: PostgresTable = Field(default_factory=PostgresTable)
    workload: WorkloadTable = Field(default_factory=lambda: WorkloadTable.model_validate({}))
    factors: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """Dotted key -> its levels. Every combination is an arm; the first one is what the others are compared to."""


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
    places: dict[tuple[str, ...], tuple[str | int, ...]] = field(repr=False, default_factory=dict)
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
    def workload(self) -> WorkloadTable:
        """What it is asked to do."""
        return self.file.workload

    def written(self, path: Sequence[str | int]) -> tuple[str | int, ...]:
        """Where a value of this arm was written: in its table, or among a factor's levels."""
        wanted = tuple(path)
        for target, place in self.places.items():
            if wanted[: len(target)] == target:
                return place
        return wanted


@dataclass(frozen=True)
class Cell:
    """One run of an experiment: one arm, one replicate. A cell and the experiment say everything about it."""

    position: int
    """Order in which the cells are run, from 0."""
    block: int
    """The replicate, from 1. Every arm runs once in each block, and ratios are paired within blocks."""
    arm: Arm


@dataclass(frozen=True)
class Experiment:
    """A sound experiment. Make one with :meth:`of`."""

    document: dict[str, Any]
    """As it was written, with what the command line set."""
    file: ExperimentFile
    arms: tuple[Arm, ...]
    origin: Origin = field(default_factory=Origin)
    kind: str = "run"
    """The command that made it."""

    @classmethod
    def of(cls, document: Mapping[str, Any], origin: Origin | None = None, *, kind: str = "run") -> Self:
        """The experiment of a document, or an :class:`InputError` that names the place of what is wrong."""
        where = origin or Origin()
        file = _read(document, where, _Nothing)
        return cls(dict(document), file, _arms(document, file, where), where, kind)

    @property
    def name(self) -> str:
        """Its short name."""
        return self.file.name or self.kind

    @property
    def real(self) -> bool:
        """Whether it measures a server that exists already."""
        return self.arms[0].world.kind == "real"

    @property
    def seed(self) -> int:
        """Decides the order of the runs and every random draw."""
        return self.file.seed

    @property
    def replicates(self) -> int:
        """Runs of each arm."""
        return self.file.replicates

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """Factor -> its levels in words."""
        return {name: factors_module.level_texts(name, levels) for name, levels in self.file.factors.items()}

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every run in its order: blocks one after the other, the arms of a block in a seeded order."""
        order = random.Random(f"pgdyno order {self.seed}")
        cells: list[Cell] = []
        for block in range(1, self.replicates + 1):
            arms = list(self.arms)
            order.shuffle(arms)
            for arm in arms:
                cells.append(Cell(len(cells), block, arm))
        return tuple(cells)

    def seed_of(self, block: int, purpose: str) -> int:
        """A seed for one purpose in one block. The arms of a block share it, so that they meet the same draws."""
        digest = hashlib.sha256(f"pgdyno {self.seed} {block} {purpose}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 2

    def identity(self) -> dict[str, Any]:
        """What can change a result. Seed, number of replicates and order cannot change what is estimated."""
        return {name: value for name, value in self.whole().items() if name not in ("seed", "replicates")}

    def whole(self) -> dict[str, Any]:
        """All that was asked for, with every default and in one notation: equal for files that mean the same."""
        return _public(self.file.model_dump(mode="json", by_alias=True, exclude={"name", "title"}))

    def settings(self) -> dict[str, Any]:
        """The document's tables, for a record: as they were written, but for the connection string."""
        return _public({key: value for key, value in self.document.items() if key in (*TABLES, "factors")})

    def error(self, arm: Arm, path: Sequence[str | int], message: str, remedy: str = "") -> Exception:
        """An error about a value of one arm, with the place where it was written."""
        return self.origin.error(arm.written(path), message, remedy)


def _public(document: dict[str, Any]) -> dict[str, Any]:
    """A document whose connection string says where a server is and nothing else."""
    world = document.get("world")
    if not isinstance(world, dict) or world.get("dsn") is None:
        return document
    return document | {"world": world | {"dsn": public_dsn(world["dsn"])}}


_Nothing: dict[tuple[str, ...], tuple[str | int, ...]] = {}


def _read(
    document: Mapping[str, Any], origin: Origin, places: Mapping[tuple[str, ...], tuple[str | int, ...]]
) -> ExperimentFile:
    try:
        return ExperimentFile.model_validate(dict(document))
    except ValidationError as error:
        path, message = refusal(error, ExperimentFile, document)
        if path == ("schema_version",) and message == "is missing":
            message = "schema_version = 1 is missing"
            path = ()
        written = next((place for target, place in places.items() if path[: len(target)] == target), path)
        if written != path and len(path) > 1:
            message = f"{'.'.join(map(str, path))}: {message}" if path not in places else message
        raise origin.error(written, message) from error


def _arms(document: Mapping[str, Any], file: ExperimentFile, origin: Origin) -> tuple[Arm, ...]:
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
    base = {key: value for key, value in document.items() if key != "factors"}
    texts_of = {name: factors_module.level_texts(name, levels) for name, levels in file.factors.items()}
    arms = []
    for index, chosen in enumerate(factors_module.combinations(file.factors)):
        picked = dict(zip(file.factors, chosen, strict=True))
        values = {paths[name]: file.factors[name][number] for name, number in picked.items()}
        places: dict[tuple[str, ...], tuple[str | int, ...]] = {
            paths[name]: ("factors", name, number) for name, number in picked.items()
        }
        arm_file = _read(factors_module.substituted(base, values), origin, places)
        levels_of = {name: texts_of[name][number] for name, number in picked.items()}
        parts = [
            factors_module.label_part(name, text, file.factors[name][picked[name]]) for name, text in levels_of.items()
        ]
        arm = Arm(index, factors_module.SEPARATOR.join(parts) or _only(arm_file), levels_of, arm_file, places)
        _require_complete(arm, origin)
        arms.append(arm)
    return tuple(arms)


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
    """What an arm needs that the file may leave to the factors."""
    world = arm.world
    if world.kind == "emulated" and "data" not in world.placement:
        raise origin.error(("world",), 'there is no volume for the data; write volume = "gp3"')
    for key, name in arm.workload.tablespaces.items() if world.kind == "emulated" else ():
        if f"tablespace.{name}" not in world.placement:
            place = arm.written(("workload", key))
            raise origin.error(place, f'there is no volume for it; write "tablespace.{name}" in world.volumes')
    if world.kind == "real":
        if world.dsn is None:
            raise origin.error(("world",), 'kind = "real" needs a dsn', "write dsn in the file, or give --dsn")
        for table, asked in (("instance", arm.instance), ("postgres", arm.postgres)):
            for key in sorted(asked.model_fields_set - {"bin"}):
                raise origin.error(
                    arm.written((table, key.removesuffix("_bytes"))),
                    'a real server is measured as it is; nothing of it is set with kind = "real"',
                    "remove the key",
                )
