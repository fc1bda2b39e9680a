"""An experiment on a volume without limits with a capture and a dumped database, run by its command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.results import open_experiment
from tools.captured.logged import dumped

from ..support.commands import pgdyno

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.results import StoredRun
    from pgdyno.server.cluster import Cluster

FILE = """
schema_version = 1
replicates = {replicates}
[instance]
memory = "384MiB"
[world]
volume = "null"
[workload]
kind = "{kind}"
capture = "{capture}"
allow_outside = ["role:postgres"]
{keys}
[workload.database]
from = "{database}.dump"
globals = "{database}.roles"
{factors}
"""


@dataclass(frozen=True)
class Ran:
    """What is left of it."""

    directory: Path
    runs: list[StoredRun]
    document: dict[str, Any]
    """What the command printed."""


def ran(
    cluster: Cluster,
    database: str,
    capture: Path,
    folder: Path,
    *keys: str,
    kind: str,
    stats: tuple[Path, Path] | None = None,
    replicates: int = 1,
    factors: str = "",
) -> Ran:
    """Dump a database, and run a capture of ``kind`` on it; ``keys`` are lines of the workload, ``factors`` more tables."""
    dumped(cluster, database, folder)
    if stats is not None:
        keys = (*keys, f"stats = {json.dumps(list(map(str, stats)))}")
    file, results = folder / "experiment.toml", folder / "results"
    document = {"kind": kind, "capture": capture, "replicates": replicates, "database": database}
    file.write_text(FILE.format(keys="\n".join(keys), factors=factors, **document))
    ended = pgdyno("run", file, "--results", results, "--keep-invalid", "--json", code=0)
    (directory,) = (path for path in results.iterdir() if (path / "experiment.json").is_file())
    return Ran(directory, list(open_experiment(directory).runs), json.loads(ended.out))
