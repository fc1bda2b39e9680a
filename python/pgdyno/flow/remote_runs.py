"""Runs on other hosts: blocks go to hosts, their results are written here, and a lost host's block is made again.

Ratios are paired within a block, so all runs of a block are of one host. What has been done is known from the runs that are there: a
block is of the host that they name. One whose host is gone is left as it is, and another is made under a number that is free.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

from pgdyno.experiment import Cell, Experiment
from pgdyno.hosts.connection import DriverHost

from ..base.errors import EXIT_INTERRUPTED, HostError, PgdynoError
from ..base.text import parsed_json
from ..hosts.examine import SpreadOptions
from ..results import open_experiment
from ..results.record import ExperimentRecord, LoadRecord, RunRecord
from ..results.writer import DirectoryWriter, LoadWriter, RunWriter
from .cell import Listener, ProgressStep
from .remote_worker import Frame, Frames


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


Came = dict[str, tuple[int, str | None]]
"""What came of a data set: table -> its rows, and their digest where the program that filled it reports one."""


class RemoteResults:
    """What one host brings, one directory after the other."""

    def __init__(
        self, directory: Path, written: ExperimentRecord, host: DriverHost, data_sets: dict[str, tuple[str, Came]]
    ) -> None:
        """``data_sets`` is shared by all hosts: the tables -> who filled them first, and what came of it."""
        self._directory, self._written, self._host, self._data_sets = directory, written, host, data_sets
        self._writer: DirectoryWriter | None = None

    def take(self, frame: Frame) -> RunRecord | None:
        """One frame; the record of a run that is whole with it, and is kept."""
        head = frame.head
        if "begin" in head:
            self._writer = RunWriter(self._directory.parent, self._directory.name, head["begin"])
        elif "load" in head:
            self._writer = LoadWriter(self._directory, f"{self._host.name} {head['load'].partition('-')[2]}")
        elif "file" in head:
            assert self._writer is not None
            with self._writer.file(head["file"]).open("ab") as file:
                file.write(frame.body)
        elif "loaded" in head:
            self._loaded(LoadRecord.model_validate_json(frame.body))
        else:
            assert "run" in head, head
            return self._run(RunRecord.model_validate_json(frame.body))
        return None

    def failed(self, error: dict[str, Any]) -> PgdynoError:
        """The error of a run there. Its logs are kept here."""
        pgdyno_error = PgdynoError(
            f"{self._host.name}: {error['message']}", remedy=error["remedy"], exit_code=int(error["exit_code"])
        )
        if self._writer is not None:
            self._writer.explain(pgdyno_error)
            self._writer = None
        return pgdyno_error

    def abandon(self) -> None:
        """Remove what is not whole."""
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    def _run(self, record: RunRecord) -> RunRecord:
        assert isinstance(self._writer, RunWriter)
        host = record.world.host.model_copy(update={"label": self._host.name, "cpu": self._host.facts.cpu})
        made = record.model_copy(update={"world": record.world.model_copy(update={"host": host})})
        self._writer.finish(made)
        self._writer = None
        return made

    def _loaded(self, record: LoadRecord) -> None:
        assert isinstance(self._writer, LoadWriter)
        self._require_same(record)
        name = self._writer.final_path.name
        title = f"{record.title} on {self._host.name}"
        self._writer.finish(record.model_copy(update={"load_id": name, "title": title}))
        self._writer = None

    def _require_same(self, record: LoadRecord) -> None:
        """Refuse data sets that differ: the runs of different hosts would have answered different questions."""
        key = json.dumps(record.tables, sort_keys=True)
        came = {table: (rows, record.digests.get(table)) for table, rows in record.rows.items()}
        first, of_first = self._data_sets.setdefault(key, (self._host.name, came))
        if other := sorted(table for table in came | of_first if came.get(table) != of_first.get(table)):
            raise HostError(
                f"{record.title}: {self._host.name} has filled other rows than {first}, in {', '.join(other)}",
                remedy="install the same pgdyno on all hosts",
            )


_UNDO_S = 60.0
"""What a host needs to undo a run that is interrupted: a server is stopped, volumes are detached."""
_EXIT_S = 10.0
"""Between the end of what a host says and its own."""
_LAST_LINES = 3
"""Of what a host said when it broke: the last ones name the error."""


def make(
    experiment: Experiment, spread: SpreadOptions, directory: Path, written: ExperimentRecord, listener: Listener
) -> None:
    """Have the runs that are missing made, until as many blocks are whole as there are replicates."""
    from pgdyno.hosts.connection import Connection

    from ..hosts.examine import require_alike

    runs = [run.record for run in open_experiment(directory).runs]
    with Connection(spread) as connection, tempfile.TemporaryDirectory() as logs:
        hosts = connection.everyone()
        if not spread.mixed:
            require_alike({name: host.facts for name, host in hosts.items()})
        blocks = Blocks(experiment, runs, hosts)
        _HostPool(experiment, directory, written, listener, blocks, Path(logs)).make(list(hosts.values()))


class _WorkerHost:
    """A host at work."""

    def __init__(self, host: DriverHost, logs: Path, brought: RemoteResults) -> None:
        self.name = host.name
        self.brought = brought
        self.log = logs / f"{host.name}.err"
        self.process = host.runs(self.log)
        self.frames = Frames()
        self.cells: dict[int, Cell] = {}
        """Position -> what it makes now."""
        self.is_ready = False
        """Whether its data sets are filled."""

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a block."""
        return self.is_ready and not self.cells

    @property
    def stream(self) -> int:
        """The descriptor of what it says."""
        return self.process.stdout.fileno()

    def tell(self, **order: object) -> None:
        """Give it an order."""
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """Nothing more is heard of it, and what is not whole is removed."""
        self.brought.abandon()
        self.process.stdin.close()
        self.process.stdout.close()

    def why_ended(self) -> str:
        """Why it ended too early. :class:`PgdynoError` where it is not lost: what runs there has failed."""
        code = self.process.wait(_EXIT_S)
        texts = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if code == EXIT_INTERRUPTED:
            return "it was interrupted there"
        if code >= 0:
            last = " ".join(texts[-_LAST_LINES:]) or "it said nothing"
            raise PgdynoError(f"{self.name}: the runs ended with exit code {code}: {last}", remedy="look at its log")
        with contextlib.suppress(ValueError, KeyError, IndexError, TypeError):
            return str(parsed_json(texts[-1])["error"]["message"])
        return f"its process was ended by signal {-code}"


class _HostPool:
    """The hosts, and which of them makes what."""

    def __init__(
        self,
        experiment: Experiment,
        directory: Path,
        written: ExperimentRecord,
        listener: Listener,
        blocks: Blocks,
        logs: Path,
    ) -> None:
        self._experiment = experiment
        self._directory, self._written, self._listener = directory, written, listener
        self._blocks, self._logs = blocks, logs
        self._at_work: list[_WorkerHost] = []
        self._spare: list[DriverHost] = []
        self._data_sets: dict[str, tuple[str, Came]] = {}
        self._selector = selectors.DefaultSelector()

    def make(self, hosts: Sequence[DriverHost]) -> None:
        """Start as many hosts as there are blocks to make, and follow them to the end."""
        lacking = self._experiment.replicates - self._blocks.whole
        # Those that have begun a block continue it, so they come first.
        self._spare = sorted(hosts, key=lambda host: not self._blocks.has_begun(host.name))
        with self._selector:
            try:
                for _ in range(min(lacking, len(hosts))):
                    self._start()
                self._follow()
            finally:
                self._end()

    def _start(self) -> None:
        host = self._spare.pop(0)
        brought = RemoteResults(self._directory, self._written, host, self._data_sets)
        worker_host = _WorkerHost(host, self._logs, brought)
        self._at_work.append(worker_host)
        # Now, not when it is ready: a host that is ready sooner would take the blocks of those that fill their data sets still.
        self._give(worker_host)
        self._selector.register(worker_host.stream, selectors.EVENT_READ, worker_host)
        worker_host.tell(experiment=json.loads(self._written.model_dump_json()))

    def _follow(self) -> None:
        while self._blocks.whole < self._experiment.replicates:
            for key, _ in self._selector.select():
                result: _WorkerHost = key.data
                text = os.read(result.stream, 1 << 20)
                if not text:
                    self._selector.unregister(key.fd)
                    self._at_work.remove(result)
                    self._lose(result, result.why_ended())
                for frame in result.frames.feed(text):
                    self._hear(result, frame)

    def _hear(self, one: _WorkerHost, frame: Frame) -> None:
        head = frame.head
        if "step" in head:
            text = f"{one.name}: {head['step']}: {head['text']}"
            number = len(self._at_work)
            self._listener.step(ProgressStep("1 host" if number == 1 else f"{number} hosts", text, head["share"]))
        elif "note" in head:
            self._listener.note(f"{one.name}: {head['note']}")
        elif "ready" in head:
            one.is_ready = True
            self._give(one)
        elif "error" in head:
            raise one.brought.failed(head["error"])
        elif (record := one.brought.take(frame)) is not None:
            cell = one.cells.pop(record.position)
            self._blocks.keep(cell)
            self._listener.run(cell, self._directory / "runs" / record.run_id)
            one.tell(kept=record.position)
            if one.is_idle:
                self._give(one)

    def _give(self, one: _WorkerHost) -> None:
        """The block that a host makes, if one is left for it; told when it is ready."""
        if not one.cells:
            one.cells = {cell.position: cell for cell in self._blocks.next_for(one.name)}
        if one.is_ready and one.cells:
            one.tell(block=next(iter(one.cells.values())).block, positions=sorted(one.cells))

    def _lose(self, one: _WorkerHost, why: str) -> None:
        """Have its block made by another: by one that waits, by one that was not needed, or when one has ended its own."""
        one.close()
        left = self._blocks.lose(one.name)
        what = f"; what it had made of replicate {left[0]} is kept, and not paired" if left else ""
        self._listener.note(f"{one.name} is lost: {why}{what}")
        if not self._at_work and not self._spare:
            raise HostError(f"no host is left; {one.name}: {why}", remedy="start the workers again")
        if idle := [other for other in self._at_work if other.is_idle]:
            self._give(idle[0])
        elif self._spare:
            self._start()

    def _end(self) -> None:
        """End all: they wait for a block, or are interrupted, and undo what they have changed."""
        for host in self._at_work:
            if host.is_idle:
                host.tell(end=True)
            else:
                host.process.send_signal(signal.SIGTERM)
        for host in self._at_work:
            with contextlib.suppress(subprocess.TimeoutExpired):
                host.process.wait(_UNDO_S)
            if host.process.poll() is None:
                host.process.kill()
            host.close()
