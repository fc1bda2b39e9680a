"""An experiment: what is asked for, its arms, and every run in its order.

An experiment file is a document of the tables in :mod:`pgdyno.experiment.arm`. ``pgdyno compare`` makes such a document
from its flags.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count, islice
from typing import Any, Self

from pgdyno.experiment import factors as factors_module
from pgdyno.experiment.arm import KIND, TABLES, Arm, ExperimentFile, arms_of, read
from pgdyno.experiment.origin import Origin, control_characters
from pgdyno.workload.database import is_connection
from pgdyno.workload.outcome import WHOLE

from ..base.endpoint import public_dsn
from ..base.goal import read_goal, require_measured
from ..base.text import has_control

CONNECTIONS = (("world", "dsn"), ("workload", "database", "from"))
"""Keys that may hold a connection string."""
_BESIDE = ("factors", "design", "budget", "event", "crash", "goal")
"""What a record keeps of a document beside its tables; name, title, seed and replicates have fields of their own."""


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
        for place, text in control_characters(document):
            character = next(f"U+{ord(letter):04X}" for letter in text if has_control(letter))
            raise where.error(
                place,
                f"it has the control character {character}, which neither a terminal nor a page shows",
                f"remove it; TOML writes it as \\u{character[2:].lower()}",
                code="experiment.text.control",
                data={"character": character},
            )
        file = read(document, where)
        arms = arms_of(document, file, where)
        if file.goal is not None:
            with where.explained(("goal",)):
                require_measured(read_goal(file.goal), {arm.workload.headline for arm in arms})
        return cls(dict(document), file, arms, where, kind)

    @property
    def name(self) -> str:
        """Its short name."""
        return self.file.name or self.kind

    @property
    def world_kind(self) -> str:
        """The name of the world that all its arms are in."""
        return self.arms[0].world.kind

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
        """Every planned run in its order: blocks one after the other, the arms of a block in a seeded order."""
        return tuple(chain.from_iterable(islice(self.blocks(), self.replicates)))

    def blocks(self) -> Iterator[tuple[Cell, ...]]:
        """Blocks without end, each with a run of every arm. Where a cell stands does not depend on which others are run."""
        order = random.Random(f"pgdyno order {self.seed}")
        for block in count(1):
            arms = list(self.arms)
            order.shuffle(arms)
            first = (block - 1) * len(arms)
            yield tuple(Cell(first + place, block, arm) for place, arm in enumerate(arms))

    def seed_of(self, block: int, purpose: str) -> int:
        """A seed for one purpose in one block. The arms of a block share it, so that they meet the same draws."""
        digest = hashlib.sha256(f"pgdyno {self.seed} {block} {purpose}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 2

    def identity(self) -> dict[str, Any]:
        """What can change a result. Seed, number of runs and order cannot change what is estimated."""
        identity = {name: value for name, value in self.whole().items() if name not in ("seed", "replicates", "budget")}
        (identity.get("workload", {}).get("load") or {}).pop("times", None)
        return identity

    def whole(self) -> dict[str, Any]:
        """All that was asked for, with every default and in one notation: equal for files that measure the same."""
        model_dump = self.file.model_dump(mode="json", by_alias=True, exclude={"name", "title", "goal"})
        if not self.file.event:
            del model_dump["event"]  # experiments of before there were events are the same
        if not self.file.crash.cuts:
            del model_dump["crash"]  # likewise
        for event in model_dump.get("event", ()):
            if event["do"] != "snapshot":
                del event["rate"]  # likewise
            if event["member"] is None:
                del event["member"]
        if self.file.client.drivers == WHOLE:
            del model_dump["client"]["drivers"]  # likewise
        if not self.file.postgres.given_up:
            del model_dump["postgres"]["given_up"]
        if self.file.instance.cpu_share == 1:
            del model_dump["instance"]["cpu_share"]
        if not self.file.world.restored:
            del model_dump["world"]["restored"]
        if ".".join(KIND) in self.file.factors:
            model_dump["workload"] = deepcopy(
                self.document.get("workload", {})
            )  # the file's has the keys of one kind alone
        return _public(model_dump)

    def settings(self) -> dict[str, Any]:
        """The document's tables, for a record: as they were written, but for the connection string."""
        return _public({key: value for key, value in self.document.items() if key in (*TABLES, *_BESIDE)})

    def error(self, arm: Arm, path: Sequence[str | int], message: str, remedy: str = "") -> Exception:
        """An error about a value of one arm, with the place where it was written."""
        return self.origin.error(arm.written(path), message, remedy)


def _public(document: dict[str, Any]) -> dict[str, Any]:
    """A document whose connection strings say where a server is and nothing else."""
    for path in CONNECTIONS:
        table: Any = document
        for key in path:
            table = table.get(key) if isinstance(table, dict) else None
        if isinstance(table, str) and (path[-1] == "dsn" or is_connection(table)):
            document = factors_module.substituted(document, {path: public_dsn(table)})
    return document
