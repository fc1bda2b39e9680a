"""What a host that makes runs says while it does: JSON lines, each with the bytes that it announces.

::

    {"begin": "03-gp3-r2", "position": 3}
    {"file": "logs/pgbench.log", "bytes": 812}      and 812 bytes; a large file comes in several such parts
    {"run": "03-gp3-r2", "bytes": 4711}             and its run.json, when all files have come
"""

from __future__ import annotations

import io
import json
import os
import queue
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, NoReturn

from pgdyno.experiment import Cell
from pgdyno.flow.plan import plan
from pgdyno.flow.resume import recorded

from ..base.errors import EXIT_INTERRUPTED, PgdynoError
from ..machine.scratch import scratch_directory
from ..results import names
from ..results.names import FAILED, LOGS
from ..results.record import ExperimentRecord
from ..results.writer import RunWriter, held, write_experiment
from ..workload.fill import Progress
from .cell import Context, run_cell

PART_BYTES = 1 << 20
_ANNOUNCED = "bytes"


@dataclass(frozen=True)
class Frame:
    """One line, and what it announced."""

    head: dict[str, Any]
    body: bytes = b""


def packed(body: bytes = b"", **head: Any) -> bytes:
    """A frame as it is sent."""
    announced = head | ({_ANNOUNCED: len(body)} if body else {})
    return json.dumps(announced).encode() + b"\n" + body


def files(directory: Path, but: str = "") -> Iterator[bytes]:
    """The files below a directory as frames, each by its path in it; without the one that is named ``but``."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if not path.is_file() or name == but:
            continue
        with path.open("rb") as file:
            part = file.read(PART_BYTES)
            yield packed(part, file=name)
            while part := file.read(PART_BYTES):
                yield packed(part, file=name)


class Frames:
    """Takes the stream in pieces of any size and gives back its frames."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._head: dict[str, Any] | None = None

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The frames that are whole with this piece."""
        self._rest += piece
        while True:
            if self._head is None:
                line, newline, _ = self._rest.partition(b"\n")
                if not newline:
                    return
                del self._rest[: len(line) + 1]
                self._head = json.loads(line)
            size = int(self._head.get(_ANNOUNCED, 0))
            if len(self._rest) < size:
                return
            head, body = self._head, bytes(self._rest[:size])
            del self._rest[:size]
            self._head = None
            yield Frame(head, body)


_TOLD_EVERY_S = 1.0
"""Progress is for eyes; saying it takes CPU from the run."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Orders:
    """The lines of standard input, heard while runs are made, so that its end interrupts them."""

    def __init__(self, source: io.FileIO) -> None:
        self._source = source
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._is_over = False
        threading.Thread(target=self._hear, daemon=True).start()

    def next(self) -> dict[str, Any]:
        """Wait for one."""
        return self._lines.get()

    def _hear(self) -> None:
        for line in self._source:
            order = json.loads(line)
            self._is_over = "end" in order
            self._lines.put(order)
        if not self._is_over:
            os.kill(os.getpid(), signal.SIGTERM)


class _RemoteLogs(RunWriter):
    """The logs of a run that fails go to the coordinator, which says where they are."""

    def explain(self, error: Exception) -> None:
        self.fail()


class _Says:
    """Writes frames."""

    def __init__(self, to: IO[bytes]) -> None:
        self._to = to
        self._told_s, self._title = 0.0, ""

    def frame(self, frame: bytes) -> None:
        self._to.write(frame)
        self._to.flush()

    def note(self, text: str) -> None:
        self.frame(packed(note=text))

    def step(self, title: str) -> Progress:
        """The progress of a step by its title."""

        def progress(share: float, text: str) -> None:
            now_s = time.monotonic()
            if title != self._title or now_s - self._told_s >= _TOLD_EVERY_S:
                self._title, self._told_s = title, now_s
                self.frame(packed(step=title, share=share, text=text))

        return progress

    def directory(self, path: Path, document: str, **head: Any) -> None:
        """A directory that is finished, its record last."""
        for frame in files(path, but=document):
            self.frame(frame)
        self.frame(packed((path / document).read_bytes(), **head))


def serve(orders: _Orders, says: _Says) -> None:
    """Make what is asked for, until the order to end."""
    record = ExperimentRecord.model_validate(orders.next()["experiment"])
    with scratch_directory(Path(tempfile.gettempdir())) as scratch:
        directory = write_experiment(scratch, record)
        planned = plan(recorded(directory), resume=directory, ordered=True)
        with held(directory):
            planned.world.clean_up(says.note)
            with planned.world.prepared(planned.due, directory, says.step, says.note) as ready:
                for path in sorted((directory / "loads").glob("*")):
                    says.frame(packed(load=path.name))
                    says.directory(path, "load.json", loaded=path.name)
                says.frame(packed(ready=True))
                experiment = planned.experiment
                context = Context(experiment, record.experiment_id, record.experiment_hash, record.command, ready)
                while "block" in (order := orders.next()):
                    block = next(islice(experiment.blocks(), order["block"] - 1, None))
                    for cell in block:
                        if cell.position in order["positions"]:
                            _make(context, cell, directory, says)
                            kept = orders.next()
                            assert kept == {"kept": cell.position}, kept


def _make(context: Context, cell: Cell, directory: Path, says: _Says) -> None:
    name = names.run_name(cell.position, cell.arm.label, cell.block)
    writer = _RemoteLogs(directory.parent, directory.name, name)
    says.frame(packed(begin=name, position=cell.position))
    try:
        path = run_cell(context, cell, writer, says.step(f"{cell.arm.label}, replicate {cell.block}"))
    except PgdynoError:
        kept = directory / FAILED / name
        if kept.is_dir():
            logs = directory / FAILED / LOGS
            kept.rename(logs)
            for frame in files(directory / FAILED):
                says.frame(frame)
        raise
    says.directory(path, "run.json", run=name)
    shutil.rmtree(path)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    """Once: a second signal must not interrupt the undoing."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Serve a worker; the exit code."""
    for number in _ENDING:
        signal.signal(number, _interrupt)
    says = _Says(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # what libraries print is not part of the stream
    try:
        # Without a buffer, whose lock a thread that still listens would hold when Python ends.
        serve(_Orders(os.fdopen(os.dup(0), "rb", buffering=0)), says)
    except PgdynoError as error:
        document = {"message": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
        says.frame(packed(error=document))
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
