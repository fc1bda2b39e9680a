"""The runner of a load: the input of the loader's process, when it begins, and when measuring ends."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import Any

from pgdyno.workload.bulk_load.asked import BulkTable
from pgdyno.workload.bulk_load.files import Files
from pgdyno.workload.bulk_load.heard import LoaderOutput
from pgdyno.workload.helper_process import HelperProcess, Words, environment
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server
from pgdyno.workload.clock import now_ns

WORDS = Words("the loader", "the load", "raise workload.bulk.timeout")


@dataclass(frozen=True)
class BulkLoadRunner:
    """Runs a load; it is a :class:`pgdyno.workload.outcome.Runner`."""

    bulk: BulkTable
    files: tuple[Files, ...]

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Load. There is neither a warm-up nor a duration: what is measured is all of it, from the word go to the checkpoint.

        Raises what the loader ends with; :class:`PgdynoError` when it takes longer than it may.
        """
        own, output = request.clock, LoaderOutput(self.files)
        limit_s = self.bulk.timeout_s * own.dilation
        command = [*request.prefix, sys.executable, "-m", "pgdyno.loader.several"]
        with HelperProcess(command, request.out_dir / "load.log", environment(request.env), WORDS) as process:
            process.ask(self._document(server))
            request.on_start(process.pid)
            request.on_measure_begin()
            begin_ns = now_ns()
            with contextlib.closing(process.go(limit_s)) as lines:
                for line in lines:
                    output.take(line)
                    request.progress(output.share, output.words)
            request.on_measure_end()
        if output.end_ns is None:
            raise process.failure(limit_s)
        return output.outcome(self.bulk, begin_ns, output.end_ns, own)

    def _document(self, server: Server) -> dict[str, Any]:
        """The input of the process."""
        return {
            "parallel": self.bulk.order == "parallel",
            "loads": [self._asked(file, server.dsn) for file in self.files],
        }

    def _asked(self, files: Files, dsn: str) -> dict[str, Any]:
        """The fields of :class:`pgdyno.loader.Asked` for one table. What is not said is as in `pgdyno load`."""
        bulk = self.bulk
        document: dict[str, Any] = {
            "sources": [str(path) for path in files.paths],
            "into": dsn,
            "table": files.table,
            "create": bulk.generate is None and bulk.definitions is None,
            "vacuum": bulk.vacuum,
            "checkpoint": False,
            "autovacuum_off": bulk.tuned,
            "durable_chunks": not bulk.tuned,
            "indexes": bulk.indexes if bulk.tuned else "keep",
            **({} if bulk.generated is None else bulk.generated.loaded_as),
        }
        if bulk.connections is not None:
            document |= {"connections": bulk.connections, "connections_max": bulk.connections}
        return document if bulk.chunk_bytes is None else document | {"chunk_bytes": bulk.chunk_bytes}
