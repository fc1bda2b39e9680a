"""Many command lines in little time: one process that has imported everything forks a child for each.

``python -m tests.cli.forked`` reads lists of :class:`Job`, as JSON in a line each, and answers each with what became of them. It may
be started with fewer rights (``setpriv``), which its children then have.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType

DEADLINE_S = 120
"""A command that takes longer hangs."""


@dataclass(frozen=True)
class Job:
    """One command line, and the world around it."""

    arguments: list[str]
    """``{pid}`` in them is the number of the job's process: jobs run side by side, and may not share what they write."""
    stdout: str = "file"
    """``file``, ``full``, ``closed``."""
    stderr: str = "file"
    signal: int = 0
    """Sent by the command to itself, at the call that ``at_call`` counts of functions of pgdyno; 0: none, -1: calls are
    counted."""
    at_call: int = 0
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """What became of a command line."""

    code: int
    out: str
    err: str
    calls: int
    """Calls of functions of pgdyno."""


_kept: list[subprocess.Popen[str]] = []
"""The process that all jobs go to which want no other rights and no other environment."""


def run(jobs: Sequence[Job], prefix: Sequence[str] = (), **environment: str) -> list[Ended]:
    """Run each job in turn."""
    if _kept and not (prefix or environment):
        return _ask(_kept[-1], jobs)
    with _started(prefix, environment) as process:
        return _ask(process, jobs)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """One process for all jobs in a ``with`` block: to import everything takes a second."""
    with _started((), {}) as process:
        _kept.append(process)
        try:
            yield
        finally:
            _kept.remove(process)


@contextlib.contextmanager
def _started(prefix: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*prefix, sys.executable, "-m", "tests.cli.forked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"} | environment,
    ) as process:
        yield process  # it ends with its input


def _ask(process: subprocess.Popen[str], jobs: Sequence[Job]) -> list[Ended]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps([asdict(job) for job in jobs]) + "\n")
    process.stdin.flush()
    return [Ended(**load) for load in json.loads(process.stdout.readline())]


def _child(job: Job, out: int, err: int, calls: int) -> None:
    """Never returns."""
    from pgdyno.cli import main

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the jobs to come are not the command's
    full = os.open("/dev/full", os.O_WRONLY)
    for descriptor, how, usual in ((1, job.stdout, out), (2, job.stderr, err)):
        if how == "closed":
            os.close(descriptor)
        else:
            os.dup2(full if how == "full" else usual, descriptor)
    os.environ.update(job.environment)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(DEADLINE_S)
    sys.argv = ["pgdyno", *(word.replace("{pid}", str(os.getpid())) for word in job.arguments)]
    # As the interpreter begins.
    sys.stdin = None if job.stdout == "closed" else Path(os.devnull).open()  # noqa: SIM115 (the process is their context)
    sys.stdout = None if job.stdout == "closed" else open(1, "w", closefd=False)  # noqa: SIM115 (the process is their context)
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115 (the process is their context)
    count = 0

    def counted(frame: FrameType, _event: str, _argument: object) -> None:
        # It asks for no more of a call than that, so that nothing else of it comes here.
        nonlocal count
        if "/pgdyno/" in frame.f_code.co_filename:
            count += 1
            if count == job.at_call:
                os.kill(os.getpid(), job.signal)

    code = 1
    try:
        if job.signal:
            sys.settrace(counted)
        main.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - what escapes from a command is what is looked for
        import traceback

        os.write(err, traceback.format_exc().encode())
    finally:
        sys.settrace(None)
        with contextlib.suppress(Exception):
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        os.write(calls, str(count).encode())
        os._exit(code)


class _Child:
    """A command that runs."""

    def __init__(self, job: Job) -> None:
        self._files = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115 (the process is their context)
        self._pid = os.fork()
        if not self._pid:
            _child(job, *(file.fileno() for file in self._files))

    def ended(self) -> Ended:
        """Wait for it."""
        _, status = os.waitpid(self._pid, 0)
        texts = []
        for file in self._files:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        return Ended(os.waitstatus_to_exitcode(status), texts[0], texts[1], int(texts[2] or 0))


def _all(jobs: Sequence[Job]) -> Iterator[Ended]:
    """As many at a time as there are CPUs."""
    running: deque[_Child] = deque()
    for job in jobs:
        if len(running) >= (os.cpu_count() or 1):
            yield running.popleft().ended()
        running.append(_Child(job))
    for child in running:
        yield child.ended()


def _serve() -> None:
    import duckdb  # noqa: F401 (imported once for all children)
    import pyarrow.parquet  # noqa: F401 (imported once for all children)
    import pydantic  # noqa: F401 (imported once for all children)

    from pgdyno.base import engine
    from pgdyno.base.errors import PgdynoError
    from pgdyno.cli import main
    from pgdyno.cli.main import COMMANDS

    for name in COMMANDS:
        main.cli.get_command(main.click.Context(main.cli), name)
    with contextlib.suppress(PgdynoError):
        engine.checked()  # each would compute again what the engine's sources come to
    for line in sys.stdin:
        jobs = [Job(**load) for load in json.loads(line)]
        print(json.dumps([asdict(ended) for ended in _all(jobs)]), flush=True)


if __name__ == "__main__":
    _serve()
