"""Watches that nobody made, in one directory, as `pgdyno diagnose --every` leaves them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pgdyno.advise.diagnose.calendar import MISSED_FILE

from ..analysis.synthetic import GP3, GP3_WAITS, Plan, make_experiment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SECONDS = 10
SECOND_NS = 1_000_000_000
SERVER = "service=app user=monitor"
IDLE = (("Client", "ClientRead", 2.0),)
"""Two sessions that wait for their client."""
FULL = replace(GP3, waits=GP3_WAITS)
"""At its 3,000 IOPS, with sessions that wait for reads."""
QUIET = replace(GP3, tps=10, waits=IDLE, above_iops=0.0, server_share=0.02)


def make_watch(root: Path, begin_unix_s: float, *, full: bool, server: str = SERVER) -> Path:
    """The directory of one watch: of a gp3 at its IOPS, or of a server of which hardly anything is asked."""
    created_ns = int(begin_unix_s * SECOND_NS)
    plan = Plan(arms=(FULL if full else QUIET,), replicates=1, measure_s=SECONDS, created_unix_ns=created_ns)
    made = make_experiment(root / f"new-{created_ns}", plan)
    path = root / f"{datetime.fromtimestamp(begin_unix_s, UTC):%Y%m%dT%H%M%SZ}-diagnose-5c0ffe"
    made.rename(path)
    made.parent.rmdir()
    experiment = json.loads((path / "experiment.json").read_text())
    (path / "experiment.json").write_text(json.dumps({**experiment, "kind": "diagnose", "arms": [server]}))
    (run,) = path.glob("runs/*")
    record = json.loads((run / "run.json").read_text())
    record["workload"] = {"kind": "observe", "role": "monitor", "standby": False, "pooler": False}
    record["arm"] = server
    begin_ns = next(phase["begin_ns"] for phase in record["phases"] if phase["name"] == "measure")
    record["anchor"]["unix_ns"] = created_ns - (begin_ns - record["anchor"]["monotonic_ns"])
    record["world"] |= {"kind": "real", "attach": {}}
    (run / "run.json").write_text(json.dumps(record))
    for table in ("volume", "volume_latency", "instance"):
        (run / f"probe/{table}.parquet").unlink(missing_ok=True)
    return run


def make_watches(root: Path, begin_unix_s: float, hours: Sequence[bool | None]) -> None:
    """A watch each hour: of a full volume, of a quiet one, or None where the server did not answer."""
    root.mkdir(exist_ok=True)
    for place, full in enumerate(hours):
        at_s = begin_unix_s + 3600 * place
        if full is None:
            with (root / MISSED_FILE).open("a") as file:
                file.write(json.dumps({"unix_s": at_s, "why": "the server cannot be connected to"}) + "\n")
        else:
            make_watch(root, at_s, full=full)
