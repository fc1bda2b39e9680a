"""Several tables loaded by one process, one after the other or all at once: ``python -m pgdyno.loader.several``.

For measuring loads. Standard input has a document on its first line, and a second line when the loads shall begin:
starting Python is none of what is measured. Standard output has a line of JSON for whatever happens, with the instant
(CLOCK_MONOTONIC)::

    {"ready": true}
    {"begin": "title", "t_ns": ...}                           a table's load begins
    {"table": "title", "t_ns": ..., "event": {...}}           what `pgdyno load --json` prints
    {"loaded": {...}, "table": "title", "t_ns": ...}          what it came to
    {"checkpoint": {"begin_ns": ..., "end_ns": ...}}          one for all, where the role may
    {"end": true, "t_ns": ...}

or, last, ``{"error": {"message", "remedy"}}`` and exit code 2. When standard input ends before, the parent process is gone, and this
process and the engines that it has started end too.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from pgdyno.loader import server
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.ending import server_errors
from pgdyno.loader.flow import load_as_asked

from ..base import engine
from ..base.errors import PgdynoError

Tell: TypeAlias = Callable[[Mapping[str, Any]], None]

_LATER = ("psycopg", "pyarrow")
"""Imported by a load when it comes to them."""


def load_all(loads: Sequence[LoadOptions], *, parallel: bool, tell: Tell) -> None:
    """Load each of them, then make one CHECKPOINT. Raises what the first one that fails ends with, when all have ended."""
    with ThreadPoolExecutor(len(loads) if parallel else 1, "pgdyno-load") as pool:
        begun = [pool.submit(_load, load, tell) for load in loads]
        try:
            for item in begun:
                item.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    with server_errors():
        _checkpoint(loads[0].into, tell)
    tell({"end": True, "t_ns": _now_ns()})


def _load(options: LoadOptions, tell: Tell) -> None:
    tell({"begin": options.table, "t_ns": _now_ns()})
    done = load_as_asked(options, lambda event: tell({"table": options.table, "t_ns": _now_ns(), "event": dict(event)}))
    tell({"loaded": done.document(), "table": options.table, "t_ns": _now_ns()})


def _checkpoint(into: str, tell: Tell) -> None:
    with contextlib.closing(server.connect_another(into)) as connection:
        if not server.facts(connection).may_checkpoint:
            return
        begin_ns = _now_ns()
        server.run(connection, "CHECKPOINT")
        tell({"checkpoint": {"begin_ns": begin_ns, "end_ns": _now_ns()}})


def main() -> int:
    """Do what standard input asks for; returns the exit code."""
    document = json.loads(sys.stdin.readline())
    lock = threading.Lock()

    def tell(event: Mapping[str, Any]) -> None:
        with lock:
            sys.stdout.write(json.dumps(event) + "\n")
            sys.stdout.flush()

    try:
        loads = [LoadOptions(**{**load, "sources": tuple(load["sources"])}) for load in document["loads"]]
        for name in _LATER:
            importlib.import_module(name)
        engine.checked()
        tell({"ready": True})
        if not sys.stdin.readline():
            return 1
        threading.Thread(target=_end_with_who_asked, name="pgdyno-asked", daemon=True).start()
        load_all(loads, parallel=bool(document["parallel"]), tell=tell)
    except PgdynoError as error:
        tell({"error": {"message": error.message, "remedy": error.remedy}})
        return 2
    return 0


def _end_with_who_asked() -> None:
    """Wait for the end of standard input, below Python's buffers, which this thread must not hold when the process ends."""
    while os.read(sys.stdin.fileno(), 1 << 10):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGTERM)
    else:
        os.kill(os.getpid(), signal.SIGTERM)


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


if __name__ == "__main__":
    sys.exit(main())
