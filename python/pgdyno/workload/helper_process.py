"""A process of pgdyno's own that does a run's work: started, told what to do, let go, listened to, and ended whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..base import engine
from ..base.errors import EngineError, PgdynoError

_START_S = 60.0
"""Within which the process has to be ready: it imports what its work needs, which takes a second or two."""
_EXIT_S = 10.0


@dataclass(frozen=True)
class Words:
    """What its errors call it."""

    process: str
    """``the loader``."""
    work: str
    """``the load``."""
    late_remedy: str
    """What to do when the work takes too long."""


class HelperProcess:
    """The process, in a group of its own with the engines that it starts; leaving the block ends what is left of it."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str], words: Words) -> None:
        self._command, self._log, self._env, self._words = command, log, env, words
        self._late = threading.Event()
        self._error: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                engine.child(self._command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(self._env),
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        process = self._process
        self._signal(signal.SIGTERM)
        try:
            process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Tell it what to do, and wait until it could begin; returns the line that says so."""
        self._send(json.dumps(document))
        with contextlib.closing(self._lines(_START_S)) as lines:
            for line in lines:
                if line.get("ready"):
                    return line
        if self._late.is_set():
            raise EngineError(
                f"{self._words.process} was not ready within {_START_S:,.0f} s",
                remedy="run it again when the machine is less busy",
            )
        raise self.failure(_START_S)

    def go(self, limit_s: float) -> Generator[dict[str, Any]]:
        """Let it begin; every line that it says until it has ended, or until it took too long."""
        self._send("go")
        yield from self._lines(limit_s)

    def failure(self, limit_s: float) -> PgdynoError:
        """Why it ended before its time."""
        if self._error is not None:
            return PgdynoError(self._error["message"], remedy=self._error["remedy"])
        if self._late.is_set():
            return PgdynoError(
                f"{self._words.work} was not done within {limit_s:,.0f} s", remedy=self._words.late_remedy
            )
        text = self._log.read_text(errors="replace")[-1000:].strip() or "it said nothing"
        return EngineError(f"{self._words.process} ended early: {text}", remedy="look at the server's log")

    def _lines(self, limit_s: float) -> Generator[dict[str, Any]]:
        assert self._process.stdout is not None
        timer = threading.Timer(limit_s, self._too_late)
        timer.daemon = True
        timer.start()
        try:
            for line in self._process.stdout:
                document = json.loads(line)
                if "error" in document:
                    self._error = document["error"]
                else:
                    yield document
        finally:
            timer.cancel()

    def _too_late(self) -> None:
        self._late.set()
        self._signal(signal.SIGKILL)

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and what it said explains why
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _signal(self, number: signal.Signals) -> None:
        # The group outlives its first process as long as an engine is there.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """This process's own, without PostgreSQL's variables: the server is named, and what else holds is the server's."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("PG") or name.startswith("PGDYNO_")
    }
    return {**kept, "LC_ALL": "C", **(more or {})}
