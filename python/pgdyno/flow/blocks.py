"""Which block a host makes next, where runs are spread over hosts.

Ratios are paired within a block, so all runs of a block are of one host. What has been done is known from the runs that are there: a
block is of the host that they name. One whose host is gone is left as it is, and another is made under a number that is free.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, islice

from pgdyno.experiment import Cell, Experiment

from ..results.record import RunRecord


class Blocks:
    """The blocks of an experiment, until as many are whole as there are replicates."""

    def __init__(self, experiment: Experiment, runs: Iterable[RunRecord], hosts: Iterable[str]) -> None:
        """``runs`` are those that are there, ``hosts`` those that can make more."""
        self._experiment = experiment
        self._alive = set(hosts)
        self._host_of: dict[int, str | None] = {}
        self._done: dict[int, set[int]] = {}
        for run in runs:
            self._host_of[run.block] = run.world.host.label
            self._done.setdefault(run.block, set()).add(run.position)

    def next_for(self, host: str) -> tuple[Cell, ...]:
        """The runs of the block that this host makes next, without those that are there; none where nothing is left for it."""
        own = [block for block, whose in self._host_of.items() if whose == host and not self.is_whole(block)]
        if own:
            block = min(own)
        elif self._on_the_way >= self._experiment.replicates:
            return ()
        else:
            block = next(number for number in count(1) if number not in self._host_of)
            self._host_of[block], self._done[block] = host, set()
        return tuple(cell for cell in self._cells(block) if cell.position not in self._done[block])

    def has_begun(self, host: str) -> bool:
        """Whether it has a block that is not whole."""
        return any(whose == host and not self.is_whole(block) for block, whose in self._host_of.items())

    def keep(self, cell: Cell) -> None:
        """A run is there."""
        self._done[cell.block].add(cell.position)

    def lose(self, host: str) -> list[int]:
        """A host is lost. The numbers of its blocks that are not whole; one of which nothing is there is free again."""
        self._alive.discard(host)
        left = [block for block, whose in self._host_of.items() if whose == host and not self.is_whole(block)]
        for block in left:
            if not self._done[block]:
                del self._host_of[block], self._done[block]
        return [block for block in left if block in self._host_of]

    def is_whole(self, block: int) -> bool:
        """Whether every arm has its run in it."""
        return len(self._done.get(block, ())) == len(self._experiment.arms)

    @property
    def whole(self) -> int:
        """How many are."""
        return sum(map(self.is_whole, self._done))

    @property
    def _on_the_way(self) -> int:
        """Those that are whole, and those that a living host makes or will continue."""
        return sum(self.is_whole(block) or whose in self._alive for block, whose in self._host_of.items())

    def _cells(self, block: int) -> tuple[Cell, ...]:
        return next(islice(self._experiment.blocks(), block - 1, None))
